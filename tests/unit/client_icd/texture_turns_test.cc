// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/texture_turns.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sluice::client {
namespace {

// Behind the seam to Direct3D: notes what it is asked, and answers what the test says.
class FakeFence final : public TextureFence {
 public:
  absl::Status SignalBehindWork(uint64_t generation) override {
    return Note(absl::StrCat("signal ", generation));
  }
  absl::Status WaitFor(uint64_t generation, absl::Duration at_most) override {
    EXPECT_GT(at_most, absl::ZeroDuration());
    EXPECT_LT(at_most, absl::Minutes(1));
    return Note(absl::StrCat("wait ", generation));
  }
  absl::Status WaitForOwnWork(absl::Duration at_most) override {
    EXPECT_LT(at_most, absl::Minutes(1));
    return Note("own work");
  }

  std::vector<std::string> asked;
  absl::Status answer;

 private:
  absl::Status Note(std::string what) {
    asked.push_back(std::move(what));
    return answer;
  }
};

using Asked = std::vector<std::string>;

// Whoever acquires waits for the generation that the daemon names; nobody has signalled 0.
TEST(TextureTurnsTest, AcquireWaitsForTheTurnBefore) {
  FakeFence fence;
  sluice_hold hold = {7, 5, 0, 0};
  BeginTextureTurn(&fence, &hold);
  EXPECT_EQ(fence.asked, Asked{"wait 5"});
  EXPECT_EQ(hold.indeterminate, 0u);
  fence.asked.clear();
  hold.generation = 0;
  BeginTextureTurn(&fence, &hold);
  EXPECT_TRUE(fence.asked.empty());
}

// A writer that died has signalled nothing: to wait for it would be to wait in vain.
TEST(TextureTurnsTest, NobodyWaitsForTheDead) {
  FakeFence fence;
  sluice_hold hold = {7, 5, 1, 0};
  BeginTextureTurn(&fence, &hold);
  EXPECT_TRUE(fence.asked.empty());
  EXPECT_EQ(hold.indeterminate, 1u);
}

// A device that does not get done is told, and the turn is the caller's all the same.
TEST(TextureTurnsTest, LateWorkIsIndeterminate) {
  FakeFence fence;
  fence.answer = absl::DeadlineExceededError("late");
  sluice_hold hold = {7, 5, 0, 0};
  BeginTextureTurn(&fence, &hold);
  EXPECT_EQ(hold.indeterminate, 1u);
  EXPECT_EQ(hold.id, 7u);
}

// A writer signals the generation that its release makes, also if it says itself that it gave up.
TEST(TextureTurnsTest, WritersSignalTheirGeneration) {
  FakeFence fence;
  const sluice_hold hold = {7, 5, 0, 0};
  EXPECT_EQ(EndTextureTurn(&fence, SLUICE_WRITE, hold, 0), 0u);
  EXPECT_EQ(EndTextureTurn(&fence, SLUICE_WRITE, hold, SLUICE_CONTENTS_INDETERMINATE),
            SLUICE_CONTENTS_INDETERMINATE);
  EXPECT_EQ(fence.asked, (Asked{"signal 6", "signal 6"}));
}

// Readers, and writers that wrote nothing, make no generation: their device is done instead.
TEST(TextureTurnsTest, ReadersWaitForTheirOwnWork) {
  FakeFence fence;
  const sluice_hold hold = {7, 5, 0, 0};
  EXPECT_EQ(EndTextureTurn(&fence, SLUICE_READ, hold, 0), 0u);
  EXPECT_EQ(EndTextureTurn(&fence, SLUICE_WRITE, hold, SLUICE_CONTENTS_UNTOUCHED),
            SLUICE_CONTENTS_UNTOUCHED);
  EXPECT_EQ(fence.asked, (Asked{"own work", "own work"}));
  fence.answer = absl::DeadlineExceededError("late");
  EXPECT_EQ(EndTextureTurn(&fence, SLUICE_READ, hold, 0), 0u);  // Given up all the same.
}

// A release that sluice_release refuses leaves the turn, and the fence, as they are.
TEST(TextureTurnsTest, RefusedReleasesAskNothing) {
  FakeFence fence;
  const sluice_hold hold = {7, 5, 0, 0};
  constexpr uint32_t kBoth = SLUICE_CONTENTS_INDETERMINATE | SLUICE_CONTENTS_UNTOUCHED;
  for (const uint32_t wrong : {kBoth, uint32_t{1} << 31}) {
    EXPECT_EQ(EndTextureTurn(&fence, SLUICE_WRITE, hold, wrong), wrong);
    EXPECT_EQ(EndTextureTurn(&fence, SLUICE_READ, hold, wrong), wrong);
  }
  EXPECT_TRUE(fence.asked.empty());
}

// A writer whose device cannot signal leaves contents that nobody may trust.
TEST(TextureTurnsTest, WithoutASignalTheContentsAreIndeterminate) {
  FakeFence fence;
  fence.answer = absl::UnimplementedError("removed");
  const sluice_hold hold = {7, 5, 0, 0};
  EXPECT_EQ(EndTextureTurn(&fence, SLUICE_WRITE, hold, 0), SLUICE_CONTENTS_INDETERMINATE);
}

}  // namespace
}  // namespace sluice::client
