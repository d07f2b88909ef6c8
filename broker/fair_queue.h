// SPDX-License-Identifier: Apache-2.0
//
// What several identities wait for, one after the other: each one's own in the order in which it
// came, and one of each in turn. Who has asked for much waits for itself.
//
// Owner: AllocatorLink, LoopQueue. Thread-compatible. Bounded by its owner, who knows what too much
// is.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace sluice::broker {

template <typename Item>
class FairQueue {
 public:
  void Push(const std::string& identity, Item item) {
    std::deque<Item>& own = waiting_[identity];
    if (own.empty() && identity != served_) turns_.push_back(identity);
    own.push_back(std::move(item));
  }

  // Of whose turn it is. There must be one.
  Item Pop() {
    // Behind who came while the last one of its own was worked at.
    if (waiting_.contains(served_)) turns_.push_back(served_);
    served_ = std::move(turns_.front());
    turns_.pop_front();
    const auto found = waiting_.find(served_);
    Item item = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) waiting_.erase(found);
    return item;
  }

  bool empty() const { return waiting_.empty(); }
  size_t CountOf(const std::string& identity) const {
    const auto found = waiting_.find(identity);
    return found == waiting_.end() ? 0 : found->second.size();
  }

 private:
  std::map<std::string, std::deque<Item>> waiting_;  // None is empty.
  std::deque<std::string> turns_;                    // Of those in waiting_, but for served_.
  std::string served_;  // Whose the last Pop was; "" before it: nobody's name.
};

}  // namespace sluice::broker
