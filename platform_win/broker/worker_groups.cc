// SPDX-License-Identifier: Apache-2.0
//
// Windows has no control groups. (A worker's job object bounds it: security/.)
#include "broker/children/worker_groups.h"

namespace sluice::broker {

struct WorkerGroups::State {};

WorkerGroups::WorkerGroups(std::unique_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<WorkerGroups>> WorkerGroups::Create(const ControlGroupsConfig&,
                                                                   EventLoop*, const std::string&) {
  return std::unique_ptr<WorkerGroups>(new WorkerGroups(std::make_unique<State>()));
}

WorkerGroups::~WorkerGroups() = default;

std::string WorkerGroups::Describe() const { return "none: Windows has none"; }

std::string WorkerGroups::Advice() const { return ""; }

bool WorkerGroups::DividesProcessors() const { return false; }

absl::StatusOr<os::UniqueFd> WorkerGroups::Add(uint64_t, const Account&, uint64_t) {
  return os::UniqueFd();
}

WorkerGroups::Use WorkerGroups::UseOf(const Account&) const { return {}; }

WorkerGroups::End WorkerGroups::Remove(uint64_t) { return {}; }

}  // namespace sluice::broker
