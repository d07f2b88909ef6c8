// SPDX-License-Identifier: Apache-2.0
//
// On a made folder: what a kernel would write is written here.
#include <gtest/gtest.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform_linux/control_groups/delegation.h"
#include "platform_linux/control_groups/group.h"

namespace sluice::os {
namespace {

namespace fs = std::filesystem;

class ControlGroupsTest : public testing::Test {
 protected:
  ControlGroupsTest() {
    char path[] = "/tmp/sluice-test-XXXXXX";
    folder_ = ::mkdtemp(path);
    mount_ = folder_ + "/mount";
    fs::create_directories(folder_ + "/process");
  }
  ~ControlGroupsTest() override { fs::remove_all(folder_); }

  static void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }

  // A group that this process may divide, but for what a test takes away.
  std::string Make(const std::string& group) {
    const std::string path = mount_ + group;
    Write(path + "/cgroup.type", "domain\n");
    Write(path + "/cgroup.procs", "");
    Write(path + "/cgroup.subtree_control", "");
    return path;
  }

  Delegation Find(const std::string& own_groups, const std::string& mounts) {
    Write(folder_ + "/process/cgroup", own_groups);
    Write(folder_ + "/process/mountinfo", mounts);
    return FindDelegation(folder_ + "/process");
  }
  Delegation Find(const std::string& own_groups) { return Find(own_groups, Mount("/", mount_)); }

  static std::string Mount(const std::string& root, const std::string& where) {
    return absl::StrCat("31 23 0:28 ", root, " ", where,
                        " rw,relatime shared:4 - cgroup2 cgroup2 rw\n");
  }

  std::string folder_;
  std::string mount_;
};

// A group of its own, by hand: it is found, with what version 1 has beside it.
TEST_F(ControlGroupsTest, FindsAGroupMadeByHand) {
  const std::string group = Make("/lab");
  const Delegation found = Find("4:memory,cpu:/other\n1:name=systemd:/\n0::/lab\n");
  EXPECT_EQ(found.top, group);
  EXPECT_FALSE(found.entered);
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.version_1, "memory, cpu");
}

// The leaf that systemd starts it in is not taken for the whole.
TEST_F(ControlGroupsTest, KnowsItsLeaf) {
  const std::string group = Make("/lab");
  Make("/lab/broker");
  const Delegation found = Find("0::/lab/broker\n");
  EXPECT_EQ(found.top, group);
  EXPECT_TRUE(found.entered);
}

// In a container the group is the root of what is seen; the system's own root has no type.
TEST_F(ControlGroupsTest, TakesAContainersRootAndNotTheSystems) {
  const std::string root = Make("");
  EXPECT_EQ(Find("0::/\n").top, root);
  fs::remove(root + "/cgroup.type");
  const Delegation found = Find("0::/\n");
  EXPECT_EQ(found.top, "");
  EXPECT_NE(found.problem.find("root control group"), std::string::npos) << found.problem;
}

// A unit is systemd's, unless systemd says that it has left it to the service.
TEST_F(ControlGroupsTest, AsksSystemdForAUnit) {
  const std::string group = Make("/system.slice/sluiced.service");
  const Delegation found = Find("0::/system.slice/sluiced.service\n");
  EXPECT_EQ(found.top, "");
  EXPECT_NE(found.problem.find("systemd has not left"), std::string::npos) << found.problem;
  EXPECT_NE(found.advice.find("Delegate="), std::string::npos) << found.advice;
  if (::setxattr(group.c_str(), "user.delegate", "1", 1, 0) != 0)
    GTEST_SKIP() << "no extended attributes in /tmp: " << std::strerror(errno);
  EXPECT_EQ(Find("0::/system.slice/sluiced.service\n").top, group);
}

