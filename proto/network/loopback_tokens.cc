// SPDX-License-Identifier: Apache-2.0
#include "proto/network/loopback_tokens.h"

#include "absl/strings/escaping.h"
#include "broker/os/random.h"

namespace sluice::wire {
namespace {

constexpr size_t kWholeLength = 2 * kLoopbackTokenBytes;  // In hexadecimal.
constexpr size_t kShownLength = kWholeLength / 2;

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

LoopbackSecrets SecretsOf(const uint8_t* bytes, uint32_t flags) {
  const std::string text = LoopbackTokenText(bytes);
  if ((flags & kTicketProves) == 0) return {text, ""};
  return {text.substr(0, kShownLength), text.substr(kShownLength)};
}

absl::StatusOr<LoopbackToken> LoopbackTokens::Issue(uint64_t id) {
  LoopbackToken token;
  if (absl::Status filled = os::FillRandom(token.data(), token.size()); !filled.ok()) return filled;
  absl::MutexLock lock(&mutex_);
  issued_[id] = {LoopbackTokenText(token.data()), ""};
  return token;
}

void LoopbackTokens::Revoke(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  issued_.erase(id);
}

std::optional<LoopbackTokens::Admitted> LoopbackTokens::Admit(std::string_view text,
                                                              std::string_view peer) {
  if ((text.size() != kWholeLength && text.size() != kShownLength) || peer.empty())
    return std::nullopt;
  absl::MutexLock lock(&mutex_);
  auto shown = issued_.end();
  for (auto it = issued_.begin(); it != issued_.end(); ++it) {
    const std::string_view whole = it->second.text;
    if (SameText(whole.substr(0, text.size()), text)) shown = it;  // No early end.
  }
  if (shown == issued_.end()) return std::nullopt;
  if (shown->second.peer.empty()) shown->second.peer = std::string(peer);
  if (shown->second.peer != peer) return std::nullopt;
  return Admitted{shown->first, shown->second.text.substr(text.size())};
}

}  // namespace sluice::wire
