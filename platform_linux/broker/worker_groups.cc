// SPDX-License-Identifier: Apache-2.0
#include "broker/children/worker_groups.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "broker/base/log.h"
#include "broker/os/process.h"
#include "broker/os/thread_checker.h"
#include "platform_linux/control_groups/delegation.h"
#include "platform_linux/control_groups/group.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

constexpr char kAccounts[] = "accounts";
constexpr char kWorkerPrefix[] = "worker-";
constexpr const char* kControllers[] = {"cpu", "memory", "pids", "io", "dmem"};
// The first and the longest pause between looks whether a group's processes have ended.
constexpr int64_t kFirstLookMs = 10;
constexpr int64_t kLastLookMs = 2'000;
// Kept for the daemon's own processes and their threads.
constexpr uint64_t kProcessReserve = 512;
constexpr uint64_t kWorkerProcesses = 512;
// An account may have all but this part, so that others have something left when it takes all that
// it can.
constexpr uint64_t kOthersPart = 8;
// A driver's own use of a device's memory, beside the session's.
constexpr uint64_t kDriversOwn = 256ULL << 20;
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

std::string Below(const std::string& group, const std::string& name) {
  return absl::StrCat(group, "/", name);
}

uint64_t NumberIn(const char* path) {
  uint64_t number = kNoLimit;
  std::ifstream(path) >> number;
  return number;
}

// The smallest limit of that kind that holds for a group, as far up as this process can see.
uint64_t LimitAround(std::string group, const char* file) {
  uint64_t least = kNoLimit;
  while (os::ReadOfGroup(group, "cgroup.procs").has_value()) {
    least = std::min(least, os::ReadNumberOfGroup(group, file).value_or(kNoLimit));
    group.resize(group.rfind('/'));
  }
  return least;
}

pid_t ParentOf(pid_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/status"));
  for (std::string line; std::getline(file, line);) {
    pid_t parent = 0;
    if (absl::StartsWith(line, "PPid:") && absl::SimpleAtoi(line.substr(5), &parent)) return parent;
  }
  return 0;
}

// True if there are processes in the group other than this one and its ancestors.
bool HasOthers(const std::string& group) {
  std::set<std::string> family;
  for (pid_t process = ::getpid(); process > 0; process = ParentOf(process))
    family.insert(absl::StrCat(process));
  const std::string there = os::ReadOfGroup(group, "cgroup.procs").value_or("");
  const std::vector<std::string> processes = absl::StrSplit(there, '\n', absl::SkipEmpty());
  return std::any_of(processes.begin(), processes.end(),
                     [&](const std::string& one) { return !family.contains(one); });
}

std::string LimitText(uint64_t limit) { return limit == kNoLimit ? "max" : absl::StrCat(limit); }

}  // namespace

struct WorkerGroups::State {
  os::ThreadChecker thread;
  EventLoop* loop = nullptr;
  ControlGroupsConfig config;
  os::Delegation found;
  std::set<std::string> controllers;  // In force.
  std::string top;                    // Empty: there are no groups.
  std::string accounts;
  uint64_t memory = kNoLimit;               // Of all accounts together.
  uint64_t processes = kNoLimit;            // As memory.
  std::map<uint64_t, std::string> groups;   // By session.
  std::map<std::string, uint64_t> ran_out;  // Out of memory: how often, for groups above workers.
  std::set<std::string> leaving;            // Removed as soon as nobody is in them.
  EventLoop::TimerId timer = 0;
  int64_t look_ms = kFirstLookMs;

  absl::Status Take();
  void GiveBack();
  void FindLimits();
  absl::Status Limit(const std::string& group, const char* controller, const char* file,
                     const std::string& value) const;
  absl::Status LimitSize(const std::string& account_group) const;
  absl::Status LimitAccount(const std::string& group, const Account& account) const;
  absl::Status EnableIn(const std::string& account_group) const;
  absl::Status LimitWorker(const std::string& group, uint64_t device_bytes) const;
  uint64_t AccountMemory() const;
  uint64_t AccountProcesses() const;
  void Adopt();
  void RemoveLeaving();
  void LookAgain();
  std::string MemoryReason(const std::string& group);
};

