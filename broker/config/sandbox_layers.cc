// SPDX-License-Identifier: Apache-2.0
#include "broker/config/sandbox_layers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/config/config_keys.h"
#include "broker/config/sandbox_trial.h"
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

std::string SharedNamespaces(const Config& config) {
  if (!FixedKeyReason("system_calls").empty()) return "this system has none";
  return config.worker.namespaces ? TrySandbox(config).namespaces : "namespaces = false";
}

std::string SharedRoot(const Config& config) {
  if (!FixedKeyReason("system_calls").empty()) return "this system has none";
  if (!config.worker.private_root) return "private_root = false";
  if (!config.worker.confine_files) return "confine_files = false";
  if (!config.worker.namespaces) return "namespaces = false";
  return TrySandbox(config).private_root;
}

struct Layer {
  const char* name;
  std::string (*missing)(const Config&);
};
constexpr Layer kLayers[] = {{"files", &OpenFiles},
                             {"programs", &OpenFiles},
                             {"system-calls", &OpenCalls},
                             {"namespaces", &SharedNamespaces},
                             {"private-root", &SharedRoot}};

}  // namespace

std::vector<SandboxLayer> SandboxLayers(const Config& config) {
  std::vector<SandboxLayer> layers;
  for (const Layer& layer : kLayers) layers.push_back({layer.name, layer.missing(config)});
  return layers;
}

std::vector<std::string> SandboxArguments(const Config& config) {
  std::vector<std::string> arguments;
  if (SharedNamespaces(config).empty()) arguments.emplace_back("--namespaces=1");
  if (SharedRoot(config).empty()) arguments.emplace_back("--private-root=1");
  return arguments;
}

std::string LayerProblem(const Config& config, const std::string& name) {
  std::vector<std::string> names;
  for (const Layer& layer : kLayers) {
    if (name == layer.name) {
      const std::string missing = layer.missing(config);
      return missing.empty() ? "" : absl::StrCat("which is not in force: ", missing);
    }
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
