// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/worker_options.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/shared_memory.h"
#include "proto/status_macros.h"
#include "proto/turn_page.h"

namespace sluice::worker {
namespace {

// The pages on which the broker gives turns.
constexpr int kTurnOrders = 5;
constexpr int kTurnWords = 6;

// 0 is no limit (sluiced.toml(5)), for which `none` stands in Limits.
bool ParseLimit(const std::string& text, uint64_t none, uint64_t* out) {
  if (!absl::SimpleAtoi(text, out)) return false;
  if (*out == 0) *out = none;
  return true;
}

bool ParseFlag(const std::string& text, bool* out) {
  *out = text == "1";
  return text == "0" || text == "1";
}

bool TakeLimit(const std::string& name, const std::string& value, Limits* limits) {
  if (name == "--limit-memory") return ParseLimit(value, kNoLimit, &limits->memory_bytes);
  if (name == "--limit-account-memory") return ParseLimit(value, 0, &limits->account_memory_bytes);
  if (name == "--limit-objects") return ParseLimit(value, kNoLimit, &limits->objects);
  if (name == "--limit-program-bytes") return ParseLimit(value, kNoLimit, &limits->program_bytes);
  if (name == "--limit-in-flight") return ParseLimit(value, 0, &limits->in_flight);
  if (name == "--limit-build-ms") return ParseLimit(value, 0, &limits->build_ms);
  if (name == "--limit-kernel-ms") return ParseLimit(value, 0, &limits->kernel_ms);
  return true;  // One that this worker does not know yet is the broker's to keep.
}

bool Take(const std::string& name, const std::string& value, WorkerOptions* options) {
  SessionOptions& session = options->session;
  if (name == "--limit-cache-bytes") return ParseLimit(value, 0, &session.cache_bytes);
  if (absl::StartsWith(name, "--limit-")) return TakeLimit(name, value, &session.limits);
  if (name == "--probe") {
    options->probe = true;
  } else if (name == "--try-sandbox") {
    options->try_sandbox = true;
  } else if (name == "--namespaces") {
    return ParseFlag(value, &options->namespaces);
  } else if (name == "--private-root") {
    return ParseFlag(value, &options->private_root);
  } else if (name == "--pool") {
    return ParseFlag(value, &options->pool);
  } else if (name == "--pool-cpu") {
    return ParseFlag(value, &options->pool_takes_cpu_devices);
  } else if (name == "--says-ready") {
    return ParseFlag(value, &options->says_ready);
  } else if (name == "--snapshot-fd") {
    return absl::SimpleAtoi(value, &options->snapshot_fd);
  } else if (name == "--session-id") {
    const std::optional<uint64_t> id = ParseHexId(value);
    session.session_id = id.value_or(0);
    return id.has_value();
  } else if (name == "--devices") {
    std::string& list = session.device_allow_list;  // Given once for each pattern.
    absl::StrAppend(&list, list.empty() ? "" : ",", value);
  } else if (name == "--sync") {
    return ParseFlag(value, &session.sync);
  } else if (name == "--records") {
    session.records_directory = value;
  } else if (name == "--confine-files") {
    return ParseFlag(value, &options->confine_files);
  } else if (name == "--turns") {
    using Turns = WorkerOptions::Turns;
    options->turns = value == "on"    ? Turns::kEverywhere
                     : value == "off" ? Turns::kNowhere
                                      : Turns::kWherePaid;
    return value == "on" || value == "auto" || value == "off";
  } else if (name == "--executable") {
    options->executable.push_back(value);
  } else if (name == "--system-calls") {
    const std::optional<os::CallRule> rule = os::ParseCallRule(value);
    options->system_calls = rule.value_or(os::CallRule::kListed);
    return rule.has_value();
  } else if (name == "--readable") {
    options->readable.push_back(value);
  } else if (name == "--log-level") {
    const std::optional<LogLevel> level = ParseLogLevel(value);
    if (level.has_value()) SetLogLevel(*level);
    return level.has_value();
  } else {
    return false;
  }
  return true;
}

}  // namespace

absl::Status AttachTurns(WorkerOptions::Turns turns, TurnGate* gate) {
  if (turns == WorkerOptions::Turns::kNone) return absl::OkStatus();
  const os::UniqueFd orders_fd(kTurnOrders), words_fd(kTurnWords);
  ASSIGN_OR_RETURN(os::SharedMapping orders,
                   os::SharedMapping::Map(orders_fd.get(), wire::kTurnPageBytes, false));
  ASSIGN_OR_RETURN(os::SharedMapping words,
                   os::SharedMapping::Map(words_fd.get(), wire::kTurnPageBytes, true));
  const TurnGate::Pays pays =
      turns == WorkerOptions::Turns::kEverywhere  ? TurnGate::Pays::kEverywhere
      : turns == WorkerOptions::Turns::kWherePaid ? TurnGate::Pays::kWhereDear
                                                  : TurnGate::Pays::kNowhere;
  gate->Attach(std::move(orders), std::move(words), pays);
  return absl::OkStatus();
}

absl::StatusOr<WorkerOptions> ParseWorkerOptions(int argc, char** argv) {
  WorkerOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const size_t equals = arg.find('=');
    const std::string value = equals == std::string::npos ? "" : arg.substr(equals + 1);
    if (!Take(arg.substr(0, equals), value, &options))
      return absl::InvalidArgumentError(absl::StrCat("sluice-worker: bad argument ", arg));
  }
  return options;
}

}  // namespace sluice::worker
