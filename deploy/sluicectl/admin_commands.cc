// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/admin_commands.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "broker/base/log.h"
#include "broker/base/shown_text.h"
#include "deploy/sluicectl/admin_call.h"
#include "deploy/sluicectl/broker_client.h"
#include "deploy/sluicectl/endpoint.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/quotas.h"
#include "deploy/sluicectl/remote_client.h"
#include "deploy/sluicectl/system_commands.h"
#include "proto/admin.grpc.pb.h"

namespace sluice::ctl {
namespace {

using Json = nlohmann::json;

std::string Duration(uint64_t seconds) {
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, "m", seconds % 60, "s");
  return absl::StrCat(seconds / 3600, "h", seconds / 60 % 60, "m");
}

Json ToJson(const PlatformSummary& platform, const std::string& endpoint) {
  Json devices = Json::array();
  for (const DeviceSummary& device : platform.devices) {
    devices.push_back({{"name", device.name},
                       {"vendor", device.vendor},
                       {"type", device.type},
                       {"driver_version", device.driver_version},
                       {"device_version", device.device_version},
                       {"compute_units", device.compute_units},
                       {"global_memory_bytes", device.global_memory_bytes}});
  }
  return {{"endpoint", endpoint},
          {"name", platform.name},
          {"vendor", platform.vendor},
          {"version", platform.version},
          {"devices", devices}};
}

void PrintPlatform(const PlatformSummary& platform, const std::string& endpoint) {
  Print(absl::StrFormat("%s  (%s)  from %s\n", ShownText(platform.name),
                        ShownText(platform.version), endpoint));
  for (const DeviceSummary& device : platform.devices) {
    Print(absl::StrFormat("  %s  %s, %d compute units, %s, driver %s\n", ShownText(device.name),
                          device.type, device.compute_units, Bytes(device.global_memory_bytes),
                          ShownText(device.driver_version)));
  }
}

absl::StatusOr<std::string> SnapshotOf(const EndpointAddress& endpoint, int timeout_ms) {
  if (!endpoint.local()) return DescribeNetwork(endpoint.target, timeout_ms);
  absl::StatusOr<Greeting> greeting = Greet(endpoint.target, timeout_ms);
  if (!greeting.ok()) return greeting.status();
  if (!greeting->problem.empty()) return absl::FailedPreconditionError(greeting->problem);
  return std::move(greeting->snapshot);
}

// One endpoint's offer. The exit code says whether something is wrong with it, and `error` says it
// in words.
struct Offer {
  std::vector<PlatformSummary> platforms;
  int exit_code = kExitOk;
  std::string error;
};

Offer AskForDevices(const EndpointAddress& endpoint, int timeout_ms) {
  const absl::StatusOr<std::string> snapshot = SnapshotOf(endpoint, timeout_ms);
  if (absl::IsFailedPrecondition(snapshot.status())) {  // It answered, but has no devices.
    return {{}, kExitFailed, absl::StrCat(endpoint.text, ": ", snapshot.status().message())};
  }
  if (!snapshot.ok()) {
    // Whoever refuses is there: how the service does is not the question.
    const bool refused =
        absl::IsPermissionDenied(snapshot.status()) || absl::IsResourceExhausted(snapshot.status());
    return {{},
            kExitNoDaemon,
            Advised(absl::StrCat("cannot ask ", endpoint.text, ": ", snapshot.status().message()),
                    endpoint.local() && !refused)};
  }
  absl::StatusOr<std::vector<PlatformSummary>> platforms = DecodeSnapshot(*snapshot);
  if (platforms.ok()) return {*std::move(platforms), kExitOk, ""};
  return {{}, kExitFailed, absl::StrCat(endpoint.text, ": ", platforms.status().message())};
}

}  // namespace

