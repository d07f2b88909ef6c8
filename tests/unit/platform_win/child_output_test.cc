// SPDX-License-Identifier: Apache-2.0
//
// The part of a child's output that gets into the broker's log: here over Windows' pipes, from a
// child that the broker has not to trust; on Linux over a real broker
// (tests/unit/broker/hostile_kernel_test).
#include "broker/children/child_output.h"

#include <gtest/gtest.h>

#include "broker/os/file.h"
#include "tests/unit/platform_win/child.h"

namespace sluice::os {
namespace {

// The log of a broker that has one child, of this part: it is a process of its own, since what logs
// keeps the stderr that it found first.
std::string LogOf(const std::string& part) {
  auto loop = broker::EventLoop::Create();
  auto ends = CreateOutputPipe();
  EXPECT_TRUE(loop.ok() && ends.ok());
  SpawnOptions options = ChildOptions("tell-output");
  options.arguments.push_back(part);
  options.output = ends->second.get();
  auto broker = Spawn(options);
  EXPECT_TRUE(broker.ok()) << broker.status();
  ends->second.reset();
  std::string log;
  broker::EventLoop::WatchId watch = (*loop)->Watch(ends->first.get(), [&] {
    const std::string more = ReadPipe(ends->first.get(), 1 << 16);
    log += more;
    if (more.empty()) (*loop)->Quit();
  });
  (*loop)->Run();
  (*loop)->Unwatch(&watch);
  EXPECT_EQ(broker->WaitAndReap(20'000)->code, 0) << log;
  return log;
}

// A flood is cut short, who writes it is not stopped by it, and every line is told or counted.
TEST(ChildOutputTest, FloodIsCutShort) {
  const std::string log = LogOf("flood");
  EXPECT_LT(log.size(), 200'000u);
  int told = 0;
  for (size_t at = 0; (at = log.find("a line of many", at)) != std::string::npos; ++at) ++told;
  int left_out = 0;
  const std::string key = " lines=";
  for (size_t at = 0; (at = log.find(key, at)) != std::string::npos; ++at)
    left_out += std::stoi(log.substr(at + key.size()));
  EXPECT_GT(told, 0);
  EXPECT_EQ(told + left_out, kFloodLines) << log.substr(0, 2000);
}

// Lines that look like the broker's own are told as the child's; one without an end is cut.
TEST(ChildOutputTest, ForgedAndEndlessLines) {
  const std::string log = LogOf("forge");
  EXPECT_EQ(log.find("\n2026-11-22T00:00:00.000Z error broker"), std::string::npos) << log;
  EXPECT_NE(log.find("child msg=output task=forge text=\"2026-11-22T00:00:00.000Z error broker "
                     "msg=forged\""),
            std::string::npos)
      << log;
  EXPECT_NE(log.find(std::string(1024, 'x') + "..."), std::string::npos) << log;
  EXPECT_EQ(log.find(std::string(1025, 'x')), std::string::npos);
}

}  // namespace

int TellOutputOf(const std::string& part) {
  auto loop = broker::EventLoop::Create();
  if (!loop.ok()) return 10;
  broker::ChildOutput output(loop->get(), "child");
  auto end = output.Open({"task", part});
  if (!end.ok()) return 11;
  SpawnOptions options = ChildOptions(part);
  options.output = end->get();
  auto child = Spawn(options);
  if (!child.ok()) return 12;
  end->reset();
  broker::EventLoop::WatchId ended = (*loop)->Watch(child->pidfd(), [&] { (*loop)->Quit(); });
  (*loop)->Run();
  (*loop)->Unwatch(&ended);
  // It was not kept from its end.
  const auto status = child->WaitAndReap(20'000);
  output.Finish();
  return status.has_value() && status->code == 0 ? 0 : 13;
}

}  // namespace sluice::os
