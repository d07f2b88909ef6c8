/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common to gl_frames and cl_frames: the pixels of frame F, and how one hears of the other.
 */
#ifndef SHARED_FRAMES_H
#define SHARED_FRAMES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sluice/sluice.h"

enum { TIMEOUT_MS = 30000, MOST_FRAMES = 1000000, MOST_PIXELS = 16384 };

#define FOURCC_AB24 0x34324241u /* RGBA in memory */

/* The same in the fragment shader of one and the kernel of the other. */
#define PIXEL_RED "((x + frame) & 255)"
#define PIXEL_GREEN "((y + 3 * frame) & 255)"
#define PIXEL_BLUE "((x ^ y ^ frame) & 255)"

static inline void check(sluice_status status, const char* what) {
  if (status == SLUICE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, sluice_status_string(status), sluice_error_text());
  exit(1);
}

/* The number on the command line, from 1 to `most`, or 0. */
static inline int number(const char* text, long most) {
  char* end = NULL;
  const long value = strtol(text, &end, 10);
  return *text != '\0' && *end == '\0' && value >= 1 && value <= most ? (int)value : 0;
}

/* Waits until the watched resource has been written more than `generation` times, which `whose`
   turn it is to do. */
static inline void await_write(sluice_watch* watch, uint64_t* generation, const char* whose) {
  sluice_state state;
  do {
    const sluice_status told = sluice_watch_next(watch, TIMEOUT_MS, &state);
    if (told == SLUICE_TIMED_OUT)
      fprintf(stderr, "%s has written nothing for %d s\n", whose, TIMEOUT_MS / 1000);
    check(told, "watch");
  } while (state.generation <= *generation);
  *generation = state.generation;
}

#endif
