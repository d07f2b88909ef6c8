// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/broker/broker_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "broker/event_loop.h"
#include "broker/os/local_socket.h"

extern char** environ;

namespace sluice::broker {

bool CanRunDaemon(const os::UserIdentity& user) {
  os::SpawnOptions readable;
  readable.path = "/bin/sh";
  readable.arguments = {"-c", "test -x \"$0\"", SLUICE_TEST_SLUICED};
  readable.sandbox.user = user;
  auto check = os::Spawn(readable);
  return check.ok() && check->WaitAndReap(-1)->code == 0;
}

TestDirectory::TestDirectory() {
  char pattern[] = "/tmp/sluice-test-XXXXXX";
  EXPECT_NE(::mkdtemp(pattern), nullptr);
  path_ = pattern;
}

TestDirectory::~TestDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TestDirectory::ClientSocket() const {
  const std::string folder = path_ + "/sluice/clients";
  std::filesystem::create_directories(folder);
  return folder + "/broker.sock";
}

BrokerProcess::BrokerProcess(const TestDirectory& directory, const Options& options)
    : directory_(directory.path()) {
  WriteConfig(options.config);
  const std::string notify_path = directory_ + "/notify.sock";
  ::unlink(notify_path.c_str());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, notify_path.data(), notify_path.size());
  notify_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(notify_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const os::UniqueFd log(
      ::open((directory_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));

  os::SpawnOptions spawn;
  spawn.path = SLUICE_TEST_SLUICED;
  spawn.arguments = {"--config", config_file(), "--socket", socket()};
  spawn.arguments.insert(spawn.arguments.end(), options.arguments.begin(), options.arguments.end());
  // A build tree that other users cannot reach must do for all but the tests about users.
  if (::geteuid() == 0 && options.same_user) {
    spawn.arguments.insert(spawn.arguments.end(), {"--worker-user", "root"});
  }
  for (char** entry = environ; *entry != nullptr; ++entry) spawn.environment.emplace_back(*entry);
  spawn.environment.push_back("NOTIFY_SOCKET=" + notify_path);
  spawn.environment.push_back("SLUICE_WORKER_TEST=" + options.worker_mode);
  spawn.environment.push_back("SLUICE_TEST_SECRET=secret");
  spawn.output = log.get();
  auto process = os::Spawn(spawn);
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return;
  process_ = *std::move(process);
  if (!options.wait_until_ready) return;
  EXPECT_NE(WaitUntilReady(), "") << Log();
}

BrokerProcess::~BrokerProcess() {
  if (!process_.valid()) return;
  // Once to drain; again, if sessions are left, to end them.
  for (const int patience_ms : {300, kTestTimeoutMs}) {
    process_.Signal(SIGTERM).IgnoreError();
    if (process_.WaitAndReap(patience_ms).has_value()) return;
  }
  process_.KillGroup();
  process_.WaitAndReap(-1);
}

void BrokerProcess::ASSERT_OK(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

void BrokerProcess::WriteConfig(const std::string& text) const {
  std::ofstream(config_file()) << text;
}

os::ExitStatus BrokerProcess::WaitForExit() {
  const auto status = process_.WaitAndReap(kTestTimeoutMs);
  EXPECT_TRUE(status.has_value()) << "sluiced did not end in time; its log:\n" << Log();
  return status.value_or(os::ExitStatus{-1, 0});
}

std::string BrokerProcess::WaitUntilReady() { return WaitUntilItTells("READY=1"); }

std::string BrokerProcess::WaitUntilItTells(std::string_view beginning) {
  while (true) {
    pollfd entries[] = {{notify_.get(), POLLIN, 0}, {process_.pidfd(), POLLIN, 0}};
    if (::poll(entries, 2, kTestTimeoutMs) <= 0) return "";
    if (entries[0].revents == 0) return "";  // It has ended.
    char state[1024];
    const ssize_t size = ::recv(notify_.get(), state, sizeof(state), 0);
    const std::string_view text(state, size > 0 ? static_cast<size_t>(size) : 0);
    if (text.starts_with(beginning)) return std::string(text);
  }
}

std::string BrokerProcess::Log() const {
  std::ifstream file(directory_ + "/log");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool BrokerProcess::WaitForLog(const std::string& text) const {
  const int64_t deadline_ms = MonotonicMs() + kTestTimeoutMs;
  while (Log().find(text) == std::string::npos) {
    if (MonotonicMs() > deadline_ms) return false;
  }
  return true;
}

int BrokerProcess::CountOpenDescriptors() const {
  int count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process_.pid()) + "/fd")) {
    ++count;
  }
  return count;
}

TestClient::TestClient(const std::string& socket_path) {
  auto socket = os::ConnectLocal(socket_path, kTestTimeoutMs);
  if (socket.ok()) socket_ = *std::move(socket);
}

bool TestClient::SendBytes(const void* data, size_t size) {
  return os::SendMessage(socket_.get(), data, size).ok();
}

size_t TestClient::ReceivePacket(char* packet, os::UniqueFd* fd) {
  if (!os::WaitReadable(socket_.get(), kTestTimeoutMs).ok()) return 0;
  std::vector<os::UniqueFd> fds;
  const auto size =
      os::ReceiveMessage(socket_.get(), packet, wire::kMaxBrokerMessageBytes, &fds, 1);
  if (!size.ok()) return 0;
  if (fd != nullptr && !fds.empty()) *fd = std::move(fds[0]);
  return *size;
}

bool TestClient::Greet(wire::Welcome* welcome, os::UniqueFd* snapshot) {
  auto hello = wire::MakeMessage<wire::Hello>();
  wire::SetString(hello.process_name, "test client");
  wire::SetString(hello.features, "sync,from-the-future");
  return Send(hello) && Receive(welcome, snapshot);
}

os::UniqueFd TestClient::Open(wire::SessionOpened* answer, uint32_t flags) {
  auto open = wire::MakeMessage<wire::OpenSession>();
  open.flags = flags;
  open.nonce = 4711;
  os::UniqueFd channel;
  if (!Send(open) || !Receive(answer, &channel)) answer->status = -1;
  return channel;
}

bool TestClient::IsClosedByPeer() {
  const int64_t deadline_ms = MonotonicMs() + kTestTimeoutMs;
  while (MonotonicMs() < deadline_ms) {
    if (!os::WaitReadable(socket_.get(), kTestTimeoutMs).ok()) return false;
    char packet[wire::kMaxBrokerMessageBytes];
    std::vector<os::UniqueFd> fds;
    const auto size = os::ReceiveMessage(socket_.get(), packet, sizeof(packet), &fds, 1);
    if (size.ok() && *size == 0) return true;
  }
  return false;
}

std::string DescribeWorker(int handle_channel) { return AskWorker(handle_channel, "describe"); }

std::string AskWorker(int handle_channel, const std::string& request) {
  if (!os::SendMessage(handle_channel, request.data(), request.size()).ok()) return "";
  if (!os::WaitReadable(handle_channel, kTestTimeoutMs).ok()) return "";
  std::string text(65536, '\0');
  const auto size = os::ReceiveMessage(handle_channel, text.data(), text.size(), nullptr, 0);
  if (!size.ok()) return "";
  text.resize(*size);
  return text;
}

bool WaitForEndOfFile(int socket) {
  if (!os::WaitReadable(socket, kTestTimeoutMs).ok()) return false;
  char byte[64];
  const auto size = os::ReceiveMessage(socket, byte, sizeof(byte), nullptr, 0);
  return size.ok() && *size == 0;
}

std::string ReadUntil(int fd, const std::string& text) {
  std::string all;
  const int64_t deadline_ms = MonotonicMs() + kTestTimeoutMs;
  while (all.find(text) == std::string::npos && MonotonicMs() < deadline_ms) {
    pollfd entry = {fd, POLLIN, 0};
    if (::poll(&entry, 1, kTestTimeoutMs) <= 0) break;
    char buffer[4096];
    const ssize_t size = ::read(fd, buffer, sizeof(buffer));
    if (size <= 0) break;
    all.append(buffer, static_cast<size_t>(size));
  }
  return all;
}

}  // namespace sluice::broker
