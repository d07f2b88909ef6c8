// SPDX-License-Identifier: Apache-2.0
#include "broker/os/local_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "broker/os/peer_identity.h"
#include "tests/unit/platform_linux/open_descriptors.h"

namespace sluice::os {
namespace {

class LocalSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = CreateSocketPair();
    ASSERT_TRUE(pair.ok()) << pair.status();
    here_ = std::move(pair->first);
    there_ = std::move(pair->second);
    char pattern[] = "/tmp/sluice-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    directory_ = pattern;
  }

  void TearDown() override {
    ::unlink((directory_ + "/s").c_str());
    ::rmdir(directory_.c_str());
  }

  // Sends `count` copies of a descriptor with a one-byte message, past SendMessage's own checks.
  void SendDescriptors(int count, size_t bytes = 1) {
    std::vector<int> fds(static_cast<size_t>(count), STDERR_FILENO);
    std::vector<char> data(bytes, 'x');
    iovec part = {data.data(), data.size()};
    std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
    ASSERT_EQ(::sendmsg(there_.get(), &message, 0), static_cast<ssize_t>(bytes));
  }

  UniqueFd here_;
  UniqueFd there_;
  std::string directory_;
};

// A message arrives whole, with its descriptors, which are close-on-exec and not the sender's
// numbers.
TEST_F(LocalSocketTest, CarriesBytesAndDescriptors) {
  const int fds[] = {STDOUT_FILENO, STDERR_FILENO};
  ASSERT_TRUE(SendMessage(there_.get(), "hello", 5, fds, 2).ok());
  char buffer[16];
  std::vector<UniqueFd> received;
  const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, 4);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(std::string(buffer, *size), "hello");
  ASSERT_EQ(received.size(), 2u);
  for (const UniqueFd& fd : received) {
    EXPECT_GT(fd.get(), STDERR_FILENO);
    EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  }
}

// More descriptors than asked for are an error, and the caller's to close, all of them; the socket
// stays usable.
TEST_F(LocalSocketTest, TooManyDescriptorsAreTheCallers) {
  const int before = CountOpenDescriptors();
  char buffer[16];
  std::vector<UniqueFd> received;
  for (const int max_fds : {1, 2, 3}) {
    for (const int extra : {1, 2, 250}) {
      SendDescriptors(max_fds + extra);
      const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, max_fds);
      EXPECT_TRUE(absl::IsInvalidArgument(size.status())) << max_fds << "+" << extra;
      EXPECT_EQ(received.size(), static_cast<size_t>(max_fds + extra));
      received.clear();
      EXPECT_EQ(CountOpenDescriptors(), before) << max_fds << "+" << extra;
    }
  }
  ASSERT_TRUE(SendMessage(there_.get(), "ok", 2).ok());
  EXPECT_EQ(*ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0), 2u);
}

// Where none are taken, a message with descriptors stays where it is: nothing is closed on its way.
TEST_F(LocalSocketTest, DescriptorsAreNotTakenByWhoTakesNone) {
  const int before = CountOpenDescriptors();
  SendDescriptors(2);
  char buffer[16];
  std::vector<UniqueFd> received;
  for (int i = 0; i < 2; ++i) {
    const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0);
    EXPECT_TRUE(absl::IsInvalidArgument(size.status())) << size.status();
  }
  EXPECT_EQ(*ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, 2), 1u);
  EXPECT_EQ(received.size(), 2u);
  EXPECT_EQ(CountOpenDescriptors(), before + 2);
}

// Nor is one that comes while it is looked for.
TEST_F(LocalSocketTest, DescriptorsThatComeMeanwhileAreNotTaken) {
  ASSERT_TRUE(SetNonBlocking(here_.get(), true).ok());
  constexpr int kMessages = 1000;
  std::atomic<int> wanted{0};
  std::thread sender([&] {
    for (int i = 1; i <= kMessages; ++i) {
      while (wanted.load() < i) std::this_thread::yield();
      SendDescriptors(1);
    }
  });
  char buffer[16];
  std::vector<UniqueFd> received;
  int taken = 0;
  for (int i = 1; i <= kMessages; ++i) {
    wanted.store(i);
    absl::StatusOr<size_t> size = absl::UnavailableError("");
    while (absl::IsUnavailable(size.status()))
      size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0);
    // It is still there.
    if (!ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, 1).ok()) ++taken;
  }
  sender.join();
  EXPECT_EQ(taken, 0);
}

