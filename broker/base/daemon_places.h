// SPDX-License-Identifier: Apache-2.0
//
// Where a daemon's sockets and files lie, each by the name of the socket that its clients connect
// to. A container mounts that socket's folder, so nothing else lies there: operators' sockets and
// the daemon's own files have folders of their own.
//
//   NAME                       operators                  state (the lock, drivers' list, caches)
//   X/clients/broker.sock      X-admin/{admin,monitor}.sock     X/
//   DIR/broker.sock            DIR-admin/...                    DIR-state/
//   \\.\pipe\NAME (Windows)    NAME-admin, NAME-monitor         none: pipes lie in no folder
//
// Tenants' listeners have X-tenants/TENANT/broker.sock, DIR-tenants/TENANT/... and NAME-TENANT.
//
// Places of old: until version 0.1.0 all was in one folder, X. Those are served up to
// kOldPlacesEnd. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// The clients' socket of this process's daemon unless it is told otherwise.
std::string DefaultLocalName();

// Of the operators' socket, with which all can be done, and of the one that only shows.
std::string AdminNameOf(const std::string& client_name);
std::string MonitorNameOf(const std::string& client_name);
// Of the monitor socket that belongs to an admin socket with a name of its own.
std::string MonitorNameBeside(const std::string& admin_name);

// Of the listener of a tenant, unless it has a name of its own.
std::string TenantNameOf(const std::string& client_name, const std::string& tenant);

// The group that may open the monitor socket of root's daemon unless its configuration names one.
inline constexpr char kMonitorGroup[] = "sluice-monitor";

// The folder of the daemon's own files, and one of them: that folder, the socket's own name and
// `suffix`. Empty on Windows.
std::string StateFolderOf(const std::string& client_name);
std::string StateFileOf(const std::string& client_name, const std::string& suffix);

// True if whoever has the clients' folder mounted, as it is or as it was of old, reaches `name`.
bool IsInClientsReach(const std::string& name, const std::string& client_name);

// --- places of old

// The version that serves none of them.
inline constexpr char kOldPlacesEnd[] = "0.3.0";
// True if `version` ("1.2.3") serves them; so does a text that is no version.
bool OldPlacesServedBy(std::string_view version);
bool OldPlacesServed();  // By this one.

// X/broker.sock, of X/clients/broker.sock; "" if there was none.
std::string OldClientNameOf(const std::string& client_name);
// The admin socket's former place; "" if it is there still.
std::string OldAdminNameOf(const std::string& client_name);

}  // namespace sluice
