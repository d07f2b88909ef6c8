// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace sluice::broker {
namespace {

constexpr uint64_t kAlice = 11;  // Connections.
constexpr uint64_t kBob = 12;
constexpr uint64_t kCarol = 13;

// The answer that one Acquire was told, if anything yet.
struct Answer {
  uint64_t hold_id = 0;
  int calls = 0;
  absl::StatusOr<ResourceGrant> result = absl::UnknownError("not called");
};

class ResourceRegistryTest : public testing::Test {
 protected:
  ResourceRegistryTest() : registry_(Limits()) {}

  static ResourcesConfig Limits() {
    ResourcesConfig limits;
    limits.max_resources = 6;
    limits.max_resources_per_user = 4;
    limits.max_bytes = 10'000;
    limits.max_bytes_per_user = 6'000;
    limits.max_acquires_per_connection = 8;
    limits.max_watches_per_connection = 2;
    limits.max_wait_ms = 1'000;
    limits.max_linger_ms = 500;
    return limits;
  }

  CreatedResource Make(uint64_t connection, uint64_t size = 1'000, int64_t linger_ms = 0) {
    EXPECT_TRUE(registry_.Reserve("uid:1", size).ok());
    ResourceShape shape;
    shape.size_bytes = size;
    ResourceOptions options;
    options.linger_ms = linger_ms;
    const auto created = registry_.Create(connection, "uid:1", shape, wire::ResourceBacking::kMemfd,
                                          options, ResourceMemory());
    EXPECT_TRUE(created.ok()) << created.status();
    return *created;
  }

  std::shared_ptr<Answer> Acquire(uint64_t connection, const Capability& capability,
                                  ResourceAccess access, uint64_t timeout_ms = 1'000) {
    auto answer = std::make_shared<Answer>();
    answer->hold_id = next_hold_++;
    registry_.Acquire(connection, answer->hold_id, capability.Encode(), access, now_ms_, timeout_ms,
                      [answer](absl::StatusOr<ResourceGrant> result) {
                        ++answer->calls;
                        answer->result = std::move(result);
                      });
    return answer;
  }

  absl::Status Release(uint64_t connection, const Answer& answer,
                       ResourceTurns::Contents contents = ResourceTurns::Contents::kWritten) {
    return registry_.Release(connection, answer.hold_id, contents).status();
  }

  ResourceRegistry registry_;
  int64_t now_ms_ = 1'000'000;
  uint64_t next_hold_ = 1;
};

// Each capability opens what it is for: reading does not write, writing also reads.
TEST_F(ResourceRegistryTest, CapabilitiesAreSeparate) {
  const CreatedResource made = Make(kAlice);
  EXPECT_TRUE(registry_.Open(kBob, made.read.Encode(), ResourceAccess::kRead).ok());
  EXPECT_TRUE(registry_.Open(kBob, made.write.Encode(), ResourceAccess::kRead).ok());
  EXPECT_TRUE(registry_.Open(kBob, made.write.Encode(), ResourceAccess::kWrite).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(
      registry_.Open(kBob, made.read.Encode(), ResourceAccess::kWrite).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(registry_.Destroy(made.read.Encode())));
}

// A wrong secret and a wrong id get the same answer, for every single wrong byte.
TEST_F(ResourceRegistryTest, GuessesAreAllAlike) {
  const CreatedResource made = Make(kAlice);
  const std::string good = made.write.Encode();
  std::set<std::string> answers;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    const absl::Status status = registry_.Open(kBob, bad, ResourceAccess::kRead).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status));
    answers.insert(status.ToString());
  }
  EXPECT_EQ(answers.size(), 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(
      registry_.Open(kBob, good.substr(1), ResourceAccess::kRead).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(
      registry_.Open(kBob, std::string(Capability::kBytes, '\0'), ResourceAccess::kRead).status()));
}

// A wait ends at its deadline with the error that says so, and lets those behind it in.
TEST_F(ResourceRegistryTest, DeadlinesEndWaits) {
  const CreatedResource made = Make(kAlice);
  const auto reader = Acquire(kAlice, made.read, ResourceAccess::kRead);
  const auto writer = Acquire(kBob, made.write, ResourceAccess::kWrite, 100);
  const auto behind = Acquire(kCarol, made.read, ResourceAccess::kRead, 900);
  EXPECT_EQ(reader->calls, 1);
  EXPECT_EQ(registry_.NextDueMs(), now_ms_ + 100);
  registry_.AdvanceTo(now_ms_ + 99);
  EXPECT_EQ(writer->calls, 0);
  registry_.AdvanceTo(now_ms_ + 100);
  EXPECT_TRUE(absl::IsDeadlineExceeded(writer->result.status()));
  EXPECT_TRUE(behind->result.ok());
  EXPECT_FALSE(registry_.NextDueMs().has_value());
}

