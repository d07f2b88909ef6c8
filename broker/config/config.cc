// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config.h"

#include <cstdlib>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "broker/base/daemon_places.h"
#include "broker/base/host_port.h"
#include "broker/config/config_keys.h"
#include "broker/config/config_reader.h"
#include "broker/config/listener_config.h"
#include "broker/config/sandbox_layers.h"
#include "broker/config/sharing_sections.h"
#include "broker/config/socket_checks.h"
#include "broker/os/file.h"
#include "broker/os/local_endpoint.h"
#include "broker/os/local_socket.h"
#include "broker/os/peer_identity.h"
#include "broker/os/process.h"
#include "proto/network/loopback.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

constexpr size_t kMaxConfigBytes = 1 << 20;

constexpr int64_t kMostConnections = 100'000;  // Of a gateway: each is several descriptors.
constexpr const char* kNetworkKeys[] = {"listen",     "certificate", "key",      "client_ca",
                                        "client_crl", "token_file",  "token_key"};

// With less no worker gets as far as its driver.
constexpr uint64_t kLeastWorkerMemory = 64 << 20;
// With less no gateway gets as far as its port.
constexpr uint64_t kLeastGatewayMemory = 256 << 20;

// fnmatch takes a bracket without its end for a character of the name, which nobody means.
std::string WildcardProblem(const std::string& pattern) {
  if (pattern.empty()) return "which matches no device; \"*\" matches all";
  if (pattern.find(',') != std::string::npos) {
    return "which holds a comma; write \"?\" in its place, and several patterns as an array";
  }
  for (size_t open = pattern.find('['); open != std::string::npos;) {
    const size_t close = pattern.find(']', open + 2);
    if (close == std::string::npos) return "whose \"[\" has no \"]\"";
    open = pattern.find('[', close);
  }
  return "";
}

// `taken`: the names before it.
std::string EnvironmentProblem(const std::string& name, std::set<std::string>* taken) {
  if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos) {
    return "which can be no variable's name";
  }
  for (const std::string& other : *taken) {
    if (IsSameVariable(name, other))
      return absl::StrCat("which is the same variable as \"", other, "\"");
  }
  taken->insert(name);
  return IsSameVariable(name, "SLUICE_WORKER")
             ? "which keeps Sluice's driver out of its own workers"
             : "";
}

std::string ListenProblem(const std::string& address) {
  return CheckListenAddress(address).ok()
             ? ""
             : "which is not HOST:PORT or [IPV6]:PORT with a port from 1 to 65535";
}

std::string PathProblem(const char* key, const std::string& path) {
  const std::string fixed = FixedKeyReason(key);
  if (!fixed.empty()) return absl::StrCat("allowed is ", fixed);
  return os::IsAbsolutePath(path) ? "" : "which is no absolute path";
}

std::string ReadableProblem(const std::string& path) { return PathProblem("readable", path); }
std::string ExecutableProblem(const std::string& path) { return PathProblem("executable", path); }

// As SectionReader::Parsed, of a key that some systems have no use for. Empty is the default.
void ReadOptional(SectionReader* section, const std::string& key, const std::string& allowed,
                  const std::function<bool(const std::string&)>& parse) {
  const std::string fixed = FixedKeyReason(key);
  section->Parsed(key, fixed.empty() ? allowed : fixed, [&](const std::string& text) {
    return text.empty() || (fixed.empty() && parse(text));
  });
}

