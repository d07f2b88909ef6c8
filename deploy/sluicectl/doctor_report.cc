// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/doctor_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/output.h"

namespace sluice::ctl {
namespace {

// Some of it comes from files and environments of others: no byte of it steers a terminal.
std::string Shown(std::string text) {
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

const char* WordFor(const Step& step) {
  switch (step.result) {
    case Step::kOk:
      return "ok";
    case Step::kFailed:
      return "failed";
    case Step::kWarning:
      return "warning";
    case Step::kSkipped:
      break;
  }
  return "skipped";
}

}  // namespace

void Steps::Quotas(const std::string& account, std::vector<ShownQuota> quotas) {
  std::vector<std::string> all;
  std::vector<std::string> full;
  for (const ShownQuota& quota : quotas) {
    all.push_back(QuotaText(quota));
    if (IsFull(quota)) full.push_back(QuotaText(quota));
  }
  quotas_.push_back({{"account", account}, {"quotas", QuotasJson(quotas)}});
  const std::string text = absl::StrCat(account, ": ", absl::StrJoin(all, "; "));
  if (full.empty()) return Ok("quotas", text);
  Warning("quotas", text,
          absl::StrCat("at its limit: ", absl::StrJoin(full, "; "),
                       ". End what is not needed, or ask whoever runs the daemon for more "
                       "(sluiced.toml(5))"));
}

void Steps::Tell(bool json) {
  for (; !json && told_ < steps_.size(); ++told_) {
    const Step& step = steps_[told_];
    std::printf("%-8s %-20s %s\n", WordFor(step), step.name.c_str(), Shown(step.found).c_str());
    if (!step.advice.empty()) std::printf("%-8s %-20s -> %s\n", "", "", Shown(step.advice).c_str());
  }
  std::fflush(stdout);
}

int Steps::Report(bool json, const char* healthy_text, const char* other_text) {
  Tell(json);
  bool healthy = true;
  nlohmann::json list = nlohmann::json::array();
  for (const Step& step : steps_) {
    healthy = healthy && step.result != Step::kFailed;
    list.push_back({{"step", step.name},
                    {"result", WordFor(step)},
                    {"found", step.found},
                    {"advice", step.advice}});
  }
  if (json) {
    const nlohmann::json report = {{"healthy", healthy}, {"steps", list}, {"accounts", quotas_}};
    PrintJson(report);
  } else {
    std::printf("%s", healthy ? healthy_text : other_text);
  }
  return healthy ? kExitOk : kExitFailed;
}

}  // namespace sluice::ctl
