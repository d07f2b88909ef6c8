// SPDX-License-Identifier: Apache-2.0
//
// One connection of the network, and the socket pair that leads to gRPC:
//
//   client -- TCP, TLS --> [handshake] -> [preface] -> [admitted] -> open: gate -- pair --> gRPC
//          -- TCP, where nobody is kept out --> [preface] -> given: gRPC has the client's socket
//
// Until it is open it costs a descriptor, OpenSSL's state and 24 bytes. Bytes are forwarded before
// more are read, so it holds one read's bytes at most, each way; a peer that does not read delays
// itself alone. When one side has ended, the other still gets what was sent to it.
//
// Where neither TLS nor a token keeps anybody out, there is no stranger either: gRPC reads from the
// network itself, which saves two wake-ups of a thread.
//
// Owner: a FrontThread, which calls all but SendNow; it may hand the connection to another one,
// which then watches it. The client is hostile, gRPC is not.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "broker/os/scoped_handle.h"
#include "daemon/gateway/front/http2_gate.h"
#include "platform_linux/gateway/client_stream.h"
#include "platform_linux/gateway/front_state.h"
#include "platform_linux/gateway/watched_socket.h"

namespace sluice::gateway {

class Connection {
 public:
  Connection(FrontState* front, os::UniqueFd socket, std::string address, int64_t now_ms);
  ~Connection();

  // False: the address has as many connections as it may.
  bool Begin();
  // From now on `epoll` reports its events, and no other set.
  bool Watch(int epoll) {
    epoll_ = epoll;
    return client_.Watch(epoll);
  }
  void Unwatch() { client_.Unwatch(); }
  // The client has sent all that a newcomer must, so the door has nothing left to do.
  bool is_admitted() const { return stage_ == Stage::kAdmitted || stage_ == Stage::kGiven; }

  // After an event of one of its sockets, or at due_ms. False: the connection is over.
  bool Serve(int64_t now_ms, char* scratch, size_t scratch_bytes);
  // The other end of `source` is gone, though bytes may be left to read there.
  void OnHangUp(const EventSource& source);
  // Forwards at once what gRPC has written. Any thread, which holds the record's lock.
  void SendNow();

  // When to call Serve without an event; 0: never. 1: at once.
  int64_t due_ms() const { return due_ms_; }
  // False: `tls` would not admit it, and it must end.
  bool Recheck(const TlsContext& tls);

  // For the owner.
  std::list<std::unique_ptr<Connection>>::iterator place;
  int64_t queued_ms = 0;  // Its place in the owner's queue; 0: none.
  bool dead = false;

 private:
  enum class Stage { kHandshake, kPreface, kAdmitted, kOpen, kGiven };

  bool ServeHandshake();
  bool ReadPreface(char* scratch, size_t scratch_bytes);
  bool PeekPreface();
  bool BecomeMember();
  bool GiveSocketToGrpc();
  bool OpenPairToGrpc();
  bool ServeLocked(int64_t now_ms, char* scratch, size_t scratch_bytes);
  bool ServeOpen(int64_t now_ms, char* scratch, size_t scratch_bytes);

  bool ForwardToGrpc(int64_t now_ms, char* scratch, size_t scratch_bytes);
  bool PassGate(std::string_view bytes, int64_t now_ms);
  void SendToGrpc(std::string_view bytes);
  bool ForwardToClient(char* scratch, size_t scratch_bytes);

  void AwaitEvents();
  void SetDueTime();
  bool Refuse(std::string_view why);  // Logs it; returns false.

  FrontState* const front_;
  int epoll_ = -1;
  WatchedSocket client_{{this, false}};
  WatchedSocket grpc_{{this, true}};
  ClientStream stream_;

  Stage stage_;
  const int64_t admitted_until_ms_;  // When it must be open.
  std::shared_ptr<PeerRecord> record_;
  Http2Gate gate_;
  bool trusted_ = false;

  std::string preface_;      // As much as has come.
  std::string held_;         // To pass the gate when the wait is over.
  std::string unsent_grpc_;  // Bytes that gRPC's socket did not take.
  bool client_gone_ = false;
  bool grpc_gone_ = false;
  int64_t flush_until_ms_ = 0;  // One end is gone: the other must have taken the rest by then.
  int64_t gate_opens_ms_ = 0;   // Until then nothing is read from the client; 0: it is read.
  int64_t over_limit_since_ms_ = 0;
  int64_t due_ms_ = 0;
  bool has_more_ = false;  // Bytes that no event will report.
};

}  // namespace sluice::gateway
