// SPDX-License-Identifier: Apache-2.0
// Runs the loopback tests, noting which commands they send: a run of all of them fails if a row of
// commands.inc was never sent.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "absl/synchronization/mutex.h"
#include "proto/command.pb.h"
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

absl::Mutex g_mu;
std::set<int>& Sent() {
  static auto& sent = *new std::set<int>;
  return sent;
}

class EveryCommandIsTested : public ::testing::EmptyTestEventListener {
 public:
  void OnTestProgramEnd(const ::testing::UnitTest& tests) override {
    if (tests.test_to_run_count() != tests.total_test_count()) return;
    absl::MutexLock lock(&g_mu);
#define COMMAND(Name, field, reply)                                             \
  if (Sent().count(v1::Command::k##Name) == 0) {                                \
    std::fprintf(stderr, "every_command_is_tested: no test sends " #Name "\n"); \
    failed_ = true;                                                             \
  }
#include "proto/commands.inc"
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

}  // namespace

void NoteSentCommand(int body_case) {
  absl::MutexLock lock(&g_mu);
  Sent().insert(body_case);
}

}  // namespace sluice::worker

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  auto* const every = new sluice::worker::EveryCommandIsTested;
  ::testing::UnitTest::GetInstance()->listeners().Append(every);
  const int result = RUN_ALL_TESTS();
  return result != 0 || every->failed() ? 1 : 0;
}
