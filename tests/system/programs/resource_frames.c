/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two programs that exchange frames through daemon-owned resources, in plain C:
 *
 *   resource_frames produce COUNT WIDTH HEIGHT    prints the capabilities, writes COUNT frames
 *   resource_frames consume COUNT FRAMES ACK      verifies every pixel of every frame, in order
 *   resource_frames die-writing                   prints a capability, holds it half-written, waits
 *   resource_frames look FRAMES                   says whether the contents are indeterminate
 *   resource_frames time-turns COUNT              says what an acquire and release take, together
 *   resource_frames time-lives COUNT              the same of creating and destroying a buffer
 *
 * The producer waits for the consumer's word, which comes back through a resource of its own.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sluice/sluice.h"

#define FOURCC_AR24 0x34325241u
enum { TIMEOUT_MS = 30000 };

static void check(sluice_status status, const char* what) {
  if (status == SLUICE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, sluice_status_string(status), sluice_error_text());
  exit(1);
}

static uint32_t pixel(uint32_t frame, uint64_t position) {
  uint64_t mixed = (frame + 1) * 0x9e3779b97f4a7c15u ^ position * 0xc2b2ae3d27d4eb4fu;
  return (uint32_t)(mixed >> 29) ^ frame;
}

struct memory {
  void* at;
  uint64_t size;
};

static struct memory map_resource(sluice_connection* daemon, const sluice_capability* capability,
                                  sluice_access access) {
  sluice_handle handle;
  memset(&handle, 0, sizeof handle);
  handle.struct_size = sizeof handle;
  check(sluice_export(daemon, capability, access, &handle), "export");
  struct memory memory = {NULL, handle.size_bytes};
  check(sluice_map(&handle, &memory.at), "map");
  sluice_handle_close(&handle);
  return memory;
}

static void make(sluice_connection* daemon, const char* label, uint64_t width, uint64_t height,
                 uint32_t flags, sluice_capability* read, sluice_capability* write) {
  sluice_create_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  info.flags = flags;
  info.label = label;
  if (height == 0) {
    info.shape.size_bytes = width;
  } else {
    info.shape.drm_fourcc = FOURCC_AR24;
    info.shape.width = width;
    info.shape.height = height;
  }
  check(sluice_create(daemon, &info, read, write), "create");
}

static void print_capability(const char* name, const sluice_capability* capability) {
  char text[SLUICE_CAPABILITY_TEXT_SIZE];
  sluice_capability_to_text(capability, text);
  printf("%s %s\n", name, text);
  fflush(stdout);
}

/* Waits until the watched resource has been written more than `generation` times. */
static void await_write(sluice_watch* watch, uint64_t* generation) {
  sluice_state state;
  do {
    check(sluice_watch_next(watch, TIMEOUT_MS, &state), "watch");
  } while (state.generation <= *generation);
  *generation = state.generation;
}

static double seconds_since(const struct timespec* begin) {
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - begin->tv_sec) + (double)(end.tv_nsec - begin->tv_nsec) / 1e9;
}

static int produce(sluice_connection* daemon, uint32_t count, uint64_t width, uint64_t height) {
  sluice_capability frames_read, frames_write, ack_read, ack_write;
  make(daemon, "frames", width, height, 0, &frames_read, &frames_write);
  /* Both programs are users of one account: only trusted readers leave room for a later writer. */
  make(daemon, "acknowledged \xe2\x9c\x93", sizeof(uint32_t), 0, SLUICE_TRUST_READERS, &ack_read,
       &ack_write); /* Labels are UTF-8. */
  struct memory frames = map_resource(daemon, &frames_write, SLUICE_WRITE);
  struct memory ack = map_resource(daemon, &ack_read, SLUICE_READ);
  sluice_watch* watch = NULL;
  check(sluice_watch_open(daemon, &ack_read, &watch), "watch");
  print_capability("frames", &frames_read);
  print_capability("ack", &ack_write);
  uint32_t* pixels = frames.at;
  uint64_t acknowledged = 0;
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (uint32_t frame = 1; frame <= count; ++frame) {
    sluice_hold hold;
    check(sluice_acquire(daemon, &frames_write, SLUICE_WRITE, TIMEOUT_MS, &hold), "acquire");
    for (uint64_t i = 0; i < width * height; ++i) pixels[i] = pixel(frame, i);
    check(sluice_release(daemon, &hold, 0), "release");
    await_write(watch, &acknowledged);
    check(sluice_acquire(daemon, &ack_read, SLUICE_READ, TIMEOUT_MS, &hold), "acquire");
    if (*(volatile uint32_t*)ack.at != frame) {
      fprintf(stderr, "frame %u acknowledged as %u\n", frame, *(volatile uint32_t*)ack.at);
      return 1;
    }
    check(sluice_release(daemon, &hold, 0), "release");
  }
  printf("produced %u frames, %.1f per second\n", count, count / seconds_since(&begin));
  sluice_watch_close(watch);
  sluice_unmap(frames.at, frames.size);
  sluice_unmap(ack.at, ack.size);
  return 0;
}

