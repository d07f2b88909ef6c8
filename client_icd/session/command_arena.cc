// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/command_arena.h"

#include "client_icd/session/command_stream.h"

namespace sluice::client {
namespace {

// This thread's arena. The pointer needs no destructor, so that it can still be read by objects
// released while the thread or the process ends; what it points to then is made again and never
// freed.
thread_local MessageArena* tls_arena = nullptr;
thread_local int tls_arena_depth = 0;

struct ArenaOwner {
  ~ArenaOwner() {
    delete tls_arena;
    tls_arena = nullptr;
  }
};

MessageArena* MakeThreadArena() {
  thread_local ArenaOwner owner;
  static_cast<void>(owner);
  return tls_arena = new MessageArena;
}

}  // namespace

ScopedCommand::ScopedCommand() {
  MessageArena* arena = tls_arena != nullptr ? tls_arena : MakeThreadArena();
  ++tls_arena_depth;
  command_ = arena->Make<pb::Command>();
}

ScopedCommand::~ScopedCommand() {
  if (--tls_arena_depth == 0) tls_arena->Reset();
}

}  // namespace sluice::client
