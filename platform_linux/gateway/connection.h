// SPDX-License-Identifier: Apache-2.0
//
// One network connection, and the socket pair by which gRPC serves it:
//
//   client -- TCP, TLS --> [handshake] -> [preface] -> open: gate -- socket pair --> gRPC
//          -- TCP, no tokens asked for --> [preface] -> given: gRPC has the client's own socket
//
// Before it is open it costs a descriptor, OpenSSL's state and 24 bytes. Bytes are passed on before
// more are read, so that at most one read's bytes are held each way, and a side that does not read
// delays itself alone. When one side has ended, the other still gets the bytes that are left.
//
// If there are neither TLS nor tokens, anybody may come, and gRPC gets the client's own socket:
// that saves two wake-ups of a thread.
//
// Owner: a FrontThread, on whose thread all but SendNow is called; after admission another one. The
// client is hostile, gRPC's end is not.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "broker/os/scoped_handle.h"
#include "daemon/gateway/front/http2_gate.h"
#include "platform_linux/gateway/front_state.h"
#include "platform_linux/gateway/tls.h"

namespace sluice::gateway {

class Connection {
 public:
  // An event's data points to one of these.
  struct Source {
    Connection* connection = nullptr;
    bool inner = false;
  };

  Connection(FrontState* front, os::UniqueFd socket, std::string address, int64_t now_ms);
  ~Connection();

  // False: the address has as many connections as it may.
  bool Begin();
  // From now on its sockets are in this epoll set, and in no other.
  bool Watch(int epoll);
  void Unwatch();
  // True once the client is admitted: the thread at the door hands it on.
  bool past_door() const { return stage_ == Stage::kAdmitted || stage_ == Stage::kGiven; }

  // To be called after an event at one of its sockets, and when due_ms() has come. False: the
  // connection is over.
  bool Serve(int64_t now_ms, char* scratch, size_t scratch_bytes);
  // `source`'s other end is gone; there may be bytes to read.
  void OnHangUp(const Source* source);
  // Passes on at once what gRPC has written. On any thread that holds the record's lock.
  void SendNow();

  // When Serve is to be called without an event; 0: not at all. 1: at once.
  int64_t due_ms() const { return due_ms_; }
  // False: by these files its certificate is no longer good.
  bool Recheck(const TlsContext& tls);

  // The owner's.
  std::list<std::unique_ptr<Connection>>::iterator place;
  int64_t queued_ms = 0;  // Its key in the owner's queue; 0: it is not there.
  bool dead = false;

 private:
  enum class Stage { kHandshake, kPreface, kAdmitted, kOpen, kGiven };
  enum class Got { kBytes, kNothing, kEnd };

  bool ServeHandshake();
  bool ServePreface(char* scratch, size_t scratch_bytes);
  bool PeekPreface();
  bool Settle();
  bool Give();
  bool Open();
  bool ServeLocked(int64_t now_ms, char* scratch, size_t scratch_bytes);
  bool ServeOpen(int64_t now_ms, char* scratch, size_t scratch_bytes);
  bool PumpUp(int64_t now_ms, char* scratch, size_t scratch_bytes);
  bool PumpDown(char* scratch, size_t scratch_bytes);

  Got ReadClient(char* out, size_t room, size_t* size);
  bool Judge(std::string_view bytes, int64_t now_ms);
  void PassUp(std::string_view bytes);
  bool WriteClient(std::string_view bytes);
  bool SendToClient(std::string_view bytes);
  void Await();
  void AwaitEvents();
  void AwaitAt(Source* source, int fd, uint32_t* now, uint32_t wanted);
  bool Offence(std::string_view what);

  FrontState* const front_;
  int epoll_ = -1;
  os::UniqueFd client_;
  os::UniqueFd inner_;
  Source client_source_{this, false};
  Source inner_source_{this, true};
  uint32_t client_events_ = 0;  // Awaited by epoll.
  uint32_t inner_events_ = 0;
  bool client_watched_ = false;
  bool inner_watched_ = false;

  Stage stage_;
  const int64_t admitted_until_ms_;  // When it must be open.
  std::shared_ptr<PeerRecord> record_;
  std::unique_ptr<TlsStream> tls_;  // Null: plaintext.
  Http2Gate gate_;
  bool trusted_ = false;

  std::string preface_;  // Its bytes so far.
  std::string held_;     // Bytes to pass on when the delay is over.
  std::string to_grpc_;  // Bytes that its socket did not take.
  std::string to_client_;
  bool client_gone_ = false;
  bool grpc_gone_ = false;
  bool tls_closed_ = false;
  int64_t last_words_ms_ = 0;  // By then the bytes that are left must have been taken.
  int64_t waits_until_ms_ = 0;
  int64_t overdrawn_since_ms_ = 0;  // Since then it has sent more than it may all the time.
  int64_t due_ms_ = 0;
  bool more_ = false;  // There is more to read, for which no event will come.
};

}  // namespace sluice::gateway
