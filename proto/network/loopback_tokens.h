// SPDX-License-Identifier: Apache-2.0
//
// The key to a port of loopback, to which anybody on the machine can connect: a peer must show a
// token that travelled another way (a pipe, whose access list says who may have it). A token is 256
// random bits, is bound to the first connection that shows it, and ends with the pipe it came
// through. All tokens are compared, each in constant time, so that nothing is learnt from how long
// a wrong one takes.
//
// And who may answer there: after the listener's end another program can have its port. So a client
// shows only the first half of its token, and believes an answer that comes with the second half
// (loopback_proof.h). One who does not know of that shows all of it, and is answered all the same.
//
// Owner: whoever listens. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace sluice::wire {

inline constexpr size_t kLoopbackTokenBytes = 32;
using LoopbackToken = std::array<uint8_t, kLoopbackTokenBytes>;

// The gRPC metadata that carries it, in hexadecimal, and that which carries the answerer's half.
inline constexpr char kLoopbackTokenKey[] = "x-sluice-token";
inline constexpr char kLoopbackProofKey[] = "x-sluice-proof";
std::string LoopbackTokenText(const uint8_t* bytes);

// A client's use of a ticket. `flags` are the ticket's.
inline constexpr uint32_t kTicketProves = 1;  // A peer that is shown half of the token proves
                                              // itself.
struct LoopbackSecrets {
  std::string token;  // To show.
  std::string proof;  // To be shown; empty where no proof is to be had.
};
LoopbackSecrets SecretsOf(const uint8_t* bytes, uint32_t flags);

class LoopbackTokens {
 public:
  // `id` is the caller's name for it, to revoke it by.
  absl::StatusOr<LoopbackToken> Issue(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Revoke(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  // The owner of the token `text`, all of it or its first half, if it is not revoked and no other
  // connection than `peer` has shown it. `peer` is what gRPC says of the connection,
  // "ipv4:127.0.0.1:50000".
  struct Admitted {
    uint64_t id = 0;
    std::string proof;  // For who has shown half.
  };
  std::optional<Admitted> Admit(std::string_view text, std::string_view peer)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Issued {
    std::string text;
    std::string peer;  // Empty until it is first shown.
  };

  absl::Mutex mutex_;
  std::map<uint64_t, Issued> issued_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace sluice::wire
