// SPDX-License-Identifier: Apache-2.0
#include "broker/os/local_socket.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "broker/os/graphics_handle.h"
#include "broker/os/peer_identity.h"
#include "broker/os/process.h"
#include "broker/os/shared_memory.h"
#include "platform_win/handles/handle_table.h"
#include "tests/unit/platform_win/child.h"

#undef SendMessage  // A macro of windows.h.

namespace sluice::os {
namespace {

constexpr size_t kSize = 64 * 1024;

class LocalSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = CreateSocketPair();
    ASSERT_TRUE(pair.ok()) << pair.status();
    here_ = std::move(pair->first);
    there_ = std::move(pair->second);
  }

  UniqueFd here_;
  UniqueFd there_;
};

// A read that a thread began ends with the thread. The connection does not, and a message that
// comes afterwards arrives, if it is waited for or received at once.
TEST_F(LocalSocketTest, ReaderThreadEnds) {
  for (const bool wait : {true, false}) {
    DWORD id = 0;
    int fd = here_.get();
    const OwnedHandle thread(::CreateThread(
        nullptr, 0,
        [](void* end) -> DWORD { return WaitReadable(*static_cast<int*>(end), 0).ok(); }, &fd, 0,
        &id));
    ASSERT_EQ(::WaitForSingleObject(thread.get(), 20'000), WAIT_OBJECT_0);
    ASSERT_TRUE(SendMessage(there_.get(), "hello", 5).ok());
    ASSERT_TRUE(!wait || WaitReadable(here_.get(), 20'000).ok());
    char buffer[16];
    const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(std::string(buffer, *size), "hello");
  }
}

// A non-blocking message that was taken arrives, though the thread that sent it ended while it was
// on its way.
TEST_F(LocalSocketTest, WriterThreadEnds) {
  ASSERT_TRUE(SetNonBlocking(here_.get(), true).ok());
  struct Writer {
    int fd;
    int taken = 0;
  } writer = {here_.get()};
  const OwnedHandle thread(::CreateThread(
      nullptr, 0,
      [](void* argument) -> DWORD {
        auto& self = *static_cast<Writer*>(argument);
        const std::string large(10'000, 'x');
        while (SendMessage(self.fd, large.data(), large.size()).ok()) ++self.taken;
        return 0;
      },
      &writer, 0, nullptr));
  ASSERT_EQ(::WaitForSingleObject(thread.get(), 60'000), WAIT_OBJECT_0);
  std::string buffer(10'000, '\0');
  for (int i = 0; i < writer.taken; ++i) {
    ASSERT_TRUE(WaitReadable(there_.get(), 20'000).ok()) << i << " of " << writer.taken;
    const auto size = ReceiveMessage(there_.get(), buffer.data(), buffer.size(), nullptr, 0);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(*size, buffer.size());
  }
}

// A message arrives whole, with its descriptors, which are not the sender's numbers.
TEST_F(LocalSocketTest, CarriesBytesAndDescriptors) {
  const auto memory = CreateSharedMemory("test", kSize);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const int fds[] = {memory->get(), memory->get()};
  ASSERT_TRUE(SendMessage(there_.get(), "hello", 5, fds, 2).ok());
  char buffer[16];
  std::vector<UniqueFd> received;
  const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, 4);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(std::string(buffer, *size), "hello");
  ASSERT_EQ(received.size(), 2u);
  for (const UniqueFd& fd : received) {
    EXPECT_NE(fd.get(), memory->get());
    EXPECT_TRUE(VerifySharedMemory(fd.get(), kSize).ok());
  }
}

// More descriptors than asked for are an error, and none of them stays; the pipe stays usable.
TEST_F(LocalSocketTest, TooManyDescriptorsAreClosed) {
  const auto memory = CreateSharedMemory("test", kSize);
  const int fds[] = {memory->get(), memory->get()};
  const int before = CountDescriptors();
  DWORD handles_before = 0;
  DWORD handles_after = 0;
  char buffer[16];
  std::vector<UniqueFd> received;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(SendMessage(there_.get(), "x", 1, fds, 2).ok());
    const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, i % 2);
    EXPECT_TRUE(absl::IsInvalidArgument(size.status())) << size.status();
    EXPECT_TRUE(received.empty());
    if (i == 0) ::GetProcessHandleCount(::GetCurrentProcess(), &handles_before);
  }
  ::GetProcessHandleCount(::GetCurrentProcess(), &handles_after);
  EXPECT_EQ(CountDescriptors(), before);
  EXPECT_EQ(handles_after, handles_before);
  ASSERT_TRUE(SendMessage(there_.get(), "ok", 2).ok());
  EXPECT_EQ(*ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0), 2u);
}

// A message larger than the buffer is an error, never cut short; one larger than a first read comes
// whole.
TEST_F(LocalSocketTest, LargeMessages) {
  const std::string large(10'000, 'x');
  ASSERT_TRUE(SendMessage(there_.get(), large.data(), large.size()).ok());
  ASSERT_TRUE(SendMessage(there_.get(), large.data(), large.size()).ok());
  std::string buffer(large.size(), '\0');
  EXPECT_TRUE(absl::IsInvalidArgument(
      ReceiveMessage(here_.get(), buffer.data(), 100, nullptr, 0).status()));
  const auto size = ReceiveMessage(here_.get(), buffer.data(), buffer.size(), nullptr, 0);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(buffer, large);
}

// A peer that is gone reads as end of file once its messages are read; sending to it is kAborted.
TEST_F(LocalSocketTest, PeerGone) {
  ASSERT_TRUE(SendMessage(there_.get(), "last", 4).ok());
  there_.reset();
  char buffer[16];
  EXPECT_EQ(*ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0), 4u);
  for (int i = 0; i < 2; ++i) {
    const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(*size, 0u);
  }
  EXPECT_TRUE(WaitReadable(here_.get(), 0).ok());
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

// A non-blocking pipe answers kUnavailable when it would block, in both directions.
TEST_F(LocalSocketTest, WouldBlockIsUnavailable) {
  ASSERT_TRUE(SetNonBlocking(here_.get(), true).ok());
  char buffer[16];
  EXPECT_TRUE(absl::IsUnavailable(
      ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0).status()));
  absl::Status sent;
  const std::string message(1024, 'x');
  for (int i = 0; i < 1000 && sent.ok(); ++i)
    sent = SendMessage(here_.get(), message.data(), message.size());
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

// A blocking receive sleeps until another thread sends.
TEST_F(LocalSocketTest, BlockingReceiveWaits) {
  std::string received;
  std::thread receiver([&] {
    char buffer[16];
    const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), nullptr, 0);
    if (size.ok()) received.assign(buffer, *size);
  });
  ASSERT_TRUE(SendMessage(there_.get(), "late", 4).ok());
  receiver.join();
  EXPECT_EQ(received, "late");
}

// Each way in which connecting fails has a code of its own, and leaves no descriptor.
TEST_F(LocalSocketTest, ConnectErrorsAreTellable) {
  const int before = CountDescriptors();
  EXPECT_TRUE(absl::IsNotFound(ConnectLocal(FreshPipeName(), 100).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectLocal("no pipe", 100).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectLocal(R"(\\other\pipe\sluice)", 100).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectLocal("", 100).status()));
  EXPECT_EQ(CountDescriptors(), before);
}

// A name is one listener's: a second one is refused, and takes nothing from the first.
TEST_F(LocalSocketTest, OneListenerForAName) {
  const std::string name = FreshPipeName();
  const auto listener = ListenLocal(name, 0600, 4);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(absl::IsAlreadyExists(ListenLocal(name, 0600, 4).status()));
  EXPECT_TRUE(ConnectLocal(name, 1000).ok());
}

// Names have no case, in any part of them nor in any language's letters: a listener's name is taken
// and found by each way of writing it, and so they are told as one.
TEST_F(LocalSocketTest, NamesHaveNoCase) {
  const std::string name = FreshPipeName() + "-gerät";
  std::string other = name;
  other.replace(0, other.rfind("-ger"), absl::AsciiStrToUpper(name.substr(0, name.rfind("-ger"))));
  other.replace(other.rfind("ät"), std::string::npos, "ÄT");
  const auto listener = ListenLocal(name, 0600, 4);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(absl::IsAlreadyExists(ListenLocal(other, 0600, 4).status()));
  EXPECT_TRUE(ConnectLocal(other, 1000).ok()) << ConnectLocal(other, 1000).status();
  EXPECT_TRUE(IsSameLocalName(name, other));
  EXPECT_FALSE(IsSameLocalName(name, name + "2"));
}

// A name that a program which is no daemon has taken, with whatever kind of pipe: whose it is, and
// what to do.
TEST_F(LocalSocketTest, NameOfAnotherProgram) {
  const std::string name = FreshPipeName();
  const OwnedHandle squatter(::CreateNamedPipeA(name.c_str(), PIPE_ACCESS_INBOUND, PIPE_TYPE_BYTE,
                                                1, 4096, 4096, 0, nullptr));
  ASSERT_TRUE(squatter.valid());
  const absl::Status status = ListenLocal(name, 0600, 4).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  for (const std::string& word : {std::to_string(::GetCurrentProcessId()), name,
                                  std::string("platform_win_test.exe"), std::string("stop it")}) {
    EXPECT_NE(status.message().find(word), absl::string_view::npos) << word << ": " << status;
  }
}

// A name that is open to others can be listened on and connected to as well.
TEST_F(LocalSocketTest, OpenToOthers) {
  const std::string name = FreshPipeName();
  const auto listener = ListenLocal(name, 0666, 4);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(ConnectLocal(name, 1000).ok());
}

// An end that was hung up is at its end, here and at the other side, also for who waits already.
TEST_F(LocalSocketTest, HangUpEndsBothSides) {
  char byte;
  absl::StatusOr<size_t> there = absl::UnknownError("not received");
  absl::StatusOr<size_t> here = there;
  std::thread waits_there([&] { there = ReceiveMessage(there_.get(), &byte, 1, nullptr, 0); });
  std::thread waits_here([&] {
    char own;
    here = ReceiveMessage(here_.get(), &own, 1, nullptr, 0);
  });
  HangUp(here_.get());
  waits_there.join();
  waits_here.join();
  EXPECT_EQ(*there, 0u);
  EXPECT_EQ(*here, 0u);
  EXPECT_TRUE(absl::IsAborted(SendMessage(here_.get(), "x", 1)));
  EXPECT_TRUE(absl::IsAborted(SendMessage(there_.get(), "x", 1)));
}

// The system names the peer of an accepted connection, and gives its process: this very one.
TEST_F(LocalSocketTest, PeerIdentityIsTheSystems) {
  const std::string name = FreshPipeName();
  const auto listener = ListenLocal(name, 0600, 4);
  ASSERT_TRUE(listener.ok());
  EXPECT_TRUE(absl::IsUnavailable(AcceptLocal(listener->get()).status()));
  const auto client = ConnectLocal(name, 1000);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE(WaitReadable(listener->get(), 5000).ok());
  const auto accepted = AcceptLocal(listener->get());
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  const auto peer = GetPeerIdentity(accepted->get());
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->uid, OwnUser());
  EXPECT_EQ(peer->pid, static_cast<pid_t>(::GetCurrentProcessId()));
  ASSERT_TRUE(peer->pidfd.valid());
  EXPECT_TRUE(absl::IsDeadlineExceeded(WaitReadable(peer->pidfd.get(), 0)));
  EXPECT_TRUE(UserName(peer->uid).starts_with("sid:S-1-5-")) << UserName(peer->uid);
  EXPECT_FALSE(GetPeerIdentity(client->get()).ok());
}

// Many clients at once are all served: the listener makes instances as they are taken.
TEST_F(LocalSocketTest, ManyClientsAtOnce) {
  const std::string name = FreshPipeName();
  const auto listener = ListenLocal(name, 0600, 4);
  ASSERT_TRUE(listener.ok());
  constexpr int kClients = 20;
  std::vector<std::thread> threads;
  std::atomic<int> connected = 0;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&] {
      const auto client = ConnectLocal(name, 20'000);
      char byte;
      if (client.ok() && ReceiveMessage(client->get(), &byte, 1, nullptr, 0).ok()) ++connected;
    });
  }
  for (int served = 0; served < kClients;) {
    ASSERT_TRUE(WaitReadable(listener->get(), 20'000).ok());
    const auto accepted = AcceptLocal(listener->get());
    if (absl::IsUnavailable(accepted.status())) continue;
    ASSERT_TRUE(accepted.ok()) << accepted.status();
    ASSERT_TRUE(SendMessage(accepted->get(), "x", 1).ok());
    ++served;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(connected, kClients);
}

// A client that connects without the greeting is never accepted, and keeps nobody else out.
TEST_F(LocalSocketTest, SilentConnectionsKeepNobodyOut) {
  const std::string name = FreshPipeName();
  const auto listener = ListenLocal(name, 0600, 4);
  ASSERT_TRUE(listener.ok());
  std::vector<OwnedHandle> silent;
  for (int i = 0; i < 100; ++i) {
    OwnedHandle pipe(::CreateFileA(name.c_str(), GENERIC_READ | FILE_WRITE_DATA, 0, nullptr,
                                   OPEN_EXISTING, 0, nullptr));
    EXPECT_TRUE(absl::IsUnavailable(AcceptLocal(listener->get()).status()));
    if (pipe.valid()) silent.push_back(std::move(pipe));
  }
  EXPECT_GT(silent.size(), 64u);
  const auto client = ConnectLocal(name, 5000);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE(WaitReadable(listener->get(), 5000).ok());
  EXPECT_TRUE(AcceptLocal(listener->get()).ok());
}

// Clients that come and go at once, some before the listener has seen them, take nothing from it:
// its name is there at every moment, and who greets is served.
TEST_F(LocalSocketTest, HastyClientsLeaveTheName) {
  const std::string name = FreshPipeName();
  const auto listener = ListenLocal(name, 0600, 4);
  ASSERT_TRUE(listener.ok());
  std::atomic<int> opened = 0, absent = 0, at_work = 3;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 4000 && absent == 0; ++j) {
        const OwnedHandle pipe(::CreateFileA(name.c_str(), GENERIC_READ | FILE_WRITE_DATA, 0,
                                             nullptr, OPEN_EXISTING, 0, nullptr));
        if (pipe.valid()) {
          ++opened;
        } else if (::GetLastError() != ERROR_PIPE_BUSY) {
          ++absent;
        }
      }
      --at_work;
    });
  }
  while (at_work > 0) EXPECT_TRUE(absl::IsUnavailable(AcceptLocal(listener->get()).status()));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(absent, 0) << "times without the name";
  EXPECT_GT(opened, 100);
  // Beside the listener at work: the last of them may have left every instance used.
  auto client = std::async(std::launch::async, [&] { return ConnectLocal(name, 20'000); });
  absl::StatusOr<UniqueFd> accepted = absl::UnavailableError("");
  while (absl::IsUnavailable(accepted.status())) {
    const absl::Status waited = WaitReadable(listener->get(), 20'000);
    accepted = waited.ok() ? AcceptLocal(listener->get()) : waited;
  }
  EXPECT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_TRUE(client.get().ok());
}

// A child has its end of a pair under the number it was given; memory goes both ways.
TEST_F(LocalSocketTest, ChildExchangesMemory) {
  SpawnOptions options = ChildOptions("memory");
  options.descriptors = {{there_.get(), 3}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  there_.reset();
  const auto memory = CreateSharedMemory("test", kSize);
  const auto mapping = SharedMapping::Map(memory->get(), kSize, true);
  mapping->data()[0] = 1;
  const int fd = memory->get();
  ASSERT_TRUE(SendMessage(here_.get(), "hello", 5, &fd, 1).ok());
  char buffer[16];
  std::vector<UniqueFd> received;
  const auto size = ReceiveMessage(here_.get(), buffer, sizeof(buffer), &received, 1);
  ASSERT_TRUE(SendMessage(here_.get(), "taken", 5).ok());
  EXPECT_EQ(child->WaitAndReap(-1)->code, 0);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(std::string(buffer, *size), "there");
  EXPECT_EQ(mapping->data()[kSize - 1], 2);
  ASSERT_EQ(received.size(), 1u);
  const auto theirs = SharedMapping::Map(received[0].get(), kSize, true);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_EQ(theirs->data()[7], 3);
}

// A graphics object's handle goes to who has less power as it is (an event stands for one), stays
// no memory, and is closed with its descriptor.
TEST_F(LocalSocketTest, GraphicsHandleReachesTheOtherProcess) {
  SpawnOptions options = ChildOptions("graphics");
  options.descriptors = {{there_.get(), 3}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  there_.reset();
  const OwnedHandle kept(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
  HANDLE given = DuplicateHandleHere(kept.get()).release();
  {
    const UniqueFd texture = AdoptGraphicsHandle(reinterpret_cast<uintptr_t>(given));
    const auto handle = GraphicsHandleOf(texture.get());
    ASSERT_TRUE(handle.ok()) << handle.status();
    EXPECT_EQ(reinterpret_cast<HANDLE>(*handle), given);
    const int fd = texture.get();
    ASSERT_TRUE(SendMessage(here_.get(), "x", 1, &fd, 1).ok());
  }
  EXPECT_FALSE(::SetEvent(given));
  EXPECT_EQ(child->WaitAndReap(-1)->code, 0);
  EXPECT_EQ(::WaitForSingleObject(kept.get(), 0), WAIT_OBJECT_0) << "set by the other process";
  const auto memory = CreateSharedMemory("test", kSize);
  EXPECT_TRUE(absl::IsInvalidArgument(GraphicsHandleOf(memory->get()).status()));
  EXPECT_FALSE(AdoptGraphicsHandle(0).valid());
}

class OfferTest : public testing::Test {
 protected:
  // Lets a child play `part` on a connection, and returns what comes of its message.
  absl::StatusOr<size_t> ReceiveFrom(const std::string& part) {
    const std::string name = FreshPipeName();
    const auto listener = ListenLocal(name, 0600, 4);
    if (!listener.ok()) return listener.status();
    SpawnOptions options = ChildOptions(part);
    options.arguments.push_back(name);
    auto child = Spawn(options);
    if (!child.ok()) return child.status();
    absl::StatusOr<UniqueFd> accepted = absl::UnavailableError("");
    while (absl::IsUnavailable(accepted.status())) {
      if (absl::Status came = WaitReadable(listener->get(), 20'000); !came.ok()) return came;
      accepted = AcceptLocal(listener->get());
    }
    if (!accepted.ok()) return accepted.status();
    EXPECT_EQ(GetPeerIdentity(accepted->get())->pid, child->pid());
    if (absl::Status came = WaitReadable(accepted->get(), 20'000); !came.ok()) return came;
    char buffer[16];
    ::GetProcessHandleCount(::GetCurrentProcess(), &handles_before_);
    const auto size = ReceiveMessage(accepted->get(), buffer, sizeof(buffer), &received_, 2);
    ::GetProcessHandleCount(::GetCurrentProcess(), &handles_after_);
    accepted->reset();
    EXPECT_EQ(child->WaitAndReap(-1)->code, 0);
    return size;
  }

  std::vector<UniqueFd> received_;
  DWORD handles_before_ = 0;
  DWORD handles_after_ = 0;
};

// A client that connected offers memory: it is pulled out of its process.
TEST_F(OfferTest, ClientOffersMemory) {
  const auto size = ReceiveFrom("offer");
  ASSERT_TRUE(size.ok()) << size.status();
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_TRUE(VerifySharedMemory(received_[0].get(), kSize).ok());
}

// A client that was given the second end of a pair whose first stays here: memory goes both ways,
// and the client gets no process of ours with it.
TEST(StayingEndTest, HandsMemoryToAClientAndTakesIt) {
  const std::string name = FreshPipeName();
  const auto listener = ListenLocal(name, 0600, 4);
  ASSERT_TRUE(listener.ok()) << listener.status();
  SpawnOptions options = ChildOptions("channel");
  options.arguments.push_back(name);
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  absl::StatusOr<UniqueFd> accepted = absl::UnavailableError("");
  while (absl::IsUnavailable(accepted.status())) {
    ASSERT_TRUE(WaitReadable(listener->get(), 20'000).ok());
    accepted = AcceptLocal(listener->get());
  }
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  auto pair = CreateSocketPair(FirstEnd::kStays);
  ASSERT_TRUE(pair.ok()) << pair.status();
  const int end = pair->second.get();
  ASSERT_TRUE(SendMessage(accepted->get(), "x", 1, &end, 1).ok());
  pair->second.reset();
  const int channel = pair->first.get();
  const auto memory = CreateSharedMemory("test", kSize);
  const auto mapping = SharedMapping::Map(memory->get(), kSize, true);
  mapping->data()[0] = 1;
  const int fd = memory->get();
  ASSERT_TRUE(SendMessage(channel, "hello", 5, &fd, 1).ok());
  char buffer[16];
  std::vector<UniqueFd> received;
  const auto size = ReceiveMessage(channel, buffer, sizeof(buffer), &received, 1);
  ASSERT_TRUE(SendMessage(channel, "taken", 5).ok());
  EXPECT_EQ(child->WaitAndReap(-1)->code, 0);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(mapping->data()[kSize - 1], 2);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_TRUE(VerifySharedMemory(received[0].get(), kSize).ok());
}

// A client's handle that is no memory of its own is refused, and nothing of it stays open.
TEST_F(OfferTest, LiesAreRefused) {
  for (const char* part :
       {"lie-pseudo", "lie-type", "lie-kind", "lie-graphics", "lie-place", "lie-none"}) {
    const auto size = ReceiveFrom(part);
    EXPECT_TRUE(absl::IsInvalidArgument(size.status())) << part << ": " << size.status();
    EXPECT_TRUE(received_.empty()) << part;
    EXPECT_EQ(handles_after_, handles_before_) << part;
  }
}

// The end of a pair that was given to another process knows that process: handles sent through the
// kept end arrive there, and one that is not there yet cannot be introduced.
TEST_F(LocalSocketTest, IntroductionNeedsTheOtherProcess) {
  auto carrier = CreateSocketPair();
  ASSERT_TRUE(carrier.ok());
  const int fd = here_.get();
  EXPECT_TRUE(absl::IsFailedPrecondition(SendMessage(carrier->first.get(), "x", 1, &fd, 1)));
}

// A client and a worker that the broker introduces exchange memory without the broker: the client's
// end does the duplicating, for the broker gave it the worker's process with it.
TEST_F(LocalSocketTest, IntroducedEndsExchangeMemory) {
  SpawnOptions options = ChildOptions("memory");
  options.descriptors = {{there_.get(), 3}};
  auto worker = Spawn(options);
  ASSERT_TRUE(worker.ok()) << worker.status();
  there_.reset();
  // This process plays the client as well: the end comes to it through a message.
  auto carrier = CreateSocketPair();
  ASSERT_TRUE(carrier.ok());
  const int end = here_.get();
  ASSERT_TRUE(SendMessage(carrier->first.get(), "x", 1, &end, 1).ok());
  here_.reset();
  char buffer[16];
  std::vector<UniqueFd> channel;
  ASSERT_TRUE(ReceiveMessage(carrier->second.get(), buffer, 1, &channel, 1).ok());
  ASSERT_EQ(channel.size(), 1u);

  const auto memory = CreateSharedMemory("test", kSize);
  const auto mapping = SharedMapping::Map(memory->get(), kSize, true);
  mapping->data()[0] = 1;
  const int fd = memory->get();
  ASSERT_TRUE(SendMessage(channel[0].get(), "hello", 5, &fd, 1).ok());
  std::vector<UniqueFd> received;
  const auto size = ReceiveMessage(channel[0].get(), buffer, sizeof(buffer), &received, 1);
  ASSERT_TRUE(SendMessage(channel[0].get(), "taken", 5).ok());
  EXPECT_EQ(worker->WaitAndReap(-1)->code, 0);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(mapping->data()[kSize - 1], 2);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_TRUE(VerifySharedMemory(received[0].get(), kSize).ok());
  // The worker is gone: its end is, too.
  EXPECT_EQ(*ReceiveMessage(channel[0].get(), buffer, sizeof(buffer), nullptr, 0), 0u);
}

}  // namespace
}  // namespace sluice::os
