// SPDX-License-Identifier: Apache-2.0
//
// The operator's settings: the TOML file, defaults and flags, all checked before anything starts. A
// wrong key, type or value is refused with file, line and column, the key, and what is allowed.
//
// Owner: main, which hands the Broker a copy; SIGHUP loads a second one, of which the broker takes
// what can change while it runs (../README.md, "What SIGHUP changes"). Plain data; the file is
// trusted as the operator is. Every key is described in deploy/man/sluiced.toml.5.scd.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/base/daemon_places.h"
#include "broker/base/log.h"
#include "broker/config/listener_config.h"
#include "broker/config/sharing_sections.h"
#include "broker/os/process.h"
#include "broker/os/sandbox.h"
#include "broker/os/types.h"

namespace sluice::broker {

struct NetworkConfig {
  std::vector<std::string> listen;  // "HOST:PORT" or "[V6]:PORT".
  std::string certificate;          // PEM files. Without certificate and key: plaintext.
  std::string key;
  std::string client_ca;   // Clients must show a certificate signed by one of these.
  std::string client_crl;  // And not revoked by one of these lists.
  std::string token_file;  // Clients must send one of the tokens in it, one a line.
  std::string token_key;   // Or one that one of these keys has signed.
  bool allow_plaintext = false;
  int64_t max_connections = 1024;  // Authenticated ones.
  int64_t max_connections_per_address = 512;
  int64_t max_newcomers = 256;  // Connections that are not authenticated yet.
  // The gateway's own; 0 = no limit.
  uint64_t memory_bytes = os::MachineMemoryBytes() / 2;
  std::string via;  // Set by ApplyDefaults: part of its clients' names. Empty: none.
  // For messages: "file:line" of the entry, "file:line:column" of its keys. Empty for flags.
  std::string where;
  std::map<std::string, std::string> places;

  bool plaintext() const { return certificate.empty(); }
  // Of the keys that name a file; null for any other.
  const std::string* FileOf(const std::string& key) const;
  // How a message about a key begins: its place, and the key; for flags, the flag.
  std::string Describe(const std::string& key) const;
};

inline constexpr int64_t kMaxDrainTimeoutMs = 24LL * 3600 * 1000;

// Per session unless it says otherwise; 0 = no limit.
struct LimitsConfig {
  uint64_t max_sessions = 256;          // Of the daemon.
  uint64_t max_sessions_per_user = 64;  // Of one account (tenants/tenant.h).
  uint64_t max_network_sessions = 128;  // Of all gateways together.
  uint64_t max_connections = 2048;
  uint64_t max_connections_per_user = 512;
  uint64_t memory_bytes = 0;
  uint64_t device_memory_per_account = 0;  // Of all sessions of one account.
  uint64_t objects = 1'000'000;
  uint64_t in_flight_commands = 1'000'000;
  uint64_t program_bytes = 64ULL << 20;
  uint64_t build_time_ms = 600'000;
  uint64_t kernel_time_ms = 0;       // Of one command on the device.
  uint64_t worker_memory_bytes = 0;  // A worker process's own memory.
};

// Daemon-owned resources; 0 = no limit for the quotas of count and bytes.
struct ResourcesConfig {
  bool enabled = true;
  uint64_t max_resources = 4096;           // Of the daemon.
  uint64_t max_resources_per_user = 1024;  // Of one uid.
  uint64_t max_bytes = 0;
  uint64_t max_bytes_per_user = 4ULL << 30;
  uint64_t max_connections = 256;
  uint64_t max_connections_per_user = 64;
  uint64_t max_acquires_per_connection = 256;  // Waiting or held.
  uint64_t max_watches_per_connection = 64;
  uint64_t max_wait_ms = 600'000;
  uint64_t max_linger_ms = 60'000;
};

// The sandbox of workers, and their caches.
struct WorkerConfig {
  std::optional<std::string> user;          // Unset = of root's daemon, one for each identity.
  std::string cache_directory;              // "" = the worker user's own.
  uint64_t cache_bytes = 1ULL << 30;        // Of each identity's compile cache in it; 0 = no bound.
  uint64_t all_caches_bytes = 16ULL << 30;  // Of all these together; 0 = no bound.
  bool confine_files = true;            // Workers reach only what drivers need of the host's files.
  std::vector<std::string> readable;    // Further files that workers may read.
  std::vector<std::string> executable;  // Programs that workers may run besides linkers.
  bool namespaces = true;               // Of the helpers' own, where the system has them.
  bool private_root = true;             // Of their own, with the files that they see alone.
  os::CallRule system_calls = os::CallRule::kListed;  // Which workers and the allocator may make.
  bool sync = false;                                  // Every session in the debug mode.
  std::map<std::string, std::string> environment;
};

struct Config {
  std::string file;  // "" = built-in defaults.
  // "file:line:column" of the keys of [broker] that a check of the whole may blame.
  std::map<std::string, std::string> places;

  std::string socket;        // "" = DefaultLocalName().
  std::string moved_socket;  // Set by ApplyDefaults: the place of old that was named.
  mode_t socket_mode = 0;    // 0 = 0666 for root's daemon, 0600 for a user's own.
  std::string socket_group;  // "" = leave.
  // "" = as base/daemon_places.h says.
  std::string admin_socket;
  std::string monitor_socket;
  std::string monitor_group;  // "" = kMonitorGroup, if there is one.
  LogLevel log_level = LogLevel::kInfo;
  int64_t probe_timeout_ms = 30'000;
  int64_t drain_timeout_ms = 30'000;
  int64_t kill_grace_ms = 1'000;  // From asking a worker to end to killing it.

  std::vector<std::string>
      access_users;  // Names or numeric uids; empty = whoever can open the socket.
  WorkerConfig worker;
  LimitsConfig limits;
  ResourcesConfig resources;
  TurnsConfig turns;
  PoolConfig pool;
  ControlGroupsConfig control_groups;
  std::vector<std::string> device_patterns;  // Shell wildcards over device names; empty = all.
  std::vector<NetworkConfig> network;
  std::vector<ListenerConfig> listeners;  // Beside the default socket.
};

// Reads and checks. All errors of a file are in the one message, a line each. `config` has the keys
// without an error also then.
absl::Status LoadConfigFile(const std::string& path, Config* config);
absl::StatusOr<Config> ParseConfig(const std::string& text, const std::string& file_name);

// Checks that need file and flags together: plaintext rules, the paths' lengths. Places of old are
// refused by a version that does not serve them.
absl::Status CheckConfig(const Config& config, bool serves_old_places = OldPlacesServed());

// A message for each key or flag that names a place of old, with what to write instead. After
// ApplyDefaults, which replaces a socket of old by today's.
std::vector<std::string> OldPlaces(const Config& config);

// A message for each default that follows from a key of the file and was another one until version
// 0.1. After ApplyDefaults, too.
std::vector<std::string> MovedDefaults(const Config& config);

// A warning for each entry of [[network]] by which more people get sessions than the operator may
// think: a service without authentication is allowed, but not in silence. After ApplyDefaults.
std::vector<std::string> OpenDoors(const Config& config);

// Fills in what was left open, as it fits this process's user.
void ApplyDefaults(Config* config);

// OK if it is "HOST:PORT" with a host and a port from 1 to 65535.
absl::Status CheckListenAddress(const std::string& listen_address);

// "4GiB", "512 MiB", "1000": a number of bytes.
std::optional<uint64_t> ParseByteSize(const std::string& text);

}  // namespace sluice::broker
