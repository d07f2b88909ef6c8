// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

namespace sluice::broker {
namespace {

using Contents = ResourceTurns::Contents;

// Several readers hold together; a writer waits for all of them, and the reader behind it for the
// writer.
TEST(ResourceTurnsTest, ReadersTogetherWritersAlone) {
  ResourceTurns turns;
  turns.Request(1, ResourceAccess::kRead);
  turns.Request(2, ResourceAccess::kRead);
  turns.Request(3, ResourceAccess::kWrite);
  turns.Request(4, ResourceAccess::kRead);
  EXPECT_EQ(turns.TakeGranted(), (std::vector<uint64_t>{1, 2}));
  turns.End(1, Contents::kWritten);
  EXPECT_TRUE(turns.TakeGranted().empty());
  turns.End(2, Contents::kWritten);
  EXPECT_EQ(turns.TakeGranted(), std::vector<uint64_t>{3});
  EXPECT_TRUE(turns.has_writer());
  turns.End(3, Contents::kWritten);
  EXPECT_EQ(turns.TakeGranted(), std::vector<uint64_t>{4});
  EXPECT_EQ(turns.generation(), 1u);
}

// A writer that gives up its place lets the readers behind it in at once.
TEST(ResourceTurnsTest, AnEndedWaitOpensTheQueue) {
  ResourceTurns turns;
  turns.Request(1, ResourceAccess::kRead);
  turns.Request(2, ResourceAccess::kWrite);
  turns.Request(3, ResourceAccess::kRead);
  turns.TakeGranted();
  turns.End(2, Contents::kUntouched);
  EXPECT_EQ(turns.TakeGranted(), std::vector<uint64_t>{3});
}

// Contents are indeterminate from a writer's bad end until the next writer's good one; readers and
// writers who touched nothing change nothing.
TEST(ResourceTurnsTest, IndeterminateUntilAGoodWrite) {
  ResourceTurns turns;
  turns.Request(1, ResourceAccess::kWrite);
  turns.End(1, Contents::kIndeterminate);
  EXPECT_TRUE(turns.indeterminate());
  turns.Request(2, ResourceAccess::kRead);
  turns.End(2, Contents::kWritten);
  turns.Request(3, ResourceAccess::kWrite);
  turns.End(3, Contents::kUntouched);
  EXPECT_TRUE(turns.indeterminate());
  EXPECT_EQ(turns.generation(), 1u);
  turns.Request(4, ResourceAccess::kWrite);
  turns.End(4, Contents::kWritten);
  EXPECT_FALSE(turns.indeterminate());
  EXPECT_EQ(turns.generation(), 2u);
}

// The rule itself, as slow and plain as can be: who may hold is decided by looking at everybody who
// came earlier and has not ended.
class Model {
 public:
  void Request(uint64_t ticket, ResourceAccess access) { line_.push_back({ticket, access}); }
  void End(uint64_t ticket) {
    std::erase_if(line_, [ticket](const Entry& entry) { return entry.ticket == ticket; });
  }
  std::set<uint64_t> Holders() const {
    std::set<uint64_t> holders;
    for (size_t i = 0; i < line_.size(); ++i) {
      const bool reader = line_[i].access == ResourceAccess::kRead;
      const bool only_readers_before =
          std::all_of(line_.begin(), line_.begin() + static_cast<long>(i),
                      [](const Entry& entry) { return entry.access == ResourceAccess::kRead; });
      if (i == 0 || (reader && only_readers_before)) holders.insert(line_[i].ticket);
    }
    return holders;
  }
  const auto& line() const { return line_; }

 private:
  struct Entry {
    uint64_t ticket;
    ResourceAccess access;
  };
  std::vector<Entry> line_;
};

// Every order of up to seven steps, each a reader, a writer, or the end of any one of those in
// line, gives the turns to the same tickets as the rule does.
TEST(ResourceTurnsTest, EveryOrderFollowsTheRule) {
  constexpr int kSteps = 7;
  uint64_t orders = 0;
  const std::function<void(const std::vector<int>&)> run = [&](const std::vector<int>& steps) {
    ResourceTurns turns;
    Model model;
    std::set<uint64_t> holders;
    uint64_t next = 1;
    size_t choices = 2;
    for (const int step : steps) {
      if (step < 2) {
        const ResourceAccess access = step == 0 ? ResourceAccess::kRead : ResourceAccess::kWrite;
        turns.Request(next, access);
        model.Request(next++, access);
      } else {
        const uint64_t ticket = model.line()[static_cast<size_t>(step) - 2].ticket;
        turns.End(ticket, Contents::kWritten);
        model.End(ticket);
        holders.erase(ticket);
      }
      for (const uint64_t ticket : turns.TakeGranted()) {
        ASSERT_TRUE(holders.insert(ticket).second) << "granted twice";
      }
      ASSERT_EQ(holders, model.Holders());
      ASSERT_EQ(turns.holder_count(), holders.size());
      ASSERT_EQ(turns.waiting_count(), model.line().size() - holders.size());
      choices = 2 + model.line().size();
    }
    ++orders;
    if (steps.size() == kSteps || HasFatalFailure()) return;
    for (size_t choice = 0; choice < choices; ++choice) {
      std::vector<int> longer = steps;
      longer.push_back(static_cast<int>(choice));
      run(longer);
    }
  };
  run({});
  EXPECT_GT(orders, 5'000u);
}

}  // namespace
}  // namespace sluice::broker
