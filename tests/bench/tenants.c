// SPDX-License-Identifier: Apache-2.0
// K processes that launch a small kernel and wait for it, again and again, on one device: what a shared device does
// in sum, and how long one launch takes. With flood_ms, one more process keeps 8 kernels of about that length queued.
//
//   tenants K SECONDS [iters=N] [global=N] [pause_us=N] [flood_ms=MS]
//
// iters: of the kernel's loop (0: a kernel of nothing). pause_us: between launches, of the first tenant alone.
// Prints one JSON object. Exit code 1: a process failed, or a result is wrong.
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work_kernel.h"

enum { kMostTenants = 64, kMostTimes = 1 << 22, kFloodDepth = 8 };

struct result {
  long count;
  double p50, p99, longest;
};
struct shared {
  atomic_int ready, go, failed;
  double flood_per_s;
  struct result results[kMostTenants];
};

static struct shared* shared;
static int iters = 0, pause_us = 0;
static double flood_ms = 0, seconds = 2;
static size_t global = 64;

static cl_mem buffer;

static void meet(void) {
  atomic_fetch_add(&shared->ready, 1);
  while (!atomic_load(&shared->go)) usleep(100);
}

static int compare(const void* a, const void* b) {
  const float x = *(const float*)a, y = *(const float*)b;
  return (x > y) - (x < y);
}

static void be_tenant(int index) {
  buffer = set_up_work(global);
  set_iterations(iters);
  long launched = 100;
  for (int i = 0; i < 100; i++) {
    launch_work(global, NULL);
    ocl_check(clFinish(queue), "clFinish");
  }
  float* times = malloc(kMostTimes * sizeof(float));
  struct result* result = &shared->results[index];
  meet();
  const double end = ocl_seconds() + seconds;
  for (double begin = ocl_seconds(); begin < end; begin = ocl_seconds()) {
    launch_work(global, NULL);
    ocl_check(clFinish(queue), "clFinish");
    launched++;
    if (result->count < kMostTimes) times[result->count++] = (float)((ocl_seconds() - begin) * 1e6);
    if (index == 0 && pause_us > 0) usleep((useconds_t)pause_us);
  }
  cl_uint done = 0;
  ocl_check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(done), &done, 0, NULL, NULL),
            "clEnqueueReadBuffer");
  if (done != (cl_uint)launched) {
    fprintf(stderr, "tenants: %u launches left their mark, of %ld\n", done, launched);
    atomic_store(&shared->failed, 1);
  }
  qsort(times, (size_t)result->count, sizeof(float), compare);
  if (result->count == 0) return;
  result->p50 = times[result->count / 2];
  result->p99 = times[result->count * 99 / 100];
  result->longest = times[result->count - 1];
}

// Before the others have begun: it has the device alone.
static void calibrate(size_t items) {
  double n = 1000;
  for (int i = 0; i < 12; i++) {
    set_iterations((int)n);
    const double begin = ocl_seconds();
    launch_work(items, NULL);
    ocl_check(clFinish(queue), "clFinish");
    const double took = (ocl_seconds() - begin) * 1e3;
    if (i > 0 && took > flood_ms * 0.9 && took < flood_ms * 1.1) break;
    n = took < flood_ms / 10 ? n * 5 : n * flood_ms / took;
    if (n > 2e9) n = 2e9;
  }
}

static void be_flood(void) {
  const size_t items = 270336;
  buffer = set_up_work(items);
  set_iterations(iters);
  calibrate(items);
  meet();
  cl_event events[kFloodDepth] = {0};
  const double begin = ocl_seconds();
  long done = 0;
  for (long i = 0; ocl_seconds() < begin + seconds; i++) {
    cl_event* event = &events[i % kFloodDepth];
    if (*event != NULL) {
      ocl_check(clWaitForEvents(1, event), "clWaitForEvents");
      clReleaseEvent(*event);
      done++;
    }
    launch_work(items, event);
    ocl_check(clFlush(queue), "clFlush");
  }
  shared->flood_per_s = (double)done / (ocl_seconds() - begin);
}

static void start(int index) {
  if (fork() != 0) return;
  if (index < 0) {
    be_flood();
  } else {
    be_tenant(index);
  }
  _exit(atomic_load(&shared->failed));
}

static int take(const char* argument) {
  if (strncmp(argument, "iters=", 6) == 0) return iters = atoi(argument + 6), 1;
  if (strncmp(argument, "global=", 7) == 0) return global = (size_t)atol(argument + 7), 1;
  if (strncmp(argument, "pause_us=", 9) == 0) return pause_us = atoi(argument + 9), 1;
  if (strncmp(argument, "flood_ms=", 9) == 0) return flood_ms = atof(argument + 9), 1;
  return 0;
}

static void print(int tenants) {
  long sum = 0, least = -1, most = 0;
  double p50 = 0, p99 = 0, longest = 0;
  for (int i = 0; i < tenants; i++) {
    const struct result* one = &shared->results[i];
    sum += one->count;
    if (least < 0 || one->count < least) least = one->count;
    if (one->count > most) most = one->count;
    p50 += one->p50 / tenants;
    p99 += one->p99 / tenants;
    if (one->longest > longest) longest = one->longest;
  }
  const struct result* first = &shared->results[0];
  printf(
      "{\"tenants\": %d, \"per_s\": %.0f, \"fairness\": %.3f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
      "\"max_us\": %.1f, "
      "\"first_per_s\": %.1f, \"first_p50_us\": %.1f, \"first_p99_us\": %.1f, \"flood_per_s\": "
      "%.2f}\n",
      tenants, (double)sum / seconds, most > 0 ? (double)least / (double)most : 0, p50, p99,
      longest, (double)first->count / seconds, first->p50, first->p99, shared->flood_per_s);
}

int main(int argc, char** argv) {
  const int tenants = argc > 2 ? atoi(argv[1]) : 0;
  int good = tenants >= 1 && tenants <= kMostTenants && (seconds = atof(argv[2])) > 0;
  for (int i = 3; i < argc; i++) good = good && take(argv[i]);
  if (!good) {
    fprintf(stderr, "usage: tenants K SECONDS [iters=N] [global=N] [pause_us=N] [flood_ms=MS]\n");
    return 2;
  }
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  if (flood_ms > 0) start(-1);
  while (flood_ms > 0 && atomic_load(&shared->ready) < 1 && !atomic_load(&shared->failed))
    usleep(1000);
  for (int i = 0; i < tenants; i++) start(i);
  const int all = tenants + (flood_ms > 0);
  while (atomic_load(&shared->ready) < all && !atomic_load(&shared->failed)) usleep(1000);
  atomic_store(&shared->go, 1);
  int failed = 0, status;
  while (wait(&status) > 0) failed |= status != 0;
  if (failed) return 1;
  print(tenants);
  return 0;
}
