// SPDX-License-Identifier: Apache-2.0
// A driver that does SLUICE_TEST_FAULT when a loader asks it for anything.
#include <signal.h>
#include <unistd.h>

static void Fault(void) {
  for (;;) SLUICE_TEST_FAULT;
}

typedef void (*Function)(void);

// The way to all of a driver's functions.
__attribute__((visibility("default"))) Function clGetExtensionFunctionAddress(const char* name) {
  (void)name;
  return &Fault;
}
