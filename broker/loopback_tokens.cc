// SPDX-License-Identifier: Apache-2.0
#include "broker/loopback_tokens.h"

#include "absl/strings/escaping.h"
#include "broker/os/random.h"

namespace sluice {
namespace {

// Of one length, which is no secret.
bool SameText(std::string_view a, std::string_view b) {
  volatile uint8_t difference = 0;  // Volatile: no early end that a compiler could think of.
  for (size_t i = 0; i < a.size(); ++i) {
    difference = difference | static_cast<uint8_t>(a[i] ^ b[i]);
  }
  return difference == 0;
}

}  // namespace

std::string LoopbackTokenText(const uint8_t* bytes) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes), kLoopbackTokenBytes));
}

absl::StatusOr<LoopbackToken> LoopbackTokens::Issue(uint64_t id) {
  LoopbackToken token;
  if (absl::Status filled = FillRandom(token.data(), token.size()); !filled.ok()) return filled;
  absl::MutexLock lock(&mutex_);
  issued_[id] = {LoopbackTokenText(token.data()), ""};
  return token;
}

void LoopbackTokens::Revoke(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  issued_.erase(id);
}

bool LoopbackTokens::Admit(std::string_view text, std::string_view peer) {
  if (text.size() != 2 * kLoopbackTokenBytes || peer.empty()) return false;
  absl::MutexLock lock(&mutex_);
  Issued* shown = nullptr;
  for (auto& [id, one] : issued_) {
    if (SameText(one.text, text)) shown = &one;  // No early end.
  }
  if (shown == nullptr) return false;
  if (shown->peer.empty()) shown->peer = std::string(peer);
  return shown->peer == peer;
}

}  // namespace sluice
