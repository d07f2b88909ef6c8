// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/listener_commands.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "broker/base/daemon_places.h"
#include "broker/base/shown_text.h"
#include "broker/config/config.h"
#include "broker/config/config_keys.h"
#include "broker/config/listener_config.h"
#include "broker/os/local_endpoint.h"
#include "deploy/sluicectl/admin_call.h"
#include "deploy/sluicectl/exit_codes.h"

namespace sluice::ctl {
namespace {

using Json = nlohmann::json;

struct ListenerFlags {
  std::string command;
  std::string tenant;
  std::string path;
  std::string mode;
  std::string group;
  std::vector<std::string> users;
  uint32_t share = broker::kDefaultShare;
  uint32_t interactive_percent = 0;
  uint64_t max_sessions = 0;
  uint64_t max_connections = 0;
  std::string memory;
  uint64_t max_resources = 0;
  std::string device_memory;
  std::string resource_memory;
  bool end_sessions = false;
};

ListenerFlags& TheListenerFlags() {
  static auto* flags = new ListenerFlags;
  return *flags;
}

CLI::App* DefineOne(CLI::App* listener, const std::string& name, const std::string& help,
                    CommonFlags* common) {
  CLI::App* sub = listener->add_subcommand(name, help);
  sub->add_option("--endpoint", common->endpoint, "The daemon, as SLUICE_ENDPOINT has it")
      ->type_name("ENDPOINT");
  sub->add_option("--admin-socket", common->admin_socket,
                  absl::StrCat("The daemon's admin socket; default for this endpoint: ",
                               AdminNameOf(os::DefaultClientName())))
      ->type_name("PATH");
  sub->add_option("--timeout-ms", common->timeout_ms, "How long to wait for the daemon")
      ->check(CLI::Range(1, 3'600'000))
      ->capture_default_str()
      ->type_name("MS");
  sub->add_flag("--json", common->json, "Print JSON, for scripts");
  sub->parse_complete_callback([name] { TheListenerFlags().command = name; });
  return sub;
}

// Keeps the flag out of --help where the daemon takes the default of `key` alone: it says why.
void HideIfFixed(CLI::Option* option, const std::string& key) {
  if (!broker::FixedKeyReason(key).empty()) option->group("");
}

void DefineAdd(CLI::App* listener, CommonFlags* common) {
  ListenerFlags* flags = &TheListenerFlags();
  const bool groups = broker::FixedKeyReason("socket_group").empty();
  CLI::App* add =
      DefineOne(listener, "add", "Make a listener, until it is removed or the daemon ends", common);
  add->add_option("tenant", flags->tenant, "The tenant's name: a to z, 0 to 9 and \"-\"")
      ->required();
  add->add_option("--path", flags->path,
                  absl::StrCat("The socket, in a folder of its own; default for this endpoint: ",
                               TenantNameOf(os::DefaultClientName(), "TENANT")))
      ->type_name("PATH");
  add->add_option("--mode", flags->mode,
                  absl::StrCat("The socket's mode; default: ", groups ? "0660 with --group, " : "",
                               "0666 with --user, else 0600"))
      ->type_name("MODE");
  HideIfFixed(add->add_option("--group", flags->group, "The group that may open the socket")
                  ->type_name("NAME"),
              "socket_group");
  add->add_option("--user", flags->users,
                  "A user who may use it, by name or number; may be given several times. "
                  "Default: whoever can open the socket")
      ->type_name("NAME");
  HideIfFixed(add->add_option("--share", flags->share,
                              "The tenant's share of a device's time; others have 100")
                  ->check(CLI::Range(1U, broker::kMostShare))
                  ->capture_default_str()
                  ->type_name("WEIGHT"),
              "turns");
  HideIfFixed(
      add->add_option("--interactive-percent", flags->interactive_percent,
                      "Part of a device's time in which the tenant's work goes before others'")
          ->check(CLI::Range(0U, broker::kMostInteractivePercent))
          ->capture_default_str()
          ->type_name("PERCENT"),
      "turns");
  add->add_option("--max-sessions", flags->max_sessions,
                  "Sessions at once; default: the daemon's max_sessions_per_user")
      ->type_name("COUNT");
  add->add_option("--max-connections", flags->max_connections,
                  "Connections at once; default: the daemon's max_connections_per_user")
      ->type_name("COUNT");
  add->add_option("--memory", flags->memory,
                  "Memory of each session, such as 4GiB; default: as the daemon's other sessions")
      ->type_name("BYTES");
  add->add_option("--device-memory", flags->device_memory,
                  "Device memory of all sessions together, such as 16GiB; default: the daemon's "
                  "device_memory_per_account")
      ->type_name("BYTES");
  add->add_option("--max-resources", flags->max_resources,
                  "Shared resources at once; default: the daemon's max_resources_per_user")
      ->type_name("COUNT");
  add->add_option("--resource-memory", flags->resource_memory,
                  "Memory of all shared resources together, such as 4GiB; default: the daemon's "
                  "max_bytes_per_user")
      ->type_name("BYTES");
}

// Says why the flag is wrong; nothing if `bytes` has its value, or it was not given.
std::optional<std::string> ReadBytes(const char* flag, const std::string& text, uint64_t* bytes) {
  if (text.empty()) return std::nullopt;
  const std::optional<uint64_t> read = broker::ParseByteSize(text);
  if (!read.has_value())
    return absl::StrCat(flag, ": \"", text, "\" is no number of bytes, such as 4GiB");
  *bytes = *read;
  return std::nullopt;
}

std::optional<std::string> Fill(const ListenerFlags& flags, v1::Listener* listener) {
  listener->set_tenant(flags.tenant);
  listener->set_path(flags.path);
  listener->set_group(flags.group);
  for (const std::string& user : flags.users) listener->add_users(user);
  listener->set_share(flags.share);
  listener->set_interactive_percent(flags.interactive_percent);
  listener->set_max_sessions(flags.max_sessions);
  listener->set_max_connections(flags.max_connections);
  if (!flags.mode.empty()) {
    mode_t mode = 0;
    if (!broker::ParseMode(flags.mode, &mode))
      return absl::StrCat("--mode: \"", flags.mode, "\" is no octal file mode, such as 0660");
    listener->set_mode(mode);
  }
  listener->set_max_resources(flags.max_resources);
  uint64_t memory = 0;
  uint64_t device_memory = 0;
  uint64_t resource_memory = 0;
  std::optional<std::string> problem = ReadBytes("--memory", flags.memory, &memory);
  if (!problem.has_value())
    problem = ReadBytes("--device-memory", flags.device_memory, &device_memory);
  if (!problem.has_value())
    problem = ReadBytes("--resource-memory", flags.resource_memory, &resource_memory);
  listener->set_memory_bytes_per_session(memory);
  listener->set_device_memory(device_memory);
  listener->set_max_resource_bytes(resource_memory);
  return problem;
}

int AddListener(const ListenerFlags& flags, const CommonFlags& common) {
  v1::AddListenerRequest request;
  if (const auto problem = Fill(flags, request.mutable_listener()))
    return Fail(common, kExitUsage, *problem);
  v1::AddListenerReply reply;
  return AdminCall(common, Wants::kToChange)
      .Run(
          [&](v1::Admin::Stub* stub, grpc::ClientContext* context) {
            return stub->AddListener(context, request, &reply);
          },
          [&] {
            if (common.json) return PrintJson({{"tenant", flags.tenant}, {"socket", reply.path()}});
            Print(absl::StrCat(ShownText(reply.path()), "\n"));
          });
}

// 0: what everybody has.
std::string LimitText(uint64_t limit) { return limit == 0 ? "-" : absl::StrCat(limit); }

void PrintListeners(const v1::ListListenersReply& reply) {
  size_t width = 12;
  for (const auto& entry : reply.listeners())
    width = std::max(width, entry.listener().tenant().size());
  const int tenant = static_cast<int>(width);
  Print(absl::StrFormat("%-*s %6s %-5s %-12s %11s %9s %10s  %s\n", tenant, "TENANT", "SHARE",
                        "MODE", "GROUP", "CONNECTIONS", "SESSIONS", "MEMORY", "SOCKET"));
  for (const v1::ListenerEntry& entry : reply.listeners()) {
    const v1::Listener& listener = entry.listener();
    const uint64_t memory = listener.memory_bytes_per_session();
    Print(absl::StrFormat(
        "%-*s %6d %04o  %-12s %11s %9s %10s  %s\n", tenant, listener.tenant(), listener.share(),
        listener.mode(), listener.group().empty() ? "-" : ShownText(listener.group()),
        absl::StrCat(entry.connections(), "/", LimitText(listener.max_connections())),
        absl::StrCat(entry.sessions(), "/", LimitText(listener.max_sessions())),
        memory == 0 ? "-" : Bytes(memory), ShownText(listener.path())));
  }
}

Json ToJson(const v1::ListenerEntry& entry) {
  const v1::Listener& listener = entry.listener();
  return {{"tenant", listener.tenant()},
          {"socket", listener.path()},
          {"mode", absl::StrFormat("%04o", listener.mode())},
          {"group", listener.group()},
          {"users", std::vector<std::string>(listener.users().begin(), listener.users().end())},
          {"share", listener.share()},
          {"interactive_percent", listener.interactive_percent()},
          {"max_sessions", listener.max_sessions()},
          {"max_connections", listener.max_connections()},
          {"memory_bytes_per_session", listener.memory_bytes_per_session()},
          {"device_memory", listener.device_memory()},
          {"max_resources", listener.max_resources()},
          {"max_resource_bytes", listener.max_resource_bytes()},
          {"from_file", entry.from_file()},
          {"connections", entry.connections()},
          {"sessions", entry.sessions()}};
}

int ListListeners(const CommonFlags& common) {
  v1::ListListenersReply reply;
  return AdminCall(common, Wants::kToLook)
      .Run(
          [&](v1::Admin::Stub* stub, grpc::ClientContext* context) {
            return stub->ListListeners(context, v1::ListListenersRequest(), &reply);
          },
          [&] {
            if (!common.json) return PrintListeners(reply);
            Json list = Json::array();
            for (const v1::ListenerEntry& entry : reply.listeners()) list.push_back(ToJson(entry));
            PrintJson({{"listeners", list}});
          });
}

int RemoveListener(const ListenerFlags& flags, const CommonFlags& common) {
  v1::RemoveListenerRequest request;
  request.set_tenant(flags.tenant);
  request.set_end_sessions(flags.end_sessions);
  v1::RemoveListenerReply reply;
  return AdminCall(common, Wants::kToChange)
      .Run(
          [&](v1::Admin::Stub* stub, grpc::ClientContext* context) {
            return stub->RemoveListener(context, request, &reply);
          },
          [&] {
            if (common.json) return PrintJson({{"removed", flags.tenant}});
            Print(absl::StrCat("the listener of tenant ", flags.tenant, " is gone",
                               flags.end_sessions ? "; its sessions are being ended\n"
                                                  : "; sessions that run go on\n"));
          });
}

}  // namespace

void DefineListenerCommands(CLI::App* app, CommonFlags* common) {
  CLI::App* listener = app->add_subcommand(
      "listener", "Make, list and remove sockets of tenants, beside the daemon's default one");
  listener->require_subcommand(1);
  DefineAdd(listener, common);
  DefineOne(listener, "list", "List them, with what their tenants may have and have", common);
  CLI::App* remove = DefineOne(listener, "remove",
                               "Remove one: sessions that run go on, and open no new ones", common);
  ListenerFlags* flags = &TheListenerFlags();
  remove->add_option("tenant", flags->tenant, "The tenant; `sluicectl listener list` names them")
      ->required();
  remove->add_flag("--end-sessions", flags->end_sessions, "End its sessions, too");
}

int RunListenerCommand(const CommonFlags& common) {
  const ListenerFlags& flags = TheListenerFlags();
  if (flags.command == "add") return AddListener(flags, common);
  if (flags.command == "remove") return RemoveListener(flags, common);
  return ListListeners(common);
}

}  // namespace sluice::ctl
