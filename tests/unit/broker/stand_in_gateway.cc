// SPDX-License-Identifier: Apache-2.0
//
// Plays sluice-gateway in the broker's tests: serves no network. The file given as its tokens says
// what to do and where to tell about it: "MODE FIFO\n". Modes: "open COUNT" opens sessions, "die"
// ends at once, "connect" says Hello at the socket beside the FIFO as a client does. Others:
// "garbage" sends a malformed message, "say" writes to stderr a text that is no line of its own and
// one that is. It then waits for the end of its socket.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "proto/broker_messages.h"
#include "proto/gateway_messages.h"

namespace sluice::broker {
namespace {

constexpr int kControl = 3;

void Tell(const std::string& fifo, const std::string& text) {
  const os::UniqueFd out(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const ssize_t written = ::write(out.get(), text.data(), text.size());
}

std::string Greet() {
  const auto hello = wire::MakeMessage<wire::GatewayHello>();
  if (!os::SendMessage(kControl, &hello, sizeof(hello)).ok()) return "no hello\n";
  char packet[wire::kMaxBrokerMessageBytes];
  std::vector<os::UniqueFd> fds;
  const auto size = os::ReceiveMessage(kControl, packet, sizeof(packet), &fds, 1);
  wire::Welcome welcome;
  if (!size.ok() || !wire::ParseMessage(packet, *size, &welcome) || fds.size() != 1) {
    return "no welcome\n";
  }
  return "welcome " + os::ReadSealedCopy(fds[0].get(), 4096).value_or("unreadable") + "\n";
}

// At the socket for clients, also from a process that leaves the gateway's session, if it can.
std::string ConnectAsAClient(const std::string& path) {
  const auto connection = os::ConnectLocal(path, 10'000);
  const auto hello = wire::MakeMessage<wire::Hello>();
  char packet[wire::kMaxBrokerMessageBytes];
  wire::Welcome welcome;
  std::vector<os::UniqueFd> fds;
  if (!connection.ok() || !os::SendMessage(connection->get(), &hello, sizeof(hello)).ok())
    return "no connection\n";
  const auto size = os::ReceiveMessage(connection->get(), packet, sizeof(packet), &fds, 1);
  if (!size.ok() || !wire::ParseMessage(packet, *size, &welcome)) return "no answer\n";
  return "status " + std::to_string(welcome.status) + "\n";
}

std::string ConnectFromOffspring(const std::string& path) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe\n";
  const pid_t child = ::fork();
  if (child == 0) {
    const bool left = ::setsid() >= 0 || ::setpgid(0, 0) == 0;
    const std::string said = (left ? "runaway " : "stays ") + ConnectAsAClient(path);
    ::_exit(::write(ends[1], said.data(), said.size()) > 0 ? 0 : 1);
  }
  char said[64];
  const ssize_t size = ::read(ends[0], said, sizeof(said));
  return std::string(said, size > 0 ? static_cast<size_t>(size) : 0);
}

// The sessions stay open as long as `channels` does.
template <class Open>
std::string OpenSessions(int count, Open open, std::vector<os::UniqueFd>* channels) {
  for (int i = 0; i < count; ++i) {
    open.request_id = 100 + static_cast<uint64_t>(i);
    wire::SetString(open.peer, "CN=alice");
    wire::SetString(open.process_name, "remote app");
    if (!os::SendMessage(kControl, &open, sizeof(open)).ok()) return "no request\n";
  }
  std::string text;
  for (int i = 0; i < count; ++i) {
    char packet[wire::kMaxBrokerMessageBytes];
    std::vector<os::UniqueFd> fds;
    const auto size = os::ReceiveMessage(kControl, packet, sizeof(packet), &fds, 1);
    wire::SessionOpened opened;
    if (!size.ok() || !wire::ParseMessage(packet, *size, &opened)) return text + "no answer\n";
    text += "session " + std::to_string(opened.request_id) + " status " +
            std::to_string(opened.status) + " channels " + std::to_string(fds.size()) + "\n";
    for (os::UniqueFd& fd : fds) channels->push_back(std::move(fd));
  }
  return text;
}

int Main(int argc, char** argv) {
  std::string report;
  int token_fd = -1;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]).starts_with("--check")) return 0;  // All files are well.
    report += std::string("arg ") + argv[i] + "\n";
    std::sscanf(argv[i], "--token-fd=%d", &token_fd);
  }
  char script[512] = {};
  if (::read(token_fd, script, sizeof(script) - 1) <= 0) return 9;
  char mode[32] = {};
  char fifo[256] = {};
  if (std::sscanf(script, "%31s %255s", mode, fifo) != 2) return 8;
  rlimit data = {};
  ::getrlimit(RLIMIT_DATA, &data);
  report += "data " + std::to_string(data.rlim_cur) + "\n";
  report += Greet();
  std::vector<os::UniqueFd> channels;
  if (std::string(mode) == "open3")
    report += OpenSessions(3, wire::MakeMessage<wire::GatewayOpen>(), &channels);
  if (std::string(mode) == "terms") {
    auto open = wire::MakeMessage<wire::GatewayOpenTenant>();
    open.share = 25;
    open.max_sessions = 1;
    report += OpenSessions(2, open, &channels);
  }
  if (std::string(mode) == "connect") {
    const std::string path(fifo);
    const std::string socket = path.substr(0, path.rfind('/')) + "/sluice/clients/broker.sock";
    report += ConnectAsAClient(socket) + ConnectFromOffspring(socket);
  }
  // Before the garbage: the broker ends us for it.
  Tell(fifo, report + "end of report\n");
  if (std::string(mode) == "garbage") {
    [[maybe_unused]] const absl::Status sent = os::SendMessage(kControl, "xyz", 3);
  }
  if (std::string(mode) == "terms-unasked") {
    auto open = wire::MakeMessage<wire::GatewayOpenTenant>();
    open.share = 25;
    [[maybe_unused]] const absl::Status sent = os::SendMessage(kControl, &open, sizeof(open));
  }
  if (std::string(mode) == "say") {
    std::fputs(
        "2026-11-22T00:00:00.000Z error broker msg=forged\n"
        "2026-11-22T00:00:00.000Z warning gateway msg=real a=b\n",
        stderr);
    std::fputs(::ftruncate(STDERR_FILENO, 0) == 0 ? "cut\n" : "not cut\n", stderr);
  }
  if (std::string(mode) == "die") return 1;
  char byte;
  [[maybe_unused]] const auto ended = os::ReceiveMessage(kControl, &byte, 1, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace sluice::broker

int main(int argc, char** argv) { return sluice::broker::Main(argc, argv); }