// The kernel allows no processes in inner groups: so all leave first, and then controllers are
// given out.
absl::Status WorkerGroups::State::Take() {
  const std::string own = Below(found.top, os::kDaemonsGroup);
  RETURN_IF_ERROR(os::MakeGroup(own));
  RETURN_IF_ERROR(os::MoveProcesses(found.top, own));
  const std::vector<std::string> wanted(std::begin(kControllers), std::end(kControllers));
  const absl::StatusOr<std::vector<std::string>> enabled = os::EnableControllers(found.top, wanted);
  if (!enabled.ok()) return enabled.status();
  accounts = Below(found.top, kAccounts);
  RETURN_IF_ERROR(os::MakeGroup(accounts));
  const absl::StatusOr<std::vector<std::string>> given = os::EnableControllers(accounts, *enabled);
  if (!given.ok()) return given.status();
  controllers.insert(given->begin(), given->end());
  top = found.top;
  FindLimits();
  RETURN_IF_ERROR(Limit(accounts, "memory", "memory.max", LimitText(memory)));
  RETURN_IF_ERROR(Limit(accounts, "pids", "pids.max", LimitText(processes)));
  // Protection within what the daemon's own group has.
  return Limit(own, "memory", "memory.min", absl::StrCat(config.memory_reserve));
}

// Restores the group as it was, unless workers go on in it.
void WorkerGroups::State::GiveBack() {
  loop->CancelTimer(&timer);
  if (!accounts.empty()) RemoveLeaving();
  if (!accounts.empty() && !os::RemoveGroup(accounts)) return;
  os::DisableControllers(found.top);
  const std::string own = Below(found.top, os::kDaemonsGroup);
  if (found.entered || !os::MoveProcesses(own, found.top).ok()) return;
  os::RemoveGroup(own);
}

void WorkerGroups::State::FindLimits() {
  const uint64_t machine = os::MachineMemoryBytes();
  const uint64_t there =
      std::min(LimitAround(top, "memory.max"), machine == 0 ? kNoLimit : machine);
  if (there != kNoLimit) memory = there - std::min(config.memory_reserve, there / 2);
  const uint64_t may_be =
      std::min({LimitAround(top, "pids.max"), NumberIn("/proc/sys/kernel/threads-max"),
                NumberIn("/proc/sys/kernel/pid_max")});
  if (may_be != kNoLimit) processes = may_be - std::min(kProcessReserve, may_be / 4);
}

// Without its controller on this host a limit is left out; with it, it must hold.
absl::Status WorkerGroups::State::Limit(const std::string& group, const char* controller,
                                        const char* file, const std::string& value) const {
  if (!controllers.contains(controller)) return absl::OkStatus();
  return os::WriteToGroup(group, file, value);
}

uint64_t WorkerGroups::State::AccountMemory() const {
  if (config.memory_bytes_per_account != 0)
    return std::min(config.memory_bytes_per_account, memory);
  return memory == kNoLimit ? kNoLimit : memory - memory / kOthersPart;
}

uint64_t WorkerGroups::State::AccountProcesses() const {
  const uint64_t wanted = config.processes_per_account;
  if (wanted != 0) return std::min(wanted, processes);
  return processes == kNoLimit ? kNoLimit : processes / 2;
}

absl::Status WorkerGroups::State::LimitSize(const std::string& account_group) const {
  RETURN_IF_ERROR(Limit(account_group, "memory", "memory.max", LimitText(AccountMemory())));
  return Limit(account_group, "pids", "pids.max", LimitText(AccountProcesses()));
}

