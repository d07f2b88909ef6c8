// SPDX-License-Identifier: Apache-2.0
// The application's user events that a command waits for, itself or through others: by its wait
// list, by its place in a queue. Whoever would wait for the command asks whether one of them is
// unset still, since setting it may be what the waiting thread would do next.
//
// A command's gates are what was unset when it was enqueued: a user event that is made later cannot
// hold it up. They are noted only while the context has unset user events (Context), so that most
// programs pay one look at a counter for them. Not thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::client {

class Gates {
 public:
  // Of one user event: true once its status is set, or never will be. Release in whoever sets it;
  // pairs with the acquire in Open.
  using Gate = std::shared_ptr<std::atomic<bool>>;

  Gates() = default;
  explicit Gates(Gate gate) { gates_.push_back(std::move(gate)); }

  // All of them are set.
  bool Open() const {
    return std::all_of(gates_.begin(), gates_.end(), [](const Gate& gate) { return IsSet(gate); });
  }
  void Add(const Gates& others) {
    for (const Gate& gate : others.gates_) {
      if (!IsSet(gate) && std::find(gates_.begin(), gates_.end(), gate) == gates_.end())
        gates_.push_back(gate);
    }
  }
  void ForgetSet() { std::erase_if(gates_, IsSet); }

 private:
  static bool IsSet(const Gate& gate) { return gate->load(std::memory_order_acquire); }

  std::vector<Gate> gates_;
};

}  // namespace sluice::client