// A timeout of 0 takes what is free and does not wait; a long one is cut to the limit.
TEST_F(ResourceRegistryTest, ZeroTriesAndLongIsBounded) {
  const CreatedResource made = Make(kAlice);
  const auto first = Acquire(kAlice, made.write, ResourceAccess::kWrite, 0);
  EXPECT_TRUE(first->result.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      Acquire(kBob, made.read, ResourceAccess::kRead, 0)->result.status()));
  Acquire(kBob, made.read, ResourceAccess::kRead, ~uint64_t{0});
  EXPECT_EQ(registry_.NextDueMs(), now_ms_ + 1'000);
}

// A writer's death releases, and the next holders are told, until a writer has released well.
TEST_F(ResourceRegistryTest, DeathLeavesIndeterminateContents) {
  const CreatedResource made = Make(kAlice);
  const auto writer = Acquire(kAlice, made.write, ResourceAccess::kWrite);
  const auto reader = Acquire(kBob, made.read, ResourceAccess::kRead);
  EXPECT_EQ(reader->calls, 0);
  registry_.ConnectionEnded(kAlice, now_ms_);
  ASSERT_TRUE(reader->result.ok());
  EXPECT_TRUE(reader->result->indeterminate);
  EXPECT_TRUE(Release(kBob, *reader).ok());
  const auto second = Acquire(kBob, made.write, ResourceAccess::kWrite);
  EXPECT_TRUE(second->result->indeterminate);
  EXPECT_TRUE(Release(kBob, *second).ok());
  EXPECT_FALSE(Acquire(kBob, made.read, ResourceAccess::kRead)->result->indeterminate);
}

// A reader's death and a waiter's death release, and spoil nothing.
TEST_F(ResourceRegistryTest, DeathOfOthersSpoilsNothing) {
  const CreatedResource made = Make(kAlice);
  Acquire(kBob, made.read, ResourceAccess::kRead);
  const auto dead_waiter = Acquire(kBob, made.write, ResourceAccess::kWrite);
  const auto waiter = Acquire(kAlice, made.write, ResourceAccess::kWrite);
  registry_.ConnectionEnded(kBob, now_ms_);
  EXPECT_TRUE(absl::IsUnavailable(dead_waiter->result.status()));
  ASSERT_TRUE(waiter->result.ok());
  EXPECT_FALSE(waiter->result->indeterminate);
}

// A wait that is cancelled ends; a grant that came before stays, and is released by its name even
// by one who never heard of it.
TEST_F(ResourceRegistryTest, CancelEndsWaitsOnly) {
  const CreatedResource made = Make(kAlice);
  const auto hold = Acquire(kAlice, made.write, ResourceAccess::kWrite);
  const auto wait = Acquire(kBob, made.write, ResourceAccess::kWrite);
  registry_.Cancel(kAlice, wait->hold_id);  // Not hers: nothing happens.
  EXPECT_EQ(wait->calls, 0);
  registry_.Cancel(kBob, wait->hold_id);
  EXPECT_TRUE(absl::IsCancelled(wait->result.status()));
  EXPECT_TRUE(absl::IsNotFound(Release(kBob, *wait)));
  registry_.Cancel(kAlice, hold->hold_id);
  EXPECT_TRUE(registry_.StateOf(made.id).writer);
  EXPECT_TRUE(Release(kAlice, *hold).ok());
}

// A connection names its holds itself: one name for one hold at a time, and never 0.
TEST_F(ResourceRegistryTest, HoldNamesAreTheConnections) {
  const CreatedResource made = Make(kAlice);
  const auto acquire = [&](uint64_t connection, uint64_t hold_id) {
    absl::Status status = absl::UnknownError("not called");
    registry_.Acquire(connection, hold_id, made.read.Encode(), ResourceAccess::kRead, now_ms_, 0,
                      [&](absl::StatusOr<ResourceGrant> result) { status = result.status(); });
    return status;
  };
  EXPECT_TRUE(absl::IsInvalidArgument(acquire(kAlice, 0)));
  EXPECT_TRUE(acquire(kAlice, 7).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(acquire(kAlice, 7)));
  EXPECT_TRUE(acquire(kBob, 7).ok());
  const auto release = [&](uint64_t connection) {
    return registry_.Release(connection, 7, ResourceTurns::Contents::kWritten).status();
  };
  EXPECT_TRUE(release(kAlice).ok());
  EXPECT_TRUE(absl::IsNotFound(release(kAlice)));
  EXPECT_TRUE(release(kBob).ok());
}

