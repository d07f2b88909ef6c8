// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/system_commands.h"

#include "absl/strings/str_cat.h"
#include "broker/base/daemon_places.h"
#include "broker/os/daemon_process.h"
#include "deploy/sluicectl/containers/commands.h"
#include "deploy/sluicectl/containers/container_doctor.h"
#include "deploy/sluicectl/doctor.h"
#include "deploy/sluicectl/run_command.h"

namespace sluice::ctl {
namespace {

RunFlags& TheRunFlags() {
  static RunFlags* flags = new RunFlags;
  return *flags;
}

// A process in it; 0: none was named.
pid_t& TheContainer() {
  static pid_t pid = 0;
  return pid;
}

std::string& TheLibrary() {
  static auto* path = new std::string;
  return *path;
}

}  // namespace

void DefineSystemCommands(CLI::App* app, CommonFlags* common) {
  RunFlags* flags = &TheRunFlags();
  CLI::App* run = app->add_subcommand(
      "run",
      "Run a program whose only OpenCL driver is Sluice: sluicectl run [flags] -- PROGRAM ...");
  run->add_flag("--private", flags->private_daemon,
                "Start a daemon for this program alone, and stop it afterwards");
  AddEverywhereFlags(run, common);
  run->add_option("--config", flags->config_file, "Configuration file for --private")
      ->type_name("FILE");
  run->add_flag("--verbose", flags->verbose, "Show the log of the --private daemon on stderr");
  run->add_option("--icd", flags->icd_library,
                  "The driver to load; default: the one that belongs to this sluicectl")
      ->type_name("FILE");
  run->add_option("command", flags->command, "The program and its arguments, after --")
      ->required()
      ->type_name("PROGRAM ...");
  run->footer(
      "The program gets the signals that sluicectl gets, and sluicectl ends with its exit code.\n"
      "With --json the last line on stderr is a JSON document: exit_code, endpoint, warnings,\n"
      "signal if one killed the program, and error if sluicectl itself failed. Stdout is the\n"
      "program's.\n");
  CLI::App* doctor =
      AddSubcommand(app, "doctor", "Find out why an application sees no device", common);
  doctor
      ->add_option("--container", TheContainer(),
                   "Look from outside into the container that this process runs in")
      ->check(CLI::Range(1, 1 << 22))
      ->type_name("PID");
  doctor->footer(
      "An application loads the drivers of others too: these have four times --timeout-ms.\n");
  DefineContainerCommands(app, common);
  app->add_subcommand("list-platforms", "")->group("");  // doctor's helper processes.
  app->add_subcommand("load-library", "")->group("")->add_option("path", TheLibrary());
}

std::optional<int> RunSystemCommand(const std::string& name, const CommonFlags& flags) {
  const bool child_signals_ignored = os::ReceiveChildSignals();
  if (name == "run") {
    RunFlags run = TheRunFlags();
    run.child_signals_ignored = child_signals_ignored;
    run.endpoint = flags.endpoint;
    run.json = flags.json;
    return RunCommand(run);
  }
  if (name == "doctor" && TheContainer() != 0) return ContainerDoctorCommand(flags, TheContainer());
  if (name == "doctor") return DoctorCommand(flags);
  if (name == "list-platforms") return ListPlatformsCommand();
  if (name == "load-library") return LoadLibraryCommand(TheLibrary());
  return RunContainerCommand(name, flags);
}

std::string AbsentCommand(const std::string& name) {
  if (name != "install" && name != "uninstall") return "";
  return name +
         " exists on Windows only: here packages or `cmake --install` do it, and `systemctl "
         "enable --now sluiced.socket` starts the service";
}

const char* SystemExamples() {
  return "Where the daemon is: --endpoint, else SLUICE_ENDPOINT, else\n"
         "$XDG_RUNTIME_DIR/sluice/clients/broker.sock if it exists, else\n"
         "/run/sluice/clients/broker.sock; each also without clients/, where it was until 0.1.\n"
         "\n"
         "Examples:\n"
         "  sluicectl run --private -- clinfo        try Sluice with no installation and no "
         "daemon\n"
         "  sluicectl run -- ./my_program            only Sluice's devices, through the running "
         "daemon\n"
         "  sluicectl doctor                         why does my program see no device?\n"
         "  sudo sluicectl sessions                  who uses the devices?\n"
         "  sudo sluicectl kill 0f3a5b7c9d1e2f40     end one of them\n";
}

const char* SystemExitCodes() {
  return "`doctor` ends with 1 if something is wrong. `run` ends with its program's own code, "
         "with\n"
         "128 + N if signal N killed it, with 125 if sluicectl itself failed, with 126 if the\n"
         "program cannot be executed, and with 127 if it is not there.";
}

std::string AdviceWithoutDaemon(bool) { return "`sluicectl doctor` looks closer"; }

std::string MonitorsName() { return absl::StrCat("the group ", kMonitorGroup); }

}  // namespace sluice::ctl
