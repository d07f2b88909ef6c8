// SPDX-License-Identifier: Apache-2.0
//
// A client's identity in the daemon. Two keys, not one:
//
//   account           what is counted and shared out: connections, sessions, resources, turns.
//                     A named listener's tenant; else the user who answers for the client, however
//                     many user ids and namespaces that user has made.
//   isolation domain  what must not touch another's: compile cache, worker user. Finer: the
//                     listener, the user id and the container.
//
// Plain data, computed once for a connection (tenant_finder.h) from what the kernel or the gateway
// says, never from a client's message.
#pragma once

#include <cstdint>
#include <string>

#include "broker/os/types.h"

namespace sluice::broker {

// Of device time, beside the others' at one device.
inline constexpr uint32_t kDefaultShare = 100;
inline constexpr uint32_t kMostShare = 10'000;
inline constexpr uint32_t kMostInteractivePercent = 50;

// Of one account; 0: what [limits] and [resources] say of a user.
struct AccountLimits {
  uint64_t max_sessions = 0;
  uint64_t max_connections = 0;
  uint64_t memory_bytes = 0;   // Of each session.
  uint64_t device_memory = 0;  // Of all of them.
  uint64_t max_resources = 0;
  uint64_t max_resource_bytes = 0;  // Of all of them.
};

// If its sessions may share workers: as [pool] says, or as its listener does.
enum class Pooling { kAsConfigured, kOn, kOff };

struct Account {
  std::string name;  // "uid:1000", "tenant:lab", "net:CN=alice".
  bool network = false;
  uint32_t share = kDefaultShare;
  uint32_t interactive_percent = 0;  // Of device time, in which its work goes first.
  AccountLimits limits;
  Pooling pools = Pooling::kAsConfigured;
};

struct IsolationDomain {
  std::string name;  // "uid:1000", "container:1000_5f1c...", "tenant:lab_1000".
};

struct Tenant {
  std::string user;  // For people: "uid:1000", "net:CN=alice".
  Account account;
  IsolationDomain domain;

  // Of this host, by the default socket, in no container.
  static Tenant ForUid(uid_t uid);
  static Tenant ForNetworkPeer(const std::string& peer);
};

// Of whoever comes by the listener of that tenant.
std::string TenantAccountName(const std::string& tenant);

// An account's or a domain's name as that of a folder, such as "uid-1000", each another: a
// certificate's subject may hold anything.
std::string FolderNameOf(const std::string& name);

}  // namespace sluice::broker
