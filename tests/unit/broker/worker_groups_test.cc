// SPDX-License-Identifier: Apache-2.0
//
// On a made folder, which has the files that a kernel would have put there.
#include "broker/children/worker_groups.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace sluice::broker {
namespace {

namespace fs = std::filesystem;

class WorkerGroupsTest : public testing::Test {
 protected:
  WorkerGroupsTest() {
    char path[] = "/tmp/sluice-test-XXXXXX";
    folder_ = ::mkdtemp(path);
    top_ = folder_ + "/mount/lab";
    account_ = top_ + "/accounts/tenant-lab";
    worker_ = account_ + "/worker-0000000000000001";
    Write(folder_ + "/process/cgroup", "0::/lab\n");
    Write(folder_ + "/process/mountinfo",
          absl::StrCat("31 23 0:28 / ", folder_, "/mount rw - cgroup2 cgroup2 rw\n"));
    loop_ = *EventLoop::Create();
  }
  ~WorkerGroupsTest() override { fs::remove_all(folder_); }

  static void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }

  // The daemon's group and those that it would make, with files for all of these controllers.
  void MakeGroups(const std::string& controllers) {
    for (const std::string& group :
         {top_, top_ + "/broker", top_ + "/accounts", account_, worker_}) {
      Write(group + "/cgroup.type", "domain\n");
      Write(group + "/cgroup.controllers", controllers);
      for (const char* file : {"cgroup.procs", "cgroup.subtree_control", "cpu.weight", "io.weight",
                               "memory.min", "memory.max", "memory.oom.group", "pids.max"})
        Write(group + "/" + file, "");
    }
  }

  absl::StatusOr<std::unique_ptr<WorkerGroups>> Create() {
    return WorkerGroups::Create(config_, loop_.get(), folder_ + "/process");
  }

  static Account Lab() {
    Account account;
    account.name = "tenant:lab";
    account.share = 300;
    return account;
  }

  std::string folder_;
  std::string top_;
  std::string account_;
  std::string worker_;
  ControlGroupsConfig config_;
  std::unique_ptr<EventLoop> loop_;
};

// All of it is divided by share and by what there is, with a reserve for the daemon.
TEST_F(WorkerGroupsTest, DividesWhatThereIs) {
  MakeGroups("cpu io memory pids");
  Write(top_ + "/memory.max", "1073741824\n");
  Write(top_ + "/pids.max", "1000\n");
  const auto groups = Create();
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ((*groups)->Describe(), absl::StrCat("cpu, memory, pids, io; in ", top_));
  EXPECT_EQ((*groups)->Advice(), "");
  EXPECT_EQ(Read(top_ + "/broker/memory.min"), "268435456");
  EXPECT_EQ(Read(top_ + "/accounts/memory.max"), "805306368");
  EXPECT_EQ(Read(top_ + "/accounts/pids.max"), "750");
  const auto added = (*groups)->Add(1, Lab(), 0);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_TRUE(added->valid());
  EXPECT_EQ(Read(account_ + "/cpu.weight"), "300");
  EXPECT_EQ(Read(account_ + "/io.weight"), "300");
  EXPECT_EQ(Read(account_ + "/memory.max"), "704643072");
  EXPECT_EQ(Read(account_ + "/pids.max"), "375");
  EXPECT_EQ(Read(worker_ + "/memory.oom.group"), "1");
  EXPECT_EQ(Read(worker_ + "/pids.max"), "375");
}

// A group in which others are is theirs too: nobody has said that the daemon may move them.
TEST_F(WorkerGroupsTest, TakesNoGroupOfOthers) {
  MakeGroups("cpu io memory pids");
  Write(top_ + "/cgroup.procs", absl::StrCat(::getppid(), "\n", ::getpid(), "\n"));
  {
    const auto family = Create();
    ASSERT_TRUE(family.ok()) << family.status();
    // Files are no groups: nothing can be moved there.
    EXPECT_NE((*family)->Describe().find("cannot be divided"), std::string::npos)
        << (*family)->Describe();
  }
  Write(top_ + "/cgroup.procs", "999999999\n");
  const auto groups = Create();
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ((*groups)->Describe(),
            absl::StrCat("none: other programs are in the daemon's control group ", top_));
  EXPECT_NE((*groups)->Advice().find("required"), std::string::npos);
}

