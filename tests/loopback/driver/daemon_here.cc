// SPDX-License-Identifier: Apache-2.0
#include "tests/loopback/driver/daemon_here.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "broker/os/this_process.h"
#include "daemon/worker/command_loop.h"
#include "daemon/worker/probe.h"
#include "proto/broker_messages.h"
#include "proto/handle_messages.h"
#include "proto/ring_writer.h"

namespace sluice::client {
namespace {

os::SharedMapping MapRing(os::UniqueFd* file) {
  *file = std::move(*os::CreateSharedMemory("test-ring", wire::kRingFileBytes));
  return std::move(*os::SharedMapping::Map(file->get(), wire::kRingFileBytes, /*writable=*/true));
}

// The next message of a socket that does not block; false once the peer has gone.
bool Receive(int socket, char (&buffer)[wire::kMaxBrokerMessageBytes], size_t* size) {
  while (os::WaitReadable(socket, -1).ok()) {
    const absl::StatusOr<size_t> got =
        os::ReceiveMessage(socket, buffer, sizeof(buffer), nullptr, 0);
    if (absl::IsUnavailable(got.status())) continue;
    *size = got.value_or(0);
    return *size != 0;
  }
  return false;
}

void Welcome(int client) {
  const std::string snapshot = worker::TakeSnapshot("", 0)->SerializeAsString();
  const os::UniqueFd file =
      std::move(*os::CreateSealedCopy("test-snapshot", snapshot.data(), snapshot.size()));
  wire::Welcome welcome = wire::MakeMessage<wire::Welcome>();
  welcome.session_limit = 1;
  welcome.snapshot_size = snapshot.size();
  const int fd = file.get();
  EXPECT_TRUE(os::SendMessage(client, &welcome, sizeof(welcome), &fd, 1).ok());
}

}  // namespace

// One session: its rings, its end of the handle channel, and the two threads of a worker.
struct DaemonHere::Running {
  explicit Running(const worker::SessionOptions& options)
      : commands(MapRing(&commands_file)), replies(MapRing(&replies_file)) {
    auto ends = os::CreateSocketPair();
    channel = std::move(ends->first);
    clients_end = std::move(ends->second);
    session = std::make_unique<worker::Session>(options, channel.get(), replies.data());
    EXPECT_TRUE(session->AddDevices().ok());
    loop = std::make_unique<worker::CommandLoop>(session.get(), commands.data());
    Offer();
    loop_thread = std::thread([this] {
      (void)loop->Run();
      loop_ended.Notify();
    });
    channel_thread = std::thread([this] {
      while (os::WaitReadable(channel.get(), -1).ok() && session->imports().Receive().ok()) {
      }
    });
  }
  void Offer() {
    wire::HandleMessage offer = {};
    offer.magic = wire::kHandleMagic;
    offer.type = wire::HandleMessageType::kRingOffer;
    offer.size = wire::kRingFileBytes;
    offer.flags = wire::kTakesImports;
    const int fds[] = {commands_file.get(), replies_file.get()};
    EXPECT_TRUE(os::SendMessage(channel.get(), &offer, sizeof(offer), fds, 2).ok());
  }
  void End() {
    os::HangUp(channel.get());
    channel_thread.join();
    // The client has gone: the loop is told by a cursor that no client can have. A release that is
    // still on its way may set it right once more.
    do {
      reinterpret_cast<wire::RingShared*>(commands.data())->produced.store(uint64_t{1} << 50);
      wire::RingWriter(commands.data()).Notify(wire::Wake::kUrgent, 0);
    } while (!loop_ended.WaitForNotificationWithTimeout(absl::Milliseconds(10)));
    loop_thread.join();
  }

  os::UniqueFd commands_file, replies_file;
  os::SharedMapping commands, replies;
  os::UniqueFd channel, clients_end;
  std::unique_ptr<worker::Session> session;
  std::unique_ptr<worker::CommandLoop> loop;
  absl::Notification loop_ended;
  std::thread loop_thread, channel_thread;
};

DaemonHere& DaemonHere::Get() {
  static DaemonHere& daemon = *new DaemonHere;
  return daemon;
}

DaemonHere::DaemonHere() {
  const std::string name = absl::StrCat("sluice-here-", os::ProcessId());
  const bool pipes = std::string(os::kLocalScheme) == "pipe:";
  path_ = pipes ? R"(\\.\pipe\)" + name : testing::TempDir() + name;
  listener_ = std::move(*os::ListenLocal(path_, 0600, 4));
  static std::string setting = absl::StrCat("SLUICE_ENDPOINT=", os::kLocalScheme, path_);
  ::putenv(setting.data());
  std::thread([this] { Serve(); }).detach();
}

void DaemonHere::Serve() {
  while (os::WaitReadable(listener_.get(), -1).ok()) {
    absl::StatusOr<os::UniqueFd> client = os::AcceptLocal(listener_.get());
    if (client.ok()) {
      std::remove(path_.c_str());  // The process has one endpoint, which goes on by this.
      ServeClient(*std::move(client));
    }
  }
}

void DaemonHere::ServeClient(os::UniqueFd client) {
  char buffer[wire::kMaxBrokerMessageBytes];
  size_t size = 0;
  while (Receive(client.get(), buffer, &size)) {
    wire::Hello hello;
    wire::OpenSession open;
    if (wire::ParseMessage(buffer, size, &hello)) Welcome(client.get());
    if (!wire::ParseMessage(buffer, size, &open)) continue;
    const os::UniqueFd channel = OpenSession();
    wire::SessionOpened opened = wire::MakeMessage<wire::SessionOpened>();
    opened.request_id = open.nonce;
    opened.session_id = open.nonce + 1;
    const int fd = channel.get();
    EXPECT_TRUE(os::SendMessage(client.get(), &opened, sizeof(opened), &fd, 1).ok());
  }
}

os::UniqueFd DaemonHere::OpenSession() {
  absl::MutexLock lock(&mu_);
  worker::SessionOptions options;
  options.limits = limits_;
  running_.push_back(std::make_unique<Running>(options));
  return std::move(running_.back()->clients_end);
}

void DaemonHere::SetLimits(const worker::Limits& limits) {
  absl::MutexLock lock(&mu_);
  limits_ = limits;
}

void DaemonHere::EndSessions() {
  absl::MutexLock lock(&mu_);
  for (std::unique_ptr<Running>& one : running_) {
    one->End();
    ended_.push_back(std::move(one));
  }
  running_.clear();
}

}  // namespace sluice::client
