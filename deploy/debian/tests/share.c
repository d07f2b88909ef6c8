// SPDX-License-Identifier: Apache-2.0
//
// One connection makes memory and writes it, another one gets the read capability and reads it.
#include <sluice/sluice.h>
#include <stdio.h>
#include <string.h>

enum { kBytes = 4096 };

static int check(sluice_status status, const char* what) {
  if (status != SLUICE_OK) fprintf(stderr, "%s: %s\n", what, sluice_error_text());
  return status == SLUICE_OK;
}

// Maps the memory in a turn of its own.
static int with_memory(sluice_connection* connection, const sluice_capability* capability,
                       sluice_access access, const char* text) {
  sluice_handle handle = {.struct_size = sizeof(handle)};
  sluice_hold hold;
  void* address = NULL;
  if (!check(sluice_acquire(connection, capability, access, 5000, &hold), "sluice_acquire") ||
      !check(sluice_export(connection, capability, access, &handle), "sluice_export") ||
      !check(sluice_map(&handle, &address), "sluice_map"))
    return 0;
  if (access == SLUICE_WRITE) strcpy(address, text);
  const int same = strcmp(address, text) == 0;
  sluice_unmap(address, handle.size_bytes);
  sluice_handle_close(&handle);
  if (!same) fprintf(stderr, "the memory does not hold what was written\n");
  return check(sluice_release(connection, &hold, 0), "sluice_release") && same;
}

int main(void) {
  sluice_connection* writer = NULL;
  sluice_connection* reader = NULL;
  sluice_capability read, write;
  const sluice_create_info info = {.struct_size = sizeof(info), .shape.size_bytes = kBytes};
  if (!check(sluice_connect(NULL, &writer), "sluice_connect") ||
      !check(sluice_connect(NULL, &reader), "sluice_connect") ||
      !check(sluice_create(writer, &info, &read, &write), "sluice_create") ||
      !with_memory(writer, &write, SLUICE_WRITE, "written by one") ||
      !with_memory(reader, &read, SLUICE_READ, "written by one"))
    return 1;
  sluice_disconnect(reader);
  sluice_disconnect(writer);
  puts("one has written, the other has read");
  return 0;
}