int DevicesCommand(const CommonFlags& flags) {
  const absl::StatusOr<std::vector<EndpointAddress>> endpoints = ResolveEndpoints(flags.endpoint);
  if (!endpoints.ok()) return Fail(flags, kExitUsage, std::string(endpoints.status().message()));
  Json platforms = Json::array();
  Json errors = Json::array();
  std::vector<std::string> messages;
  int exit_code = kExitOk;
  for (const EndpointAddress& endpoint : *endpoints) {
    const Offer offer = AskForDevices(endpoint, flags.timeout_ms);
    for (const PlatformSummary& platform : offer.platforms) {
      platforms.push_back(ToJson(platform, endpoint.text));
      if (!flags.json) PrintPlatform(platform, endpoint.text);
    }
    if (offer.exit_code == kExitOk) continue;
    // Of several kinds of failure the one that tells most: nobody is there.
    exit_code = std::max(exit_code, offer.exit_code);
    errors.push_back({{"endpoint", endpoint.text}, {"error", offer.error}});
    messages.push_back(offer.error);
    if (!flags.json) Fail(flags, offer.exit_code, offer.error);
  }
  if (!flags.json) return exit_code;
  Json answer = {{"platforms", platforms}};
  if (exit_code != kExitOk) {
    answer["errors"] = errors;
    answer["error"] = absl::StrJoin(messages, "; ");
  }
  PrintJson(answer);
  return exit_code;
}

int StatusCommand(const CommonFlags& flags) {
  v1::StatusReply reply;
  const auto print = [&] {
    std::vector<std::string> endpoints(reply.endpoints().begin(), reply.endpoints().end());
    if (flags.json) {
      return PrintJson({{"version", reply.version()},
                        {"pid", reply.pid()},
                        {"uptime_seconds", reply.uptime_seconds()},
                        {"draining", reply.draining()},
                        {"endpoints", endpoints},
                        {"config_file", reply.config_file()},
                        {"session_count", reply.session_count()},
                        {"session_limit", reply.session_limit()},
                        {"snapshot_bytes", reply.snapshot_bytes()},
                        {"device_problem", reply.device_problem()},
                        {"worker_user", reply.worker_user()},
                        {"control_groups", reply.control_groups()},
                        {"control_groups_advice", reply.control_groups_advice()},
                        {"worker_sandbox", reply.worker_sandbox()}});
    }
    Print(absl::StrFormat("sluiced %s, pid %d, up %s%s\n", reply.version(), reply.pid(),
                          Duration(reply.uptime_seconds()), reply.draining() ? ", draining" : ""));
    for (const std::string& endpoint : endpoints) Print("endpoint:  " + endpoint + "\n");
    Print(absl::StrFormat("sessions:  %d of at most %d\n", reply.session_count(),
                          reply.session_limit()));
    Print("devices:   " +
          (reply.device_problem().empty() ? std::string("found; `sluicectl devices` lists them")
                                          : reply.device_problem()) +
          "\n");
    Print("config:    " +
          (reply.config_file().empty() ? std::string("built-in defaults") : reply.config_file()) +
          "\n");
    Print("workers:   " +
          (reply.worker_user().empty() ? std::string("run as the daemon's own user")
                                       : "run as user: " + reply.worker_user()) +
          "\n");
    if (!reply.control_groups().empty()) Print("groups:    " + reply.control_groups() + "\n");
    if (!reply.worker_sandbox().empty()) Print("sandbox:   " + reply.worker_sandbox() + "\n");
  };
  return AdminCall(flags, Wants::kToLook)
      .Run(
          [&](v1::Admin::Stub* stub, grpc::ClientContext* context) {
            return stub->Status(context, v1::StatusRequest(), &reply);
          },
          print);
}

std::optional<WorkersTold> AskAboutWorkers(const CommonFlags& flags) {
  v1::StatusReply reply;
  const absl::Status asked = AdminCall(flags, Wants::kToLook)
                                 .Ask([&](v1::Admin::Stub* stub, grpc::ClientContext* context) {
                                   return stub->Status(context, v1::StatusRequest(), &reply);
                                 });
  if (!asked.ok() || reply.control_groups().empty()) return std::nullopt;
  return WorkersTold{reply.control_groups(), reply.control_groups_advice(), reply.worker_sandbox()};
}

uint64_t ShadowsByHost(const v1::SessionEntry& entry) {
  const uint64_t others = entry.shadows_by_semaphores() + entry.shadows_by_keyed_mutex();
  return entry.shadowed_objects() > others ? entry.shadowed_objects() - others : 0;
}

