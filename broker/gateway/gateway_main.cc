// SPDX-License-Identifier: Apache-2.0
// sluice-gateway: receives network sessions (gRPC over TLS) and feeds them to workers. Started by
// the broker, never by a person; unprivileged. Descriptor 3 is the socket to the broker; options.h
// says what else it is told.
//
//   options [-> `--check` ends here] -> welcome and snapshot from the broker -> listen -> serve,
//   until SIGTERM or the broker's end
//
// When the broker is gone, the sessions that run go on; the port is given up, for the gateway of
// the next broker.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/base/log.h"
#include "broker/gateway/auth.h"
#include "broker/gateway/broker_link.h"
#include "broker/gateway/grpc_log.h"
#include "broker/gateway/listen_check.h"
#include "broker/gateway/options.h"
#include "broker/gateway/server.h"
#include "broker/gateway/tls_files.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

constexpr int kBrokerSocket = 3;
constexpr absl::Duration kPortPatience = absl::Seconds(2);
// The welcome comes when the probe has seen the devices; the broker bounds that.
constexpr absl::Duration kWelcomeTimeout = absl::Minutes(5);
constexpr absl::Duration kStopGrace = absl::Seconds(1);

enum class StopReason { kSignal, kBrokerGone };

// SIGTERM and SIGINT are blocked everywhere and taken by one thread.
void StopOnSignal(std::counting_semaphore<>* stop, std::atomic<StopReason>* reason) {
  std::thread([stop, reason] {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    int signal_number = 0;
    while (sigwait(&signals, &signal_number) != 0) {
    }
    reason->store(StopReason::kSignal);
    stop->release();
  }).detach();
}

// The key of [[network]] that an error is about, by which the broker finds its place in the file.
absl::Status About(const char* key, const absl::Status& status) {
  return status.ok() ? status
                     : absl::Status(status.code(), absl::StrCat(key, ": ", status.message()));
}

absl::Status CheckTlsFiles(const GatewayOptions& options) {
  if (options.plaintext()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckIdentity({"certificate", options.certificate}, {"key", options.key}));
  if (options.client_ca.empty()) return absl::OkStatus();
  return CheckAuthorities({"client_ca", options.client_ca});
}

absl::StatusOr<std::vector<std::string>> ReadTokens(const GatewayOptions& options) {
  if (options.tokens.empty()) return std::vector<std::string>();
  auto tokens = Authenticator::ParseTokens(options.tokens);
  if (!tokens.ok()) return About("token_file", tokens.status());
  return tokens;
}

absl::Status RunGateway(int argc, char** argv) {
  ASSIGN_OR_RETURN(const GatewayOptions options, ParseGatewayOptions(argc, argv));
  SetLogLevel(options.log_level);
  TakeOverGrpcLog();
  RETURN_IF_ERROR(CheckTlsFiles(options));
  ASSIGN_OR_RETURN(std::vector<std::string> tokens, ReadTokens(options));
  if (options.check) {
    if (!options.check_listening.has_value()) return absl::OkStatus();
    return About("listen", CheckListening(DistinctAddresses(options.listen),
                                          *options.check_listening, kPortPatience));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<BrokerLink> link,
                   BrokerLink::Connect(UniqueFd(kBrokerSocket), kWelcomeTimeout));

  // All of this lives until the process ends.
  static std::counting_semaphore<> stop(0);
  static std::atomic<StopReason> reason{StopReason::kBrokerGone};
  static GatewayServer& server =
      *new GatewayServer(link.release(), Authenticator(std::move(tokens)));
  StopOnSignal(&stop, &reason);
  RETURN_IF_ERROR(server.link().Start([] { stop.release(); }));
  RETURN_IF_ERROR(server.Start(options));
  stop.acquire();
  if (reason.load() == StopReason::kBrokerGone) {
    Log(LogLevel::kInfo, "gateway", "the broker is gone: no new sessions; those that run go on");
    std::thread([] { server.Stop(absl::InfiniteDuration()); }).detach();
    while (server.sessions() > 0 && reason.load() != StopReason::kSignal)
      stop.try_acquire_for(std::chrono::seconds(1));
  } else {
    server.Stop(kStopGrace);
  }
  return absl::OkStatus();
}

int GatewayMain(int argc, char** argv) {
  prctl(PR_SET_DUMPABLE, 0);  // It holds the private key.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const absl::Status status = RunGateway(argc, argv);
  const bool only_checks = std::any_of(argv, argv + argc, [](const char* argument) {
    return std::string_view(argument).starts_with("--check");
  });
  if (!status.ok() && only_checks) {  // For the broker's own message.
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    _exit(absl::IsUnavailable(status) ? kExitNotYet : 1);
  }
  if (!status.ok()) Log(LogLevel::kError, "gateway", std::string(status.message()));
  // Not exit(): gRPC's threads still run. The broker and the workers see the descriptors close.
  _exit(status.ok() ? 0 : 1);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::GatewayMain(argc, argv); }
