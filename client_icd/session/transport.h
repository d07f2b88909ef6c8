// SPDX-License-Identifier: Apache-2.0
// How frames travel between the client and its worker: the shared rings of a local session
// (ring_transport), or one gRPC stream of a remote one (the plugin libsluice_remote.so, loaded only
// for remote endpoints). Only standard types cross this interface, so that the plugin may carry
// another abseil and protobuf.
//
// Owned by Session. CommandStream serialises Send (its send lock) and Receive (its drain lock);
// everything else may be called from any thread at any time. Receive delivers the peer's frames:
// whole, but otherwise unchecked. Nothing here blocks for ever once the session is lost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broker/os/scoped_handle.h"
#include "proto/frame.h"
#include "proto/remote_describe.h"
#include "proto/ring_abi.h"

namespace sluice::client {

class Transport {
 public:
  virtual ~Transport() = default;

  // Sends one frame; waits for room if there is none. `wake`: the worker should look at it now;
  // without it, it may stay unseen until the next frame that says so. False: the session is lost.
  virtual bool Send(const wire::FrameHeader& header, std::string_view message,
                    std::string_view payload, bool wake) = 0;

  // The next reply frame, if there is one. Never waits.
  virtual bool Receive(wire::Frame* frame) = 0;
  // True if Receive might have something.
  virtual bool HasFrame() const = 0;

  // Says what a sleeping thread wants to be woken for, from now on (ring_abi.h), and returns a
  // ticket for Wait. kAwake: nobody sleeps. `awaited_event` counts with kSleepsForEvent.
  virtual uint32_t Arm(wire::RingSleep state, uint64_t awaited_event) = 0;
  // Sleeps as kBitWaiter or kBitBackground. Returns at once if a frame is there, or the bell has
  // rung since the ticket was given; returns too when the session is lost. May return without
  // cause.
  virtual void Wait(uint32_t ticket, uint32_t bit) = 0;
  // As Wait, for so long at most. False: the time has passed. True at once where there are no naps.
  virtual bool Nap(uint32_t /*ticket*/, uint32_t /*bit*/, int64_t /*ns*/) { return true; }
  // When the peer says that it last rang for Wait (MonotonicNs); 0 if that is not known.
  virtual int64_t rung_ns_untrusted() const { return 0; }
  // Rings the bell for the threads that sleep with these bits.
  virtual void Interrupt(uint32_t bits) = 0;

  virtual bool lost() const = 0;
  virtual std::string lost_reason() const = 0;
  // Ends the session from this side: makes lost() true and wakes everyone. The first reason is
  // kept.
  virtual void Lose(std::string_view reason) = 0;
  // The session is lost. If that is because the worker has ended, Receive gives what it had said
  // before, and the next Lose has the better reason. Serialised as Receive.
  virtual void ReceiveLastWords() {}
  // Called in the child of a fork: makes lost() true; touches no thread, no lock and no mapping.
  virtual void LoseInForkedChild() = 0;

  // A span of the shared heap, checked against its segment; null if it does not fit or there is no
  // shared memory.
  virtual uint8_t* Map(const wire::BulkSpan& span_untrusted) = 0;
  virtual bool shares_memory() const = 0;
  // The daemon's limit on commands in flight; 0: no limit.
  virtual uint64_t max_in_flight() const = 0;
  // Takes the descriptors that the worker has sent for the object with this id; waits for them, but
  // not long. None: there are none.
  virtual std::vector<os::UniqueFd> TakeDescriptors(uint64_t) { return {}; }
  // Hands a descriptor over under a token, before the command that names it. False: this session
  // passes none, or the worker takes none. The descriptor stays the caller's.
  virtual bool SendHandle(uint64_t, int) { return false; }
  // True if [memory, memory + bytes) touches the shared heap: the application works in a mapping.
  virtual bool InHeap(const void*, uint64_t) const { return false; }
};

// The function that the plugin exports as `sluice_remote_connect`, beside proto/remote_describe.h.
// It makes a new session, which the caller deletes. On failure it returns null and writes why,
// terminated, into `error`; `refused` is then true if the daemon is there and over a limit.
extern "C" {
using SluiceRemoteConnect = Transport*(const char* endpoint, bool* refused, char* error,
                                       uint64_t error_bytes);
// `sluice_remote_check`: null, or why gRPC is of no use in this process any more.
using SluiceRemoteCheck = const char*();
}

}  // namespace sluice::client
