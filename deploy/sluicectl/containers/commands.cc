// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/containers/commands.h"

#include "deploy/sluicectl/containers/cdi.h"
#include "deploy/sluicectl/containers/client_folder.h"
#include "deploy/sluicectl/containers/export_client.h"

namespace sluice::ctl {
namespace {

struct AllFlags {
  ExportFlags exported;
  CdiFlags cdi;
  std::string cdi_command;
};

AllFlags& TheFlags() {
  static auto* flags = new AllFlags;
  return *flags;
}

// Says what is wrong with an option's value, where the option is read.
CLI::Validator CheckedBy(absl::Status (*check)(const std::string&)) {
  return CLI::Validator([check](std::string& value) { return std::string(check(value).message()); },
                        "");
}

constexpr char kExportFooter[] =
    "DIR then holds the driver, libsluice.so.0, the network transport, their helpers and an .icd "
    "file. Mounted at\n/usr/lib/sluice-client, with the .icd file at "
    "/etc/OpenCL/vendors/sluice.icd and the daemon's /run/sluice/clients,\nit is all that a "
    "container needs: no device node, no driver, no environment.\n"
    "\n"
    "  sluicectl export-client /srv/sluice-client\n"
    "  sluicectl export-client --flatpak "
    "~/.local/share/flatpak/extension/org.freedesktop.Platform.GL.host/x86_64/1.4\n";

void DefineExport(CLI::App* app, CommonFlags* common) {
  ExportFlags* flags = &TheFlags().exported;
  CLI::App* sub =
      app->add_subcommand("export-client", "Write all that a container needs into one folder");
  sub->add_option("folder", flags->folder, "A new or empty folder, or an earlier export")
      ->required()
      ->type_name("DIR");
  sub->add_option("--from", flags->from,
                  "The client to export; default: PREFIX/lib/sluice-client, else this sluicectl's "
                  "own libraries")
      ->type_name("DIR");
  CLI::Option* place =
      sub->add_option("--place", flags->place,
                      std::string("Where the folder will lie for the program; default: ") +
                          kContainerClientFolder)
          ->type_name("DIR")
          ->check(CheckedBy(&CheckPlace));
  sub->add_flag("--flatpak", flags->flatpak, "Write the layout of a Flatpak GL extension")
      ->excludes(place);
  sub->add_flag("--json", common->json, "Print JSON, for scripts");
  sub->footer(kExportFooter);
}

CLI::App* AddCdi(CLI::App* cdi, const std::string& name, const std::string& help,
                 CommonFlags* common) {
  CLI::App* sub = cdi->add_subcommand(name, help);
  sub->add_flag("--json", common->json, "Print JSON, for scripts");
  sub->parse_complete_callback([name] { TheFlags().cdi_command = name; });
  return sub;
}

void DefineCdi(CLI::App* app, CommonFlags* common) {
  CdiFlags* flags = &TheFlags().cdi;
  CLI::App* cdi = app->add_subcommand(
      "cdi",
      "Write and check the file by which podman and others give devices to containers (CDI)");
  cdi->require_subcommand(1);
  CLI::App* generate =
      AddCdi(cdi, "generate", "Write the file that container runtimes read", common);
  generate
      ->add_option("--output", flags->output,
                   "Where to write it; default: stdout. Runtimes read /etc/cdi and /var/run/cdi")
      ->type_name("FILE");
  generate
      ->add_option("--client", flags->client_folder,
                   "The folder that export-client has made; default: PREFIX/lib/sluice-client")
      ->type_name("DIR");
  generate
      ->add_option(
          "--socket-folder", flags->socket_folder,
          std::string("The folder of the clients' socket; default: ") + kClientSocketFolder)
      ->type_name("DIR");
  generate
      ->add_option("--kind", flags->kind, std::string("The device's kind; default: ") + kCdiKind)
      ->type_name("DOMAIN/CLASS")
      ->check(CheckedBy(&CheckCdiKind));
  CLI::App* list =
      AddCdi(cdi, "list", "List Sluice's devices in the files that runtimes read", common);
  CLI::App* validate =
      AddCdi(cdi, "validate",
             "Say what is wrong in a file, or in all of Sluice's that runtimes read", common);
  validate->add_option("files", flags->files, "CDI files")->type_name("FILE");
  for (CLI::App* sub : {list, validate}) {
    sub->add_option("--folder", flags->folders,
                    "Look here instead of in /etc/cdi and /var/run/cdi; may be given several times")
        ->type_name("DIR");
  }
}

}  // namespace

void DefineContainerCommands(CLI::App* app, CommonFlags* common) {
  DefineExport(app, common);
  DefineCdi(app, common);
}

std::optional<int> RunContainerCommand(const std::string& name, const CommonFlags& common) {
  AllFlags& flags = TheFlags();
  flags.exported.json = common.json;
  flags.cdi.json = common.json;
  if (name == "export-client") return ExportClientCommand(flags.exported);
  if (name != "cdi") return std::nullopt;
  if (flags.cdi_command == "generate") return CdiGenerateCommand(flags.cdi);
  if (flags.cdi_command == "list") return CdiListCommand(flags.cdi);
  return CdiValidateCommand(flags.cdi);
}

}  // namespace sluice::ctl
