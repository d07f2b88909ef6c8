// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/conformance/harness/child_process.h"
#include "tests/conformance/harness/expect.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/watchdog.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* from_environment = std::getenv("SLUICE_TEST_PLATFORM");
  std::string platform = from_environment == nullptr ? "" : from_environment;
  std::string child;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--platform=", 11) == 0) {
      platform = argv[i] + 11;
    } else if (std::strncmp(argv[i], "--child=", 8) == 0) {
      child = argv[i] + 8;
    } else {
      std::fprintf(stderr,
                   "unknown argument %s; allowed are --platform=SUBSTRING and GoogleTest's flags\n",
                   argv[i]);
      return 2;
    }
  }
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  // Scenes named Loader... choose for themselves when the loader comes in.
  if (child.rfind("Loader", 0) == 0) return sluice::conformance::RunChildScene(child);
  const std::string problem = sluice::conformance::SelectPlatform(platform);
  if (!problem.empty()) {
    std::fprintf(stderr, "sluice_conformance: %s\n", problem.c_str());
    return 2;
  }
  if (!child.empty()) return sluice::conformance::RunChildScene(child);
  sluice::conformance::NameChecksInCrashes();
  const sluice::conformance::Harness& harness = sluice::conformance::TheHarness();
  std::printf("platform \"%s\", kind %s\n", harness.platform_name.c_str(),
              sluice::conformance::KindName(harness.kind));
  testing::UnitTest::GetInstance()->listeners().Append(
      new sluice::conformance::Watchdog(std::chrono::seconds(harness.timeout_s)));
  const int result = RUN_ALL_TESTS();
  sluice::conformance::ForgetLastCheck();
  return result;
}
