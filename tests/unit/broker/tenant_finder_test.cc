// SPDX-License-Identifier: Apache-2.0
//
// A client's identity, as it follows from its container and the listener it came by; and the
// kernel's answers of real processes in real namespaces.
#include "broker/tenants/tenant_finder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "broker/os/local_socket.h"

namespace sluice::broker {
namespace {

using Place = PeerContainer::Place;

os::PeerIdentity Peer(uid_t uid) {
  os::PeerIdentity peer;
  peer.uid = uid;
  return peer;
}

PeerContainer In(const std::string& key, uid_t owner) {
  PeerContainer container;
  container.place = key.empty() ? Place::kHere : Place::kContainer;
  container.key = key;
  container.owner = owner;
  return container;
}

ListenerConfig Lab() {
  ListenerConfig lab;
  lab.tenant = "lab";
  return lab;
}

// A user of the host keeps the caches that it had before there were tenants.
TEST(TenantFinderTest, AUserOfTheHost) {
  TenantFinder finder;
  const Tenant tenant = finder.Name(Peer(1000), In("", 1000), nullptr).tenant;
  EXPECT_EQ(tenant.user, "uid:1000");
  EXPECT_EQ(tenant.account.name, "uid:1000");
  EXPECT_EQ(tenant.domain.name, "uid:1000");
}

// Two containers with one user id are one account, and two domains.
TEST(TenantFinderTest, ContainersAreApart) {
  TenantFinder finder;
  const Tenant one = finder.Name(Peer(1000), In("one", 1000), nullptr).tenant;
  const Tenant two = finder.Name(Peer(1000), In("two", 1000), nullptr).tenant;
  const Tenant again = finder.Name(Peer(1000), In("one", 1000), nullptr).tenant;
  EXPECT_EQ(one.account.name, "uid:1000");
  EXPECT_EQ(two.account.name, "uid:1000");
  EXPECT_NE(one.domain.name, two.domain.name);
  EXPECT_NE(one.domain.name, "uid:1000");
  EXPECT_EQ(one.domain.name, again.domain.name);
}

// New namespaces and subordinate user ids never make a new account.
TEST(TenantFinderTest, SubordinateUsersAreTheirOwners) {
  TenantFinder finder;
  const Tenant one = finder.Name(Peer(100'001), In("one", 1000), nullptr).tenant;
  const Tenant two = finder.Name(Peer(100'002), In("one", 1000), nullptr).tenant;
  EXPECT_EQ(one.account.name, "uid:1000");
  EXPECT_EQ(two.account.name, "uid:1000");
  EXPECT_EQ(one.user, "uid:100001");
  EXPECT_NE(one.domain.name, two.domain.name);
}

// A listener's tenant pays, whoever comes by it; its users and containers stay apart.
TEST(TenantFinderTest, AListenersTenant) {
  TenantFinder finder;
  const ListenerConfig lab = Lab();
  const Tenant one = finder.Name(Peer(1000), In("", 1000), &lab).tenant;
  const Tenant two = finder.Name(Peer(1001), In("", 1001), &lab).tenant;
  const Tenant three = finder.Name(Peer(1000), In("one", 1000), &lab).tenant;
  for (const Tenant* tenant : {&one, &two, &three}) EXPECT_EQ(tenant->account.name, "tenant:lab");
  EXPECT_EQ(one.domain.name, "tenant:lab_1000");
  EXPECT_EQ(two.domain.name, "tenant:lab_1001");
  EXPECT_NE(three.domain.name, one.domain.name);
}

// Where the system shows nothing, a client is taken neither for the host's nor for a container's.
TEST(TenantFinderTest, WhatIsNotSeenIsApart) {
  TenantFinder finder;
  PeerContainer unseen;
  unseen.place = Place::kUnseen;
  unseen.owner = 1000;
  EXPECT_EQ(finder.Name(Peer(1000), std::move(unseen), nullptr).tenant.domain.name,
            "unseen:1000_unseen");
}

// Containers without end are forgotten: the account's own first. One with connections keeps its
// name, as the kernel keeps its numbers from others.
TEST(TenantFinderTest, ManyContainersAreForgotten) {
  TenantFinder finder;
  const std::string other = finder.Name(Peer(1), In("other", 1), nullptr).tenant.domain.name;
  const TenantFinder::Found kept = finder.Name(Peer(1000), In("kept", 1000), nullptr);
  const std::string idle = finder.Name(Peer(1000), In("idle", 1000), nullptr).tenant.domain.name;
  for (size_t i = 0; i < 10 * TenantFinder::kMost; ++i)
    finder.Name(Peer(1000), In(std::to_string(i), 1000), nullptr);
  EXPECT_LE(finder.container_count(), TenantFinder::kMostOfAccount + 2);
  EXPECT_EQ(finder.Name(Peer(1000), In("kept", 1000), nullptr).tenant.domain.name,
            kept.tenant.domain.name);
  EXPECT_NE(finder.Name(Peer(1000), In("idle", 1000), nullptr).tenant.domain.name, idle);
  EXPECT_EQ(finder.Name(Peer(1), In("other", 1), nullptr).tenant.domain.name, other);
  for (uid_t uid = 0; uid < 2 * TenantFinder::kMost; ++uid)
    finder.Name(Peer(uid), In("of" + std::to_string(uid), uid), nullptr);
  EXPECT_LE(finder.container_count(), TenantFinder::kMost + 1);
}

// --- real processes

// A process in other namespaces that has a connection to this one, until it is told to end.
class Contained {
 public:
  // `enter` is called in it, and returns whether it is where it should be.
  explicit Contained(const std::function<bool()>& enter) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, words_), 0);
    char name[] = "/tmp/sluice-test-XXXXXX";
    directory_ = ::mkdtemp(name);
    EXPECT_EQ(::chmod(directory_.c_str(), 0755), 0);
    const std::string path = directory_ + "/socket";
    absl::StatusOr<os::UniqueFd> listener = os::ListenLocal(path, 0666, 1);
    EXPECT_TRUE(listener.ok());
    process_ = ::fork();
    if (process_ == 0) Serve(enter, path);
    char word = 0;
    EXPECT_EQ(::read(words_[0], &word, 1), 1);
    entered_ = word == 'y';
    if (!entered_) return;
    socket_ = *os::AcceptLocal(listener->get());
    peer_ = *os::GetPeerIdentity(socket_.get());
  }

  ~Contained() {
    End();
    ::close(words_[0]);
    ::close(words_[1]);
    ::unlink((directory_ + "/socket").c_str());
    ::rmdir(directory_.c_str());
  }

  void End() {
    if (process_ <= 0) return;
    EXPECT_EQ(::kill(process_, SIGKILL), 0);
    EXPECT_EQ(::waitpid(process_, nullptr, 0), process_);
    process_ = -1;
  }

  bool entered() const { return entered_; }
  const os::PeerIdentity& peer() const { return peer_; }

 private:
  [[noreturn]] void Serve(const std::function<bool()>& enter, const std::string& path) {
    bool good = enter();
    absl::StatusOr<os::UniqueFd> socket = os::ConnectLocal(path, 1000);
    good = good && socket.ok();
    if (::write(words_[1], good ? "y" : "n", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }

  int words_[2] = {-1, -1};
  std::string directory_;
  pid_t process_ = -1;
  bool entered_ = false;
  os::UniqueFd socket_;
  os::PeerIdentity peer_;
};

bool WriteFile(const char* path, const std::string& text) {
  const os::UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The group has the user's number.
bool MapSelf(uid_t uid) {
  const std::string map = "0 " + std::to_string(uid) + " 1";
  return WriteFile("/proc/self/uid_map", map) && WriteFile("/proc/self/setgroups", "deny") &&
         WriteFile("/proc/self/gid_map", map);
}

TEST(PeerContainerTest, AProcessOfTheHost) {
  const Contained here([] { return true; });
  ASSERT_TRUE(here.entered());
  const auto found = FindPeerContainer(here.peer());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->place, Place::kHere);
  EXPECT_EQ(found->owner, ::geteuid());
}

TEST(PeerContainerTest, UserNamespacesBelongToWhoMadeTheOutermost) {
  const uid_t maker = ::geteuid() == 0 ? 65'533 : ::geteuid();  // Its group is, too.
  const auto enter = [maker] {
    if (::geteuid() == 0 &&
        (::setresgid(maker, maker, maker) != 0 || ::setresuid(maker, maker, maker) != 0))
      return false;
    ::prctl(PR_SET_DUMPABLE, 1);  // Or its own files in /proc would be root's.
    return ::unshare(CLONE_NEWUSER) == 0 && MapSelf(maker);
  };
  const Contained one(enter);
  if (!one.entered()) GTEST_SKIP() << "users make no user namespaces here";
  const Contained two(enter);
  const Contained nested(
      [&enter] { return enter() && ::unshare(CLONE_NEWUSER) == 0 && MapSelf(0); });
  ASSERT_TRUE(two.entered() && nested.entered());
  std::set<std::string> keys;
  for (const Contained* each : {&one, &two, &nested}) {
    const auto found = FindPeerContainer(each->peer());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->place, Place::kContainer) << found->why;
    EXPECT_EQ(found->owner, maker);
    keys.insert(found->key);
  }
  EXPECT_EQ(keys.size(), 3u);
}

// Subordinate ids that root gives a namespace of another user are still that user's.
TEST(PeerContainerTest, SubordinateUsersAreTheirOwners) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives out subordinate ids without a helper";
  constexpr uid_t kMaker = 65'533;
  const Contained subordinate([] {
    int made[2], mapped[2];
    if (::pipe(made) != 0 || ::pipe(mapped) != 0) return false;
    const pid_t self = ::getpid();
    if (::fork() == 0) {  // As newuidmap would.
      ::close(made[1]);   // Its read ends with the other process.
      char word = 0;
      const bool good = ::read(made[0], &word, 1) == 1 &&
                        WriteFile(("/proc/" + std::to_string(self) + "/uid_map").c_str(),
                                  "0 65533 1\n1 200000 100\n");
      ::_exit(::write(mapped[1], good ? "y" : "n", 1) == 1 ? 0 : 1);
    }
    char word = 0;
    return ::setresuid(kMaker, kMaker, kMaker) == 0 && ::unshare(CLONE_NEWUSER) == 0 &&
           ::write(made[1], "x", 1) == 1 && ::read(mapped[0], &word, 1) == 1 && word == 'y' &&
           ::setresuid(7, 7, 7) == 0;
  });
  if (!subordinate.entered()) GTEST_SKIP() << "users make no user namespaces here";
  EXPECT_EQ(subordinate.peer().uid, 200'006u);
  const auto found = FindPeerContainer(subordinate.peer());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->owner, kMaker);
}

TEST(PeerContainerTest, WhoIsGoneIsNobody) {
  Contained gone([] { return true; });
  ASSERT_TRUE(gone.entered());
  gone.End();
  EXPECT_EQ(FindPeerContainer(gone.peer()).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace sluice::broker
