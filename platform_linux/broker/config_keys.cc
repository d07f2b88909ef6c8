// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config_keys.h"

#include <sys/stat.h>

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace sluice::broker {
namespace {

// "can be read by everybody (mode 0644); chmod o-r ends that". `bit`: others' right to it.
std::string DescribeOthers(const std::string& path, mode_t bit, const char* what, char letter) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || (info.st_mode & bit) == 0)
    return "";
  char mode[8];
  std::snprintf(mode, sizeof(mode), "%04o", info.st_mode & 07777);
  return absl::StrCat("can be ", what, " by everybody (mode ", mode, "); chmod o-",
                      std::string(1, letter), " ends that");
}

}  // namespace

std::string FixedKeyReason(const std::string&) { return ""; }

bool IsSameVariable(const std::string& a, const std::string& b) { return a == b; }

// Ignores the group, to which the file may have been given: Debian's ssl-cert, say.
std::string OtherReaders(const std::string& path) {
  return DescribeOthers(path, S_IROTH, "read", 'r');
}

std::string OtherWriters(const std::string& path) {
  return DescribeOthers(path, S_IWOTH, "written", 'w');
}

}  // namespace sluice::broker