void ReadBroker(SectionReader section, Config* config) {
  const auto socket_path = [&](const char* key, std::string* out) {
    section.Parsed(key, std::string(os::CheckLocalName("").message()),
                   [out](const std::string& text) {
                     *out = text;
                     return os::CheckLocalName(text).ok();
                   });
  };
  socket_path("socket", &config->socket);
  section.Parsed("socket_mode", "an octal file mode in quotes, such as \"0666\"",
                 [&](const std::string& text) { return ParseMode(text, &config->socket_mode); });
  ReadOptional(&section, "socket_group", "the name of a group of this machine",
               [&](const std::string& text) {
                 config->socket_group = text;
                 return os::LookUpGroup(text).ok();
               });
  socket_path("admin_socket", &config->admin_socket);
  socket_path("monitor_socket", &config->monitor_socket);
  ReadOptional(&section, "monitor_group", "the name of a group of this machine",
               [&](const std::string& text) {
                 config->monitor_group = text;
                 return os::LookUpGroup(text).ok();
               });
  for (const char* key : {"socket", "admin_socket", "monitor_socket"})
    config->places[key] = section.PlaceOf(key);
  section.Parsed("log_level", "one of trace, debug, info, warning, error",
                 [&](const std::string& text) {
                   const std::optional<LogLevel> level = ParseLogLevel(text);
                   config->log_level = level.value_or(config->log_level);
                   return level.has_value();
                 });
  section.Integer("probe_timeout_ms", 100, kMaxDrainTimeoutMs, &config->probe_timeout_ms);
  section.Integer("drain_timeout_ms", 0, kMaxDrainTimeoutMs, &config->drain_timeout_ms);
  section.Integer("kill_grace_ms", 0, 60'000, &config->kill_grace_ms);
  section.Finish();
}

void ReadWorker(SectionReader section, Config* config) {
  ReadOptional(&section, "user", "the name of a user of this machine",
               [&](const std::string& text) {
                 config->worker.user = text;
                 return os::LookUpUser(text).ok();
               });
  ReadOptional(&section, "cache_directory", "the absolute path of a directory that exists",
               [&](const std::string& text) {
                 config->worker.cache_directory = text;
                 return os::IsAbsolutePath(text) && os::IsDirectory(text);
               });
  section.Bytes("cache_bytes", &config->worker.cache_bytes);
  section.Bytes("all_caches_bytes", &config->worker.all_caches_bytes);
  section.Boolean("confine_files", &config->worker.confine_files);
  section.StringOrList("readable", &ReadableProblem, &config->worker.readable);
  section.StringOrList("executable", &ExecutableProblem, &config->worker.executable);
  ReadOptional(&section, "system_calls", "one of listed, logged, any",
               [&](const std::string& text) {
                 const std::optional<os::CallRule> rule = os::ParseCallRule(text);
                 config->worker.system_calls = rule.value_or(config->worker.system_calls);
                 return rule.has_value();
               });
  section.Boolean("namespaces", &config->worker.namespaces);
  section.Boolean("private_root", &config->worker.private_root);
  // After all that it depends on.
  const auto problem = [config](const std::string& name) { return LayerProblem(*config, name); };
  std::vector<std::string> required;
  section.StringOrList("require", problem, &required);
  section.Boolean("sync", &config->worker.sync);
  std::set<std::string> variables;
  section.StringTable(
      "environment",
      [&variables](const std::string& name) { return EnvironmentProblem(name, &variables); },
      &config->worker.environment);
  section.Finish();
}

void ReadLimits(SectionReader section, LimitsConfig* limits) {
  section.Count("max_sessions", 1, &limits->max_sessions);
  section.Count("max_sessions_per_user", 1, &limits->max_sessions_per_user);
  section.Count("max_network_sessions", 1, &limits->max_network_sessions);
  section.Count("max_connections", 1, &limits->max_connections);
  section.Count("max_connections_per_user", 1, &limits->max_connections_per_user);
  section.Bytes("memory_bytes_per_session", &limits->memory_bytes);
  section.Bytes("device_memory_per_account", &limits->device_memory_per_account);
  section.Count("objects_per_session", 0, &limits->objects);
  section.Count("in_flight_commands_per_session", 0, &limits->in_flight_commands);
  section.Bytes("program_bytes", &limits->program_bytes);
  section.Count("build_time_ms", 0, &limits->build_time_ms);
  section.Count("kernel_time_ms", 0, &limits->kernel_time_ms);
  section.Bytes("worker_memory_bytes", &limits->worker_memory_bytes, kLeastWorkerMemory);
  section.Finish();
}

void ReadResources(SectionReader section, ResourcesConfig* resources) {
  section.Boolean("enabled", &resources->enabled);
  section.Count("max_resources", 0, &resources->max_resources);
  section.Count("max_resources_per_user", 0, &resources->max_resources_per_user);
  section.Bytes("max_bytes", &resources->max_bytes);
  section.Bytes("max_bytes_per_user", &resources->max_bytes_per_user);
  section.Count("max_connections", 1, &resources->max_connections);
  section.Count("max_connections_per_user", 1, &resources->max_connections_per_user);
  section.Count("max_acquires_per_connection", 1, &resources->max_acquires_per_connection);
  section.Count("max_watches_per_connection", 0, &resources->max_watches_per_connection);
  section.Count("max_wait_ms", 0, &resources->max_wait_ms);
  section.Count("max_linger_ms", 0, &resources->max_linger_ms);
  section.Finish();
}

// With null, only says which keys there are.
ListenerConfig ReadListener(const toml::table* table, ConfigErrors* errors) {
  ListenerConfig listener;
  SectionReader section(table, "[[listener]]", errors);
  const size_t errors_before = errors->count();
  section.Parsed("tenant", std::string(CheckTenantName("").message()),
                 [&](const std::string& text) {
                   listener.tenant = text;
                   return CheckTenantName(text).ok();
                 });
  section.Parsed("path", std::string(os::CheckLocalName("").message()),
                 [&](const std::string& text) {
                   listener.path = text;
                   return os::CheckLocalName(text).ok();
                 });
  section.Parsed("mode", "an octal file mode in quotes, such as \"0660\"",
                 [&](const std::string& text) { return ParseMode(text, &listener.mode); });
  section.String("group", &listener.group);
  section.StringOrList("users", &UserProblem, &listener.users);
  int64_t share = listener.share;
  section.Integer("share", 1, kMostShare, &share);
  listener.share = static_cast<uint32_t>(share);
  int64_t interactive_percent = 0;
  section.Integer("interactive_percent", 0, kMostInteractivePercent, &interactive_percent);
  listener.interactive_percent = static_cast<uint32_t>(interactive_percent);
  section.Parsed("pool", "one of on, off", [&](const std::string& text) {
    listener.pools = text == "on" ? Pooling::kOn : Pooling::kOff;
    return text == "on" || text == "off";
  });
  section.Count("max_sessions", 0, &listener.limits.max_sessions);
  section.Count("max_connections", 0, &listener.limits.max_connections);
  section.Bytes("memory_bytes_per_session", &listener.limits.memory_bytes);
  section.Bytes("device_memory", &listener.limits.device_memory);
  section.Count("max_resources", 0, &listener.limits.max_resources);
  section.Bytes("max_resource_bytes", &listener.limits.max_resource_bytes);
  section.Finish();
  if (table == nullptr) return listener;
  listener.where = errors->Place(table->source());
  listener.where.resize(listener.where.rfind(':'));
  if (listener.tenant.empty() && errors->count() == errors_before)
    errors->Add(table->source(), "[[listener]] needs key \"tenant\", such as tenant = \"lab\"");
  return listener;
}

// With null, only says which keys there are.
NetworkConfig ReadNetwork(const toml::table* table, ConfigErrors* errors) {
  NetworkConfig network;
  SectionReader section(table, "[[network]]", errors);
  const size_t errors_before = errors->count();
  section.StringOrList("listen", &ListenProblem, &network.listen);
  // A service's working directory is nobody's choice: relative paths would lead anywhere.
  const std::string wanted = "the absolute path of a file";
  const auto path = [](std::string* out) {
    return [out](const std::string& text) {
      *out = text;
      return text.empty() || (os::IsAbsolutePath(text) && text.find('\0') == std::string::npos);
    };
  };
  section.Parsed("certificate", wanted, path(&network.certificate));
  section.Parsed("key", wanted, path(&network.key));
  section.Parsed("client_ca", wanted, path(&network.client_ca));
  ReadOptional(&section, "client_crl", wanted, path(&network.client_crl));
  section.Parsed("token_file", wanted, path(&network.token_file));
  section.Parsed("token_key", wanted, path(&network.token_key));
  section.Boolean("allow_plaintext", &network.allow_plaintext);
  section.Integer("max_connections", 1, kMostConnections, &network.max_connections);
  section.Integer("max_connections_per_address", 1, kMostConnections,
                  &network.max_connections_per_address);
  section.Integer("max_newcomers", 1, kMostConnections, &network.max_newcomers);
  section.Bytes("memory_bytes", &network.memory_bytes, kLeastGatewayMemory);
  section.Finish();
  if (table == nullptr) return network;
  network.where = errors->Place(table->source());
  network.where.resize(network.where.rfind(':'));
  for (const char* key : kNetworkKeys) network.places[key] = section.PlaceOf(key);
  if (network.listen.empty() && errors->count() == errors_before) {
    errors->Add(table->source(),
                "[[network]] needs key \"listen\", such as listen = \"0.0.0.0:7466\"");
  }
  return network;
}

// Entries that ask for different credentials give their clients different names: "CN=me" of one
// authority is not that of another, nor one file's first token that of another.
void NameApart(std::vector<NetworkConfig>* networks) {
  using Credentials = std::tuple<std::string, std::string, std::string>;
  std::map<Credentials, std::string> first;  // Where those that ask for them listen, the first one.
  for (const NetworkConfig& network : *networks) {
    const Credentials asked = {network.client_ca, network.token_file, network.token_key};
    if (asked != Credentials() && !network.listen.empty())
      first.try_emplace(asked, network.listen.front());
  }
  for (NetworkConfig& network : *networks) {
    const auto found = first.find({network.client_ca, network.token_file, network.token_key});
    network.via = first.size() > 1 && found != first.end() ? found->second : "";
  }
}

// The rules on one network entry that concern several keys.
absl::Status CheckNetwork(const NetworkConfig& network) {
  if (network.certificate.empty() != network.key.empty()) {
    const bool only_key = network.certificate.empty();
    return absl::InvalidArgumentError(
        absl::StrCat(network.Describe(only_key ? "key" : "certificate"), " is given without \"",
                     only_key ? "certificate" : "key", "\"; TLS needs both"));
  }
  if (!network.client_crl.empty() && network.client_ca.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(network.Describe("client_crl"),
                     " needs \"client_ca\": without it nobody is asked for a certificate that "
                     "could be revoked"));
  }
  if (!network.plaintext()) return absl::OkStatus();
  if (!network.client_ca.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(network.Describe("client_ca"),
                     " needs \"certificate\" and \"key\": there is no TLS without them"));
  }
  for (const std::string& address : network.listen) {
    if (network.allow_plaintext || wire::IsLoopbackTarget(address)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        network.Describe("listen"), ": listening on ", address,
        " without TLS is refused, since anyone on the way could read and change everything; give ",
        "\"certificate\" and \"key\", or listen on 127.0.0.1 or [::1], or write ",
        "allow_plaintext = true"));
  }
  return absl::OkStatus();
}