// A process without descriptors to spare is told so, not that the peer sent too many.
TEST_F(LocalSocketTest, NoDescriptorsLeftIsSaid) {
  SendDescriptors(1);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  char buffer[16];
  std::vector<UniqueFd> received;
  const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, 3);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(size.status())) << size.status();
  EXPECT_NE(size.status().message().find("ulimit -n"), std::string::npos) << size.status();
  EXPECT_TRUE(received.empty());
}

// If there is room for some of them, those are the caller's to close.
TEST_F(LocalSocketTest, DescriptorsThatFitAreTheCallers) {
  const int next = ::dup(STDERR_FILENO);
  ::close(next);
  SendDescriptors(4);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit two_more = before;
  two_more.rlim_cur = static_cast<rlim_t>(next) + 2;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &two_more), 0);
  char buffer[16];
  std::vector<UniqueFd> received;
  const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, 4);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(size.status())) << size.status();
  EXPECT_FALSE(received.empty());
}

// A message larger than the buffer is an error, never cut short, and its descriptors can be closed.
TEST_F(LocalSocketTest, TruncatedMessageIsRefused) {
  const int before = CountOpenDescriptors();
  SendDescriptors(2, 17);
  char buffer[16];
  std::vector<UniqueFd> received;
  const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, 2);
  EXPECT_TRUE(absl::IsInvalidArgument(size.status()));
  received.clear();
  EXPECT_EQ(CountOpenDescriptors(), before);
}

// Descriptors on an empty message, which counts as end of file, do not leak.
TEST_F(LocalSocketTest, DescriptorsOnAnEmptyMessageAreClosed) {
  const int before = CountOpenDescriptors();
  SendDescriptors(1, 0);
  char buffer[16];
  std::vector<UniqueFd> received;
  EXPECT_EQ(*ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, 2), 0u);
  received.clear();
  EXPECT_EQ(CountOpenDescriptors(), before);
}

// A peer that is gone reads as end of file, after what it sent, also if our bytes were unread;
// sending to it is kAborted.
TEST_F(LocalSocketTest, PeerGone) {
  ASSERT_TRUE(SendMessage(here_.get(), "unread", 6).ok());
  ASSERT_TRUE(SendMessage(there_.get(), "last", 4).ok());
  there_.reset();
  char buffer[16];
  EXPECT_EQ(*ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0), 4u);
  const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(*size, 0u);
  EXPECT_TRUE(absl::IsAborted(SendMessage(here_.get(), "x", 1)));
}

// Only the other end's end is a hang-up: messages are not, read or unread, and stay.
TEST_F(LocalSocketTest, MessagesAreNoHangUp) {
  std::future<absl::Status> told =
      std::async(std::launch::async, [this] { return AwaitHangUp(here_.get()); });
  const auto silent = [&] {
    return told.wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout;
  };
  EXPECT_TRUE(silent());
  for (const char* text : {"one", "two"}) {
    ASSERT_TRUE(SendMessage(there_.get(), text, 3).ok());
    EXPECT_TRUE(silent());
    char buffer[16];
    const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(std::string(buffer, *size), text);
    EXPECT_TRUE(silent());
  }
  ASSERT_TRUE(SendMessage(there_.get(), "last", 4).ok());
  there_.reset();
  ASSERT_EQ(told.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_TRUE(told.get().ok());
  char buffer[16];
  EXPECT_EQ(*ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0), 4u);
}

