// SPDX-License-Identifier: Apache-2.0
// cl_khr_priority_hints and cl_khr_throttle_hints where the driver has them not. Their meaning here
// (the extensions leave it to the implementation):
//
//   priority, within the session:  queues are flushed from high to low when the ring runs dry, so
//       that of commands enqueued together a driver that begins work at the flush sees high ones
//       first.
//   priority, between sessions:    a session whose queues are all of low priority runs at nice 10,
//       and so does its autogroup: on a CPU device its kernels yield to those of other sessions.
//   throttle:  a session whose queues are all of low throttle asks the kernel for little: its
//       threads' utilisation counts for at most a quarter when clock and core are chosen.
//
// The last two change the worker's threads, and on a GPU those of the driver's host side only. They
// end with the last such queue, or with the first queue of another kind. Where the kernel would not
// let the threads have their priority back (RLIMIT_NICE), or has no utilisation clamps, they are
// left undone. High is as medium between sessions: no session may put itself above others.
//
// Owned by the Session. Session thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/worker/driver.h"

namespace sluice::worker {

// Smaller is sooner.
enum class QueueLevel { kHigh, kMedium, kLow };

struct QueueHints {
  QueueLevel priority = QueueLevel::kMedium;
  QueueLevel throttle = QueueLevel::kMedium;
};

// Takes out of a property list (names and values, no terminator) the hints that the device's driver
// does not have. CL_INVALID_VALUE for a value that is none; CL_INVALID_QUEUE_PROPERTIES with a
// queue on the device (sections 9.18.1, 9.19.1).
cl_int TakeQueueHints(cl_device_id device, std::vector<cl_queue_properties>* properties,
                      QueueHints* hints);

class SessionHints {
 public:
  void Add(const QueueHints& hints);
  void Remove(const QueueHints& hints);

 private:
  void Apply();

  int queues_ = 0;
  int low_priority_ = 0;
  int low_throttle_ = 0;
  bool nice_ = false;  // The state that has been applied.
  bool clamped_ = false;
};

}  // namespace sluice::worker
