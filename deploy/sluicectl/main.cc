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
#include "broker/base/daemon_places.h"
#include "broker/base/end_of_output.h"
#include "broker/base/grpc_environment.h"
#include "broker/base/shown_text.h"
#include "broker/base/version.h"
#include "broker/config/config_reader.h"
#include "broker/os/command_line.h"
#include "broker/os/daemon_process.h"
#include "broker/os/local_endpoint.h"
#include "deploy/sluicectl/admin_commands.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/listener_commands.h"
#include "deploy/sluicectl/output.h"
#include "deploy/sluicectl/system_commands.h"
#include "deploy/sluicectl/token_commands.h"

namespace sluice::ctl {

void AddEverywhereFlags(CLI::App* app, CommonFlags* flags) {
  app->add_option("--endpoint", flags->endpoint,
                  absl::StrCat("The daemon, or several, as SLUICE_ENDPOINT has them: ",
                               os::LocalEndpointForm(), ",HOST:PORT,..."))
      ->type_name("ENDPOINT");
  app->add_flag("--json", flags->json, "Print JSON, for scripts");
}

CLI::App* AddSubcommand(CLI::App* app, const std::string& name, const std::string& help,
                        CommonFlags* flags) {
  CLI::App* sub = app->add_subcommand(name, help);
  AddEverywhereFlags(sub, flags);
  sub->add_option("--timeout-ms", flags->timeout_ms, "How long to wait for the daemon")
      ->check(CLI::Range(1, 3'600'000))
      ->capture_default_str()
      ->type_name("MS");
  return sub;
}

namespace {

constexpr char kExitCodes[] =
    "\n"
    "--endpoint and --json may stand before or after the command.\n"
    "\n"
    "Exit codes:\n"
    "  0  done\n"
    "  1  failed\n"
    "  2  a flag is wrong\n"
    "  3  the daemon cannot be reached (devices: one of several; what the others offer is shown)\n"
    "  4  kill: there is no such session; listener remove: there is no such listener\n";

constexpr char kReadOn[] =
    "`sluicectl --help` says where the daemon is, and what the exit codes mean.";

std::string Footer() { return absl::StrCat(SystemExamples(), kExitCodes, SystemExitCodes()); }

struct AllFlags {
  CommonFlags common;
  std::string session;
  std::string reason;
  int64_t drain_seconds = 0;
};

CLI::App* AdminSubcommand(CLI::App* app, const std::string& name, const std::string& help,
                          CommonFlags* flags) {
  CLI::App* sub = AddSubcommand(app, name, help, flags);
  sub->add_option("--admin-socket", flags->admin_socket,
                  absl::StrCat("The daemon's admin or monitor socket; default for this endpoint: ",
                               AdminNameOf(os::DefaultClientName())))
      ->type_name("PATH");
  return sub;
}

int Dispatch(const CLI::App& app, const AllFlags& flags) {
  const std::string name = app.get_subcommands().front()->get_name();
  // `run` does so itself: its program keeps the environment as it is.
  if (name != "run") MendGrpcEnvironment().IgnoreError();
  if (name == "devices") return DevicesCommand(flags.common);
  if (name == "status") return StatusCommand(flags.common);
  if (name == "sessions") return SessionsCommand(flags.common);
  if (name == "accounts") return AccountsCommand(flags.common);
  if (name == "resources") return ResourcesCommand(flags.common);
  if (name == "kill") return KillCommand(flags.common, flags.session, flags.reason);
  if (name == "listener") return RunListenerCommand(flags.common);
  if (name == "token") return RunTokenCommand(flags.common);
  if (name == "drain") return DrainCommand(flags.common, flags.drain_seconds);
  return RunSystemCommand(name, flags.common).value_or(kExitUsage);
}

// The word that should be a command, or the flag before it that may not stand there; "" if there is
// neither.
std::string FirstWord(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--endpoint") ++i;  // Its value.
    if (word != "--endpoint" && word != "--json" && !word.starts_with("--endpoint=")) return word;
  }
  return "";
}

// Says why the word in the command's place is none.
std::string WordProblem(const std::string& word, const std::vector<std::string>& commands) {
  const std::string list = absl::StrJoin(commands, ", ");
  if (word.empty()) return absl::StrCat("a command is missing; commands are ", list);
  const bool known = std::find(commands.begin(), commands.end(), word) != commands.end();
  if (known && word == "run")
    return "run needs the program that it is to run: sluicectl run -- PROGRAM ...";
  if (word.starts_with("-")) {
    return absl::StrCat(word,
                        " is not known before the command: there only --endpoint and --json "
                        "are, other flags stand after it");
  }
  if (const std::string absent = AbsentCommand(word); !absent.empty()) return absent;
  const std::string nearest = broker::NearestName(word, commands);
  return absl::StrCat("there is no command \"", word, "\"",
                      nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)"),
                      "; commands are ", list);
}

// The parser counts the "--" before a program as one of them.
std::string ExtrasProblem(const CLI::App& command) {
  std::vector<std::string> extras = command.remaining();
  std::erase(extras, "--");
  return NotExpected(extras);
}

