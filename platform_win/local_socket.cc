// SPDX-License-Identifier: Apache-2.0
#include "broker/os/local_socket.h"

#include <windows.h>
// After windows.h.
#include <aclapi.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <mutex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/base/check.h"
#include "broker/os/random.h"
#include "platform_win/pipe.h"
#include "platform_win/security/access_notation.h"
#include "platform_win/security/account.h"
#include "platform_win/security/pipe_access.h"
#include "platform_win/wide_text.h"

#undef SendMessage  // A macro of windows.h.

namespace sluice::os {
namespace {

constexpr char kPrefix[] = R"(\\.\pipe\)";
constexpr size_t kMaxName = 256;  // Of the whole name (CreateNamedPipe).
constexpr DWORD kBufferBytes = 64 * 1024;
// The first bytes of a connection, before the broker's messages: the server gets a client's token
// only after it has read something from it.
constexpr char kGreeting[] = "sluice-1";
constexpr size_t kMaxGreeting = 64;    // Connections whose greeting has not come yet.
constexpr size_t kInstancesReady = 4;  // Clients can connect to these at once.
constexpr int kPassesAtOnce = 100;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class PipeSecurity {
 public:
  explicit PipeSecurity(PipeOthers others) : access_(PipeAccessList(OwnSid(), others)) {}

  SECURITY_ATTRIBUTES* get() { return access_.get() == nullptr ? nullptr : &attributes_; }

 private:
  const AccessNotation access_;
  SECURITY_ATTRIBUTES attributes_ = {sizeof(attributes_), access_.get(), FALSE};
};

OwnedHandle CreateInstance(const std::wstring& name, PipeSecurity* security, bool first,
                           DWORD instances) {
  if (security->get() == nullptr) return OwnedHandle();
  return OwnedHandle(::CreateNamedPipeW(
      name.c_str(),
      PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | (first ? FILE_FLAG_FIRST_PIPE_INSTANCE : 0),
      PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS, instances,
      kBufferBytes, kBufferBytes, 0, security->get()));
}

// The server may identify us, but not act as us.
OwnedHandle OpenPipe(const std::wstring& name) {
  OwnedHandle pipe(::CreateFileW(name.c_str(), kPipeClientAccess, 0, nullptr, OPEN_EXISTING,
                                 FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT |
                                     SECURITY_IDENTIFICATION | SECURITY_EFFECTIVE_ONLY,
                                 nullptr));
  DWORD mode = PIPE_READMODE_MESSAGE;
  if (pipe.valid() && !::SetNamedPipeHandleState(pipe.get(), &mode, nullptr, nullptr)) {
    const DWORD error = ::GetLastError();
    pipe.reset();
    ::SetLastError(error);
  }
  return pipe;
}

// OK if the server of this pipe may have power over its clients (MayServe); else says whose it is.
absl::Status CheckServer(HANDLE pipe, const std::string& what) {
  PSID sid = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  const DWORD error = ::GetSecurityInfo(pipe, SE_KERNEL_OBJECT, OWNER_SECURITY_INFORMATION, &sid,
                                        nullptr, nullptr, nullptr, &descriptor);
  if (error != ERROR_SUCCESS) return WindowsStatus(error, what + ": asking whose the pipe is");
  PipeUser owner = {TextOfSid(sid)};
  if (!owner.sid.empty() && owner.sid == OwnDefaultOwner()) owner.sid = OwnSid();
  const std::string name = NameOfSid(sid);
  ::LocalFree(descriptor);
  ULONG pid = 0;
  if (::GetNamedPipeServerProcessId(pipe, &pid)) {
    const OwnedHandle process(::OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid));
    HANDLE token = nullptr;
    if (process.valid() && ::OpenProcessToken(process.get(), TOKEN_QUERY, &token)) {
      owner.integrity = IntegrityOfToken(OwnedHandle(token).get());
    }
  }
  if (MayServe(owner, {OwnSid(), OwnIntegrity()})) return absl::OkStatus();
  if (owner.sid == OwnSid()) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": process ", pid,
                     ", which has the pipe, may do less than this one (its integrity "
                     "is lower); run sluiced as a service, or elevated as well"));
  }
  const std::string whose = owner.sid.empty() ? "somebody whom the system does not name"
                                              : absl::StrCat(name, " (", owner.sid, ")");
  return absl::FailedPreconditionError(
      absl::StrCat(what, ": the pipe belongs to ", whose, ", process ", pid,
                   ", not to the system, administrators or this user; is that a daemon?"));
}

