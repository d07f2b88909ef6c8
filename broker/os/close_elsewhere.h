// SPDX-License-Identifier: Apache-2.0
//
// Closing what a stranger made takes as long as he likes: a file of his own file system (FUSE)
// waits for his answer, a TCP socket (SO_LINGER) for his reader; and so does closing a local socket
// in which messages lie unread that carry such. So a thread that others depend on leaves it to one
// of these.
//
// Who calls bounds it: by `until_closed`, which counts against the stranger as long as it lives.
// Thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "broker/os/scoped_handle.h"

namespace sluice {

// Closes `fds` on a thread of its own, then lets `until_closed` go. Here, before it returns, what
// cannot take long (a socket for which RefuseDescriptors has held from the start); and whatever it
// is where no thread is to be had, or 2048 are at it already.
void CloseElsewhere(std::vector<UniqueFd> fds, std::shared_ptr<void> until_closed = nullptr);
void CloseElsewhere(UniqueFd fd, std::shared_ptr<void> until_closed = nullptr);

}  // namespace sluice
