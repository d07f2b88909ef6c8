// SPDX-License-Identifier: Apache-2.0
#include "broker/os/poller.h"

#include <windows.h>

#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "broker/base/check.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::os {
namespace {

// One wait of the thread pool for each descriptor: the pool needs one thread for 63 of them. The
// next Wait looks again at each reported descriptor, and starts a new wait if it is not ready.
class PoolPoller final : public Poller {
 public:
  explicit PoolPoller(OwnedHandle wake) : wake_(std::move(wake)) {}

  ~PoolPoller() override {
    while (!watches_.empty()) Remove(watches_.begin()->first, 0);
  }

  // Nobody sends on a pipe that is watched for its hang-up: it becomes ready by its end, or by
  // bytes that are a reason to end it.
  absl::Status Add(uint64_t key, int fd, Interest) override {
    auto watch = std::make_unique<Watch>();
    watch->poller = this;
    watch->key = key;
    watch->object = FindDescriptor(fd);
    if (watch->object == nullptr || watch->object->PrepareWait() == nullptr) {
      return absl::InvalidArgumentError("the descriptor cannot be waited for");
    }
    watches_[key] = std::move(watch);
    unarmed_.insert(key);
    return absl::OkStatus();
  }

  void Remove(uint64_t key, int) override {
    const auto found = watches_.find(key);
    if (found == watches_.end()) return;
    // Its callback does not run any more once this returns.
    if (found->second->wait != nullptr)
      ::UnregisterWaitEx(found->second->wait, INVALID_HANDLE_VALUE);
    watches_.erase(found);
    unarmed_.erase(key);
    const std::lock_guard<std::mutex> lock(mutex_);
    fired_.erase(key);
  }

  void Wait(int timeout_ms, std::vector<uint64_t>* ready) override {
    ready->clear();
    for (auto at = unarmed_.begin(); at != unarmed_.end();) {
      Watch* watch = watches_.at(*at).get();
      HANDLE handle = watch->object->PrepareWait();
      if (::WaitForSingleObject(handle, 0) == WAIT_OBJECT_0) {
        ready->push_back(*at++);
        continue;
      }
      SLUICE_CHECK(::RegisterWaitForSingleObject(&watch->wait, handle, &OnReady, watch, INFINITE,
                                                 WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD));
      at = unarmed_.erase(at);
    }
    const DWORD limit = timeout_ms < 0 ? INFINITE : static_cast<DWORD>(timeout_ms);
    ::WaitForSingleObject(wake_.get(), ready->empty() ? limit : 0);
    std::set<uint64_t> fired;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      fired.swap(fired_);
    }
    for (const uint64_t key : fired) {
      Watch* watch = watches_.at(key).get();
      ::UnregisterWaitEx(std::exchange(watch->wait, nullptr), INVALID_HANDLE_VALUE);
      unarmed_.insert(key);
      ready->push_back(key);
    }
  }

  void Wake() override { ::SetEvent(wake_.get()); }

 private:
  struct Watch {
    PoolPoller* poller = nullptr;
    uint64_t key = 0;
    std::shared_ptr<HandleObject> object;
    HANDLE wait = nullptr;  // The pool's; null if the next Wait looks at it.
  };

  static void CALLBACK OnReady(void* context, BOOLEAN) {
    auto* watch = static_cast<Watch*>(context);
    const std::lock_guard<std::mutex> lock(watch->poller->mutex_);
    watch->poller->fired_.insert(watch->key);
    watch->poller->Wake();
  }

  const OwnedHandle wake_;  // Set by Wake, cleared by the Wait that it ends.

  // Loop thread only.
  std::map<uint64_t, std::unique_ptr<Watch>> watches_;
  std::set<uint64_t> unarmed_;

  std::mutex mutex_;
  std::set<uint64_t> fired_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Poller>> Poller::Create() {
  OwnedHandle wake(::CreateEventW(nullptr, /*bManualReset=*/FALSE, FALSE, nullptr));
  if (!wake.valid()) return WindowsStatus(::GetLastError(), "creating an event");
  return std::make_unique<PoolPoller>(std::move(wake));
}

}  // namespace sluice::os