absl::Status WorkerGroups::State::EnableIn(const std::string& account_group) const {
  const std::vector<std::string> names(controllers.begin(), controllers.end());
  return os::EnableControllers(account_group, names).status();
}

absl::Status WorkerGroups::State::LimitAccount(const std::string& group,
                                               const Account& account) const {
  const std::string share = absl::StrCat(account.share);  // The kernel's weights have its range.
  RETURN_IF_ERROR(Limit(group, "cpu", "cpu.weight", share));
  RETURN_IF_ERROR(LimitSize(group));
  // Only some of the kernel's disk schedulers have weights.
  for (const char* file : {"io.weight", "io.bfq.weight"}) {
    const bool small = account.share <= 1000 || file[3] == 'w';
    const absl::Status set = Limit(group, "io", file, small ? share : "1000");
    if (!set.ok() && !absl::IsNotFound(set)) return set;
  }
  return absl::OkStatus();
}

absl::Status WorkerGroups::State::LimitWorker(const std::string& group,
                                              uint64_t device_bytes) const {
  const uint64_t most =
      config.memory_bytes_per_worker == 0 ? kNoLimit : config.memory_bytes_per_worker;
  RETURN_IF_ERROR(Limit(group, "memory", "memory.max", LimitText(most)));
  RETURN_IF_ERROR(Limit(group, "memory", "memory.oom.group", "1"));
  const uint64_t by_machine =
      kWorkerProcesses + 2 * static_cast<uint64_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const uint64_t wanted =
      config.processes_per_worker == 0 ? by_machine : config.processes_per_worker;
  RETURN_IF_ERROR(
      Limit(group, "pids", "pids.max", LimitText(std::min(wanted, AccountProcesses()))));
  if (device_bytes == 0 || !controllers.contains("dmem")) return absl::OkStatus();
  // "REGION max" a line.
  const std::string regions = os::ReadOfGroup(group, "dmem.max").value_or("");
  for (const absl::string_view line : absl::StrSplit(regions, '\n', absl::SkipEmpty())) {
    const absl::string_view region = line.substr(0, line.find(' '));
    RETURN_IF_ERROR(
        os::WriteToGroup(group, "dmem.max", absl::StrCat(region, " ", device_bytes + kDriversOwn)));
  }
  return absl::OkStatus();
}

// Workers of a broker before this one go on; their groups are removed when they have ended.
// Meanwhile controllers may have been off (the unit's ExecStopPost=).
void WorkerGroups::State::Adopt() {
  size_t workers = 0;
  absl::Status limited;
  for (const std::string& account : os::GroupsIn(accounts)) {
    const std::string group = Below(accounts, account);
    leaving.insert(group);
    for (const std::string& worker : os::GroupsIn(group)) {
      if (os::RemoveGroup(Below(group, worker))) continue;
      ++workers;
      leaving.insert(Below(group, worker));
      limited.Update(LimitSize(group));
      limited.Update(EnableIn(group));
      limited.Update(LimitWorker(Below(group, worker), 0));
    }
  }
  RemoveLeaving();
  if (!limited.ok()) {
    Log(LogLevel::kWarning, "broker", "a worker of a daemon before this one has no limits now",
        {{"reason", std::string(limited.message())}});
  }
  if (workers == 0) return;
  Log(LogLevel::kInfo, "broker",
      "workers of a daemon before this one go on in their control groups", {{"workers", workers}});
  look_ms = kLastLookMs;
  LookAgain();
}

void WorkerGroups::State::RemoveLeaving() {
  // Workers first: an account's folder is a prefix of theirs.
  for (auto group = leaving.rbegin(); group != leaving.rend();) {
    const std::string account = group->substr(accounts.size() + 1);
    const bool is_account = account.find('/') == account.npos;
    const bool is_used =
        is_account && std::any_of(groups.begin(), groups.end(), [&](const auto& one) {
          return one.second.starts_with(*group + "/");
        });
    if (is_used || os::RemoveGroup(*group)) {
      group = std::make_reverse_iterator(leaving.erase(std::next(group).base()));
    } else {
      ++group;
    }
  }
}

