// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/system_commands.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "broker/os/installation.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/output.h"
#include "deploy/sluicectl/windows/doctor.h"

namespace sluice::ctl {
namespace {

os::InstallFlags& TheInstallFlags() {
  static os::InstallFlags* flags = new os::InstallFlags;
  return *flags;
}

int Told(const absl::Status& status, const std::vector<std::string>& steps, bool json) {
  const std::string message(status.message());
  if (json) {
    nlohmann::json answer = {{"steps", steps}};
    if (status.ok()) {
      answer["done"] = true;
    } else {
      answer["error"] = message;
    }
    PrintJson(answer);
    return status.ok() ? kExitOk : kExitFailed;
  }
  for (const std::string& step : steps) std::printf("%s\n", step.c_str());
  if (!status.ok()) {
    std::fprintf(stderr, "sluicectl: %s\n", message.c_str());
  } else if (steps.empty()) {
    std::printf("nothing was installed\n");
  }
  return status.ok() ? kExitOk : kExitFailed;
}

}  // namespace

void DefineSystemCommands(CLI::App* app, CommonFlags* common) {
  AddSubcommand(app, "doctor", "Find out why an application sees no device", common);
  os::InstallFlags* flags = &TheInstallFlags();
  CLI::App* install = app->add_subcommand(
      "install", "Make sluiced a service and register the driver with OpenCL's loader");
  CLI::Option* config =
      install->add_option("--config", flags->config_file, "Configuration file of the service")
          ->type_name("FILE");
  CLI::Option* manual =
      install->add_flag("--manual", flags->manual, "Do not start the service with Windows");
  CLI::Option* keep = install->add_flag(
      "--keep", flags->keep,
      "A service that is there keeps its configuration file and how it is started, but for what "
      "other flags say");
  CLI::App* uninstall =
      app->add_subcommand("uninstall", "Stop and remove the service and the driver's registration");
  for (CLI::App* command : {install, uninstall}) {
    command->add_flag("--json", common->json, "Print JSON, for scripts");
    CLI::Option* service = command->add_flag("--no-service", flags->no_service, "Only the driver");
    command->add_flag("--no-driver", flags->no_driver, "Only the service")->excludes(service);
    if (command == install) service->excludes(config)->excludes(manual)->excludes(keep);
  }
}

std::optional<int> RunSystemCommand(const std::string& name, const CommonFlags& flags) {
  if (name == "doctor") return DoctorCommand(flags);
  if (name != "install" && name != "uninstall") return std::nullopt;
  std::vector<std::string> steps;
  if (!flags.endpoint.empty()) {
    const std::string message = absl::StrCat(
        name,
        " is for this machine's own service, and goes without --endpoint (for programs, set "
        "SLUICE_ENDPOINT)");
    Told(absl::InvalidArgumentError(message), steps, flags.json);
    return kExitUsage;
  }
  const absl::Status status = name == "install" ? os::Install(TheInstallFlags(), &steps)
                                                : os::Uninstall(TheInstallFlags(), &steps);
  return Told(status, steps, flags.json);
}

std::string AbsentCommand(const std::string& name) {
  if (name == "run")
    return "run does not exist on Windows, whose OpenCL loaders have no variable that keeps other "
           "drivers away: start the program itself, and choose its platform \"Sluice (...)\"";
  if (name == "export-client" || name == "cdi")
    return name +
           " does not exist on Windows: it is for Linux containers; on a Linux machine "
           "sluicectl has it";
  return "";
}

const char* SystemExamples() {
  return "Where the daemon is: --endpoint, else SLUICE_ENDPOINT, else pipe:sluice-broker.\n"
         "\n"
         "Examples, as an administrator:\n"
         "  sluicectl install                        make Sluice a service, and an OpenCL driver\n"
         "  sluicectl status                         what is the service doing?\n"
         "  sluicectl sessions                       who uses the devices?\n"
         "  sluicectl doctor                         why does a program see no device?\n"
         "  sluicectl kill 0f3a5b7c9d1e2f40          end one of them\n"
         "  sluicectl uninstall                      take all of it away again\n";
}

const char* SystemExitCodes() { return ""; }

std::string AdviceWithoutDaemon(bool here) { return here ? os::DescribeService() : ""; }

std::string MonitorsName() { return "the group Performance Monitor Users"; }

}  // namespace sluice::ctl