// How the bytes of shared objects travel, and how the two sides of shadows wait for each other: "2
// import, 3 shadow (2 semaphores, 1 host)".
std::string Ways(const v1::SessionEntry& entry) {
  std::string text;
  const auto add = [&text](uint64_t count, const char* way) {
    if (count > 0) absl::StrAppend(&text, text.empty() ? "" : ", ", count, " ", way);
  };
  add(entry.imported_objects(), "import");
  add(entry.shadowed_objects(), "shadow");
  std::string order;
  const auto add_order = [&order](uint64_t count, const char* by) {
    if (count > 0) absl::StrAppend(&order, order.empty() ? "" : ", ", count, " ", by);
  };
  add_order(entry.shadows_by_semaphores(), "semaphores");
  add_order(entry.shadows_by_keyed_mutex(), "keyed mutex");
  add_order(ShadowsByHost(entry), "host");
  if (!order.empty()) absl::StrAppend(&text, " (", order, ")");
  add(entry.staged_objects(), "staging");
  return text.empty() ? "-" : text;
}

// Nothing outside a worker shows yet whether it waits for its turn.
bool TurnsAreCooperative(const v1::SessionEntry& entry) { return entry.turns() == "on"; }

// Of the workers of one device: "on (cooperative), 120 had", "off: alone".
std::string TurnsOf(const v1::SessionEntry& entry) {
  if (entry.turns().empty()) return "-";
  const char* const how = TurnsAreCooperative(entry) ? " (cooperative)" : "";
  if (entry.turns_had() == 0) return absl::StrCat(entry.turns(), how);
  return absl::StrCat(entry.turns(), how, ", ", entry.turns_had(), " had");
}

// Beside the others' at its device, and whether it holds: "100", "25 (on, had 1.2 s)".
std::string ShareOf(const v1::SessionEntry& entry) {
  std::string share = entry.share() == 0 ? "-" : absl::StrCat(entry.share());
  if (entry.shares() != "on" && entry.device_time_us() == 0) return share;
  return absl::StrFormat("%s (%s, had %.1f s)", share, entry.shares() == "on" ? "on" : "off",
                         static_cast<double>(entry.device_time_us()) / 1e6);
}

// The column that holds all of them: identities are as wide as a SID on Windows.
template <class Entries, class Text>
int Width(const Entries& entries, size_t least, Text text) {
  for (const auto& entry : entries) least = std::max(least, ShownText(text(entry)).size());
  return static_cast<int>(least);
}

Json SessionJson(const v1::SessionEntry& entry) {
  return {{"session", HexId(entry.session_id())},
          {"identity", entry.identity()},
          {"tenant", entry.tenant()},
          {"domain", entry.domain()},
          {"share", entry.share()},
          {"process", entry.process_name()},
          {"client_pid", entry.client_pid()},
          {"worker_pid", entry.worker_pid()},
          {"age_seconds", entry.age_seconds()},
          {"ending", entry.ending()},
          {"memory_bytes", entry.memory_bytes()},
          {"granted_bytes", entry.granted_bytes()},
          {"account_memory_limit", entry.account_memory_limit()},
          {"objects", entry.object_count()},
          {"commands", entry.commands_executed()},
          {"contexts", entry.context_count()},
          {"shared_by",
           {{"import", entry.imported_objects()},
            {"shadow", entry.shadowed_objects()},
            {"staging", entry.staged_objects()}}},
          {"shadows_ordered_by",
           {{"semaphores", entry.shadows_by_semaphores()},
            {"keyed mutex", entry.shadows_by_keyed_mutex()},
            {"host", ShadowsByHost(entry)}}},
          {"turns",
           {{"state", entry.turns()},
            {"cooperative", TurnsAreCooperative(entry)},
            {"had", entry.turns_had()},
            {"waited_us", entry.turns_waited_us()}}},
          {"shares", {{"state", entry.shares()}, {"device_us", entry.device_time_us()}}},
          {"pool",
           {{"id", entry.pool_id() == 0 ? "" : HexId(entry.pool_id())},
            {"no_pool_because", entry.no_pool()}}},
          {"device", entry.device_name()}};
}

// "12.0 MiB", and of how much its account may have, if that is known.
std::string MemoryOf(const v1::SessionEntry& entry) {
  const std::string used = Bytes(entry.memory_bytes());
  const uint64_t limit = entry.account_memory_limit();
  return limit == 0 ? used : absl::StrCat(used, " of ", Bytes(limit));
}

