// SPDX-License-Identifier: Apache-2.0
//
// The findings of an examination, step by step, and how they are told. Single thread.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deploy/sluicectl/quotas.h"

namespace sluice::ctl {

struct Step {
  std::string name;
  enum { kOk, kFailed, kSkipped, kWarning } result;  // kWarning: no program minds.
  std::string found;                                 // The finding.
  std::string advice;                                // The remedy, if it failed, or warns.
};

class Steps {
 public:
  void Ok(const std::string& name, const std::string& found) {
    steps_.push_back({name, Step::kOk, found, ""});
  }
  void Failed(const std::string& name, const std::string& found, const std::string& advice) {
    steps_.push_back({name, Step::kFailed, found, advice});
  }
  void Warning(const std::string& name, const std::string& found, const std::string& advice) {
    steps_.push_back({name, Step::kWarning, found, advice});
  }
  // Shown whole in JSON, too.
  void Quotas(const std::string& account, std::vector<ShownQuota> quotas);
  void Skipped(const std::string& name, const std::string& why) {
    steps_.push_back({name, Step::kSkipped, why, ""});
  }

  // Prints what has been found so far, unless it is to be JSON: before what may end this process.
  void Tell(bool json);

  // Prints the rest, and the last sentence; the exit code.
  int Report(bool json, const char* healthy_text, const char* other_text);

 private:
  std::vector<Step> steps_;
  size_t told_ = 0;
  nlohmann::json quotas_ = nlohmann::json::array();
};

}  // namespace sluice::ctl
