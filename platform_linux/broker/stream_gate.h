// SPDX-License-Identifier: Apache-2.0
//
// Between a client's stream and gRPC: passes the bytes on both ways, and delays a client that
// resets calls (RST_STREAM) faster than gRPC can clean them up. gRPC bounds neither their number
// nor their rate. A reset stream no longer counts, and our code never sees its call. While more
// keep coming, gRPC writes nothing on that connection, frees nothing of it (some 20 KiB each),
// keeps a thread for it, and in the end says GOAWAY to others. Each stream may have a few resets of
// its own; more are shared by all, so that many streams bring no more than one. The gate also ends
// a client that escapes gRPC's other limits: one that begins calls without end and never
// acknowledges our settings (gRPC counts streams only after that), or one whose headers never end.
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
  // Looks at these bytes, which follow those of the last call. Returns the number of RST_STREAM
  // frames that begin in them.
  int Count(const char* bytes, size_t size);

  // True after a frame that no client of gRPC's sends: too many calls before our settings are
  // acknowledged, or a block of headers that has grown too large.
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
    double own_left = 0;         // Of them, those of this stream alone.
    int64_t earned_ms = 0;       // When both were last right.
    int64_t waits_until_ms = 0;  // 0: it is not delayed.
    uint32_t client_events = 0;  // Awaited by epoll.
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
  // Used on the thread only. Its work for one event does not depend on the number of streams.
  std::list<std::unique_ptr<Stream>> streams_;
  std::set<std::pair<int64_t, Stream*>> waiting_;  // By the end of their delay.
  double shared_left_ = 0;                         // Resets that any stream may take.
  int64_t shared_earned_ms_ = 0;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Stream>> new_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace sluice::broker