static int consume(sluice_connection* daemon, uint32_t count, const sluice_capability* frames,
                   const sluice_capability* ack) {
  sluice_description description;
  memset(&description, 0, sizeof description);
  description.struct_size = sizeof description;
  check(sluice_describe(daemon, frames, &description), "describe");
  struct memory in = map_resource(daemon, frames, SLUICE_READ);
  struct memory out = map_resource(daemon, ack, SLUICE_WRITE);
  const uint32_t* pixels = in.at;
  const uint64_t total = description.shape.width * description.shape.height;
  sluice_watch* watch = NULL;
  check(sluice_watch_open(daemon, frames, &watch), "watch");
  uint64_t written = 0;
  for (uint32_t frame = 1; frame <= count; ++frame) {
    sluice_hold hold;
    await_write(watch, &written);
    check(sluice_acquire(daemon, frames, SLUICE_READ, TIMEOUT_MS, &hold), "acquire");
    if (hold.indeterminate || hold.generation != frame) {
      fprintf(stderr, "frame %u is generation %" PRIu64 "%s\n", frame, hold.generation,
              hold.indeterminate ? ", indeterminate" : "");
      return 1;
    }
    for (uint64_t i = 0; i < total; ++i) {
      if (pixels[i] == pixel(frame, i)) continue;
      fprintf(stderr, "frame %u differs at pixel %" PRIu64 "\n", frame, i);
      return 1;
    }
    check(sluice_release(daemon, &hold, 0), "release");
    check(sluice_acquire(daemon, ack, SLUICE_WRITE, TIMEOUT_MS, &hold), "acquire");
    *(volatile uint32_t*)out.at = frame;
    check(sluice_release(daemon, &hold, 0), "release");
  }
  printf("verified %u frames of %" PRIu64 "x%" PRIu64 "\n", count, description.shape.width,
         description.shape.height);
  sluice_watch_close(watch);
  sluice_unmap(in.at, in.size);
  sluice_unmap(out.at, out.size);
  return 0;
}

static void die_writing(sluice_connection* daemon) {
  sluice_capability read, write;
  make(daemon, "half-written", 64, 64, 0, &read, &write);
  struct memory memory = map_resource(daemon, &write, SLUICE_WRITE);
  print_capability("frames", &read);
  getchar(); /* The reader has looked at it once, and keeps it alive. */
  sluice_hold hold;
  check(sluice_acquire(daemon, &write, SLUICE_WRITE, TIMEOUT_MS, &hold), "acquire");
  memset(memory.at, 0xff, memory.size / 2);
  puts("holding");
  fflush(stdout);
  for (;;) sleep(60);
}

/* Looks, says what it saw, waits for a line, and looks again. */
static int look(sluice_connection* daemon, const sluice_capability* frames) {
  for (int round = 0; round < 2; ++round) {
    sluice_hold hold;
    check(sluice_acquire(daemon, frames, SLUICE_READ, TIMEOUT_MS, &hold), "acquire");
    printf("%s\n", hold.indeterminate ? "indeterminate" : "determinate");
    fflush(stdout);
    check(sluice_release(daemon, &hold, 0), "release");
    if (round == 0) getchar();
  }
  return 0;
}

static int time_lives(sluice_connection* daemon, int count) {
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < count; ++i) {
    sluice_capability read, write;
    make(daemon, "lives", 65536, 0, 0, &read, &write);
    check(sluice_destroy(daemon, &write), "destroy");
  }
  printf("a creation and its end take %.1f us\n", seconds_since(&begin) / count * 1e6);
  return 0;
}

static int time_turns(sluice_connection* daemon, int count) {
  sluice_capability read, write;
  make(daemon, "turns", 64, 0, 0, &read, &write);
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < count; ++i) {
    sluice_hold hold;
    check(sluice_acquire(daemon, &write, SLUICE_WRITE, TIMEOUT_MS, &hold), "acquire");
    check(sluice_release(daemon, &hold, 0), "release");
  }
  printf("an acquire and its release take %.1f us\n", seconds_since(&begin) / count * 1e6);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  sluice_connection* daemon = NULL;
  check(sluice_connect(NULL, &daemon), "connect");
  sluice_capability one, two;
  int code = 2;
  if (strcmp(what, "produce") == 0 && argc == 5) {
    code =
        produce(daemon, (uint32_t)atoi(argv[2]), (uint64_t)atoi(argv[3]), (uint64_t)atoi(argv[4]));
  } else if (strcmp(what, "consume") == 0 && argc == 5) {
    check(sluice_capability_from_text(argv[3], &one), "capability");
    check(sluice_capability_from_text(argv[4], &two), "capability");
    code = consume(daemon, (uint32_t)atoi(argv[2]), &one, &two);
  } else if (strcmp(what, "die-writing") == 0) {
    die_writing(daemon);
  } else if (strcmp(what, "look") == 0 && argc == 3) {
    check(sluice_capability_from_text(argv[2], &one), "capability");
    code = look(daemon, &one);
  } else if (strcmp(what, "time-turns") == 0 && argc == 3) {
    code = time_turns(daemon, atoi(argv[2]));
  } else if (strcmp(what, "time-lives") == 0 && argc == 3) {
    code = time_lives(daemon, atoi(argv[2]));
  } else {
    fprintf(stderr,
            "usage: resource_frames produce|consume|die-writing|look|time-turns|time-lives ...\n");
  }
  sluice_disconnect(daemon);
  return code;
}
