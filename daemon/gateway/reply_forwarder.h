// SPDX-License-Identifier: Apache-2.0
//
// The way out: frames from the worker's reply ring to a network client. Most pass as they are. A
// Grant is remembered for the chunk that answers it. ReadData takes its bytes along, straight from
// the heap, in messages of about a MiB. The reason why the worker ended the session is kept for the
// log.
//
// Owner: a StreamSession's thread, the only caller. The worker is as hostile as its client: what it
// says about spans is checked, and an error ends this session only.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "daemon/gateway/grant_table.h"
#include "daemon/gateway/heap_map.h"
#include "proto/frame.h"

namespace sluice::gateway {

// Bytes of one network message, about: what is sent at once, and what either side must be ready to
// take.
inline constexpr size_t kNetworkMessageBytes = 1 << 20;

// A ServerMessage in the making: pieces, partly copied, partly by reference.
class OutgoingPieces {
 public:
  void Add(const wire::PieceHeader& piece, std::string_view a, std::string_view b,
           std::string_view c);
  // The last part lies in the heap and stays there until gRPC has sent it. A small part is copied.
  void AddWithSpan(const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                   const uint8_t* span, size_t bytes,
                   const std::shared_ptr<const os::SharedMapping>& mapping);

  size_t bytes() const { return bytes_; }
  bool full() const { return bytes_ >= kNetworkMessageBytes; }
  // The whole message; empties this.
  grpc::ByteBuffer Take();

 private:
  void Cut();  // Makes what has been copied so far a slice.

  std::vector<grpc::Slice> slices_;
  std::string copied_;
  size_t bytes_ = 0;
};

class ReplyForwarder {
 public:
  // Sends what is collected and empties it; false: the session is over. May block.
  using Send = std::function<bool(OutgoingPieces*)>;

  ReplyForwarder(HeapMap* heap, GrantTable* grants, Send send)
      : heap_(heap), grants_(grants), send_(std::move(send)) {}

  // Adds a piece to what is collected, sending whenever that is full. May change `*body`.
  // kCancelled: Send returned false; every other error is a violation by the worker.
  absl::Status Forward(const wire::PieceHeader& piece, std::string* body);
  OutgoingPieces& collected() { return collected_; }
  // Why the worker ended the session, as it says; "" if it did not.
  const std::string& last_words() const { return last_words_; }

 private:
  absl::Status SendIfFull();
  absl::Status ForwardReadData(const wire::FrameHeader& header, std::string_view message);
  absl::Status RememberGrant(const wire::FrameHeader& header, std::string_view message);
  void NoteEnd(std::string_view message);

  HeapMap* const heap_;
  GrantTable* const grants_;
  const Send send_;
  OutgoingPieces collected_;
  bool in_frame_ = false;
  std::string last_words_;
};

}  // namespace sluice::gateway
