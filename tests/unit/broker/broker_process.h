// SPDX-License-Identifier: Apache-2.0
//
// For tests with real processes: a sluiced whose worker and gateway are stand-ins, and a client
// that speaks the socket's protocol by hand, rightly or wrongly. Every wait is bounded; none is a
// sleep.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/os/process.h"
#include "broker/os/sandbox.h"
#include "broker/os/scoped_handle.h"
#include "proto/broker_messages.h"

namespace sluice::broker {

inline constexpr int kTestTimeoutMs = 20'000;

inline constexpr char kUnreachable[] =
    "another user cannot reach the build tree at " SLUICE_TEST_SLUICED;

// True if that user may execute what was built: not in a home that is its owner's alone.
bool CanRunDaemon(const os::UserIdentity& user);

class TestDirectory {
 public:
  TestDirectory();
  ~TestDirectory();
  const std::string& path() const { return path_; }
  // A daemon's, with which all that belongs to it lies below path(); its folder is there.
  std::string ClientSocket() const;

 private:
  std::string path_;
};

class BrokerProcess {
 public:
  struct Options {
    std::vector<std::string> arguments = {};
    std::string config = "";       // Text of a configuration file; written even if empty.
    std::string worker_mode = "";  // SLUICE_WORKER_TEST, see stand_in_worker.cc.
    bool wait_until_ready = true;
    bool same_user = true;  // Workers stay with root, if that is who tests.
  };

  // In `directory`, where sockets, configuration and log are.
  BrokerProcess(const TestDirectory& directory, const Options& options);
  ~BrokerProcess();  // Ends it if it still runs.

  bool ok() const { return process_.valid(); }
  os::ChildProcess& process() { return process_; }
  pid_t pid() const { return process_.pid(); }
  std::string socket() const { return directory_ + "/sluice/clients/broker.sock"; }
  std::string endpoint() const { return "unix:" + socket(); }
  std::string admin_socket() const { return directory_ + "/sluice-admin/admin.sock"; }
  std::string monitor_socket() const { return directory_ + "/sluice-admin/monitor.sock"; }
  std::string config_file() const { return directory_ + "/sluiced.toml"; }

  void WriteConfig(const std::string& text) const;
  void Signal(int number) { ASSERT_OK(process_.Signal(number)); }
  // Its exit status; a failure of the test if it does not end in time.
  os::ExitStatus WaitForExit();
  // The next "READY=1..." it tells its service manager; "" if none comes in time.
  std::string WaitUntilReady();
  // The message to the service manager that begins so; "" if the process ends before.
  std::string WaitUntilItTells(std::string_view beginning);

  std::string Log() const;
  bool WaitForLog(const std::string& text) const;
  int CountOpenDescriptors() const;

 private:
  static void ASSERT_OK(const absl::Status& status);

  std::string directory_;
  os::UniqueFd notify_;
  os::ChildProcess process_;
};

class TestClient {
 public:
  explicit TestClient(const std::string& socket_path);

  bool connected() const { return socket_.valid(); }
  int socket() const { return socket_.get(); }

  template <typename T>
  bool Send(const T& message) {
    return SendBytes(&message, sizeof(message));
  }
  bool SendBytes(const void* data, size_t size);

  // The next packet as a T, with its descriptor if it has one.
  template <typename T>
  bool Receive(T* out, os::UniqueFd* fd = nullptr) {
    char packet[wire::kMaxBrokerMessageBytes];
    const size_t size = ReceivePacket(packet, fd);
    return wire::ParseMessage(packet, size, out);
  }
  size_t ReceivePacket(char* packet, os::UniqueFd* fd);  // 0: end of file, or nothing came in time.

  // Says Hello and takes the Welcome.
  bool Greet(wire::Welcome* welcome, os::UniqueFd* snapshot = nullptr);
  // Opens a session; invalid, with `*answer` filled, if it was refused.
  os::UniqueFd Open(wire::SessionOpened* answer, uint32_t flags = 0);
  // True if the broker closes the connection in time, whatever it sends before.
  bool IsClosedByPeer();

 private:
  os::UniqueFd socket_;
};

// The stand-in worker's description of itself over a session's handle channel; "" if it is gone.
std::string DescribeWorker(int handle_channel);
// Its answer to another request (stand_in_worker.cc).
std::string AskWorker(int handle_channel, const std::string& request);

// True once the other end of `socket` is gone.
bool WaitForEndOfFile(int socket);

// The text that has come through `fd` until `text` is in it, or the time is over.
std::string ReadUntil(int fd, const std::string& text);

}  // namespace sluice::broker
