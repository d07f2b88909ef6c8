// SPDX-License-Identifier: Apache-2.0
// How the broker puts a session into a worker that serves several (broker/children/pools.h): on the
// pool's control socket, which is descriptor 4 of a worker with --pool. As all of broker_messages.h.
#pragma once

#include "proto/broker_messages.h"

namespace sluice::wire {

// A Welcome names it to a client of a domain that may have pools; the client then says in its
// OpenSession whether the session can be in one, or why it cannot. The second: for contexts of
// processors, too.
inline constexpr char kFeaturePools[] = "pools";
inline constexpr char kFeaturePoolsOfProcessors[] = "pools-of-processors";

// Bits of OpenSession::flags, said only to a broker with the feature: the session can share a worker;
// or its program refuses; or its context's properties or devices need a worker of their own.
inline constexpr uint32_t kOpenSessionMayPool = 2;
inline constexpr uint32_t kOpenSessionRefusesPool = 4;
inline constexpr uint32_t kOpenSessionNeedsWorker = 8;
static_assert((kOpenSessionKnownFlags & ~kOpenSessionSync) ==
              (kOpenSessionMayPool | kOpenSessionRefusesPool | kOpenSessionNeedsWorker));

// broker -> pool, with two descriptors: the session's handle channel and its control socket. The
// limits are those that the pool was started with.
struct AddSession {
  static constexpr MessageType kType = MessageType::kAddSession;
  MessageHeader header;
  uint64_t session_id;
};
static_assert(sizeof(AddSession) == 16);
inline constexpr int kAddSessionDescriptors = 2;

// How long a session of a pool that has ended may need until its commands have, too. After that the
// pool ends; the broker sees to it some time later.
inline constexpr int kPoolDrainMs = 2'000;

}  // namespace sluice::wire