// The token of the client whose bytes were read last.
absl::StatusOr<OwnedHandle> ClientToken(HANDLE pipe) {
  if (!::ImpersonateNamedPipeClient(pipe)) {
    return WindowsStatus(::GetLastError(), "asking a pipe for its client");
  }
  HANDLE token = nullptr;
  const bool opened = ::OpenThreadToken(::GetCurrentThread(), TOKEN_QUERY, TRUE, &token);
  const DWORD error = ::GetLastError();
  SLUICE_CHECK(::RevertToSelf());  // Going on as a client would be worse than ending.
  if (!opened) return WindowsStatus(error, "asking a pipe for its client's token");
  return OwnedHandle(token);
}

// The process that has the pipe's other end, and its user.
absl::StatusOr<PipePeer> PeerOf(HANDLE pipe) {
  absl::StatusOr<OwnedHandle> token = ClientToken(pipe);
  if (!token.ok()) return token.status();
  ULONG pid = 0;
  if (!::GetNamedPipeClientProcessId(pipe, &pid)) {
    return WindowsStatus(::GetLastError(), "asking a pipe for its client's process");
  }
  PipePeer peer;
  peer.pid = static_cast<pid_t>(pid);
  peer.process = OwnedHandle(::OpenProcess(
      PROCESS_DUP_HANDLE | PROCESS_QUERY_LIMITED_INFORMATION | SYNCHRONIZE, FALSE, pid));
  if (!peer.process.valid()) return WindowsStatus(::GetLastError(), "opening a client's process");
  HANDLE of_process = nullptr;
  if (!::OpenProcessToken(peer.process.get(), TOKEN_QUERY, &of_process)) {
    return WindowsStatus(::GetLastError(), "asking a client's process for its token");
  }
  const OwnedHandle process_token(of_process);
  const absl::StatusOr<Logon> client = LogonOf(token->get());
  if (!client.ok()) return client.status();
  const absl::StatusOr<Logon> process = LogonOf(process_token.get());
  if (!process.ok() || !IsSameLogon(*client, *process)) {
    return absl::PermissionDeniedError("the process with the client's number is another's");
  }
  peer.user = UserOfSid(client->sid);
  return peer;
}

}  // namespace

// A pipe's name with a few instances that clients can connect to. It always holds one, since the
// name of a pipe without instances is free for anybody.
class Listener final : public HandleObject {
 public:
  Listener(std::wstring name, mode_t mode, OwnedHandle first)
      : HandleObject(HandleKind::kListener, OwnedHandle()),
        name_(std::move(name)),
        security_(PipeOthersOfMode(mode)),
        event_(::CreateEventW(nullptr, TRUE, FALSE, nullptr)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    AddInstance(std::move(first));
    Advance();
  }

  ~Listener() override {
    for (auto& instance : connecting_) Cancel(instance.get());
  }

