// SPDX-License-Identifier: Apache-2.0
//
// Whether gRPC can be used in this process. It does not survive a fork: a child shares its parent's
// epoll set, so that what the child adds there is told to the parent, with addresses of the child.
// Thread-safe.
#pragma once

namespace sluice {

// From a true answer on, children of this process get false; so do those of a process in which
// somebody else had gRPC running when it forked. Before each first use of gRPC.
bool ClaimGrpc();

}  // namespace sluice
