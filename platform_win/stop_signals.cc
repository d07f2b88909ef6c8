// SPDX-License-Identifier: Apache-2.0
#include "platform_win/stop_signals.h"

#include <windows.h>

#include <atomic>
#include <deque>
#include <mutex>

#include "platform_win/handles/handle_table.h"

namespace sluice::os {
namespace {

struct Raised {
  std::mutex mutex;
  std::deque<StopSignals::Kind> kinds;
  // Set while there are some.
  const OwnedHandle event{::CreateEventW(nullptr, /*bManualReset=*/TRUE, FALSE, nullptr)};
  std::atomic<bool> ignores_console = false;
};

constexpr DWORD kClosingMs = 4000;

Raised& TheRaised() {
  static Raised* raised = new Raised;
  return *raised;
}

BOOL WINAPI OnConsole(DWORD event) {
  OnConsoleEvent(event);
  return TRUE;
}

class EventSignals final : public StopSignals {
 public:
  explicit EventSignals(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const override { return fd_.get(); }

  std::optional<Kind> Next() override {
    Raised& raised = TheRaised();
    const std::lock_guard<std::mutex> lock(raised.mutex);
    if (raised.kinds.empty()) {
      ::ResetEvent(raised.event.get());
      return std::nullopt;
    }
    const Kind kind = raised.kinds.front();
    raised.kinds.pop_front();
    return kind;
  }

 private:
  const UniqueFd fd_;
};

}  // namespace

void RaiseStopSignal(StopSignals::Kind kind) {
  Raised& raised = TheRaised();
  const std::lock_guard<std::mutex> lock(raised.mutex);
  raised.kinds.push_back(kind);
  ::SetEvent(raised.event.get());
}

void IgnoreConsole() { TheRaised().ignores_console = true; }

// On a thread that the system makes for it.
void OnConsoleEvent(DWORD event) {
  // Only services still run after a user logs off, and it does not concern them.
  if (event == CTRL_LOGOFF_EVENT || TheRaised().ignores_console) return;
  RaiseStopSignal(StopSignals::Kind::kStop);
  // The system ends the process as soon as this returns, or after 5 s; until then the loop may end
  // it properly.
  if (event == CTRL_CLOSE_EVENT || event == CTRL_SHUTDOWN_EVENT) ::Sleep(kClosingMs);
}

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::Open() {
  OwnedHandle event = DuplicateHandleHere(TheRaised().event.get());
  if (!event.valid()) return WindowsStatus(::GetLastError(), "duplicating an event");
  // Fails in a process without a console, which does not matter. It is never removed: that would
  // wait for a handler that waits for the process to end.
  static const bool heard = ::SetConsoleCtrlHandler(&OnConsole, TRUE);
  static_cast<void>(heard);
  return std::make_unique<EventSignals>(
      AddDescriptor(std::make_shared<HandleObject>(HandleKind::kEvent, std::move(event))));
}

}  // namespace sluice::os