// Holds are good on their own connection only, and once.
TEST_F(ResourceRegistryTest, HoldIdsCannotBeForged) {
  const CreatedResource made = Make(kAlice);
  const auto hold = Acquire(kAlice, made.write, ResourceAccess::kWrite);
  EXPECT_TRUE(absl::IsNotFound(Release(kBob, *hold)));
  for (uint64_t id = 0; id < 100; ++id) {
    if (id == hold->hold_id) continue;
    EXPECT_TRUE(absl::IsNotFound(
        registry_.Release(kAlice, id, ResourceTurns::Contents::kWritten).status()));
  }
  const auto waiting = Acquire(kBob, made.read, ResourceAccess::kRead);
  EXPECT_TRUE(absl::IsNotFound(
      registry_.Release(kBob, waiting->hold_id, ResourceTurns::Contents::kWritten).status()));
  EXPECT_TRUE(Release(kAlice, *hold).ok());
  EXPECT_TRUE(absl::IsNotFound(Release(kAlice, *hold)));
  EXPECT_TRUE(waiting->result.ok());
}

// Destroying ends waits and capabilities at once; a hold stays and its bytes count until released.
TEST_F(ResourceRegistryTest, DestroyWhileHeld) {
  const CreatedResource made = Make(kAlice);
  const auto hold = Acquire(kBob, made.read, ResourceAccess::kRead);
  const auto waiting = Acquire(kCarol, made.write, ResourceAccess::kWrite);
  const auto behind = Acquire(kCarol, made.read, ResourceAccess::kRead);
  EXPECT_TRUE(registry_.Destroy(made.write.Encode()).ok());
  EXPECT_TRUE(absl::IsAborted(waiting->result.status()));
  EXPECT_TRUE(absl::IsAborted(behind->result.status()));
  EXPECT_TRUE(absl::IsPermissionDenied(
      registry_.Open(kAlice, made.write.Encode(), ResourceAccess::kRead).status()));
  EXPECT_EQ(registry_.bytes(), 1'000u);
  EXPECT_TRUE(Release(kBob, *hold).ok());
  EXPECT_EQ(registry_.bytes(), 0u);
  EXPECT_EQ(registry_.count(), 0u);
}

// A resource lives as long as a connection that has used it; the last one's end takes it away.
TEST_F(ResourceRegistryTest, UsersKeepItAlive) {
  const CreatedResource made = Make(kAlice);
  EXPECT_TRUE(registry_.Open(kBob, made.read.Encode(), ResourceAccess::kRead).ok());
  registry_.ConnectionEnded(kAlice, now_ms_);
  EXPECT_EQ(registry_.count(), 1u);
  registry_.ConnectionEnded(kBob, now_ms_);
  EXPECT_EQ(registry_.count(), 0u);
}

// A lingering resource can be picked up until its time is over, which the limit bounds.
TEST_F(ResourceRegistryTest, LingeringIsBounded) {
  const CreatedResource made = Make(kAlice, 1'000, 10'000);
  registry_.ConnectionEnded(kAlice, now_ms_);
  EXPECT_EQ(registry_.NextDueMs(), now_ms_ + 500);
  EXPECT_TRUE(registry_.Open(kBob, made.read.Encode(), ResourceAccess::kRead).ok());
  EXPECT_FALSE(registry_.NextDueMs().has_value());
  registry_.ConnectionEnded(kBob, now_ms_);
  registry_.AdvanceTo(now_ms_ + 500);
  EXPECT_EQ(registry_.count(), 0u);
}

// Count and bytes are bounded per user and in all, without overflow, and come back at the end.
TEST_F(ResourceRegistryTest, Quotas) {
  EXPECT_TRUE(registry_.Reserve("uid:1", 6'000).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Reserve("uid:1", 1)));
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Reserve("uid:2", ~uint64_t{0})));
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Reserve("uid:2", 4'001)));
  EXPECT_TRUE(registry_.Reserve("uid:2", 4'000).ok());
  registry_.CancelReservation("uid:1", 6'000);
  registry_.CancelReservation("uid:2", 4'000);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(registry_.Reserve("uid:1", 1).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Reserve("uid:1", 1)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(registry_.Reserve("uid:2", 1).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Reserve("uid:3", 1)));
}

// An identity with a quota of its own has that, be it less or more than everybody's; the daemon's
// holds.
TEST_F(ResourceRegistryTest, QuotasOfOnesOwn) {
  const ResourceQuota more = {5, 8'000};
  EXPECT_TRUE(registry_.Reserve("tenant:lab", 7'000, more).ok());
  const absl::Status bytes = registry_.Reserve("tenant:lab", 1'001, more);
  EXPECT_TRUE(absl::IsResourceExhausted(bytes));
  EXPECT_NE(bytes.message().find("max_resource_bytes of its listener"), std::string::npos) << bytes;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(registry_.Reserve("tenant:lab", 1, more).ok());
  const absl::Status count = registry_.Reserve("tenant:lab", 1, more);
  EXPECT_NE(count.message().find("max_resources of its listener"), std::string::npos) << count;
  EXPECT_TRUE(registry_.Reserve("tenant:office", 1, {1, 0}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Reserve("tenant:office", 1, {1, 0})));
  EXPECT_TRUE(absl::IsResourceExhausted(registry_.Reserve("tenant:big", 5'000, {9, 100'000})));
}

// Destroyed memory that was lent counts until nobody has it open: it is looked at in growing
// intervals, and when its owner would pass a limit.
TEST_F(ResourceRegistryTest, LentMemoryCountsUntilItIsClosed) {
  bool open = true;
  int looks = 0;
  registry_.SetIsOpenElsewhere([&](ResourceMemory*) {
    ++looks;
    return open;
  });
  const CreatedResource kept = Make(kAlice, 3'000);
  const CreatedResource lent = Make(kAlice, 3'000);
  registry_.Open(kAlice, lent.read.Encode(), ResourceAccess::kRead)->memory->lent = true;
  EXPECT_TRUE(registry_.Destroy(kept.write.Encode()).ok());
  EXPECT_EQ(looks, 0);
  EXPECT_EQ(registry_.bytes(), 3'000u);
  EXPECT_TRUE(registry_.Destroy(lent.write.Encode()).ok());
  EXPECT_EQ(registry_.bytes(), 3'000u);
  EXPECT_TRUE(registry_.List()[0].left_open);
  const absl::Status refused = registry_.Reserve("uid:1", 3'001);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_NE(refused.message().find("1 that were destroyed count"), std::string::npos) << refused;
  int64_t waited = 0;
  looks = 0;
  while (waited < 60'000) {
    registry_.AdvanceTo(now_ms_);
    ASSERT_TRUE(registry_.NextDueMs().has_value());
    ASSERT_GT(*registry_.NextDueMs(), now_ms_);
    waited += *registry_.NextDueMs() - now_ms_;
    now_ms_ = *registry_.NextDueMs();
  }
  EXPECT_LT(looks, 30);  // In a minute.
  open = false;
  EXPECT_TRUE(registry_.Reserve("uid:1", 6'000).ok());
  registry_.CancelReservation("uid:1", 6'000);
  EXPECT_EQ(registry_.count(), 0u);
  EXPECT_FALSE(registry_.NextDueMs().has_value());
}

// It is forgotten without a call of its owner's, too, whether it ended with its last user, its last
// hold or its linger.
TEST_F(ResourceRegistryTest, LentMemoryIsLookedAt) {
  std::set<uint64_t> open;
  registry_.SetIsOpenElsewhere(
      [&](ResourceMemory* memory) { return open.contains(memory->allocation_bytes); });
  const auto lend = [&](const CreatedResource& made) {
    ResourceMemory* memory =
        registry_.Open(kAlice, made.read.Encode(), ResourceAccess::kRead)->memory;
    memory->lent = true;
    memory->allocation_bytes = made.id;
    open.insert(made.id);
  };
  const CreatedResource lingers = Make(kAlice, 1'000, 100);
  const CreatedResource held = Make(kAlice);
  const CreatedResource used = Make(kAlice);
  for (const CreatedResource& made : {lingers, held, used}) lend(made);
  const auto hold = Acquire(kBob, held.write, ResourceAccess::kWrite);
  registry_.ConnectionEnded(kAlice, now_ms_);
  registry_.ConnectionEnded(kBob, now_ms_);
  registry_.AdvanceTo(now_ms_ += 100);
  EXPECT_EQ(registry_.count(), 3u);
  for (const ResourceInfo& info : registry_.List()) EXPECT_TRUE(info.left_open);
  size_t left = 3;
  for (const CreatedResource& made : {used, lingers, held}) {
    open.erase(made.id);
    registry_.AdvanceTo(now_ms_ += ResourceRegistry::kMostLookMs);
    EXPECT_EQ(registry_.count(), --left);
  }
  EXPECT_EQ(registry_.bytes(), 0u);
}

// Where the limits are 0, for none, sums still may not wrap: neither a user's nor the daemon's.
TEST_F(ResourceRegistryTest, SumsDoNotWrapWithoutQuotas) {
  ResourcesConfig none;
  none.max_resources = none.max_resources_per_user = 0;
  none.max_bytes = none.max_bytes_per_user = 0;
  ResourceRegistry registry(none);
  constexpr uint64_t kMost = ~uint64_t{0};
  EXPECT_TRUE(registry.Reserve("uid:1", kMost - 5).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(registry.Reserve("uid:1", 6)));
  EXPECT_TRUE(absl::IsResourceExhausted(registry.Reserve("uid:2", kMost)));
  EXPECT_TRUE(registry.Reserve("uid:2", 5).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(registry.Reserve("uid:3", 1)));
  registry.CancelReservation("uid:1", kMost - 5);
  EXPECT_TRUE(registry.Reserve("uid:3", kMost - 5).ok());
}

// Acquires and watches of one connection are bounded; its end makes room for the next.
TEST_F(ResourceRegistryTest, ConnectionsAreBounded) {
  const CreatedResource made = Make(kAlice);
  for (int i = 0; i < 8; ++i)
    EXPECT_TRUE(Acquire(kBob, made.read, ResourceAccess::kRead)->result.ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(Acquire(kBob, made.read, ResourceAccess::kRead)->result.status()));
  const auto ignore = [](const ResourceStateView&, bool) {};
  EXPECT_TRUE(registry_.Watch(kBob, made.read.Encode(), ignore).ok());
  EXPECT_TRUE(registry_.Watch(kBob, made.read.Encode(), ignore).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(registry_.Watch(kBob, made.read.Encode(), ignore).status()));
  registry_.ConnectionEnded(kBob, now_ms_);
  EXPECT_TRUE(registry_.Watch(kBob, made.read.Encode(), ignore).ok());
}

// A watcher hears the state at once, at every change, and the end.
TEST_F(ResourceRegistryTest, WatchTellsStatesAndTheEnd) {
  const CreatedResource made = Make(kAlice);
  std::vector<ResourceStateView> states;
  bool ended = false;
  ASSERT_TRUE(registry_
                  .Watch(kBob, made.read.Encode(),
                         [&](const ResourceStateView& state, bool end) {
                           states.push_back(state);
                           ended = end;
                         })
                  .ok());
  ASSERT_EQ(states.size(), 1u);
  const auto hold = Acquire(kAlice, made.write, ResourceAccess::kWrite);
  EXPECT_TRUE(states.back().writer);
  EXPECT_TRUE(Release(kAlice, *hold).ok());
  EXPECT_FALSE(states.back().writer);
  EXPECT_EQ(states.back().generation, 1u);
  EXPECT_FALSE(ended);
  Acquire(kAlice, made.read, ResourceAccess::kRead);
  const auto waits = Acquire(kCarol, made.write, ResourceAccess::kWrite);
  states.clear();
  EXPECT_TRUE(registry_.Destroy(made.write.Encode()).ok());
  EXPECT_TRUE(absl::IsAborted(waits->result.status()));
  ASSERT_EQ(states.size(), 1u);  // Once, also with somebody waiting.
  EXPECT_TRUE(states.back().destroyed);
  EXPECT_TRUE(ended);
  registry_.ConnectionEnded(kAlice, now_ms_);
  EXPECT_EQ(registry_.count(), 0u);
}

// However many waits end at once, each watch is told once, of the newest state; and so many ends
// are made at a time that the loop can do other things between them.
TEST_F(ResourceRegistryTest, ManyEndsAreToldOnce) {
  const CreatedResource made = Make(kAlice);
  const auto hold = Acquire(kAlice, made.write, ResourceAccess::kWrite);
  constexpr uint64_t kConnections = 20;
  std::vector<std::shared_ptr<Answer>> waits;
  for (uint64_t i = 0; i < kConnections; ++i) {
    for (int k = 0; k < 8; ++k) {
      waits.push_back(Acquire(100 + i, made.read, ResourceAccess::kRead, 100));
    }
  }
  uint64_t told = 0;
  ResourceStateView last;
  for (uint64_t i = 0; i < kConnections; ++i) {
    ASSERT_TRUE(registry_
                    .Watch(100 + i, made.read.Encode(),
                           [&](const ResourceStateView& state, bool) {
                             ++told;
                             last = state;
                           })
                    .ok());
  }
  told = 0;
  uint64_t turns = 0;
  while (registry_.NextDueMs().has_value()) {
    registry_.AdvanceTo(now_ms_ + 100);
    ++turns;
    EXPECT_EQ(told, turns * kConnections);
  }
  EXPECT_EQ(turns,
            (waits.size() + ResourceRegistry::kEndsAtOnce - 1) / ResourceRegistry::kEndsAtOnce);
  for (const auto& wait : waits) EXPECT_TRUE(absl::IsDeadlineExceeded(wait->result.status()));
  EXPECT_EQ(last.waiting, 0u);
  EXPECT_TRUE(last.writer);
}

// A try that changes nothing tells nobody.
TEST_F(ResourceRegistryTest, FailedTriesAreNotTold) {
  const CreatedResource made = Make(kAlice);
  const auto hold = Acquire(kAlice, made.write, ResourceAccess::kWrite);
  int told = 0;
  ASSERT_TRUE(
      registry_.Watch(kBob, made.read.Encode(), [&told](const ResourceStateView&, bool) { ++told; })
          .ok());
  Acquire(kBob, made.read, ResourceAccess::kRead, 0);
  EXPECT_EQ(told, 1);
}

// Watches are told as far as the owner lets them be, of each resource one in turn, whoever comes
// and goes meanwhile; several changes are one.
TEST_F(ResourceRegistryTest, WatchesAreToldInTurn) {
  const CreatedResource many = Make(kAlice);
  const CreatedResource one = Make(kAlice);
  int untold = 0;
  registry_.SetOnUntold([&untold] { ++untold; });
  std::string told;
  std::vector<uint64_t> watches;
  const auto watch = [&](uint64_t connection, const CreatedResource& made, char mark) {
    const auto id = registry_.Watch(connection, made.read.Encode(),
                                    [&told, mark](const ResourceStateView& state, bool ended) {
                                      if (state.readers != 0 && !ended) told += mark;
                                    });
    ASSERT_TRUE(id.ok());
    watches.push_back(*id);
  };
  watch(kAlice, many, 'a');
  watch(kBob, many, 'b');
  watch(kCarol, many, 'c');
  watch(kCarol, one, '1');
  Acquire(kAlice, many.read, ResourceAccess::kRead);
  Acquire(kBob, many.read, ResourceAccess::kRead);
  Acquire(kAlice, one.read, ResourceAccess::kRead);
  EXPECT_EQ(untold, 3);
  EXPECT_EQ(told, "");
  EXPECT_EQ(registry_.TellWatches(2), 2u);
  EXPECT_EQ(told, "a1");
  registry_.Unwatch(watches[1]);
  watch(kBob, many, 'd');  // Hears the state at once.
  EXPECT_LT(registry_.TellWatches(10), 10u);
  EXPECT_EQ(told, "a1dc");
  EXPECT_EQ(registry_.TellWatches(10), 0u);
}

// A thousand lives of connections with waits, holds and watches leave nothing behind.
TEST_F(ResourceRegistryTest, NothingIsLeftBehind) {
  for (uint64_t i = 0; i < 1'000; ++i) {
    const CreatedResource made = Make(100 + i);
    Acquire(100 + i, made.write, ResourceAccess::kWrite);
    Acquire(2'000 + i, made.read, ResourceAccess::kRead);
    ASSERT_TRUE(
        registry_.Watch(2'000 + i, made.read.Encode(), [](const ResourceStateView&, bool) {}).ok());
    registry_.ConnectionEnded(i % 2 == 0 ? 100 + i : 2'000 + i, now_ms_);
    registry_.ConnectionEnded(i % 2 == 0 ? 2'000 + i : 100 + i, now_ms_);
    ASSERT_EQ(registry_.count(), 0u);
    ASSERT_EQ(registry_.bytes(), 0u);
  }
}

}  // namespace
}  // namespace sluice::broker
