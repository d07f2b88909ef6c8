// SPDX-License-Identifier: Apache-2.0
//
// Plays sluice-worker in the broker's tests: speaks the control protocol, owns no device. Its
// deliberate faults are chosen by SLUICE_WORKER_TEST in the environment, a list of words:
//
//   probe-fail      the probe says why and exits with code 3
//   probe-empty     the probe finds nothing
//   probe-hang      the probe never ends
//   probe-says      the probe writes a line to stderr
//   ignore          Terminate and end of file are ignored
//   flood           sends notices without end
//   garbage         sends a malformed control message
//   violate         reports a violation
//   last-words      reports a violation and exits
//   takes-memory    wants memory where its account has no limit
//   returns-memory  gives back what it never had
//
// A client that sends "describe" on the handle channel gets back, in one message, one line each:
// its arguments, environment, open descriptors, uid, and whether it may gain privileges. Other
// requests do what a kernel with system calls of its own could, and are answered when it is done:
//
//   connect PATH    says Hello at the broker's socket; the answer is the Welcome's message
//   offspring PATH  the same in a child process
//   runaway PATH    the same in a child process that leaves its session, if it can
//   stray           starts a process that leaves session and group, if it can, and never ends; the
//                   answer is its number
//   sibling         starts a process that is no child of its own but its parent's, by clone and by
//                   clone3, and ends at once; the answer is the two error numbers
//   say TEXT        writes TEXT to stderr
//   truncate        cuts stderr to nothing; the answer is "cut" if that worked
//   flood           writes 100,000 lines to stderr
#include <dirent.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "proto/broker_messages.h"
#include "proto/memory_messages.h"

extern char** environ;

namespace sluice::broker {
namespace {

constexpr int kHandleChannel = 3;
constexpr int kControl = 4;

bool Mode(const char* word) {
  const char* modes = std::getenv("SLUICE_WORKER_TEST");
  return modes != nullptr && std::strstr(modes, word) != nullptr;
}

std::string Describe(int argc, char** argv) {
  std::string text;
  for (int i = 1; i < argc; ++i) text += std::string("arg ") + argv[i] + "\n";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    text += std::string("env ") + *entry + "\n";
  }
  DIR* folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != ::dirfd(folder)) {
      text += "fd " + std::to_string(fd) + "\n";
    }
  }
  ::closedir(folder);
  text += "uid " + std::to_string(::getuid()) + "\n";
  text += "no_new_privs " + std::to_string(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)) + "\n";
  text += "session_leader " + std::to_string(::getsid(0) == ::getpid() ? 1 : 0) + "\n";
  return text;
}

void Say(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

int Probe() {
  if (Mode("probe-says")) Say("2026-11-22T00:00:00.000Z error broker msg=forged\n");
  if (Mode("probe-fail")) {
    constexpr char kWhy[] = "no driver\nin /opt";
    return ::write(kHandleChannel, kWhy, sizeof(kWhy) - 1) == sizeof(kWhy) - 1 ? 3 : 4;
  }
  while (Mode("probe-hang")) ::pause();
  constexpr char kSnapshot[] = "stand-in snapshot";
  if (!Mode("probe-empty") &&
      ::write(kHandleChannel, kSnapshot, sizeof(kSnapshot) - 1) != sizeof(kSnapshot) - 1) {
    return 4;
  }
  return 0;
}

template <typename T>
void SendControl(const T& message) {
  [[maybe_unused]] const ssize_t sent = ::send(kControl, &message, sizeof(message), MSG_NOSIGNAL);
}

void Misbehave() {
  if (Mode("garbage")) SendControl(wire::MessageHeader{wire::kBrokerMagic, 99, 8});
  auto want = wire::MakeMessage<wire::WantMemory>();
  want.bytes = UINT64_MAX;
  if (Mode("takes-memory")) SendControl(want);
  auto returned = wire::MakeMessage<wire::MemoryReturned>();
  returned.bytes = UINT64_MAX;
  if (Mode("returns-memory")) SendControl(returned);
  auto notice = wire::MakeMessage<wire::WorkerNotice>();
  notice.kind = static_cast<uint32_t>(wire::WorkerNoticeKind::kViolation);
  wire::SetString(notice.text, "client sent a frame of\nno known kind");
  if (Mode("violate") || Mode("last-words")) SendControl(notice);
  if (Mode("last-words")) ::_exit(3);
  while (Mode("flood")) SendControl(notice);
}

// False: the session is over.
bool HandleControl() {
  char packet[wire::kMaxBrokerMessageBytes];
  const ssize_t size = ::recv(kControl, packet, sizeof(packet), 0);
  if (size <= 0) return true;  // The broker is gone; the session goes on.
  const uint16_t type = wire::PeekMessageType(packet, static_cast<size_t>(size));
  if (type == static_cast<uint16_t>(wire::MessageType::kTerminate)) return Mode("ignore");
  if (type == static_cast<uint16_t>(wire::MessageType::kShadowStatsRequest)) {
    auto stats = wire::MakeMessage<wire::ShadowStats>();
    stats.by_semaphores = 3;
    stats.by_keyed_mutex = 2;
    SendControl(stats);
  }
  if (type == static_cast<uint16_t>(wire::MessageType::kStatsRequest)) {
    auto stats = wire::MakeMessage<wire::WorkerStats>();
    stats.memory_bytes = 4096;
    stats.object_count = 7;
    stats.commands_executed = 42;
    stats.context_count = 1;
    wire::SetString(stats.device_name, "stand-in device");
    SendControl(stats);
  }
  return true;
}

// The broker's answer to any process that connects to its clients' socket.
std::string AskForWelcome(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return "cannot connect";
  auto hello = wire::MakeMessage<wire::Hello>();
  char packet[wire::kMaxBrokerMessageBytes];
  wire::Welcome welcome;
  std::string answer = "no Welcome";
  if (::send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello)) {
    const ssize_t size = ::recv(fd, packet, sizeof(packet), 0);
    if (size > 0 && wire::ParseMessage(packet, static_cast<size_t>(size), &welcome))
      answer = "status " + std::to_string(welcome.status) + " " + welcome.message;
  }
  ::close(fd);
  return answer;
}

