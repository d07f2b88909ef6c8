// SPDX-License-Identifier: Apache-2.0
//
// Between a client's stream and gRPC: passes the bytes of both ways on, and makes a client wait
// that gives up calls (RST_STREAM) faster than they can be worked off. gRPC bounds neither their
// number nor their rate: a stream that was reset counts no more as one, its call is never seen by
// our code, and as long as more keep coming gRPC writes nothing on that connection and frees
// nothing of it (some 20 KiB each), keeps a thread for it, and in the end says GOAWAY to others.
// Few are each stream's own, more are shared by all: many streams bring no more than one. It also
// ends a client for which gRPC's other limits do not hold: one that begins calls without end and
// never acknowledges our settings (only then gRPC counts streams), or headers without an end.
//
// Owner: the ResourceListener. One thread of its own. Thread-safe. Only the headers of clients'
// frames are looked at; gRPC checks the rest.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/scoped_handle.h"
#include "proto/network/http2_frames.h"

namespace sluice::broker {

// Reads the headers of a client's frames. Thread-compatible.
class FrameMeter {
 public:
  // Looks at these bytes, which follow those of the last call: how many calls they give up
  // (RST_STREAM frames that begin in them).
  int Count(const char* bytes, size_t size);

  // True from the frame on that no client of gRPC's sends: calls beyond all that may be before our
  // settings are acknowledged, or a block of headers that has grown too large.
  bool broken() const { return broken_; }

 private:
  void OnFrame(const wire::FrameCutter::Header& frame);

  wire::FrameCutter frames_{wire::FrameCutter::kPrefaceBytes};
  int resets_ = 0;       // Of this call of Count.
  int early_calls_ = 0;  // Before the acknowledgement.
  bool acknowledged_ = false;
  size_t block_bytes_ =
      0;  // Of the block of headers that has no end yet, with its frames' headers.
  bool broken_ = false;
};

class StreamGate {
 public:
  static absl::StatusOr<std::unique_ptr<StreamGate>> Start();
  ~StreamGate();  // Ends all streams.

  // Until either ends; then both are shut down and closed.
  void Add(os::UniqueFd client, os::UniqueFd server);

 private:
  struct Way {
    int from = -1;
    int to = -1;
    std::array<char, 4096> bytes;
    size_t begin = 0;
    size_t end = 0;
    bool may_bring_descriptors = false;
    bool empty() const { return begin == end; }
  };
  struct Stream {
    os::UniqueFd client;
    os::UniqueFd server;
    Way up;
    Way down;
    FrameMeter meter;
    double resets_left = 0;
    double own_left = 0;         // Of them, those that are nobody else's.
    int64_t earned_ms = 0;       // When both were last right.
    int64_t waits_until_ms = 0;  // 0: it need not.
    uint32_t client_events = 0;  // That are waited for.
    uint32_t server_events = 0;
    std::list<std::unique_ptr<Stream>>::iterator place;
  };

  StreamGate(os::UniqueFd epoll, os::UniqueFd wake);
  void Run();
  void TakeNew();
  void Serve(Stream* stream);
  void PassLast(Stream* stream);
  void End(Stream* stream);
  void Forget(Stream* stream);
  static ssize_t Receive(Way* way);     // As recv.
  bool Pass(Stream* stream, Way* way);  // False: an end has been closed.
  void Charge(Stream* stream, int resets);
  void Await(Stream* stream);
  void ServeRested();
  int MillisecondsToNext() const;

  const os::UniqueFd epoll_;
  const os::UniqueFd wake_;
  // The thread's alone. Its work for one event does not depend on how many streams there are.
  std::list<std::unique_ptr<Stream>> streams_;
  std::set<std::pair<int64_t, Stream*>> waiting_;  // By when they need not any more.
  double shared_left_ = 0;                         // Resets that any stream may take.
  int64_t shared_earned_ms_ = 0;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Stream>> new_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace sluice::broker
