// SPDX-License-Identifier: Apache-2.0
// Large reads and writes: the application's bytes stay with the client until the command may run,
// then move in chunks.
//
//   queue:   [earlier commands] -> ready          done (a user event) -> [barrier, later commands]
//   write:   ready -> Grant(span) -> client fills it -> TransferChunk -> driver writes from it
//                  -> ... -> done
//   read:    ready -> driver reads into a span -> ReadData(span) -> client takes it -> TransferAck
//                  -> ... -> done
//
// A buffer that lies in the heap itself needs no driver call: its own memory is the span. But where
// the application is to be told the times, all is left to the driver: they are values of its clock
// (section 5.14), and only its own commands tell the time by that. `done` stands for the command
// wherever the driver must wait for it. In a queue in order that is not before something is
// enqueued behind it, which a blocking transfer never sees. In one out of order it is not before
// something that waits for all (Enqueuer, OwnEvents). Nothing here blocks: a transfer that finds no
// staging memory waits its turn.
//
// Trust: the client's TransferChunk and TransferAck only say "go on"; where and how much was
// granted is remembered here. Thread-safe: driven by the session thread and by driver callbacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "daemon/worker/cl_handle.h"
#include "daemon/worker/memory/heap.h"
#include "daemon/worker/objects.h"
#include "daemon/worker/queues/completions.h"
#include "daemon/worker/queues/in_flight.h"
#include "proto/codec.h"

namespace sluice::worker {

class Pins;
class Replies;

// A transfer as the handler plans it. Packed bytes are the region's rows, one after the other.
struct TransferPlan {
  enum class Kind { kLinear, kRect, kImage };
  bool is_write = false;
  Kind kind = Kind::kLinear;
  std::shared_ptr<MemoryObject> memory;
  uint64_t offset = 0;  // kLinear
  uint64_t total_bytes = 0;
  wire::Size3 origin;  // kRect, kImage
  wire::Size3 region;
  size_t row_pitch = 0;  // kRect
  size_t slice_pitch = 0;
  uint64_t row_bytes = 0;  // Packed bytes of one row of the region: kRect, kImage.
  uint64_t event_id = 0;
  // The queue of the chunks: the context's own, or if the times are wanted its timed one.
  cl_command_queue queue = nullptr;
  bool profiling = false;
  CommandShare share;  // Counted as in flight until it has ended.
};

// The slice pitch of tightly packed rows, as clEnqueueReadImage wants it: 0 for images without
// slices (section 5.3.3).
size_t HostSlicePitch(const MemoryObject& image, size_t row_bytes, size_t rows);

// False if the box is empty or not in the image, whatever wraps: the client has checked that, and
// not every driver survives it.
bool IsInImage(const MemoryObject& image, const wire::Size3& origin, const wire::Size3& region);

// The part of a transfer that others keep.
struct TransferEnd {
  UniqueCl<cl_event> done;          // The user event that stands for it.
  std::atomic<bool> ended = false;  // Nothing needs to wait for it any more. Release in End.
};

class Transfers {
 public:
  // Staging memory comes from `heap`, which `pins` pins.
  Transfers(Replies* replies, Completions* completions, Heap* heap, Pins* pins)
      : replies_(replies), completions_(completions), heap_(heap), pins_(pins) {}

  // Registers the plan. The driver must be made to wait for end->done by the caller, who calls
  // Ready once what the command waits for has ended.
  cl_int Begin(const TransferPlan& plan, std::shared_ptr<TransferEnd>* end);
  void Ready(uint64_t event_id, cl_int status);

  // The whole of it as one command of the driver's: the packed bytes are, or go, at `host`.
  static cl_int EnqueueWhole(cl_command_queue queue, const TransferPlan& plan, uint8_t* host,
                             cl_uint wait_count, const cl_event* waits, cl_event* event);

  // The client's frames. An event id without a transfer is ignored: it may have failed meanwhile.
  absl::Status OnChunk(uint64_t event_id, uint64_t offset, uint64_t size);
  absl::Status OnAck(uint64_t event_id, uint64_t offset, uint64_t size);

  // The client has gone, and nobody will say "go on": all of them fail.
  void FailAll();
  // After that, when nothing is under way any more: what was granted is nobody's.
  void Clear();

 private:
  struct Chunk {
    uint64_t offset = 0;  // Of the packed bytes.
    uint64_t size = 0;
    size_t y = 0, rows = 0, z = 0, slices = 0;  // Of the region: kRect, kImage.
    HeapSpan span;
    bool staged = false;   // The span is ours to free.
    uint64_t arrived = 0;  // Bytes the client has filled or taken.
    bool sent = false;     // Read: the client has been told where the bytes are.
    bool moving = false;   // Write: all has arrived.
  };
  struct Transfer {
    TransferPlan plan;
    std::shared_ptr<TransferEnd> end;
    uint64_t next_offset = 0;          // First packed byte no chunk has been made for.
    uint64_t moved_bytes = 0;          // Chunks that have ended.
    uint64_t read_bytes = 0;           // Sent to the client.
    std::map<uint64_t, Chunk> chunks;  // In flight, by offset.
    bool ended = false;                // If it has failed, chunks may still be in flight.
    UniqueCl<cl_event> queued;         // Profiling: a marker from when it was enqueued.
    EventTimes times;                  // Profiling: of the chunks whose times are known,
    uint64_t timed_bytes = 0;          // these.
  };
  using TransferRef = std::shared_ptr<Transfer>;

  TransferRef Find(uint64_t event_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Chunk NextChunk(const Transfer& transfer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Pump(const TransferRef& transfer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartChunk(const TransferRef& transfer, Chunk chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A step of the driver: from or into the chunk's span.
  void MoveChunk(const TransferRef& transfer, const Chunk& chunk)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static cl_int EnqueueChunk(cl_command_queue queue, const TransferPlan& plan, const Chunk& chunk,
                             cl_uint wait_count, const cl_event* waits, cl_event* event);
  static void NoteTimes(const EventTimes& times, uint64_t bytes, Transfer* transfer);
  void SendComplete(const Transfer& transfer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SendReadData(const TransferRef& transfer, const Chunk& chunk)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndChunk(const TransferRef& transfer, uint64_t chunk_offset)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(const TransferRef& transfer, cl_int status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeSpan(const Transfer& transfer, const Chunk& chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Feed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunDeferred();

  Replies* const replies_;
  Completions* const completions_;
  Heap* const heap_;
  Pins* const pins_;
  std::atomic<uint64_t> staged_bytes_ = 0;  // All that was ever moved through staging memory.
  absl::Mutex mu_;
  absl::flat_hash_map<uint64_t, TransferRef> transfers_ ABSL_GUARDED_BY(mu_);
  std::deque<TransferRef> starving_
      ABSL_GUARDED_BY(mu_);  // Found no staging memory; first come, first served.
  uint64_t staging_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Driver calls that may call back into us: made without the lock, by whoever has just left it.
  std::vector<std::function<void()>> deferred_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::worker