// The operator's word holds, and device memory where the kernel counts it.
TEST_F(WorkerGroupsTest, ObeysTheConfiguration) {
  MakeGroups("cpu memory pids dmem");
  Write(worker_ + "/dmem.max", "drm/0000:03:00.0/vram0 max\n");
  config_.memory_bytes_per_account = 512ULL << 20;
  config_.memory_bytes_per_worker = 128ULL << 20;
  config_.processes_per_account = 300;
  config_.processes_per_worker = 40;
  const auto groups = Create();
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_TRUE((*groups)->Add(1, Lab(), 1ULL << 30).ok());
  EXPECT_EQ(Read(account_ + "/memory.max"), "536870912");
  EXPECT_EQ(Read(account_ + "/pids.max"), "300");
  EXPECT_EQ(Read(worker_ + "/memory.max"), "134217728");
  EXPECT_EQ(Read(worker_ + "/pids.max"), "40");
  EXPECT_EQ(Read(worker_ + "/dmem.max").substr(0, 33), "drm/0000:03:00.0/vram0 1342177280");
}

// A limit that cannot be set leaves nobody without it.
TEST_F(WorkerGroupsTest, StartsNoWorkerWithoutItsLimits) {
  MakeGroups("cpu memory pids");
  const auto groups = Create();
  ASSERT_TRUE(groups.ok()) << groups.status();
  fs::remove(worker_ + "/memory.oom.group");
  EXPECT_FALSE((*groups)->Add(1, Lab(), 0).ok());
}

// Which limit ended a worker: its own, its account's, all accounts'.
TEST_F(WorkerGroupsTest, SaysWhichLimitEndedAWorker) {
  MakeGroups("cpu memory pids");
  const auto groups = Create();
  ASSERT_TRUE(groups.ok()) << groups.status();
  const auto end = [&](const std::string& where) {
    EXPECT_TRUE((*groups)->Add(1, Lab(), 0).ok());
    Write(worker_ + "/memory.events", "oom 1\noom_kill 2\n");
    Write(where + "/memory.events.local", "oom 1\n");
    const WorkerGroups::End told = (*groups)->Remove(1);
    fs::remove(where + "/memory.events.local");
    return told.memory;
  };
  EXPECT_NE(end(worker_).find("memory_bytes_per_worker"), std::string::npos);
  EXPECT_NE(end(account_).find("memory_bytes_per_account"), std::string::npos);
  EXPECT_NE(end(top_ + "/accounts").find("all accounts"), std::string::npos);
  EXPECT_NE(end(top_).find("machine"), std::string::npos);
  fs::remove(worker_ + "/memory.events");
  Write(worker_ + "/pids.events", "max 7\n");
  EXPECT_TRUE((*groups)->Add(1, Lab(), 0).ok());
  const WorkerGroups::End told = (*groups)->Remove(1);
  EXPECT_EQ(told.memory, "");
  EXPECT_EQ(told.refused_processes, 7u);
}

// Without controllers, or without a group, sessions go on without limits, unless they are required.
TEST_F(WorkerGroupsTest, SaysWhatIsMissing) {
  MakeGroups("cpu");
  {
    const auto groups = Create();
    ASSERT_TRUE(groups.ok()) << groups.status();
    EXPECT_EQ((*groups)->Describe(), absl::StrCat("cpu; not memory, pids, io; in ", top_));
    EXPECT_NE((*groups)->Advice(), "");
    EXPECT_TRUE((*groups)->Add(1, Lab(), 0).ok());
  }
  Write(folder_ + "/process/cgroup", "4:memory:/\n");
  const auto none = Create();
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ((*none)->Describe().substr(0, 6), "none: ");
  const auto nothing = (*none)->Add(1, Lab(), 0);
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->valid());
  config_.enabled = ControlGroupsConfig::Use::kRequired;
  EXPECT_FALSE(Create().ok());
  config_.enabled = ControlGroupsConfig::Use::kOff;
  EXPECT_TRUE(Create().ok());
}

}  // namespace
}  // namespace sluice::broker