void WorkerGroups::State::LookAgain() {
  if (timer != 0 || leaving.empty()) return;
  timer = loop->AddTimer(look_ms, [this] {
    timer = 0;
    look_ms = std::min(look_ms * 2, kLastLookMs);
    RemoveLeaving();
    LookAgain();
  });
}

// The kernel looked for a victim in the lowest group whose limit was reached.
std::string WorkerGroups::State::MemoryReason(const std::string& group) {
  if (os::ReadEventOfGroup(group, "memory.events", "oom_kill") == 0) return "";
  const std::string account = group.substr(0, group.rfind('/'));
  const auto says = [](const char* whose, const std::string& of, const char* key) {
    return absl::StrCat(whose, " reached its limit of memory, ",
                        os::ReadOfGroup(of, "memory.max").value_or("?"), " bytes", key);
  };
  if (os::ReadEventOfGroup(group, "memory.events.local", "oom") != 0)
    return says("the worker", group, " (memory_bytes_per_worker)");
  const std::pair<const std::string&, std::string> above[] = {
      {account, says("its account", account, " (memory_bytes_per_account)")},
      {accounts, says("what all accounts have together", accounts, "")}};
  for (const auto& [place, text] : above) {
    const uint64_t now = os::ReadEventOfGroup(place, "memory.events.local", "oom");
    if (now > std::exchange(ran_out[place], now)) return text;
  }
  return "the machine, or the service, has no memory left";
}