  HANDLE PrepareWait() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Advance();
    return event_.get();
  }

  absl::StatusOr<std::shared_ptr<PipeEnd>> Accept() {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (true) {
      Advance();
      if (accepted_.empty()) return absl::UnavailableError("no connection waits");
      std::shared_ptr<PipeEnd> end = std::move(accepted_.front());
      accepted_.pop_front();
      if (end != nullptr) return end;
    }
  }

 private:
  enum class State {
    kIdle,       // New, or its client has left: to be connected.
    kListening,  // Waits for a connection.
    kGreeting,   // Connected; waits for the greeting.
  };

  struct Instance {
    OwnedHandle pipe;
    OVERLAPPED overlapped = {};
    State state = State::kIdle;
    char buffer[sizeof(kGreeting)] = {};
  };

  bool AddInstance(OwnedHandle pipe) {
    if (!pipe.valid()) return false;
    connecting_.push_back(std::make_unique<Instance>());
    connecting_.back()->pipe = std::move(pipe);
    return true;
  }

  bool AddInstance() {
    return AddInstance(CreateInstance(name_, &security_, false, PIPE_UNLIMITED_INSTANCES));
  }

  size_t Count(State state) const {
    return std::count_if(connecting_.begin(), connecting_.end(),
                         [state](const auto& one) { return one->state == state; });
  }

  void Prepare(Instance* instance, State state) {
    instance->state = state;
    instance->overlapped = {};
    instance->overlapped.hEvent = event_.get();
  }

  // False: it stays idle.
  bool Listen(Instance* instance) {
    Prepare(instance, State::kListening);
    if (::ConnectNamedPipe(instance->pipe.get(), &instance->overlapped)) return true;
    const DWORD error = ::GetLastError();
    if (error == ERROR_IO_PENDING) return true;
    if (error == ERROR_PIPE_CONNECTED) {
      StartGreeting(instance);
      return true;
    }
    End(instance);
    // The client came before the call, and has left (ConnectNamedPipe).
    return error == ERROR_NO_DATA;
  }

  void StartGreeting(Instance* instance) {
    Prepare(instance, State::kGreeting);
    // Advance looks at the result, whatever it is.
    if (!::ReadFile(instance->pipe.get(), instance->buffer, sizeof(instance->buffer), nullptr,
                    &instance->overlapped) &&
        ::GetLastError() != ERROR_IO_PENDING && ::GetLastError() != ERROR_MORE_DATA) {
      End(instance);
    }
  }

  // Makes it ready for another connection. Closing it instead could close the last instance.
  static void End(Instance* instance) {
    ::DisconnectNamedPipe(instance->pipe.get());
    instance->state = State::kIdle;
  }

  static void Cancel(Instance* instance) {
    if (instance->state == State::kIdle) return;
    ::CancelIoEx(instance->pipe.get(), &instance->overlapped);
    // All instances share the event: it does not say when this one is done.
    while (!HasOverlappedIoCompleted(&instance->overlapped)) ::SwitchToThread();
  }

  // Looks at every instance until none makes progress, or clients come so fast that other work
  // would wait. Clears the event first: each start of an operation clears it as well, and later
  // completions set it.
  void Advance() {
    ::ResetEvent(event_.get());
    bool progress = true;
    for (int pass = 0; progress && pass < kPassesAtOnce; ++pass) {
      progress = false;
      for (auto at = connecting_.begin(); at != connecting_.end();) {
        Instance* instance = at->get();
        if (instance->state != State::kIdle) {
          ++at;
        } else if (connecting_.size() - Count(State::kGreeting) > kInstancesReady) {
          at = connecting_.erase(at);
        } else {
          progress |= Listen(instance);
          ++at;
        }
      }
      for (auto at = connecting_.begin(); at != connecting_.end();) {
        Instance* instance = at->get();
        if (instance->state == State::kIdle || !HasOverlappedIoCompleted(&instance->overlapped)) {
          ++at;
          continue;
        }
        progress = true;
        DWORD bytes;
        if (instance->state == State::kGreeting && Greet(instance)) {
          at = connecting_.erase(at);
          continue;
        }
        if (instance->state == State::kListening &&
            ::GetOverlappedResult(instance->pipe.get(), &instance->overlapped, &bytes, FALSE)) {
          StartGreeting(instance);
        } else {
          End(instance);
        }
        ++at;
      }
      while (connecting_.size() - Count(State::kGreeting) < kInstancesReady && AddInstance()) {
        progress = true;
      }
      // A client that connects and says nothing must not keep others out.
      const size_t silent = Count(State::kGreeting);
      if (silent > kMaxGreeting || silent == connecting_.size()) {
        const auto oldest =
            std::find_if(connecting_.begin(), connecting_.end(),
                         [](const auto& one) { return one->state == State::kGreeting; });
        Cancel(oldest->get());
        End(oldest->get());
        connecting_.splice(connecting_.end(), connecting_, oldest);
        progress = true;
      }
    }
    if (progress || !accepted_.empty()) ::SetEvent(event_.get());
  }

  // True if the instance is a client's connection now.
  bool Greet(Instance* instance) {
    DWORD bytes = 0;
    if (!::GetOverlappedResult(instance->pipe.get(), &instance->overlapped, &bytes, FALSE) ||
        std::string_view(instance->buffer, bytes) != kGreeting) {
      return false;
    }
    absl::StatusOr<PipePeer> peer = PeerOf(instance->pipe.get());
    if (!peer.ok()) return false;  // It has left already, or another process has its number.
    // Clients need instances besides the one that holds the name.
    if (connecting_.size() <= kInstancesReady && !AddInstance()) return false;
    auto end = std::make_shared<PipeEnd>(std::move(instance->pipe), *std::move(peer));
    end->SetNonBlocking(true);
    accepted_.push_back(std::move(end));
    return true;
  }

  std::mutex mutex_;
  const std::wstring name_;
  PipeSecurity security_;
  const OwnedHandle event_;
  std::list<std::unique_ptr<Instance>> connecting_;
  std::list<std::shared_ptr<PipeEnd>> accepted_;
};

