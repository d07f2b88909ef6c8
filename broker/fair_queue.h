// SPDX-License-Identifier: Apache-2.0
//
// A queue in which identities take turns: one item of each, and each one's own in the order in
// which they came. An identity that has asked for much delays only itself.
//
// Owner: AllocatorLink, LoopQueue. Thread-compatible. Its owner bounds it.
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

  // The next item of the identity whose turn it is. There must be one.
  Item Pop() {
    // Behind those that came while its last item was worked at.
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
  std::string served_;  // The identity of the last Pop; "" before it, which is nobody's name.
};

}  // namespace sluice::broker