absl::Status CheckReadable(const NetworkConfig& network, const std::string& key) {
  const std::string& path = *network.FileOf(key);
  if (path.empty()) return absl::OkStatus();
  absl::Status readable = os::CheckReadableFile(path);
  if (readable.ok()) return readable;
  return absl::InvalidArgumentError(absl::StrCat(network.Describe(key), ": ", readable.message()));
}

}  // namespace

const std::string* NetworkConfig::FileOf(const std::string& key_name) const {
  if (key_name == "certificate") return &certificate;
  if (key_name == "key") return &key;
  if (key_name == "client_ca") return &client_ca;
  if (key_name == "client_crl") return &client_crl;
  if (key_name == "token_key") return &token_key;
  return key_name == "token_file" ? &token_file : nullptr;
}

std::string NetworkConfig::Describe(const std::string& key_name) const {
  if (where.empty()) return absl::StrCat("--", absl::StrReplaceAll(key_name, {{"_", "-"}}));
  const auto place = places.find(key_name);
  const bool given = place != places.end() && !place->second.empty();
  return absl::StrCat(given ? place->second : where, ": key \"", key_name, "\" in [[network]]");
}

namespace {

absl::Status ReadKeys(const std::string& text, const std::string& file_name, Config* read) {
  ConfigErrors errors(file_name);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    errors.Add({{1, 1}, {1, 1}, nullptr},
               "the file is UTF-16 text: save it as UTF-8 (PowerShell's > writes UTF-16)");
    return absl::InvalidArgumentError(errors.Text());
  }
  const toml::parse_result parsed = errors.Parse(text);
  if (parsed.failed()) {
    const std::string what(parsed.error().description());
    const bool escape = absl::StrContains(what, "escape") || absl::StrContains(what, "unicode");
    errors.Add(parsed.error().source(), absl::StrCat(what, escape ? kBackslashAdvice : ""));
    return absl::InvalidArgumentError(errors.Text());
  }
  Config& config = *read;
  config.file = file_name;
  SectionReader root(&parsed.table(), kTopLevel, &errors);
  ReadBroker(SectionReader(root.Table("broker"), "[broker]", &errors), &config);
  ReadWorker(SectionReader(root.Table("worker"), "[worker]", &errors), &config);
  SectionReader access(root.Table("access"), "[access]", &errors);
  access.StringOrList("users", &UserProblem, &config.access_users);
  access.Finish();
  ReadLimits(SectionReader(root.Table("limits"), "[limits]", &errors), &config.limits);
  ReadResources(SectionReader(root.Table("resources"), "[resources]", &errors), &config.resources);
  ReadScheduling(SectionReader(root.Table("scheduling"), "[scheduling]", &errors), &config.turns);
  ReadPool(SectionReader(root.Table("pool"), "[pool]", &errors), &config.pool);
  ReadControlGroups(SectionReader(root.Table("control_groups"), "[control_groups]", &errors),
                    &config.control_groups);
  SectionReader devices(root.Table("devices"), "[devices]", &errors);
  devices.StringOrList("allow", &WildcardProblem, &config.device_patterns);
  devices.Finish();
  for (const toml::table* table : root.TableArray("network")) {
    config.network.push_back(ReadNetwork(table, &errors));
  }
  if (config.network.empty()) ReadNetwork(nullptr, &errors);
  for (const toml::table* table : root.TableArray("listener")) {
    config.listeners.push_back(ReadListener(table, &errors));
  }
  if (config.listeners.empty()) ReadListener(nullptr, &errors);
  root.Finish();
  return errors.count() == 0 ? absl::OkStatus() : absl::InvalidArgumentError(errors.Text());
}

}  // namespace

