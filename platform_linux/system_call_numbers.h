// SPDX-License-Identifier: Apache-2.0
// System calls for which the C library of Debian 11, on which the portable client is built, has no
// names.
#pragma once

#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