void RunAway() {
  if (::setsid() < 0 && ::setpgid(0, 0) < 0) return;  // It stays.
}

std::string StartStray() {
  int ready[2];
  if (::pipe(ready) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    RunAway();
    ::close(ready[0]);
    ::close(ready[1]);
    while (true) ::pause();
  }
  ::close(ready[1]);
  char none;
  [[maybe_unused]] const ssize_t end = ::read(ready[0], &none, 1);  // It has run away.
  ::close(ready[0]);
  return std::to_string(child);
}

std::string StartSiblings() {
  const long first = ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
  if (first == 0) ::_exit(0);
  std::string errors = first < 0 ? std::to_string(errno) : "none";
  clone_args arguments = {};
  arguments.flags = CLONE_PARENT;
  const long second = ::syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (second == 0) ::_exit(0);
  return errors + " " + (second < 0 ? std::to_string(errno) : "none");
}

std::string AskInOffspring(const std::string& path, bool run_away) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    if (run_away) RunAway();
    const std::string answer = AskForWelcome(path);
    ::_exit(::write(ends[1], answer.data(), answer.size()) > 0 ? 0 : 1);
  }
  ::close(ends[1]);
  char answer[1024];
  const ssize_t size = ::read(ends[0], answer, sizeof(answer));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return std::string(answer, size > 0 ? static_cast<size_t>(size) : 0);
}

std::string Answer(const std::string& request, int argc, char** argv) {
  const std::string word = request.substr(0, request.find(' '));
  const std::string rest = word == request ? "" : request.substr(word.size() + 1);
  if (word == "describe") return Describe(argc, argv);
  if (word == "connect") return AskForWelcome(rest);
  if (word == "offspring") return AskInOffspring(rest, false);
  if (word == "runaway") return AskInOffspring(rest, true);
  if (word == "sibling") return StartSiblings();
  if (word == "stray") return StartStray();
  if (word == "truncate") return ::ftruncate(STDERR_FILENO, 0) == 0 ? "cut" : "not cut";
  if (word == "say") Say(rest);
  for (int i = 0; word == "flood" && i < 100'000; ++i) Say("a line of many\n");
  return "done";
}

int RunSession(int argc, char** argv) {
  SendControl(wire::MakeMessage<wire::WorkerReady>());
  Misbehave();
  pollfd entries[] = {{kHandleChannel, POLLIN, 0}, {kControl, POLLIN, 0}};
  while (true) {
    ::poll(entries, 2, -1);
    if (entries[1].revents != 0) {
      if (!HandleControl()) return 0;
      if ((entries[1].revents & POLLHUP) != 0) entries[1].fd = -1;
    }
    if (entries[0].revents == 0) continue;
    char request[4096];
    const ssize_t size = ::recv(kHandleChannel, request, sizeof(request), 0);
    if (size <= 0) {
      if (!Mode("ignore")) return 0;
      entries[0].fd = -1;
    } else {
      const std::string text = Answer({request, static_cast<size_t>(size)}, argc, argv);
      [[maybe_unused]] const ssize_t sent =
          ::send(kHandleChannel, text.data(), text.size(), MSG_NOSIGNAL);
    }
  }
}

}  // namespace
}  // namespace sluice::broker

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--probe") == 0) return sluice::broker::Probe();
  return sluice::broker::RunSession(argc, argv);
}
