// SPDX-License-Identifier: Apache-2.0
// sluice-gateway: receives network sessions (gRPC over TLS) and feeds them to workers. Started by
// the broker, never by a person; unprivileged. Descriptor 3 is the socket to the broker; options.h
// says what else it is told.
//
//   options -> confined [-> `--check` ends here] -> welcome and snapshot from the broker -> listen
//   -> serve, until the broker or SIGTERM says so, or the broker's end
//
// When the broker is gone, the sessions that run go on; the port is given up, for the gateway of
// the next broker.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/base/log.h"
#include "broker/os/command_line.h"
#include "broker/os/daemon_process.h"
#include "broker/os/local_socket.h"
#include "broker/os/stop_signals.h"
#include "broker/os/threads.h"
#include "daemon/gateway/auth.h"
#include "daemon/gateway/broker_link.h"
#include "daemon/gateway/grpc_log.h"
#include "daemon/gateway/options.h"
#include "daemon/gateway/server.h"
#include "daemon/helpers/confined_calls.h"
#include "daemon/helpers/helper_files.h"
#include "daemon/helpers/helper_process.h"
#include "daemon/helpers/own_namespaces.h"
#include "proto/network/listen_check.h"
#include "proto/network/signed_token.h"
#include "proto/network/tls_files.h"
#include "proto/network/token_text.h"
#include "proto/quiet_parsing.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

constexpr int kBrokerSocket = 3;
constexpr absl::Duration kPortPatience = absl::Seconds(2);
// The welcome comes when the probe has seen the devices; the broker bounds that.
constexpr absl::Duration kWelcomeTimeout = absl::Minutes(5);
constexpr absl::Duration kStopGrace = absl::Seconds(1);

enum class StopReason { kTold, kBrokerGone };

// Lets main go on to its end. Lives as long as the process.
struct Stop {
  std::counting_semaphore<> asked{0};
  std::atomic<StopReason> reason{StopReason::kBrokerGone};

  void Ask(StopReason why) {
    if (why == StopReason::kTold) reason.store(why);
    asked.release();
  }
};

// For who ends services by signals, or by closing a console: the broker sends a message.
void StopOnSignal(Stop* stop) {
  os::StartDetached([stop] {
    const absl::StatusOr<std::unique_ptr<os::StopSignals>> signals = os::StopSignals::Open();
    if (!signals.ok()) return;
    while (os::WaitReadable((*signals)->fd(), -1).ok()) {
      const std::optional<os::StopSignals::Kind> kind = (*signals)->Next();
      if (kind == os::StopSignals::Kind::kStop) return stop->Ask(StopReason::kTold);
    }
  });
}

// The key of [[network]] that an error is about, by which the broker finds its place in the file.
absl::Status About(const char* key, const absl::Status& status) {
  return status.ok() ? status
                     : absl::Status(status.code(), absl::StrCat(key, ": ", status.message()));
}