namespace {

// The process number and the program of a pipe's server, as far as they can be seen.
std::string DescribeServer(const std::wstring& name) {
  const OwnedHandle pipe(::CreateFileW(name.c_str(), FILE_READ_ATTRIBUTES, 0, nullptr,
                                       OPEN_EXISTING, SECURITY_SQOS_PRESENT | SECURITY_ANONYMOUS,
                                       nullptr));
  ULONG pid = 0;
  if (!pipe.valid() || !::GetNamedPipeServerProcessId(pipe.get(), &pid)) return "";
  std::wstring program(32768, L'\0');
  auto length = static_cast<DWORD>(program.size());
  const OwnedHandle process(::OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid));
  if (!process.valid() || !::QueryFullProcessImageNameW(process.get(), 0, program.data(), &length))
    return absl::StrCat(" (number ", pid, ")");
  program.resize(length);
  return absl::StrCat(" (number ", pid, ", ", FromWide(program), ")");
}

absl::Status NameIsTaken(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat("another process", DescribeServer(ToWide(path)),
                                               " serves ", path,
                                               "; stop it first, or choose another name"));
}

absl::StatusOr<std::shared_ptr<PipeEnd>> FindPipe(int fd) {
  std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kPipe);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor is no pipe");
  return std::static_pointer_cast<PipeEnd>(std::move(object));
}

}  // namespace

absl::Status SendMessage(int socket, const void* data, size_t size, const int* fds, int fd_count) {
  SLUICE_CHECK(fd_count >= 0 && fd_count <= kMaxDescriptorsPerMessage);
  SLUICE_CHECK(size > 0);
  absl::StatusOr<std::shared_ptr<PipeEnd>> pipe = FindPipe(socket);
  if (!pipe.ok()) return pipe.status();
  std::vector<std::shared_ptr<HandleObject>> objects;
  for (int i = 0; i < fd_count; ++i) {
    objects.push_back(FindDescriptor(fds[i]));
    if (objects.back() == nullptr) return absl::InvalidArgumentError("no such descriptor");
  }
  return (*pipe)->Send(data, size, objects);
}

absl::StatusOr<size_t> ReceiveMessage(int socket, void* buffer, size_t capacity,
                                      std::vector<UniqueFd>* fds, int max_fds) {
  SLUICE_CHECK(max_fds >= 0 && max_fds <= kMaxDescriptorsPerMessage);
  SLUICE_CHECK(max_fds == 0 || fds != nullptr);
  if (fds != nullptr) fds->clear();
  absl::StatusOr<std::shared_ptr<PipeEnd>> pipe = FindPipe(socket);
  if (!pipe.ok()) return pipe.status();
  std::vector<std::shared_ptr<HandleObject>> objects;
  absl::StatusOr<size_t> size = (*pipe)->Receive(buffer, capacity, max_fds, &objects);
  if (!size.ok() || fds == nullptr) return size;
  for (auto& object : objects) fds->push_back(AddDescriptor(std::move(object)));
  return size;
}

