// SPDX-License-Identifier: Apache-2.0
//
// sluicectl: flags and help; each subcommand lives in a file of its own.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/config_reader.h"
#include "broker/version.h"
#include "deploy/sluicectl/admin_commands.h"
#include "deploy/sluicectl/doctor.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/run_command.h"

namespace sluice {
namespace {

constexpr char kFooter[] =
    "Where the daemon is: --endpoint, else SLUICE_ENDPOINT, else\n"
    "$XDG_RUNTIME_DIR/sluice/broker.sock if it exists, else /run/sluice/broker.sock.\n"
    "\n"
    "Examples:\n"
    "  sluicectl run --private -- clinfo        try Sluice with no installation and no daemon\n"
    "  sluicectl run -- ./my_program            only Sluice's devices, through the running daemon\n"
    "  sluicectl doctor                         why does my program see no device?\n"
    "  sudo sluicectl sessions                  who uses the devices?\n"
    "  sudo sluicectl kill 0f3a5b7c9d1e2f40     end one of them\n"
    "\n"
    "Exit codes: 0 done; 1 failed, or doctor found something wrong; 2 wrong flags; 3 the daemon\n"
    "cannot be reached; 4 no such session. `run` ends as its command does (128 + signal if that "
    "was\n"
    "killed); 125 sluicectl itself failed, 126 the command cannot be executed, 127 it is not "
    "there.";

struct AllFlags {
  CommonFlags common;
  RunFlags run;
  std::string session;
  std::string reason;
  int64_t drain_seconds = 0;
};

CLI::App* Subcommand(CLI::App* app, const std::string& name, const std::string& help,
                     CommonFlags* flags) {
  CLI::App* sub = app->add_subcommand(name, help);
  sub->add_option("--endpoint", flags->endpoint, "unix:PATH of the daemon's socket")
      ->type_name("ENDPOINT");
  sub->add_flag("--json", flags->json, "Print JSON, for scripts");
  sub->add_option("--timeout-ms", flags->timeout_ms, "How long to wait for the daemon")
      ->check(CLI::Range(1, 3'600'000))
      ->type_name("MS");
  return sub;
}

CLI::App* AdminSubcommand(CLI::App* app, const std::string& name, const std::string& help,
                          CommonFlags* flags) {
  CLI::App* sub = Subcommand(app, name, help, flags);
  sub->add_option("--admin-socket", flags->admin_socket,
                  "The daemon's admin socket; default: admin.sock beside the endpoint's socket")
      ->type_name("PATH");
  return sub;
}

void DefineRun(CLI::App* app, RunFlags* flags) {
  CLI::App* run = app->add_subcommand(
      "run",
      "Run a program whose only OpenCL driver is Sluice: sluicectl run [flags] -- PROGRAM ...");
  run->add_flag("--private", flags->private_daemon,
                "Start a daemon for this program alone, and stop it afterwards");
  run->add_option("--endpoint", flags->endpoint,
                  "Daemon(s) to use, as SLUICE_ENDPOINT takes them: unix:PATH,HOST:PORT,...")
      ->type_name("ENDPOINT");
  run->add_option("--config", flags->config_file, "Configuration file for --private")
      ->type_name("FILE");
  run->add_flag("--verbose", flags->verbose, "Show the --private daemon's log on stderr");
  run->add_option("--icd", flags->icd_library, "Another libsluice_icd.so than this sluicectl's own")
      ->type_name("FILE");
  run->add_option("command", flags->command, "The program and its arguments, after --")
      ->required()
      ->type_name("PROGRAM ...");
  run->footer("The program's own exit code is passed on. " + std::string(kFooter));
}

int Dispatch(const CLI::App& app, const AllFlags& flags) {
  const std::string name = app.get_subcommands().front()->get_name();
  if (name == "run") return RunCommand(flags.run);
  if (name == "devices") return DevicesCommand(flags.common);
  if (name == "status") return StatusCommand(flags.common);
  if (name == "sessions") return SessionsCommand(flags.common);
  if (name == "resources") return ResourcesCommand(flags.common);
  if (name == "kill") return KillCommand(flags.common, flags.session, flags.reason);
  if (name == "drain") return DrainCommand(flags.common, flags.drain_seconds);
  if (name == "doctor") return DoctorCommand(flags.common);
  return ListPlatformsCommand();
}

// Help and version end well; a mistake is named, as JSON if that was asked for. A first word that
// is no command is the mistake, whatever the parser thinks of the rest.
int ReportParseError(const CLI::App& app, const CLI::ParseError& error,
                     const std::vector<std::string>& arguments) {
  if (error.get_exit_code() == 0) return app.exit(error);
  std::string message = error.what();
  if (!arguments.empty() && arguments[0].rfind('-', 0) != 0) {
    std::vector<std::string> commands;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App* one) {
           return !one->get_group().empty();  // doctor's helper has none.
         })) {
      commands.push_back(sub->get_name());
    }
    if (std::find(commands.begin(), commands.end(), arguments[0]) == commands.end()) {
      const std::string nearest = NearestName(arguments[0], commands);
      message = absl::StrCat("there is no command \"", arguments[0], "\"",
                             nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)"),
                             "; commands are ", absl::StrJoin(commands, ", "));
    }
  }
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (std::find(arguments.begin(), separator, "--json") != separator) {
    std::printf("%s\n", nlohmann::json({{"error", message}}).dump(2).c_str());
  } else {
    std::fprintf(stderr, "sluicectl: %s\nsluicectl --help says what can be written.\n",
                 message.c_str());
  }
  return kExitUsage;
}

int Main(int argc, char** argv) {
  CLI::App app("Runs programs on Sluice's devices, and looks after its daemon.", "sluicectl");
  AllFlags flags;
  app.set_version_flag("--version", std::string("sluicectl ") + kVersion);
  app.require_subcommand(1);
  app.footer(kFooter);
  DefineRun(&app, &flags.run);
  Subcommand(&app, "devices", "List the devices that the daemon offers", &flags.common);
  AdminSubcommand(&app, "status", "Show the daemon's state", &flags.common);
  AdminSubcommand(&app, "sessions", "List the running sessions", &flags.common);
  AdminSubcommand(&app, "resources", "List the resources that programs share", &flags.common);
  CLI::App* kill = AdminSubcommand(&app, "kill", "End one session", &flags.common);
  kill->add_option("session", flags.session, "Its id, from `sluicectl sessions`")->required();
  kill->add_option("--reason", flags.reason, "For the daemon's log and the session's client");
  CLI::App* drain = AdminSubcommand(
      &app, "drain", "Take no new sessions, and stop the daemon when the last has ended",
      &flags.common);
  drain
      ->add_option("--within", flags.drain_seconds,
                   "End sessions that still run after this many seconds; 0 = wait for ever")
      ->check(CLI::Range(0, 604'800))
      ->type_name("SECONDS");
  Subcommand(&app, "doctor", "Find out why an application sees no device", &flags.common);
  app.add_subcommand("list-platforms", "")->group("");  // doctor's helper process.
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportParseError(app, error, std::vector<std::string>(argv + 1, argv + argc));
  }
  return Dispatch(app, flags);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
