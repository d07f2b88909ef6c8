// SPDX-License-Identifier: Apache-2.0
//
// The system's own types that broker/os speaks in. On Windows a uid_t is the number that this
// process has given a user's SID (peer_identity.h), and a pid_t a process id.
#pragma once

#include <sys/types.h>

#ifdef _WIN32
#include <cerrno>
#include <cstdint>

using uid_t = uint32_t;
using gid_t = uint32_t;

#ifndef ESHUTDOWN
#define ESHUTDOWN 10058  // The one errno value of our messages that mingw does not have.
#endif
#endif