// A non-blocking socket answers kUnavailable when it would block, in both directions.
TEST_F(LocalSocketTest, WouldBlockIsUnavailable) {
  ASSERT_TRUE(SetNonBlocking(here_.get(), true).ok());
  char buffer[16];
  EXPECT_TRUE(absl::IsUnavailable(
      ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0).status()));
  absl::Status sent;
  for (int i = 0; i < 100'000 && sent.ok(); ++i) sent = SendMessage(here_.get(), "x", 1);
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
}

// Waiting for a silent peer ends at its timeout; for a peer that spoke or left, at once.
TEST_F(LocalSocketTest, WaitReadableIsBounded) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(WaitReadable(here_.get(), 10)));
  ASSERT_TRUE(SendMessage(there_.get(), "x", 1).ok());
  EXPECT_TRUE(WaitReadable(here_.get(), -1).ok());
  char byte;
  ASSERT_TRUE(ReceiveMessage(here_.get(), &byte, 1, nullptr, 0).ok());
  there_.reset();
  EXPECT_TRUE(WaitReadable(here_.get(), -1).ok());
}

// Each way in which connecting fails has a code of its own, and leaves no descriptor.
TEST_F(LocalSocketTest, ConnectErrorsAreTellable) {
  const int before = CountOpenDescriptors();
  const std::string path = directory_ + "/s";
  EXPECT_TRUE(absl::IsNotFound(ConnectLocal(path, 100).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectLocal(std::string(200, 'x'), 100).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectLocal("", 100).status()));
  ASSERT_TRUE(ListenLocal(path, 0600, 1).ok());  // Closed at once: a stale socket.
  EXPECT_TRUE(absl::IsUnavailable(ConnectLocal(path, 100).status()));
  EXPECT_EQ(CountOpenDescriptors(), before);
}

// A listener whose queue is full makes connecting end with the timeout, not hang.
TEST_F(LocalSocketTest, ConnectToABusyListenerIsBounded) {
  const auto listener = ListenLocal(directory_ + "/s", 0600, 0);
  ASSERT_TRUE(listener.ok());
  std::vector<UniqueFd> queued;
  absl::Status last;
  for (int i = 0; i < 8 && last.ok(); ++i) {
    auto connected = ConnectLocal(directory_ + "/s", 50);
    last = connected.status();
    if (connected.ok()) queued.push_back(*std::move(connected));
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(last)) << last;
}

// A socket is created with exactly the mode that was asked for, whatever the umask.
TEST_F(LocalSocketTest, ListenSetsTheMode) {
  const mode_t before = ::umask(0077);
  const auto listener = ListenLocal(directory_ + "/s", 0666, 4);
  ::umask(before);
  ASSERT_TRUE(listener.ok()) << listener.status();
  struct stat info;
  ASSERT_EQ(::stat((directory_ + "/s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
  // There is no second listener at the same path.
  EXPECT_FALSE(ListenLocal(directory_ + "/s", 0666, 4).ok());
}

// The kernel names the peer of an accepted connection: this very process.
TEST_F(LocalSocketTest, PeerIdentityIsTheKernels) {
  const auto listener = ListenLocal(directory_ + "/s", 0600, 4);
  ASSERT_TRUE(listener.ok());
  EXPECT_TRUE(absl::IsUnavailable(AcceptLocal(listener->get()).status()));
  const auto client = ConnectLocal(directory_ + "/s", 1000);
  ASSERT_TRUE(client.ok()) << client.status();
  const auto accepted = AcceptLocal(listener->get());
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  const auto peer = GetPeerIdentity(accepted->get());
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->uid, ::getuid());
  EXPECT_EQ(peer->gid, ::getgid());
  EXPECT_EQ(peer->pid, ::getpid());
}

// A descriptor that is no connected socket has no peer: an error, not somebody's uid.
TEST_F(LocalSocketTest, NoPeerNoIdentity) {
  EXPECT_FALSE(GetPeerIdentity(STDERR_FILENO).ok());
  const UniqueFd lonely(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(GetPeerIdentity(lonely.get()).ok());
}

}  // namespace
}  // namespace sluice::os
