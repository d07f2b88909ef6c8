// SPDX-License-Identifier: Apache-2.0
//
// sluiced: flags and configuration, then the Broker. Exit codes: 0 stopped as told, or the
// configuration is fine; 1 could not start or run; 2 wrong flag or configuration; 3 another daemon
// serves this socket.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "broker/base/end_of_output.h"
#include "broker/base/grpc_environment.h"
#include "broker/base/log.h"
#include "broker/base/shown_text.h"
#include "broker/base/version.h"
#include "broker/broker.h"
#include "broker/children/gateway_link.h"
#include "broker/config/config.h"
#include "broker/config/config_keys.h"
#include "broker/exit_codes.h"
#include "broker/os/command_line.h"
#include "broker/os/daemon_process.h"
#include "broker/os/file_access.h"
#include "broker/os/local_endpoint.h"
#include "broker/os/process.h"
#include "broker/os/service.h"
#include "proto/quiet_parsing.h"

namespace sluice::broker {
namespace {

constexpr char kExitCodes[] =
    "`sluiced --worker`, `--gateway` and `--allocator` run sluice-worker, -gateway and "
    "-allocator.\n"
    "Exit codes: 0 stopped as told, or the configuration is fine; 1 could not start or run;\n"
    "2 wrong flag or configuration; 3 another daemon serves this socket.";

std::string Footer() {
  return absl::StrCat("Without --config, ", os::DefaultConfigFile(),
                      " is read if it exists; flags win over\nthe file.\n",
                      os::ServiceControlHelp(), kExitCodes);
}

struct Flags {
  std::string config_file;
  std::string check_file;
  std::string socket;
  std::string admin_socket;
  std::string monitor_socket;
  std::string log_level;
  std::string worker_user;
  std::string default_worker_user;
  std::vector<std::string> listen;
  NetworkConfig network;  // For `listen`.
  std::vector<std::string> devices;
  std::optional<int64_t> drain_timeout_ms;
  bool console = false;
  bool sync = false;
};

// "--certificate=$UNSET" must not mean that there is none.
std::string EmptyProblem(const std::string& value) {
  return value.empty() ? "must not be empty" : "";
}

void DefineFlags(CLI::App* app, Flags* flags) {
  app->set_version_flag("--version", std::string("sluiced ") + kVersion);
  app->add_option("--config", flags->config_file, "Configuration file (TOML)")->type_name("FILE");
  app->add_option("--check-config", flags->check_file,
                  "Check a configuration file, print what is wrong with it, and exit")
      ->type_name("FILE");
  app->add_option("--socket", flags->socket,
                  absl::StrCat("The socket that applications connect to: ", os::LocalNameForm()))
      ->type_name("PATH");
  app->add_option("--admin-socket", flags->admin_socket,
                  "The socket for administration (sluicectl)")
      ->type_name("PATH");
  app->add_option("--monitor-socket", flags->monitor_socket,
                  "The socket of those who may look and change nothing")
      ->type_name("PATH");
  app->add_option("--log-level", flags->log_level,
                  "How much to log: trace, debug, info, warning or error")
      ->type_name("LEVEL");
  app->add_option("--worker-user", flags->worker_user,
                  "The user that all workers run as (Linux, root's daemon only)")
      ->type_name("NAME");
  app->add_option("--default-worker-user", flags->default_worker_user,
                  "The same, if the configuration names none")
      ->type_name("NAME");
  app->add_option(
         "--listen", flags->listen,
         "Serve the network on HOST:PORT; may be given several times. Without --certificate and "
         "--key only on loopback")
      ->type_name("ADDRESS");
  app->add_option("--certificate", flags->network.certificate, "TLS certificate for --listen (PEM)")
      ->needs("--listen")
      ->type_name("FILE");
  app->add_option("--key", flags->network.key, "TLS key for --listen (PEM)")
      ->needs("--listen")
      ->type_name("FILE");
  app->add_option(
         "--client-ca", flags->network.client_ca,
         "Clients of --listen must show a certificate that this authority has signed (PEM)")
      ->needs("--listen")
      ->type_name("FILE");
  app->add_option(
         "--token-file", flags->network.token_file,
         "Clients of --listen must send one of the tokens in this file, which has one a line")
      ->needs("--listen")
      ->type_name("FILE");
  app->add_flag(
         "--allow-plaintext", flags->network.allow_plaintext,
         "Let --listen serve without TLS beyond loopback: anyone on the way can then read and "
         "change everything")
      ->needs("--listen");
  app->add_option("--devices", flags->devices,
                  "Offer only devices whose name matches this wildcard; may be given several times")
      ->type_name("PATTERN");
  app->add_option("--drain-timeout-ms", flags->drain_timeout_ms,
                  "How long the daemon waits for running sessions when it is told to stop")
      ->check(CLI::Range(int64_t{0}, kMaxDrainTimeoutMs))
      ->type_name("MS");
  app->add_flag("--sync", flags->sync,
                "Debug mode: every command of every session waits for its result");
  app->add_flag("--foreground,--console", flags->console,
                "Run as a program and not as a service of Windows; elsewhere it always does");
  for (CLI::Option* option :
       app->get_options([](const CLI::Option* one) { return one->get_expected_min() > 0; })) {
    option->check(EmptyProblem, "");
  }
  app->footer(Footer());
}

// Settings that this version takes, and the next ones do not.
std::vector<std::string> OldPlacesOf(const Config& config) {
  std::vector<std::string> warnings = OldPlaces(config);
  for (std::string& warning : warnings)
    absl::StrAppend(&warning, "; sluiced ", kOldPlacesEnd, " refuses it");
  return warnings;
}

// A line for each key, or default, whose meaning has changed.
void AddChanges(const Config& config, std::vector<std::string>* changes) {
  if (changes == nullptr) return;
  for (const std::string& old : OldPlacesOf(config)) changes->push_back("warning: " + old);
  for (const std::string& moved : MovedDefaults(config)) changes->push_back("note: " + moved);
}

// File, then flags, then defaults, then the checks that need all of them.
absl::StatusOr<Config> BuildConfig(const Flags& flags, NetworkCheck check,
                                   std::vector<std::string>* changes = nullptr) {
  Config config;
  std::string file = flags.config_file;
  const std::string default_file = os::DefaultConfigFile();
  if (std::error_code error; file.empty() && std::filesystem::exists(default_file, error)) {
    file = default_file;
  }
  if (!file.empty()) {
    if (absl::Status whose = os::CheckConfigOwner(file); !whose.ok()) return whose;
    if (absl::Status loaded = LoadConfigFile(file, &config); !loaded.ok()) {
      ApplyDefaults(&config);
      AddChanges(config, changes);
      return loaded;
    }
  }
  if (!flags.socket.empty()) {
    config.socket = flags.socket;
    // The file's admin socket belongs to the file's socket: two daemons must not meet there.
    config.admin_socket.clear();
    config.monitor_socket.clear();
    config.places.clear();
  }
  if (!flags.admin_socket.empty()) {
    config.admin_socket = flags.admin_socket;
    config.places.erase("admin_socket");
  }
  if (!flags.monitor_socket.empty()) {
    config.monitor_socket = flags.monitor_socket;
    config.places.erase("monitor_socket");
  }
  if (!flags.worker_user.empty()) config.worker.user = flags.worker_user;
  if (!flags.default_worker_user.empty() && !config.worker.user.has_value())
    config.worker.user = flags.default_worker_user;
  if (!flags.devices.empty()) config.device_patterns = flags.devices;
  if (flags.drain_timeout_ms.has_value()) config.drain_timeout_ms = *flags.drain_timeout_ms;
  config.worker.sync = config.worker.sync || flags.sync;
  if (!flags.log_level.empty()) {
    const std::optional<LogLevel> level = ParseLogLevel(flags.log_level);
    if (!level.has_value()) {
      return absl::InvalidArgumentError("--log-level is \"" + flags.log_level +
                                        "\", allowed is one of trace, debug, info, warning, error");
    }
    config.log_level = *level;
  }
  if (!flags.listen.empty()) {
    NetworkConfig network = flags.network;
    network.listen = flags.listen;
    for (const std::string& address : network.listen) {
      if (absl::Status ok = CheckListenAddress(address); !ok.ok()) return ok;
    }
    config.network.push_back(std::move(network));
  }
  ApplyDefaults(&config);
  AddChanges(config, changes);
  if (absl::Status checked = CheckConfig(config); !checked.ok()) return checked;
  std::vector<std::string> problems;
  for (const NetworkConfig& network : config.network) {
    const absl::Status checked = CheckNetwork(network, check);
    if (!checked.ok()) problems.emplace_back(checked.message());
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  return config;
}

void AddFileWarnings(const NetworkConfig& network, std::vector<std::string>* warnings) {
  const auto add = [&](const char* key, std::string (*others)(const std::string&)) {
    const std::string& path = *network.FileOf(key);
    const std::string who = path.empty() ? "" : others(path);
    if (!who.empty())
      warnings->push_back(absl::StrCat(network.Describe(key), ": ", path, " ", who));
  };
  for (const char* key : {"key", "token_file"}) add(key, &OtherReaders);
  // Whoever can write these decides who is let in.
  for (const char* key : {"client_ca", "token_file", "token_key"}) add(key, &OtherWriters);
}

// Settings that are allowed and deserve a warning: secrets that others can read, services that ask
// for none, and workers that nothing keeps from the host's files.
std::vector<std::string> WarningsOf(const Config& config) {
  std::vector<std::string> warnings = OpenDoors(config);
  const std::string unconfined =
      config.worker.confine_files ? os::UnconfinedReason() : "confine_files = false in [worker]";
  if (!unconfined.empty()) {
    warnings.push_back(
        absl::StrCat("workers and the allocator can read whatever their user can: their access to "
                     "files is not confined: ",
                     unconfined));
  }
  for (const NetworkConfig& network : config.network) AddFileWarnings(network, &warnings);
  return warnings;
}

int CheckConfigFile(const Flags& flags) {
  Flags only_file = flags;
  only_file.config_file = flags.check_file;
  std::vector<std::string> changes;
  const absl::StatusOr<Config> config = BuildConfig(only_file, NetworkCheck::kAddresses, &changes);
  for (const std::string& change : changes) std::fprintf(stderr, "%s\n", change.c_str());
  if (config.ok()) {
    for (const std::string& warning : WarningsOf(*config))
      std::fprintf(stderr, "warning: %s\n", warning.c_str());
    std::printf("%s: ok\n", flags.check_file.c_str());
    return kDaemonExitOk;
  }
  std::fprintf(stderr, "%s\n", std::string(config.status().message()).c_str());
  return kDaemonExitUsage;
}

// `systemctl status` shows the reason for as long as the service is down.
void ReportFailedStart(const absl::Status& why) {
  os::NotifyService(
      absl::StrCat("STATUS=Cannot start: ", absl::StrReplaceAll(why.message(), {{"\n", "; "}})));
}

int Serve(const Flags& flags) {
  absl::StatusOr<Config> config = BuildConfig(flags, NetworkCheck::kFiles);
  if (!config.ok()) {
    const std::string line = absl::StrCat("sluiced: ", config.status().message());
    LogText(LogLevel::kError, line);
    os::LogServiceEvent(os::ServiceEvent::kError, line);
    ReportFailedStart(config.status());
    return kDaemonExitUsage;
  }
  SetLogLevel(config->log_level);
  const absl::Status grpc = MendGrpcEnvironment();
  if (!grpc.ok()) {
    Log(LogLevel::kWarning, "broker", "a variable is ignored",
        {{"reason", std::string(grpc.message())}});
  }
  os::PrepareDaemonProcess();
  for (const std::string& warning : WarningsOf(*config))
    Log(LogLevel::kWarning, "broker", "the configuration leaves something open",
        {{"what", warning}});
  for (const std::string& warning : OldPlacesOf(*config))
    Log(LogLevel::kWarning, "broker", "the configuration names a place of old",
        {{"what", warning}});
  absl::StatusOr<std::unique_ptr<Broker>> broker = Broker::Create(
      *std::move(config), [flags] { return BuildConfig(flags, NetworkCheck::kFiles); });
  if (!broker.ok()) {
    Log(LogLevel::kError, "broker", "cannot start",
        {{"reason", std::string(broker.status().message())}});
    ReportFailedStart(broker.status());
    return absl::IsAlreadyExists(broker.status()) ? kDaemonExitAlreadyRunning : kDaemonExitFailed;
  }
  (*broker)->Run();
  return kDaemonExitOk;
}

// `sluiced --worker ARGS`, `--gateway ARGS` and `--allocator ARGS` become the helper programs,
// which carry what the broker must not: drivers, and TLS.
int RunHelper(const char* name, int argc, char** argv) {
  // A person has typed this: the broker gives each of them arguments or descriptors.
  if (argc == 2 || std::strcmp(argv[2], "--help") == 0) {
    std::fprintf(stderr,
                 "sluiced: %s is of no use by itself: sluiced starts it, with the sockets that it "
                 "works on. Start sluiced without %s (sluiced --help)\n",
                 name, argv[1]);
    return kDaemonExitUsage;
  }
  const absl::StatusOr<std::string> path = os::FindHelperExecutable(name);
  if (!path.ok()) {
    std::fprintf(stderr, "sluiced: %s\n", std::string(path.status().message()).c_str());
    return kDaemonExitFailed;
  }
  argv[1] = argv[0];  // The helper's own argv[0]; the alias flag goes.
  const int result = os::BecomeProgram(*path, argv + 1);
  return result < 0 ? kDaemonExitFailed : result;
}

int Main(int argc, char** argv) {
  os::EnsureStandardDescriptors();
  os::ReceiveChildSignals();
  if (argc > 1 && std::strcmp(argv[1], "--worker") == 0)
    return RunHelper("sluice-worker", argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "--gateway") == 0)
    return RunHelper("sluice-gateway", argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "--allocator") == 0)
    return RunHelper("sluice-allocator", argc, argv);
  CLI::App app("Sluice's daemon: shares this machine's OpenCL devices with other processes.",
               "sluiced");
  Flags flags;
  DefineFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    std::fprintf(stderr, "%s\nRun with --help for more information.\n",
                 NotExpected(app.remaining()).c_str());
    return kDaemonExitUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDaemonExitOk : kDaemonExitUsage;
  }
  if (!flags.check_file.empty()) return CheckConfigFile(flags);
  os::LeaveFirstProcess();
  return os::RunUnderServiceManager(flags.console, [&flags] { return Serve(flags); });
}

}  // namespace
}  // namespace sluice::broker

int main(int argc, char** argv) {
  sluice::os::TakeCommandLine(&argc, &argv);
  sluice::wire::LetParsersBeQuiet();
  return sluice::EndOfOutput("sluiced", sluice::broker::Main(argc, argv),
                             sluice::broker::kDaemonExitFailed);
}