int SessionsCommand(const CommonFlags& flags) {
  v1::ListSessionsReply reply;
  const auto print = [&] {
    Json list = Json::array();
    const int identity = Width(reply.sessions(), 12, [](auto& entry) { return entry.identity(); });
    const int tenant = Width(reply.sessions(), 12, [](auto& entry) { return entry.tenant(); });
    const int name = Width(reply.sessions(), 18, [](auto& entry) { return entry.process_name(); });
    const int turns = Width(reply.sessions(), 10, &TurnsOf);
    const int share = Width(reply.sessions(), 5, &ShareOf);
    const int memory = Width(reply.sessions(), 10, &MemoryOf);
    if (!flags.json) {
      Print(
          absl::StrFormat("%-16s  %-*s %-*s %-*s %8s %8s  %-7s %10s %*s %8s  %-20s %-*s %-*s %s\n",
                          "SESSION", identity, "IDENTITY", tenant, "TENANT", name, "PROCESS",
                          "CLIENT", "WORKER", "AGE", "COMMANDS", memory, "MEMORY", "OBJECTS",
                          "SHARED BY", turns, "TURNS", share, "SHARE", "DEVICE"));
    }
    for (const v1::SessionEntry& entry : reply.sessions()) {
      list.push_back(SessionJson(entry));
      if (flags.json) continue;
      Print(absl::StrFormat(
          "%-16s  %-*s %-*s %-*s %8d %8d  %-7s %10d %*s %8d  %-20s %-*s %-*s %s%s\n",
          HexId(entry.session_id()), identity, ShownText(entry.identity()), tenant,
          ShownText(entry.tenant()), name, ShownText(entry.process_name()), entry.client_pid(),
          entry.worker_pid(), Duration(entry.age_seconds()), entry.commands_executed(), memory,
          MemoryOf(entry), entry.object_count(), Ways(entry), turns, ShownText(TurnsOf(entry)),
          share, ShareOf(entry), ShownText(entry.device_name()),
          absl::StrCat(entry.pool_id() == 0 ? "" : " (in a pool)",
                       entry.ending() ? " (ending)" : "")));
    }
    if (flags.json) PrintJson({{"sessions", list}});
  };
  return AdminCall(flags, Wants::kToLook)
      .Run(
          [&](v1::Admin::Stub* stub, grpc::ClientContext* context) {
            return stub->ListSessions(context, v1::ListSessionsRequest(), &reply);
          },
          print);
}

int AccountsCommand(const CommonFlags& flags) {
  v1::ListAccountsReply reply;
  const auto print = [&] {
    Json list = Json::array();
    const int account = Width(reply.accounts(), 12, [](auto& entry) { return entry.account(); });
    if (!flags.json)
      Print(
          absl::StrFormat("%-*s %-22s %12s %20s\n", account, "ACCOUNT", "QUOTA", "USED", "LIMIT"));
    for (const v1::AccountEntry& entry : reply.accounts()) {
      std::vector<ShownQuota> quotas;
      for (const v1::QuotaEntry& one : entry.quotas()) {
        quotas.push_back({ShownText(one.name()), std::nullopt, one.limit()});
        if (one.counted()) quotas.back().used = one.used();
      }
      list.push_back(
          {{"account", entry.account()}, {"share", entry.share()}, {"quotas", QuotasJson(quotas)}});
      if (flags.json) continue;
      for (const ShownQuota& quota : quotas) {
        Print(absl::StrFormat("%-*s %-22s %12s %20s%s\n", account, ShownText(entry.account()),
                              quota.name, UsedText(quota), LimitText(quota),
                              IsFull(quota) ? "  full" : ""));
      }
    }
    if (flags.json) PrintJson({{"accounts", list}});
  };
  return AdminCall(flags, Wants::kToLook)
      .Run(
          [&](v1::Admin::Stub* stub, grpc::ClientContext* context) {
            return stub->ListAccounts(context, v1::ListAccountsRequest(), &reply);
          },
          print);
}

