// SPDX-License-Identifier: Apache-2.0
#include "broker/config/sandbox_layers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/config/config_keys.h"
#include "broker/os/file_access.h"

namespace sluice::broker {
namespace {

std::string OpenFiles(const Config& config) {
  static const std::string unconfined = os::UnconfinedReason();
  return config.worker.confine_files ? unconfined : "confine_files = false";
}

std::string OpenCalls(const Config& config) {
  if (!FixedKeyReason("system_calls").empty()) return "this system has no such list";
  if (config.worker.system_calls == os::CallRule::kListed) return "";
  return absl::StrCat("system_calls = \"",
                      std::string(os::CallRuleName(config.worker.system_calls)), "\"");
}

}  // namespace

std::vector<SandboxLayer> SandboxLayers(const Config& config) {
  return {{"files", OpenFiles(config)},
          {"programs", OpenFiles(config)},
          {"system-calls", OpenCalls(config)}};
}

std::string LayerProblem(const Config& config, const std::string& name) {
  std::vector<std::string> names;
  for (const SandboxLayer& layer : SandboxLayers(config)) {
    if (name == layer.name)
      return layer.missing.empty() ? "" : absl::StrCat("which is not in force: ", layer.missing);
    names.emplace_back(layer.name);
  }
  return absl::StrCat("which is none of ", absl::StrJoin(names, ", "));
}

std::string DescribeLayers(const Config& config) {
  std::vector<std::string> there;
  std::vector<std::string> missing;
  for (const SandboxLayer& layer : SandboxLayers(config)) {
    if (layer.missing.empty()) {
      there.emplace_back(layer.name);
    } else {
      missing.push_back(absl::StrCat(layer.name, " (", layer.missing, ")"));
    }
  }
  return absl::StrCat(there.empty() ? "none" : absl::StrJoin(there, ", "),
                      missing.empty() ? "" : "; not ", absl::StrJoin(missing, ", "));
}

}  // namespace sluice::broker