absl::StatusOr<Config> ParseConfig(const std::string& text, const std::string& file_name) {
  Config config;
  RETURN_IF_ERROR(ReadKeys(text, file_name, &config));
  return config;
}

absl::Status LoadConfigFile(const std::string& path, Config* config) {
  const absl::StatusOr<std::string> text = os::ReadNamedFile(path, kMaxConfigBytes);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat("configuration file: ", text.status().message()));
  }
  return ReadKeys(*text, path, config);
}

absl::Status CheckConfig(const Config& config, bool serves_old_places) {
  std::vector<std::string> problems;
  const auto add = [&problems](const absl::Status& status) {
    if (!status.ok()) problems.emplace_back(status.message());
  };
  problems = SocketProblems(config);
  if (problems.empty() && !serves_old_places) problems = OldPlaces(config);
  std::vector<ListenerConfig> before;
  for (const ListenerConfig& listener : config.listeners) {
    if (os::CheckLocalName(config.socket).ok()) add(CheckListener(listener, config, before));
    before.push_back(listener);
  }
  std::set<std::string> addresses;
  for (const NetworkConfig& network : config.network) {
    add(CheckNetwork(network));
    for (const char* key : kNetworkKeys) {
      if (network.FileOf(key) != nullptr) add(CheckReadable(network, key));
    }
    for (const std::string& address : network.listen) {
      if (addresses.insert(address).second) continue;
      problems.push_back(
          absl::StrCat(network.Describe("listen"), ": ", address, " is listened on twice"));
    }
  }
  if (const std::string fixed = FixedKeyReason("user");
      config.worker.user.has_value() && !fixed.empty()) {
    problems.push_back(absl::StrCat("--worker-user: allowed is ", fixed));
  } else if (config.worker.user.has_value() && os::IsPrivileged()) {
    const absl::Status user = os::LookUpUser(*config.worker.user).status();
    if (!user.ok()) problems.push_back(absl::StrCat("--worker-user: ", user.message()));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

std::vector<std::string> OpenDoors(const Config& config) {
  constexpr mode_t kOthersWrite = 0002;  // Which is what connecting takes.
  const bool mode_keeps_out = (config.socket_mode & kOthersWrite) == 0;
  std::vector<std::string> warnings;
  for (const NetworkConfig& network : config.network) {
    if (!network.client_ca.empty() || !network.token_file.empty() || !network.token_key.empty())
      continue;
    std::vector<std::string> beyond;
    std::vector<std::string> local;
    for (const std::string& address : network.listen) {
      (wire::IsLoopbackTarget(address) ? local : beyond).push_back(address);
    }
    const std::string ends_it =
        absl::StrCat("set ", network.plaintext() ? "" : "client_ca, ", "token_file or token_key");
    if (!beyond.empty()) {
      warnings.push_back(absl::StrCat(network.Describe("listen"), ": anybody who reaches ",
                                      absl::StrJoin(beyond, ", "), " gets sessions; ", ends_it));
    }
    if (!local.empty() && (mode_keeps_out || !config.access_users.empty())) {
      warnings.push_back(
          absl::StrCat(network.Describe("listen"), ": every local user gets sessions through ",
                       absl::StrJoin(local, ", "), ", also whom ",
                       config.access_users.empty() ? "the socket's mode" : "\"users\" in [access]",
                       " keeps out; ", ends_it));
    }
  }
  return warnings;
}

void ApplyDefaults(Config* config) {
  if (config->socket.empty()) config->socket = DefaultLocalName();
  for (std::string* name : {&config->socket, &config->admin_socket, &config->monitor_socket})
    *name = os::NormalLocalName(*name);
  const std::string moved = OldClientNameOf(DefaultLocalName());
  if (!moved.empty() && config->socket == moved) {
    config->moved_socket = moved;
    config->socket = DefaultLocalName();
  }
  if (config->admin_socket.empty()) config->admin_socket = AdminNameOf(config->socket);
  if (config->monitor_socket.empty()) {
    config->monitor_socket = IsInClientsReach(config->admin_socket, config->socket)
                                 ? MonitorNameOf(config->socket)
                                 : MonitorNameBeside(config->admin_socket);
  }
  for (ListenerConfig& listener : config->listeners)
    ApplyListenerDefaults(config->socket, &listener);
  if (config->socket_mode == 0) config->socket_mode = os::IsPrivileged() ? 0666 : 0600;
  NameApart(&config->network);
}

absl::Status CheckListenAddress(const std::string& listen_address) {
  if (IsHostAndPort(listen_address)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("listen address \"", listen_address,
                   "\" is not HOST:PORT or [IPV6]:PORT with a port from 1 to 65535"));
}

}  // namespace sluice::broker