// Version 1 is named, and not used; so is a system with nothing mounted.
TEST_F(ControlGroupsTest, NamesVersionOne) {
  const Delegation first = Find("4:memory:/x\n2:pids:/\n1:name=systemd:/\n");
  EXPECT_NE(first.problem.find("version 1 alone (memory, pids)"), std::string::npos)
      << first.problem;
  EXPECT_NE(first.advice, "");
  const Delegation unmounted = Find("4:memory:/x\n0::/lab\n", "31 23 0:28 / /x rw - tmpfs x rw\n");
  EXPECT_NE(unmounted.problem.find("is mounted"), std::string::npos) << unmounted.problem;
  EXPECT_NE(Find("").problem.find("no control groups"), std::string::npos);
}

// Of several mounts the one that can be written; a mount of a part shows that part.
TEST_F(ControlGroupsTest, TakesTheMountThatCanBeWritten) {
  Write(mount_ + "/a/b/cgroup.type", "domain\n");
  const std::string other = folder_ + "/other place";
  Write(other + "/cgroup.type", "domain\n");
  Write(other + "/cgroup.procs", "");
  Write(other + "/cgroup.subtree_control", "");
  const std::string escaped = folder_ + "/other\\040place";
  const Delegation found =
      Find("0::/a/b\n", Mount("/", mount_) + Mount("/a/b", escaped) + Mount("/a/bc", "/nowhere"));
  EXPECT_EQ(found.top, other);
  const Delegation missing = Find("0::/a/b\n", Mount("/", mount_));
  EXPECT_NE(missing.problem.find("is not its own"), std::string::npos) << missing.problem;
}

// Groups that cannot have limits, or are not here.
TEST_F(ControlGroupsTest, RefusesThreadedAndForeignGroups) {
  const std::string group = Make("/lab");
  Write(group + "/cgroup.type", "threaded\n");
  EXPECT_NE(Find("0::/lab\n").problem.find("\"threaded\""), std::string::npos);
  EXPECT_NE(Find("0::/../lab\n").problem.find("outside"), std::string::npos);
}

// Numbers, events and what a group offers, as the kernel writes them.
TEST_F(ControlGroupsTest, ReadsFiles) {
  const std::string group = Make("/lab");
  Write(group + "/memory.max", "max\n");
  Write(group + "/pids.max", "77\n");
  Write(group + "/memory.events", "low 0\nmax 12\noom 2\noom_kill 3\n");
  Write(group + "/cgroup.controllers", "cpuset cpu memory\n");
  EXPECT_FALSE(ReadNumberOfGroup(group, "memory.max").has_value());
  EXPECT_FALSE(ReadNumberOfGroup(group, "io.max").has_value());
  EXPECT_EQ(ReadNumberOfGroup(group, "pids.max"), 77u);
  EXPECT_EQ(ReadEventOfGroup(group, "memory.events", "oom_kill"), 3u);
  EXPECT_EQ(ReadEventOfGroup(group, "memory.events", "high"), 0u);
  const auto enabled = EnableControllers(group, {"cpu", "pids", "memory"});
  ASSERT_TRUE(enabled.ok()) << enabled.status();
  EXPECT_EQ(*enabled, (std::vector<std::string>{"cpu", "memory"}));
  EXPECT_TRUE(absl::IsNotFound(WriteToGroup(group, "io.weight", "1")));
}

// The groups in a group go with it; a group with a process in it stays.
TEST_F(ControlGroupsTest, RemovesWhatIsEmpty) {
  fs::create_directories(mount_ + "/lab/one/two");
  EXPECT_TRUE(RemoveGroup(mount_ + "/lab"));
  EXPECT_FALSE(fs::exists(mount_ + "/lab"));
  EXPECT_TRUE(RemoveGroup(mount_ + "/lab"));
  const std::string group = Make("/lab");
  EXPECT_FALSE(RemoveGroup(group));
  EXPECT_TRUE(MakeGroup(group).ok());
  EXPECT_FALSE(MakeGroup(mount_ + "/no/where").ok());
}

}  // namespace
}  // namespace sluice::os