WorkerGroups::WorkerGroups(std::unique_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<WorkerGroups>> WorkerGroups::Create(
    const ControlGroupsConfig& config, EventLoop* loop, const std::string& process) {
  auto state = std::make_unique<State>();
  state->loop = loop;
  state->config = config;
  if (config.enabled == ControlGroupsConfig::Use::kOff) {
    state->found.problem = "enabled = \"off\" in [control_groups]";
    return std::unique_ptr<WorkerGroups>(new WorkerGroups(std::move(state)));
  }
  state->found = os::FindDelegation(process);
  // Taking a group moves all its processes, and nobody has said that the daemon may.
  if (config.enabled == ControlGroupsConfig::Use::kAuto && !state->found.top.empty() &&
      !state->found.by_systemd && HasOthers(state->found.top)) {
    state->found.problem =
        absl::StrCat("other programs are in the daemon's control group ", state->found.top);
    state->found.advice =
        "start sluiced in a group of its own, as its service does, or set enabled = \"required\" "
        "in "
        "[control_groups], which moves them";
    state->found.top.clear();
  }
  if (!state->found.top.empty()) {
    const absl::Status taken = state->Take();
    if (taken.ok()) {
      state->Adopt();
    } else {
      state->GiveBack();
      state->top.clear();
      state->found.problem = absl::StrCat("the control group ", state->found.top,
                                          " cannot be divided: ", taken.message());
      state->found.advice = "see to it that the daemon alone uses that group, as a service does";
    }
  }
  auto groups = std::unique_ptr<WorkerGroups>(new WorkerGroups(std::move(state)));
  const bool short_of = groups->state_->top.empty() || !groups->Advice().empty();
  if (config.enabled == ControlGroupsConfig::Use::kRequired && short_of) {
    return absl::FailedPreconditionError(
        absl::StrCat("[control_groups] has enabled = \"required\", and there are ",
                     groups->Describe(), "; ", groups->Advice()));
  }
  return groups;
}

WorkerGroups::~WorkerGroups() {
  if (!state_->top.empty()) state_->GiveBack();
}

std::string WorkerGroups::Describe() const {
  if (state_->top.empty()) return absl::StrCat("none: ", state_->found.problem);
  std::vector<std::string> there;
  std::vector<std::string> missing;
  for (const char* name : kControllers) {
    if (state_->controllers.contains(name)) {
      there.emplace_back(name);
    } else if (std::string_view(name) != "dmem") {  // Most kernels have none.
      missing.emplace_back(name);
    }
  }
  std::string text = there.empty() ? "no limits" : absl::StrJoin(there, ", ");
  if (!missing.empty()) absl::StrAppend(&text, "; not ", absl::StrJoin(missing, ", "));
  if (!missing.empty() && !state_->found.version_1.empty())
    absl::StrAppend(&text, " (hierarchies of version 1 have ", state_->found.version_1, ")");
  return absl::StrCat(text, "; in ", state_->top);
}

std::string WorkerGroups::Advice() const {
  if (state_->top.empty()) return state_->found.advice;
  for (const char* name : {"cpu", "memory", "pids"}) {
    if (state_->controllers.contains(name)) continue;
    return state_->found.version_1.empty()
               ? absl::StrCat("leave the daemon the controller ", name,
                              " too (Delegate=yes of its unit)")
               : "boot with version 2 alone (systemd.unified_cgroup_hierarchy=1)";
  }
  return "";
}

bool WorkerGroups::DividesProcessors() const {
  return !state_->top.empty() && state_->controllers.contains("cpu");
}

absl::StatusOr<os::UniqueFd> WorkerGroups::Add(uint64_t session, const Account& account,
                                               uint64_t device_bytes) {
  State& state = *state_;
  state.thread.Assert();
  if (state.top.empty()) return os::UniqueFd();
  const std::string of_account = Below(state.accounts, FolderNameOf(account.name));
  const std::string group = Below(of_account, absl::StrCat(kWorkerPrefix, HexId(session)));
  const auto make = [&]() -> absl::StatusOr<os::UniqueFd> {
    RETURN_IF_ERROR(os::MakeGroup(of_account));
    RETURN_IF_ERROR(state.LimitAccount(of_account, account));
    RETURN_IF_ERROR(state.EnableIn(of_account));
    RETURN_IF_ERROR(os::MakeGroup(group));
    RETURN_IF_ERROR(state.LimitWorker(group, device_bytes));
    return os::OpenGroup(group);
  };
  state.groups[session] = group;
  absl::StatusOr<os::UniqueFd> made = make();
  if (!made.ok()) Remove(session);
  return made;
}

WorkerGroups::Use WorkerGroups::UseOf(const Account& account) const {
  const State& state = *state_;
  state.thread.Assert();
  Use use;
  if (state.top.empty()) return use;
  // There is none before its first session.
  const std::string group = Below(state.accounts, FolderNameOf(account.name));
  const auto limit_of = [](uint64_t limit) { return limit == kNoLimit ? 0 : limit; };
  if (state.controllers.contains("memory")) {
    use.memory_bytes = os::ReadNumberOfGroup(group, "memory.current").value_or(0);
    use.memory_limit = limit_of(state.AccountMemory());
  }
  if (state.controllers.contains("pids")) {
    use.processes = os::ReadNumberOfGroup(group, "pids.current").value_or(0);
    use.process_limit = limit_of(state.AccountProcesses());
  }
  return use;
}

WorkerGroups::End WorkerGroups::Remove(uint64_t session) {
  State& state = *state_;
  state.thread.Assert();
  const auto found = state.groups.find(session);
  if (found == state.groups.end()) return {};
  const std::string group = std::move(found->second);
  state.groups.erase(found);
  End end;
  end.memory = state.MemoryReason(group);
  end.refused_processes = os::ReadEventOfGroup(group, "pids.events", "max");
  os::KillGroup(group);
  state.leaving.insert(group);
  state.leaving.insert(group.substr(0, group.rfind('/')));
  state.RemoveLeaving();
  state.look_ms = kFirstLookMs;
  state.LookAgain();
  return end;
}

}  // namespace sluice::broker