absl::Status WaitReadable(int socket, int timeout_ms) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(socket);
  HANDLE ready = object != nullptr ? object->PrepareWait() : nullptr;
  if (ready == nullptr) return absl::InvalidArgumentError("the descriptor cannot be waited for");
  const DWORD limit = timeout_ms < 0 ? INFINITE : static_cast<DWORD>(timeout_ms);
  if (::WaitForSingleObject(ready, limit) == WAIT_OBJECT_0) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("no answer in ", timeout_ms, " ms"));
}

absl::Status AwaitMessage(int socket) { return WaitReadable(socket, /*timeout_ms=*/-1); }

absl::Status WaitWritable(int socket, int timeout_ms) {
  const absl::StatusOr<std::shared_ptr<PipeEnd>> pipe = FindPipe(socket);
  if (!pipe.ok()) return pipe.status();
  HANDLE ready = (*pipe)->PrepareWriteWait();
  const DWORD limit = timeout_ms < 0 ? INFINITE : static_cast<DWORD>(timeout_ms);
  if (ready == nullptr || ::WaitForSingleObject(ready, limit) == WAIT_OBJECT_0) {
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat("no room in ", timeout_ms, " ms"));
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateSocketPair(FirstEnd first) {
  uint64_t secret[2];
  if (absl::Status random = FillRandom(secret, sizeof(secret)); !random.ok()) return random;
  const std::wstring name =
      ToWide(absl::StrCat(kPrefix, "sluice-", absl::Hex(secret[0], absl::kZeroPad16),
                          absl::Hex(secret[1], absl::kZeroPad16)));
  PipeSecurity security(PipeOthers::kNobody);
  OwnedHandle server = CreateInstance(name, &security, /*first=*/true, /*instances=*/1);
  if (!server.valid()) return WindowsStatus(::GetLastError(), "creating a pipe");
  OwnedHandle client = OpenPipe(name);
  if (!client.valid()) return WindowsStatus(::GetLastError(), "opening a pipe");
  auto pair = std::make_shared<PipePair>();
  pair->first_stays = first == FirstEnd::kStays;
  return std::make_pair(AddDescriptor(std::make_shared<PipeEnd>(std::move(server), pair, 0)),
                        AddDescriptor(std::make_shared<PipeEnd>(std::move(client), pair, 1)));
}

absl::StatusOr<UniqueFd> ConnectLocal(const std::string& path, int timeout_ms) {
  if (absl::Status named = CheckLocalName(path); !named.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pipe \"", path, "\" must be ", named.message()));
  }
  const std::wstring name = ToWide(path);
  const std::string what = absl::StrCat("connecting to ", path);
  const int64_t deadline = NowMs() + timeout_ms;
  OwnedHandle pipe = OpenPipe(name);
  while (!pipe.valid()) {
    const DWORD error = ::GetLastError();
    if (error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND) {
      return absl::NotFoundError(what + ": no daemon has this pipe");
    }
    if (error == ERROR_ACCESS_DENIED) {
      return absl::PermissionDeniedError(
          what + ": it is not open to this user (`socket_mode` in the daemon's configuration)");
    }
    if (error != ERROR_PIPE_BUSY) return WindowsStatus(error, what);
    // Every instance is taken; the server makes more.
    const int64_t left_ms = timeout_ms < 0 ? 60'000 : deadline - NowMs();
    if (left_ms <= 0 || (!::WaitNamedPipeW(name.c_str(), static_cast<DWORD>(left_ms)) &&
                         ::GetLastError() == ERROR_SEM_TIMEOUT && timeout_ms >= 0)) {
      return absl::DeadlineExceededError(
          what + ": timed out: more connect at once than the daemon takes in");
    }
    pipe = OpenPipe(name);
  }
  // Before the first byte is sent or read.
  if (absl::Status server = CheckServer(pipe.get(), what); !server.ok()) return server;
  auto end = std::make_shared<PipeEnd>(std::move(pipe));
  if (timeout_ms >= 0) end->LimitSends(static_cast<DWORD>(timeout_ms));
  if (absl::Status sent = end->SendRaw(std::string(kGreeting)); !sent.ok()) {
    if (absl::IsDeadlineExceeded(sent))
      return absl::DeadlineExceededError(
          absl::StrCat(what, ": timed out after ", timeout_ms,
                       " ms: who has the pipe reads nothing; is that a daemon?"));
    return absl::UnavailableError(what + ": the daemon has just ended");
  }
  return AddDescriptor(std::move(end));
}

