// SPDX-License-Identifier: Apache-2.0
//
// One connection of the network's, and the socket behind it at whose other end gRPC is:
//
//   client -- TCP, TLS --> [handshake] -> [preface] -> open: gate -- socket pair --> gRPC
//          -- TCP, no tokens asked for --> [preface] -> given: gRPC has the client's own socket
//
// Before it is open it costs a descriptor, OpenSSL's state and 24 bytes. Bytes are passed on before
// more are read, so what is held here is one read's, each way; who does not read holds up itself
// alone. A side that has ended is passed on what there is for it.
//
// Where neither TLS nor a token keeps anybody out, there is no stranger either: gRPC reads from the
// network itself, and is faster by two wake-ups of a thread.
//
// Owner: a FrontThread, on whose thread all but SendNow is called; later another one, which then
// watches it. The client is hostile, gRPC's end is not.
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
  // What an event's data points to.
  struct Source {
    Connection* connection = nullptr;
    bool inner = false;
  };

  Connection(FrontState* front, os::UniqueFd socket, std::string address, int64_t now_ms);
  ~Connection();

  // False: the address has as many connections as it may.
  bool Begin();
  // From now on its events are of this set, and of no other.
  bool Watch(int epoll);
  void Unwatch();
  // It has said all that a newcomer must: what follows is no business of the door's.
  bool past_door() const { return stage_ == Stage::kAdmitted || stage_ == Stage::kGiven; }

  // Something has happened at one of its sockets, or the time has come that it waited for. False:
  // it is over.
  bool Serve(int64_t now_ms, char* scratch, size_t scratch_bytes);
  // `source`'s other end is gone, whatever is to be read there.
  void OnHangUp(const Source* source);
  // What gRPC has written is passed on at once. Any thread, which holds the record's lock.
  void SendNow();

  // When it wants to be served whatever happens; 0: not at all. 1: at once.
  int64_t due_ms() const { return due_ms_; }
  // False: by these files it would not be let in.
  bool Recheck(const TlsContext& tls);

  // The owner's.
  std::list<std::unique_ptr<Connection>>::iterator place;
  int64_t queued_ms = 0;  // Where the owner has it in its queue; 0: nowhere.
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
  uint32_t client_events_ = 0;  // That are waited for.
  uint32_t inner_events_ = 0;
  bool client_watched_ = false;
  bool inner_watched_ = false;

  Stage stage_;
  const int64_t admitted_until_ms_;  // When it must be open.
  std::shared_ptr<PeerRecord> record_;
  std::unique_ptr<TlsStream> tls_;  // Null: plaintext.
  Http2Gate gate_;
  bool trusted_ = false;

  std::string preface_;  // What has come of it.
  std::string held_;     // What may be passed on when the wait is over.
  std::string to_grpc_;  // What its socket did not take.
  std::string to_client_;
  bool client_gone_ = false;
  bool grpc_gone_ = false;
  bool tls_closed_ = false;
  int64_t last_words_ms_ = 0;  // By when what is left must have been taken.
  int64_t waits_until_ms_ = 0;
  int64_t overdrawn_since_ms_ = 0;  // It has sent more than it may, all the time since.
  int64_t due_ms_ = 0;
  bool more_ = false;  // There is more to read, of which no event tells.
};

}  // namespace sluice::gateway
