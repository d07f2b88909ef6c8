// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/own_namespaces.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {
namespace {

struct Capabilities {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
};

bool Says(const char* setting, const char* value) {
  std::string found;
  return std::ifstream(setting) >> found && found == value;
}

// By what an operator can change.
absl::Status Refused(const std::string& what, int error_number) {
  std::string why = absl::StrCat(what, ": ", std::strerror(error_number));
  if (Says("/proc/sys/user/max_user_namespaces", "0")) {
    why = "user.max_user_namespaces = 0";
  } else if (Says("/proc/sys/kernel/unprivileged_userns_clone", "0")) {
    why = "kernel.unprivileged_userns_clone = 0";
  } else if (Says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")) {
    absl::StrAppend(&why, " (kernel.apparmor_restrict_unprivileged_userns = 1)");
  } else if (error_number == EPERM) {
    absl::StrAppend(&why, " (a container's or a unit's bounds, or a chroot)");
  } else if (error_number == ENOSPC) {
    absl::StrAppend(&why, " (user.max_user_namespaces of this user's)");
  }
  return absl::UnavailableError(why);
}

bool WriteTo(const char* path, const std::string& text) {
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

absl::Status EnterNamespaces(Network network) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  const int kinds = CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWUTS;
  if (::unshare(network == Network::kNone ? kinds | CLONE_NEWNET : kinds) != 0)
    return Refused("unshare", errno);
  // Before a group can be mapped by a process without rights outside: user_namespaces(7).
  if (!WriteTo("/proc/self/setgroups", "deny")) return Refused("/proc/self/setgroups", errno);
  if (!WriteTo("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1")))
    return Refused("/proc/self/gid_map", errno);
  if (!WriteTo("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1")))
    return Refused("/proc/self/uid_map", errno);
  return absl::OkStatus();
}

bool MayListenOnLowPorts() {
  Capabilities own;
  return ::syscall(SYS_capget, &own.header, own.data) == 0 &&
         (own.data[CAP_TO_INDEX(CAP_NET_BIND_SERVICE)].effective &
          CAP_TO_MASK(CAP_NET_BIND_SERVICE)) != 0;
}

absl::Status GiveUpCapabilities() {
  // So that no program that it runs has any, should it be user 0. Without the right to change the
  // set, which a process outside of a namespace of its own lacks, no new privileges do the same.
  for (int capability = 0; ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  // Kernels without ambient capabilities have none to clear.
  static_cast<void>(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
  Capabilities none;
  if (::syscall(SYS_capset, &none.header, none.data) != 0)
    return absl::InternalError(absl::StrCat("capset: ", std::strerror(errno)));
  return absl::OkStatus();
}

}  // namespace sluice::os