absl::Status CheckTlsFiles(const GatewayOptions& options) {
  if (options.plaintext()) return absl::OkStatus();
  RETURN_IF_ERROR(
      wire::CheckIdentity({"certificate", options.tls.certificate}, {"key", options.tls.key}));
  if (options.tls.client_ca.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(wire::CheckAuthorities({"client_ca", options.tls.client_ca}));
  if (options.tls.client_crl.empty()) return absl::OkStatus();
  return wire::CheckRevocations({"client_crl", options.tls.client_crl});
}

absl::StatusOr<Authenticator> MakeAuthenticator(const GatewayOptions& options) {
  std::vector<std::string> tokens;
  TokenOwners owners;
  if (!options.tokens.empty()) {
    auto read =
        wire::ParseTokens(options.tokens, std::numeric_limits<size_t>::max(), &owners.tenants);
    if (!read.ok()) return About("token_file", read.status());
    tokens = *std::move(read);
  }
  if (!options.token_keys.empty()) {
    auto keys = wire::TokenKeys::Read(options.token_keys);
    if (!keys.ok()) return About("token_key", keys.status());
    owners.keys = *std::move(keys);
  }
  return Authenticator(std::move(tokens), options.via, std::move(owners));
}

// Bad files are said in the log, and what the gateway has goes on.
absl::Status Reload(GatewayServer* server, const GatewayOptions& before, uint32_t files,
                    const std::vector<os::UniqueFd>& descriptors) {
  ASSIGN_OR_RETURN(const GatewayOptions options, WithFiles(before, files, descriptors));
  RETURN_IF_ERROR(CheckTlsFiles(options));
  ASSIGN_OR_RETURN(Authenticator authenticator, MakeAuthenticator(options));
  return server->Reload(options.tls, std::move(authenticator));
}

absl::Status RunGateway(int argc, char** argv, bool own_namespaces) {
  ASSIGN_OR_RETURN(const GatewayOptions options, ParseGatewayOptions(argc, argv));
  RETURN_IF_ERROR(os::ConfineGatewayFiles(wire::PortsOf(options.listen),
                                          own_namespaces && options.private_root));
  if (own_namespaces) RETURN_IF_ERROR(os::GiveUpCapabilities());
  RETURN_IF_ERROR(os::ConfineCalls(os::Helper::kGateway, os::CallRule::kListed));
  SetLogLevel(options.log_level);
  TakeOverGrpcLog();
  RETURN_IF_ERROR(CheckTlsFiles(options));
  ASSIGN_OR_RETURN(Authenticator authenticator, MakeAuthenticator(options));
  if (options.check) {
    if (!options.check_listening.has_value()) return absl::OkStatus();
    return About("listen", wire::CheckListening(wire::DistinctAddresses(options.listen),
                                                *options.check_listening, kPortPatience));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<BrokerLink> link,
                   BrokerLink::Connect(os::UniqueFd(kBrokerSocket), kWelcomeTimeout));

  // All of this lives until the process ends.
  static Stop stop;
  static GatewayServer& server = *new GatewayServer(link.release(), std::move(authenticator));
  StopOnSignal(&stop);
  static const GatewayOptions& started_with = *new GatewayOptions(options);
  RETURN_IF_ERROR(server.link().Start(
      [](BrokerEnd end) {
        stop.Ask(end == BrokerEnd::kToldToEnd ? StopReason::kTold : StopReason::kBrokerGone);
      },
      [](uint32_t files, std::vector<os::UniqueFd> descriptors) {
        const absl::Status reloaded = Reload(&server, started_with, files, descriptors);
        if (reloaded.ok())
          return Log(LogLevel::kInfo, "gateway", "certificates and tokens reloaded");
        Log(LogLevel::kError, "gateway", "certificates and tokens kept as they were",
            {{"reason", std::string(reloaded.message())}});
      }));
  RETURN_IF_ERROR(server.Start(options));
  RETURN_IF_ERROR(os::MakeNoMoreSockets(os::CallRule::kListed));
  stop.asked.acquire();
  if (stop.reason.load() == StopReason::kBrokerGone) {
    Log(LogLevel::kInfo, "gateway", "the broker is gone: no new sessions; those that run go on");
    os::StartDetached([] { server.Stop(absl::InfiniteDuration()); });
    while (server.sessions().count() > 0 && stop.reason.load() != StopReason::kTold)
      stop.asked.try_acquire_for(std::chrono::seconds(1));
  } else {
    Log(LogLevel::kInfo, "gateway", "told to end", {{"sessions", server.sessions().count()}});
    server.Stop(kStopGrace);
  }
  return absl::OkStatus();
}

// Namespaces of its own, but for the network's. A gateway that listens on a low port by a right
// that it was given has that right on the host's network alone.
bool WantsNamespaces(const std::vector<std::string_view>& arguments) {
  static constexpr std::string_view kListen = "--listen=";
  constexpr int kFirstOfAll = 1024;
  const bool low = std::any_of(arguments.begin(), arguments.end(), [](std::string_view argument) {
    int port = 0;
    return argument.starts_with(kListen) &&
           absl::SimpleAtoi(std::string(argument.substr(argument.rfind(':') + 1)), &port) &&
           port < kFirstOfAll;
  });
  return std::find(arguments.begin(), arguments.end(), "--namespaces=1") != arguments.end() &&
         !(low && os::MayListenOnLowPorts());
}

int GatewayMain(int argc, char** argv) {
  // Before it has read any file, and before it is hidden: this needs its own files in /proc.
  const bool own = WantsNamespaces({argv + 1, argv + argc});
  absl::Status status = own ? os::EnterNamespaces(os::Network::kHosts) : absl::OkStatus();
  os::HideFromOthers();  // It holds the private key.
  os::HideThreadsFromOthers();
  os::PrepareDaemonProcess();
  if (status.ok()) status = RunGateway(argc, argv, own);
  const bool only_checks = std::any_of(argv, argv + argc, [](const char* argument) {
    return std::string_view(argument).starts_with("--check");
  });
  if (!status.ok() && only_checks) {  // For the broker's own message.
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    os::EndProcessNow(absl::IsUnavailable(status) ? wire::kExitNotYet : 1);
  }
  if (!status.ok()) Log(LogLevel::kError, "gateway", std::string(status.message()));
  // Not exit(): gRPC's threads still run. The broker and the workers see the descriptors close.
  os::EndProcessNow(status.ok() ? 0 : 1);
}

}  // namespace
}  // namespace sluice::gateway

int main(int argc, char** argv) {
  sluice::os::TakeCommandLine(&argc, &argv);
  sluice::wire::LetParsersBeQuiet();
  return sluice::gateway::GatewayMain(argc, argv);
}
