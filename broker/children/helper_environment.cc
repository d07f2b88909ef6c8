// SPDX-License-Identifier: Apache-2.0
#include "broker/children/helper_environment.h"

#include "absl/strings/str_cat.h"
#include "broker/os/this_process.h"

namespace sluice::broker {

std::vector<std::string> HelperEnvironment(std::initializer_list<const char*> more) {
  std::vector<const char*> names = {"PATH",         "LANG",          "LD_LIBRARY_PATH",
                                    "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
                                    "LSAN_OPTIONS"};
  names.insert(names.end(), more);
  std::vector<std::string> environment;
  for (const char* name : names) {
    if (const auto value = os::EnvironmentVariable(name)) {
      environment.push_back(absl::StrCat(name, "=", *value));
    }
  }
  return environment;
}

}  // namespace sluice::broker