// "1 writer", "3 readers, 2 waiting".
std::string Turns(const v1::ResourceEntry& entry) {
  std::string text = entry.writer() ? "1 writer" : absl::StrCat(entry.readers(), " readers");
  if (entry.waiting() > 0) absl::StrAppend(&text, ", ", entry.waiting(), " waiting");
  return text;
}

int ResourcesCommand(const CommonFlags& flags) {
  v1::ListResourcesReply reply;
  const auto print = [&] {
    Json list = Json::array();
    const int identity = Width(reply.resources(), 12, [](auto& entry) { return entry.identity(); });
    if (!flags.json) {
      Print(absl::StrFormat("%-16s  %-*s %-7s %10s  %-9s %-24s %6s %8s %10s  %s\n", "RESOURCE",
                            identity, "IDENTITY", "KIND", "SIZE", "BACKING", "TURNS", "USERS",
                            "WATCHES", "GENERATION", "LABEL"));
    }
    for (const v1::ResourceEntry& entry : reply.resources()) {
      list.push_back({{"resource", HexId(entry.resource_id())},
                      {"identity", entry.identity()},
                      {"label", entry.label()},
                      {"kind", entry.image() ? "image" : "buffer"},
                      {"size_bytes", entry.size_bytes()},
                      {"backing", entry.backing()},
                      {"users", entry.users()},
                      {"readers", entry.readers()},
                      {"writer", entry.writer()},
                      {"waiting", entry.waiting()},
                      {"watches", entry.watches()},
                      {"generation", entry.generation()},
                      {"indeterminate", entry.indeterminate()},
                      {"destroyed", entry.destroyed()},
                      {"left_open", entry.left_open()}});
      if (flags.json) continue;
      Print(absl::StrFormat("%-16s  %-*s %-7s %10s  %-9s %-24s %6d %8d %10d  %s%s%s\n",
                            HexId(entry.resource_id()), identity, ShownText(entry.identity()),
                            entry.image() ? "image" : "buffer", Bytes(entry.size_bytes()),
                            entry.backing(), Turns(entry), entry.users(), entry.watches(),
                            entry.generation(), ShownText(entry.label()),
                            entry.indeterminate() ? " (indeterminate)" : "",
                            entry.left_open()   ? " (destroyed, still open somewhere)"
                            : entry.destroyed() ? " (destroyed, still held)"
                                                : ""));
    }
    if (flags.json) PrintJson({{"resources", list}});
  };
  return AdminCall(flags, Wants::kToLook)
      .Run(
          [&](v1::Admin::Stub* stub, grpc::ClientContext* context) {
            return stub->ListResources(context, v1::ListResourcesRequest(), &reply);
          },
          print);
}

int KillCommand(const CommonFlags& flags, const std::string& session, const std::string& reason) {
  const std::optional<uint64_t> id = ParseHexId(session);
  if (!id.has_value()) {
    return Fail(flags, kExitUsage,
                absl::StrCat("\"", session,
                             "\" is no session id: those are up to 16 hexadecimal "
                             "digits, as `sluicectl sessions` lists them"));
  }
  v1::KillSessionRequest request;
  request.set_session_id(*id);
  request.set_reason(reason);
  v1::KillSessionReply reply;
  return AdminCall(flags, Wants::kToChange)
      .Run(
          [&](v1::Admin::Stub* stub, grpc::ClientContext* context) {
            return stub->KillSession(context, request, &reply);
          },
          [&] {
            if (flags.json) return PrintJson({{"killed", HexId(*id)}});
            Print("session " + HexId(*id) + " is being ended\n");
          });
}

int DrainCommand(const CommonFlags& flags, int64_t timeout_seconds) {
  v1::DrainRequest request;
  request.set_timeout_ms(static_cast<uint64_t>(timeout_seconds) * 1000);
  v1::DrainReply reply;
  return AdminCall(flags, Wants::kToChange)
      .Run([&](v1::Admin::Stub* stub,
               grpc::ClientContext* context) { return stub->Drain(context, request, &reply); },
           [&] {
             if (flags.json) return PrintJson({{"sessions_left", reply.sessions_left()}});
             Print(absl::StrCat("no new sessions; sluiced stops when ", reply.sessions_left(),
                                " running ones have ended\n"));
           });
}

}  // namespace sluice::ctl