absl::StatusOr<UniqueFd> ListenLocal(const std::string& path, mode_t mode, int) {
  if (absl::Status named = CheckLocalName(path); !named.ok()) return named;
  const std::wstring name = ToWide(path);
  // Wine 8 accepts FILE_FLAG_FIRST_PIPE_INSTANCE and ignores it.
  const bool taken = ::WaitNamedPipeW(name.c_str(), 1) || ::GetLastError() == ERROR_SEM_TIMEOUT;
  if (taken) return NameIsTaken(path);
  PipeSecurity security(PipeOthersOfMode(mode));
  OwnedHandle first = CreateInstance(name, &security, /*first=*/true, PIPE_UNLIMITED_INSTANCES);
  if (!first.valid()) {
    const DWORD error = ::GetLastError();
    // Another daemon has this name, or a program that pretends to be it.
    if (error == ERROR_ACCESS_DENIED || error == ERROR_PIPE_BUSY) {
      return NameIsTaken(path);
    }
    return WindowsStatus(error, absl::StrCat("creating ", path));
  }
  return AddDescriptor(std::make_shared<Listener>(name, mode, std::move(first)));
}

absl::StatusOr<UniqueFd> AcceptLocal(int listener) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(listener, HandleKind::kListener);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor does not listen");
  absl::StatusOr<std::shared_ptr<PipeEnd>> end = static_cast<Listener&>(*object).Accept();
  if (!end.ok()) return end.status();
  return AddDescriptor(*std::move(end));
}

absl::Status SetNonBlocking(int fd, bool non_blocking) {
  absl::StatusOr<std::shared_ptr<PipeEnd>> pipe = FindPipe(fd);
  if (!pipe.ok()) return pipe.status();
  (*pipe)->SetNonBlocking(non_blocking);
  return absl::OkStatus();
}

absl::Status AwaitHangUp(int socket) {
  constexpr DWORD kLookMs = 100;  // While somebody is to read a message.
  absl::StatusOr<std::shared_ptr<PipeEnd>> pipe = FindPipe(socket);
  if (!pipe.ok()) return pipe.status();
  // The event is also that of a message, until it is read.
  while (true) {
    ::WaitForSingleObject((*pipe)->PrepareWait(), INFINITE);
    if ((*pipe)->OtherHasHungUp()) return absl::OkStatus();
    ::Sleep(kLookMs);
  }
}

void HangUp(int socket) {
  if (const absl::StatusOr<std::shared_ptr<PipeEnd>> pipe = FindPipe(socket); pipe.ok()) {
    (*pipe)->HangUp();
  }
}

const int kDeliveryMs = 2000;  // Takes milliseconds on an idle machine.

// The system decides: a pipe's buffer is 64 KiB and one message.
void LimitUnread(int, int) {}

// A handle that nobody asked for does not become a descriptor.
void RefuseDescriptors(int) {}

bool IsLocalListener(int fd) { return FindDescriptor(fd, HandleKind::kListener) != nullptr; }

const char kLocalScheme[] = "pipe:";

absl::Status CheckLocalName(const std::string& name) {
  const absl::string_view prefix = kPrefix;
  if (absl::StartsWithIgnoreCase(name, prefix) && name.size() > prefix.size() &&
      name.size() <= kMaxName && name.find_first_of("\\/", prefix.size()) == std::string::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the name of a pipe, ", kPrefix,
                                                 "NAME, of at most ", kMaxName,
                                                 " characters, without \"/\" and \"\\\" in NAME"));
}

bool IsSameLocalName(const std::string& a, const std::string& b) {
  const std::wstring wide_a = ToWide(a);
  const std::wstring wide_b = ToWide(b);
  return ::CompareStringOrdinal(wide_a.c_str(), -1, wide_b.c_str(), -1, TRUE) == CSTR_EQUAL;
}

}  // namespace sluice::os
