// SPDX-License-Identifier: Apache-2.0
//
// Bounds what a connection asks of gRPC, before gRPC sees it. gRPC 1.51 bounds neither the number
// nor the rate of what a peer sends beside data. These are calls that are begun (some 10 KiB each,
// and more once they are given up), blocks of headers without an end, and pings and settings, each
// of which it answers. Here a peer that sends these faster than anybody needs has to wait: it is
// not read, and TCP holds it up. The connection of a peer that does what no client does is ended.
//
// Both ways are looked at for frames' headers only; whether frames are right is gRPC's business.
//
// Owner: the connection. Thread-compatible, but for `shared`. The client's bytes are hostile, the
// server's are gRPC's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "daemon/gateway/front/budget.h"
#include "proto/network/http2_frames.h"

namespace sluice::gateway {

// Calls beyond their connection's own, of all connections of an entry: gRPC works off those of a
// thousand connections no faster than those of one.
inline constexpr Allowance kSharedCalls = {1024, 1000};

class Http2Gate {
 public:
  static constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

  explicit Http2Gate(SharedBudget* shared_calls);

  // From now on the peer is one that has said who it is.
  void Trust() { trusted_ = true; }

  // The client's next bytes, after the preface.
  struct Verdict {
    size_t passed = 0;    // So many of them may be passed on now,
    int64_t wait_ms = 0;  // and the rest, and whatever else comes, when this has gone by.
  };
  Verdict OnClient(std::string_view bytes, int64_t now_ms);
  // The server's.
  void OnServer(std::string_view bytes);

  // The fault of the client's, one that no honest client commits; empty: none. Its connection must
  // end.
  std::string_view offence() const { return offence_; }

 private:
  // How long to wait after this frame.
  int64_t OnClientFrame(const wire::FrameCutter::Header& frame, int64_t now_ms);
  int64_t OnHeaders(const wire::FrameCutter::Header& frame, int64_t now_ms);
  int64_t OnCall(int64_t now_ms);

  SharedBudget* const shared_calls_;
  bool trusted_ = false;
  std::string_view offence_;
  wire::FrameCutter from_client_;
  wire::FrameCutter from_server_;

  uint32_t last_stream_ = 0;
  absl::flat_hash_set<uint32_t> open_;  // Streams that neither end has ended.
  size_t block_bytes_ = 0;  // Of headers without an end, their frames' headers included.
  int block_frames_ = 0;

  Budget own_calls_;
  Budget newcomer_calls_;
  Budget newcomer_bytes_;
  Budget own_questions_;
  Budget own_small_;
};

}  // namespace sluice::gateway
