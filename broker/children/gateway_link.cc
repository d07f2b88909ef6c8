// SPDX-License-Identifier: Apache-2.0
#include "broker/children/gateway_link.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/base/log.h"
#include "broker/children/helper_environment.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/file.h"
#include "broker/os/local_socket.h"
#include "proto/broker_messages.h"
#include "proto/gateway_messages.h"
#include "proto/network/listen_check.h"

namespace sluice::broker {
namespace {

// A sanitizer's own memory would count as the gateway's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

constexpr int kControlFd = 3;
constexpr int kFirstFileFd = 5;
constexpr int64_t kFirstBackoffMs = 500;
constexpr int64_t kMaxBackoffMs = 30'000;
constexpr int64_t kStableMs = 60'000;  // A gateway that ran this long starts afresh at once.
constexpr int kGatewayMessagesPerWakeUp = 16;
constexpr int kCheckTimeoutMs = 20'000;
constexpr size_t kMaxReasonBytes = 2048;
// Time for the gateway to pass on why sessions have ended.
constexpr int64_t kLastWordsMs = 1'500;
constexpr int kLastWordsLookMs = 20;
// The exit code of a gateway that has logged why.
constexpr int kExitSaid = 1;

struct EntryFile {
  const char* flag;
  uint32_t bit;
  const std::string* path;
};
std::array<EntryFile, wire::kMostGatewayFiles> FilesOf(const NetworkConfig& network) {
  return {{{"--cert-fd=", wire::kFileCertificate, &network.certificate},
           {"--key-fd=", wire::kFileKey, &network.key},
           {"--client-ca-fd=", wire::kFileClientCa, &network.client_ca},
           {"--client-crl-fd=", wire::kFileClientCrl, &network.client_crl},
           {"--token-fd=", wire::kFileTokens, &network.token_file},
           {"--token-key-fd=", wire::kFileTokenKeys, &network.token_key}}};
}

// Fills in the options with which every gateway of this entry is started. `opened` holds the files'
// descriptors until the gateway has them.
absl::Status Prepare(const NetworkConfig& network, os::SpawnOptions* options,
                     std::vector<os::UniqueFd>* opened) {
  absl::StatusOr<std::string> path = os::FindHelperExecutable("sluice-gateway");
  if (!path.ok()) return path.status();
  options->path = *std::move(path);
  options->environment = HelperEnvironment({"GRPC_VERBOSITY", "GRPC_TRACE"});
  for (const std::string& address : network.listen) {
    options->arguments.push_back(absl::StrCat("--listen=", address));
  }
  if (network.allow_plaintext) options->arguments.push_back("--allow-plaintext");
  if (!network.via.empty()) options->arguments.push_back(absl::StrCat("--via=", network.via));
  options->arguments.push_back(absl::StrCat("--max-connections=", network.max_connections));
  options->arguments.push_back(
      absl::StrCat("--max-connections-per-address=", network.max_connections_per_address));
  options->arguments.push_back(absl::StrCat("--max-newcomers=", network.max_newcomers));
  for (const auto& [flag, bit, file] : FilesOf(network)) {
    if (file->empty()) continue;
    absl::StatusOr<os::UniqueFd> fd = os::OpenForReading(*file);
    if (!fd.ok()) return fd.status();
    opened->push_back(*std::move(fd));
    const int number = kFirstFileFd + static_cast<int>(opened->size()) - 1;
    options->descriptors.emplace_back(opened->back().get(), number);
    options->arguments.push_back(absl::StrCat(flag, number));
  }
  return absl::OkStatus();
}

// Groups are for device nodes, which a gateway has no use for.
std::optional<os::UserIdentity> WithoutGroups(std::optional<os::UserIdentity> user) {
  if (user.has_value()) user->groups.clear();
  return user;
}

const char* CheckArgument(NetworkCheck check) {
  switch (check) {
    case NetworkCheck::kFiles:
      return "--check";
    case NetworkCheck::kAddresses:
      return "--check=addresses";
    case NetworkCheck::kPorts:
      return "--check=ports";
  }
  return "--check";
}

// A gateway's message begins with the key that it is about. This puts the key's place before it,
// and the file's name.
std::string Locate(const NetworkConfig& network, const std::string& said) {
  const size_t colon = said.find(": ");
  const std::string key = said.substr(0, colon);
  if (colon == std::string::npos) return absl::StrCat(network.Describe("listen"), ": ", said);
  const std::string text = said.substr(colon + 2);
  if (key == "listen") return absl::StrCat(network.Describe(key), ": ", text);
  if (const std::string* file = network.FileOf(key); file != nullptr) {
    return absl::StrCat(network.Describe(key), " is \"", *file, "\": ", text);
  }
  return absl::StrCat(network.Describe("listen"), ": ", said);
}

// The request's id; nothing if it is no such request. `on_terms_too`: the gateway has keys of
// signed tokens; only then may it name terms.
std::optional<uint64_t> ReadOpen(const void* packet, size_t size, bool on_terms_too,
                                 SessionRequest* request) {
  const auto read = [request](const auto& open) -> std::optional<uint64_t> {
    if (!wire::IsTerminated(open.peer) || !wire::IsTerminated(open.process_name) ||
        (open.flags & ~wire::kOpenSessionKnownFlags) != 0)
      return std::nullopt;
    request->tenant = Tenant::ForNetworkPeer(open.peer);
    request->process_name = open.process_name;
    request->flags = open.flags;
    return open.request_id;
  };
  wire::GatewayOpen open;
  if (wire::ParseMessage(packet, size, &open)) return read(open);
  wire::GatewayOpenTenant on_terms;
  if (!on_terms_too || !wire::ParseMessage(packet, size, &on_terms) || on_terms.share < 1 ||
      on_terms.share > kMostShare)
    return std::nullopt;
  const std::optional<uint64_t> id = read(on_terms);
  request->tenant.account.share = on_terms.share;
  request->tenant.account.limits.max_sessions = on_terms.max_sessions;
  request->tenant.account.limits.memory_bytes = on_terms.memory_bytes;
  return id;
}

absl::Status RunCheck(const NetworkConfig& network, NetworkCheck check,
                      const std::optional<os::UserIdentity>& user) {
  os::SpawnOptions options;
  std::vector<os::UniqueFd> opened;
  if (absl::Status ok = Prepare(network, &options, &opened); !ok.ok()) return ok;
  options.sandbox.user = WithoutGroups(user);
  options.sandbox.stays_in_session = true;
  absl::StatusOr<std::pair<os::UniqueFd, os::UniqueFd>> output = os::CreatePipe();
  if (!output.ok()) return output.status();
  options.output = output->second.get();
  options.arguments.emplace_back(CheckArgument(check));
  absl::StatusOr<os::ChildProcess> process = os::Spawn(options);
  if (!process.ok()) return process.status();
  output->second.reset();
  const std::optional<os::ExitStatus> ended = process->WaitAndReap(kCheckTimeoutMs);
  if (!ended.has_value()) {
    KillAndReap(&*process, "gateway's check");
    return absl::UnavailableError(absl::StrCat(
        "its check took longer than ", kCheckTimeoutMs / 1000, " s: does the name server answer?"));
  }
  if (ended->signal == 0 && ended->code == 0) return absl::OkStatus();
  std::string said(
      absl::StripTrailingAsciiWhitespace(os::ReadPipe(output->first.get(), kMaxReasonBytes)));
  if (said.empty()) said = absl::StrCat("sluice-gateway: ", ended->Describe());
  const bool not_yet = ended->signal == 0 && ended->code == wire::kExitNotYet;
  return not_yet ? absl::UnavailableError(said) : absl::InvalidArgumentError(said);
}

}  // namespace

absl::Status CheckNetwork(const NetworkConfig& network, NetworkCheck check,
                          const std::optional<os::UserIdentity>& user) {
  const absl::Status checked = RunCheck(network, check, user);
  if (checked.ok()) return checked;
  return absl::Status(checked.code(), Locate(network, std::string(checked.message())));
}

GatewayLink::~GatewayLink() {
  loop_->CancelTimer(&restart_timer_);
  exit_watch_.Stop();
  loop_->Unwatch(&control_watch_);
  if (!process_.valid()) return;
  // Its sessions' workers are gone; their last messages are still on the way to their clients.
  if (greeted_ && told_snapshot_ != 0 && wire::HasFeature(features_, wire::kFeatureTerminate)) {
    auto terminate = wire::MakeMessage<wire::Terminate>();
    wire::SetString(terminate.reason, "the daemon is stopping");
    const int64_t until_ms = MonotonicMs() + kLastWordsMs;
    if (os::SendMessage(control_.get(), &terminate, sizeof(terminate)).ok()) {
      // A line for each session: it must not wait for us to read them.
      while (!process_.WaitAndReap(kLastWordsLookMs).has_value() && MonotonicMs() < until_ms)
        output_.Take();
    }
  }
  KillAndReap(&process_, "gateway");
}

void GatewayLink::Start() {
  thread_.Assert();
  const absl::Status started = Spawn();
  if (started.ok()) return;
  Log(LogLevel::kError, "broker", "cannot start the gateway",
      {{"listen", absl::StrJoin(network_.listen, ",")}, {"reason", started.ToString()}});
  ScheduleRestart();
}

absl::Status GatewayLink::Spawn() {
  os::SpawnOptions options;
  std::vector<os::UniqueFd> opened;  // Closed here once the gateway has them.
  if (absl::Status ok = Prepare(network_, &options, &opened); !ok.ok()) return ok;
  options.sandbox.user = WithoutGroups(user_);
  options.sandbox.stays_in_session = true;
  if (!kHasSanitizer) options.sandbox.data_bytes = network_.memory_bytes;
  options.arguments.push_back(
      absl::StrCat("--log-level=", std::string(LogLevelName(CurrentLogLevel()))));
  options.arguments.insert(options.arguments.end(), sandbox_.begin(), sandbox_.end());
  absl::StatusOr<std::pair<os::UniqueFd, os::UniqueFd>> control = os::CreateSocketPair();
  if (!control.ok()) return control.status();
  if (absl::Status set = os::SetNonBlocking(control->first.get(), true); !set.ok()) return set;
  os::RefuseDescriptors(control->first.get());
  options.descriptors.emplace_back(control->second.get(), kControlFd);
  absl::StatusOr<os::UniqueFd> output =
      output_.Open({"listen", absl::StrJoin(network_.listen, ",")});
  if (!output.ok()) return output.status();
  options.output = output->get();

  absl::StatusOr<os::ChildProcess> process = os::Spawn(options);
  if (!process.ok()) return process.status();
  process_ = *std::move(process);
  control_ = std::move(control->first);
  started_ms_ = MonotonicMs();
  exit_watch_.Start(&process_, [this](const os::ExitStatus& status) { OnExit(status); });
  control_watch_ = loop_->Watch(control_.get(), [this] { OnReadable(); });
  // Each try of many in a row logs its own reason, which is enough.
  Log(backoff_ms_ == 0 ? LogLevel::kInfo : LogLevel::kDebug, "broker", "gateway started",
      {{"listen", absl::StrJoin(network_.listen, ",")},
       {"tls", network_.plaintext() ? "no" : "yes"},
       {"pid", process_.pid()}});
  return absl::OkStatus();
}

void GatewayLink::OnExit(const os::ExitStatus& status) {
  loop_->Unwatch(&control_watch_);
  os::CloseElsewhere(std::move(control_));
  greeted_ = false;
  output_.Finish();
  const bool said = status.signal == 0 && status.code == kExitSaid;
  Log(said ? LogLevel::kDebug : LogLevel::kError, "broker",
      "gateway ended; it will be started again",
      {{"listen", absl::StrJoin(network_.listen, ",")},
       {"how", status.Describe()},
       {"memory_limit_bytes", network_.memory_bytes}});
  opener_->Forget(owner_);
  workers_->EndOwnedBy(owner_, "its gateway is gone");
  ScheduleRestart();
}

void GatewayLink::ScheduleRestart() {
  const bool stable = started_ms_ != 0 && MonotonicMs() - started_ms_ >= kStableMs;
  if (stable) {
    backoff_ms_ = 0;  // Clients see no platform until it is back.
  } else {
    backoff_ms_ = backoff_ms_ == 0 ? kFirstBackoffMs : std::min(backoff_ms_ * 2, kMaxBackoffMs);
  }
  restart_timer_ = loop_->AddTimer(backoff_ms_, [this] {
    restart_timer_ = 0;
    Start();
  });
}

void GatewayLink::Kill(const std::string& why) {
  Log(LogLevel::kError, "broker", "ending the gateway",
      {{"listen", absl::StrJoin(network_.listen, ",")}, {"reason", why}});
  loop_->Unwatch(&control_watch_);
  process_.KillGroup();  // OnExit follows.
}

void GatewayLink::OnReadable() {
  for (int i = 0; i < kGatewayMessagesPerWakeUp && control_watch_ != 0; ++i) {
    char packet[wire::kMaxBrokerMessageBytes];
    const absl::StatusOr<size_t> size =
        os::ReceiveMessage(control_.get(), packet, sizeof(packet), nullptr, 0);
    if (absl::IsUnavailable(size.status())) return;
    if (!size.ok()) return Kill(std::string(size.status().message()));
    if (*size == 0) return loop_->Unwatch(&control_watch_);  // Its exit follows.
    if (!HandleMessage(packet, *size))
      return Kill("malformed message, or it does not read answers");
  }
}

bool GatewayLink::HandleMessage(const void* packet, size_t size) {
  wire::GatewayHello hello;
  if (wire::ParseMessage(packet, size, &hello)) {
    if (!wire::IsTerminated(hello.features)) return false;
    features_ = hello.features;
    greeted_ = true;
    told_snapshot_ = 0;
    return SendSnapshot().ok();
  }
  wire::CloseSession close;
  if (wire::ParseMessage(packet, size, &close)) {
    workers_->EndOneOwnedBy(owner_, close.session_id, "its client has left");
    return true;
  }
  SessionRequest request;
  request.owner = owner_;
  const std::optional<uint64_t> id = ReadOpen(packet, size, !network_.token_key.empty(), &request);
  return id.has_value() && opener_->SendSession(control_.get(), *id, request).ok();
}

void GatewayLink::SnapshotReady() {
  thread_.Assert();
  if (!greeted_) return;
  const absl::Status told = SendSnapshot();
  if (!told.ok()) Kill(std::string(told.message()));
}

void GatewayLink::ReloadFiles() {
  thread_.Assert();
  // A gateway that has not said hello yet reads them at its start anyway.
  if (!greeted_ || !wire::HasFeature(features_, wire::kFeatureGatewayFiles)) return;
  auto message = wire::MakeMessage<wire::GatewayFiles>();
  std::vector<os::UniqueFd> opened;
  std::vector<int> numbers;
  for (const auto& [flag, bit, file] : FilesOf(network_)) {
    if (file->empty()) continue;
    absl::StatusOr<os::UniqueFd> fd = os::OpenForReading(*file);
    if (!fd.ok()) {
      Log(LogLevel::kError, "broker", "the gateway keeps its certificates and tokens",
          {{"listen", absl::StrJoin(network_.listen, ",")}, {"reason", fd.status().ToString()}});
      return;
    }
    message.files |= bit;
    numbers.push_back(fd->get());
    opened.push_back(*std::move(fd));
  }
  if (message.files == 0) return;
  const absl::Status sent =
      os::SendMessage(control_.get(), &message, sizeof(message), numbers.data(), numbers.size());
  if (!sent.ok()) Kill(std::string(sent.message()));
}

absl::Status GatewayLink::SendSnapshot() {
  if (opener_->snapshot_number() == told_snapshot_) return absl::OkStatus();
  told_snapshot_ = opener_->snapshot_number();
  return opener_->SendWelcome(control_.get(), features_, Account());
}

}  // namespace sluice::broker
