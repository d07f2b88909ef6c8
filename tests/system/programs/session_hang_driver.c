// SPDX-License-Identifier: Apache-2.0
// A driver that is none for a probe, and holds a session's worker for good as soon as it is asked.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int IsProbe(void) {
  char line[4096] = "";
  FILE* file = fopen("/proc/self/cmdline", "r");
  if (file == NULL) return 0;
  const size_t size = fread(line, 1, sizeof(line) - 1, file);
  fclose(file);
  for (size_t at = 0; at < size; at += strlen(line + at) + 1) {
    if (strncmp(line + at, "--probe", 7) == 0) return 1;
  }
  return 0;
}

// Loaders ask for this first.
__attribute__((visibility("default"))) void* clGetExtensionFunctionAddress(const char* name) {
  (void)name;
  while (!IsProbe()) pause();
  return NULL;
}
