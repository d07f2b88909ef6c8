// SPDX-License-Identifier: Apache-2.0
#include "broker/tenants/listeners.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/instance.h"

namespace sluice::broker {
namespace {

// True if an open socket can go on as `fresh` wants it.
bool IsSameDoor(const ListenerConfig& open, const ListenerConfig& fresh) {
  return open.path == fresh.path && open.mode == fresh.mode && open.group == fresh.group;
}

absl::StatusOr<os::UniqueFd> OpenSocket(const ListenerConfig& listener) {
  if (absl::Status made = MakeListenerFolder(listener.path); !made.ok()) return made;
  return OpenListener({listener.path, listener.mode, listener.group});
}

void LogListener(const char* what, const ListenerConfig& listener) {
  Log(LogLevel::kInfo, "broker", what, {{"tenant", listener.tenant}, {"socket", listener.path}});
}

}  // namespace

absl::Status Listeners::OpenOne(const ListenerConfig& listener, bool from_file) {
  absl::StatusOr<os::UniqueFd> socket = OpenSocket(listener);
  if (!socket.ok()) {
    const std::string where = listener.where.empty() ? "" : absl::StrCat(listener.where, ": ");
    // To an operator, kNotFound means a wrong name of a listener.
    const bool missing = absl::IsNotFound(socket.status());
    return absl::Status(missing ? absl::StatusCode::kFailedPrecondition : socket.status().code(),
                        absl::StrCat(where, "the listener of tenant \"", listener.tenant,
                                     "\": ", std::string(socket.status().message())));
  }
  Entry entry;
  entry.config = std::make_shared<const ListenerConfig>(listener);
  entry.from_file = from_file;
  entry.door = connections_->Listen(*std::move(socket), entry.config);
  entries_[listener.tenant] = std::move(entry);
  LogListener("listener opened", listener);
  return absl::OkStatus();
}

void Listeners::Close(const Entry& entry, bool end_connections) {
  RemoveSocketFile(entry.config->path);
  connections_->Close(entry.door, end_connections);
}

std::vector<ListenerConfig> Listeners::Configs() const {
  std::vector<ListenerConfig> configs;
  for (const auto& [tenant, entry] : entries_) configs.push_back(*entry.config);
  return configs;
}

absl::Status Listeners::Open(const Config& config) {
  thread_.Assert();
  for (const ListenerConfig& listener : config.listeners) {
    if (absl::Status opened = OpenOne(listener, /*from_file=*/true); !opened.ok()) return opened;
  }
  return absl::OkStatus();
}

void Listeners::Reload(const Config& config) {
  thread_.Assert();
  std::set<std::string> wanted;
  for (const ListenerConfig& fresh : config.listeners) wanted.insert(fresh.tenant);
  std::vector<std::string> gone;
  for (const auto& [tenant, entry] : entries_) {
    if (entry.from_file && !wanted.contains(tenant)) gone.push_back(tenant);
  }
  for (const std::string& tenant : gone) Remove(tenant, /*end_sessions=*/false).IgnoreError();
  for (const ListenerConfig& fresh : config.listeners) {
    const auto open = entries_.find(fresh.tenant);
    if (open != entries_.end() && IsSameDoor(*open->second.config, fresh)) {
      open->second.config = std::make_shared<const ListenerConfig>(fresh);
      open->second.from_file = true;
      connections_->Update(open->second.door, open->second.config);
      continue;
    }
    if (open != entries_.end()) Remove(fresh.tenant, /*end_sessions=*/false).IgnoreError();
    absl::Status opened = CheckListener(fresh, config, Configs());
    if (opened.ok()) opened = OpenOne(fresh, /*from_file=*/true);
    if (opened.ok()) continue;
    Log(LogLevel::kError, "broker", "a listener of the configuration is not there",
        {{"reason", std::string(opened.message())}});
  }
}

absl::Status Listeners::Add(const Config& config, ListenerConfig* listener) {
  thread_.Assert();
  ApplyListenerDefaults(config.socket, listener);
  if (absl::Status fits = CheckListener(*listener, config, Configs()); !fits.ok()) return fits;
  return OpenOne(*listener, /*from_file=*/false);
}

absl::Status Listeners::Remove(const std::string& tenant, bool end_sessions) {
  thread_.Assert();
  const auto found = entries_.find(tenant);
  if (found == entries_.end()) {
    return absl::NotFoundError(absl::StrCat("tenant \"", tenant, "\" has no listener; `sluicectl ",
                                            "listener list` shows those that there are"));
  }
  const Entry entry = std::move(found->second);
  entries_.erase(found);
  Close(entry, end_sessions);
  RemoveListenerFolder(entry.config->path);
  LogListener("listener removed", *entry.config);
  return absl::OkStatus();
}

std::vector<ListenerInfo> Listeners::List() const {
  std::vector<ListenerInfo> list;
  for (const auto& [tenant, entry] : entries_)
    list.push_back({*entry.config, entry.from_file, connections_->ConnectionsBy(entry.door)});
  return list;
}

void Listeners::Stop() {
  for (const auto& [tenant, entry] : entries_) Close(entry, /*end_connections=*/false);
  entries_.clear();
}

}  // namespace sluice::broker