// Help and version end well, but not of a command that there is not; a mistake is named, as JSON if
// that was asked for. A first word that is no command is the mistake, whatever the parser thinks of
// the rest.
int ReportParseError(const CLI::App& app, const CLI::ParseError& error,
                     const std::vector<std::string>& arguments) {
  std::vector<std::string> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* one) {
         return !one->get_group().empty();  // doctor's helper has none.
       })) {
    commands.push_back(sub->get_name());
  }
  const std::string word = FirstWord(arguments);
  if (word == "help") {
    std::printf("%s", app.help().c_str());
    return kExitOk;
  }
  const bool command = std::find(commands.begin(), commands.end(), word) != commands.end();
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  const bool json = std::find(arguments.begin(), separator, "--json") != separator;
  const bool well = error.get_exit_code() == 0;
  if (well && (command || word.empty() || word.starts_with("-"))) {
    if (!json || error.get_name() != "CallForVersion") return app.exit(error);
    PrintJson(nlohmann::json({{"version", kVersion}}));
    return kExitOk;
  }
  const bool no_program = word == "run" && error.get_name() == "RequiredError";
  const bool of_flag = word.empty() && error.get_name() == "ArgumentMismatch";
  const bool extras = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  std::string message =
      (command && !no_program) || of_flag ? error.what() : WordProblem(word, commands);
  if (command && extras) message = ExtrasProblem(*app.get_subcommand(word));
  if (command && !no_program) message = absl::StrCat(word, ": ", message);
  if (word == "run" && extras && separator == arguments.end())
    message += "; the program and its own options stand after --: sluicectl run -- PROGRAM ...";
  if (json && word == "run") {  // Its stdout is the program's.
    const nlohmann::json answer = {{"exit_code", kExitUsage}, {"error", message}};
    std::fputs(JsonLine(answer).c_str(), stderr);
  } else if (json) {
    PrintJson(nlohmann::json({{"error", message}}));
  } else {
    std::fprintf(stderr, "sluicectl: %s\n`sluicectl %s--help` says what can be written.\n",
                 message.c_str(), command ? (word + " ").c_str() : "");
  }
  return kExitUsage;
}

// "--endpoint=$UNSET" must not mean the default.
void RefuseEmptyValues(CLI::App* app) {
  for (CLI::Option* option : app->get_options([](const CLI::Option* one) {
         return one->get_expected_min() > 0 && !one->get_positional();
       })) {
    option->check(
        [](const std::string& value) {
          return std::string(value.empty() ? "must not be empty" : "");
        },
        "");
  }
  for (CLI::App* sub : app->get_subcommands({})) RefuseEmptyValues(sub);
}

// For values that go to the daemon in a message.
void RefuseOtherThanText(CLI::App* app) {
  for (CLI::Option* option :
       app->get_options([](const CLI::Option* one) { return one->get_expected_min() > 0; })) {
    option->check(
        [](const std::string& value) { return std::string(IsText(value) ? "" : "must be UTF-8"); },
        "");
  }
  for (CLI::App* sub : app->get_subcommands({})) RefuseOtherThanText(sub);
}

int Main(int argc, char** argv) {
  CLI::App app("Shows Sluice's devices, and looks after its daemon.", "sluicectl");
  AllFlags flags;
  app.set_version_flag("--version", std::string("sluicectl ") + kVersion);
  app.require_subcommand(1);
  AddEverywhereFlags(&app, &flags.common);
  AddSubcommand(&app, "devices", "List the devices that the daemon offers", &flags.common);
  AdminSubcommand(&app, "status", "Show the daemon's state", &flags.common);
  AdminSubcommand(&app, "sessions", "List the running sessions", &flags.common);
  AdminSubcommand(&app, "accounts", "List what each account has and may have", &flags.common);
  AdminSubcommand(&app, "resources", "List the resources that programs share", &flags.common);
  CLI::App* kill = AdminSubcommand(&app, "kill", "End one session", &flags.common);
  kill->add_option("session", flags.session, "The session's id; `sluicectl sessions` lists them")
      ->required();
  kill->add_option("--reason", flags.reason,
                   "Why, for the daemon's log and for the session's program");
  DefineListenerCommands(&app, &flags.common);
  CLI::App* drain = AdminSubcommand(
      &app, "drain", "Take no new sessions, and stop the daemon when the last has ended",
      &flags.common);
  drain
      ->add_option("--within", flags.drain_seconds,
                   "End sessions that still run after this many seconds; 0 waits for ever")
      ->check(CLI::Range(0, 604'800))
      ->capture_default_str()
      ->type_name("SECONDS");
  DefineTokenCommands(&app, &flags.common);
  DefineSystemCommands(&app, &flags.common);
  app.footer(Footer());  // Not before: commands would have it too.
  for (CLI::App* sub : app.get_subcommands({}))
    sub->footer(absl::StrCat(sub->get_footer(), sub->get_footer().empty() ? "" : "\n", kReadOn));
  RefuseEmptyValues(&app);
  for (const char* name : {"kill", "listener"}) RefuseOtherThanText(app.get_subcommand(name));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportParseError(app, error, std::vector<std::string>(argv + 1, argv + argc));
  }
  return Dispatch(app, flags);
}

}  // namespace
}  // namespace sluice::ctl

int main(int argc, char** argv) {
  sluice::os::TakeCommandLine(&argc, &argv);
  sluice::os::EnsureStandardDescriptors();
  return sluice::EndOfOutput("sluicectl", sluice::ctl::Main(argc, argv), sluice::ctl::kExitFailed);
}
