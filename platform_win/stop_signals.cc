// SPDX-License-Identifier: Apache-2.0
#include "platform_win/stop_signals.h"

#include <windows.h>

#include <deque>
#include <mutex>

#include "platform_win/handle_table.h"

namespace sluice {
namespace {

struct Raised {
  std::mutex mutex;
  std::deque<StopSignals::Kind> kinds;
  // Set while there are some.
  const OwnedHandle event{::CreateEventW(nullptr, /*bManualReset=*/TRUE, FALSE, nullptr)};
};

Raised& TheRaised() {
  static Raised* raised = new Raised;
  return *raised;
}

// On a thread that the system makes for it. After a closing the process has 5 s.
BOOL WINAPI OnConsole(DWORD) {
  RaiseStopSignal(StopSignals::Kind::kStop);
  return TRUE;
}

class EventSignals final : public StopSignals {
 public:
  explicit EventSignals(UniqueFd fd) : fd_(std::move(fd)) {}
  ~EventSignals() override { ::SetConsoleCtrlHandler(&OnConsole, FALSE); }

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

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::Open() {
  OwnedHandle event = DuplicateHandleHere(TheRaised().event.get());
  if (!event.valid()) return WindowsStatus(::GetLastError(), "duplicating an event");
  ::SetConsoleCtrlHandler(&OnConsole, TRUE);  // Fails in a process without a console: no matter.
  return std::make_unique<EventSignals>(
      AddDescriptor(std::make_shared<HandleObject>(HandleKind::kEvent, std::move(event))));
}

}  // namespace sluice
