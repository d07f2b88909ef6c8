// SPDX-License-Identifier: Apache-2.0
// One program's work on a device that others want too: what it gets of it, for shares.py.
//
//   share_load calibrate MS           prints how many iterations of the kernel's loop last about so long, alone
//   share_load run KERNELS DEPTH WARM SECONDS [EVERY_MS]
//
// KERNELS: iterations, joined by commas; the launches take them in turn. DEPTH: 0 launches and waits, with others so
// many are queued. EVERY_MS: one launch in so many milliseconds, where the depth is 0. It says READY and reads from
// stdin at which second of CLOCK_REALTIME it begins; it counts from WARM later on, for SECONDS, and goes on for WARM
// more. Prints one JSON object.
#include <unistd.h>

#include "work_kernel.h"

enum { kMostKernels = 8, kMostDepth = 64, kItems = 1024, kMostTimes = 1 << 20 };

static void launch(int iterations, cl_event* event) {
  set_iterations(iterations);
  launch_work(kItems, event);
}

static double milliseconds_of(int iterations) {
  const double begin = ocl_seconds();
  launch(iterations, NULL);
  ocl_check(clFinish(queue), "clFinish");
  return (ocl_seconds() - begin) * 1e3;
}

static int calibrate(double wanted_ms) {
  double n = 1000;
  milliseconds_of(1);
  for (int i = 0; i < 16; i++) {
    const double took = milliseconds_of((int)n);
    if (took > wanted_ms * 0.95 && took < wanted_ms * 1.05) break;
    n = took < wanted_ms / 10 ? n * 5 : n * wanted_ms / took;
    if (n > 2e9) n = 2e9;
  }
  printf("{\"iterations\": %d, \"ms\": %.3f}\n", (int)n, milliseconds_of((int)n));
  return 0;
}

static double realtime(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct counts {
  long launches;
  long of[kMostKernels];
  double longest_us;
};

static float times_us[kMostTimes];  // Of the launches that count, as many as fit.

static int compare_times(const void* a, const void* b) {
  const float left = *(const float*)a, right = *(const float*)b;
  return (left > right) - (left < right);
}

// Of the launches that end while it counts.
static void work(const int* kernels, int count, int depth, double every, double first, double last,
                 double end, struct counts* counts) {
  cl_event events[kMostDepth] = {0};
  for (long i = 0;; i++) {
    const double begin = realtime();
    if (begin > end) break;
    const int which = (int)(i % count);
    long ended = i;
    if (depth == 0) {
      launch(kernels[which], NULL);
      ocl_check(clFinish(queue), "clFinish");
    } else {
      cl_event* event = &events[i % depth];
      ended = *event == NULL ? -1 : i - depth;
      if (*event != NULL) {
        ocl_check(clWaitForEvents(1, event), "clWaitForEvents");
        clReleaseEvent(*event);
      }
      launch(kernels[which], event);
      ocl_check(clFlush(queue), "clFlush");
    }
    const double now = realtime();
    if (every > now - begin) usleep((useconds_t)((every - (now - begin)) * 1e6));
    if (ended < 0 || now < first || now > last) continue;
    if (counts->launches < kMostTimes) times_us[counts->launches] = (float)((now - begin) * 1e6);
    counts->launches++;
    counts->of[ended % count]++;
    if ((now - begin) * 1e6 > counts->longest_us) counts->longest_us = (now - begin) * 1e6;
  }
  ocl_check(clFinish(queue), "clFinish");
}

static int run(char** arguments) {
  int kernels[kMostKernels], count = 0;
  for (char* one = strtok(arguments[0], ","); one != NULL && count < kMostKernels;
       one = strtok(NULL, ","))
    kernels[count++] = atoi(one);
  const int depth = atoi(arguments[1]);
  const double warm = atof(arguments[2]), seconds = atof(arguments[3]);
  const double every = arguments[4] == NULL ? 0 : atof(arguments[4]) * 1e-3;
  if (count == 0 || depth < 0 || depth > kMostDepth || seconds <= 0 || every < 0) return 2;
  set_up_work(kItems);
  milliseconds_of(1);
  printf("READY\n");
  fflush(stdout);
  double start = 0;
  if (scanf("%lf", &start) != 1) return 1;
  while (realtime() < start) usleep(1000);
  struct counts counts = {0};
  const double first = start + warm, last = first + seconds;
  work(kernels, count, depth, every, first, last, last + warm, &counts);
  const size_t timed = counts.launches < kMostTimes ? (size_t)counts.launches : kMostTimes;
  qsort(times_us, timed, sizeof(times_us[0]), compare_times);
  printf("{\"per_s\": %.2f, \"longest_us\": %.0f, ", (double)counts.launches / seconds,
         counts.longest_us);
  printf("\"p50_us\": %.1f, \"p99_us\": %.1f, \"of\": [", (double)times_us[timed / 2],
         (double)times_us[timed * 99 / 100]);
  for (int i = 0; i < count; i++)
    printf("%s%.3f", i > 0 ? ", " : "", (double)counts.of[i] / seconds);
  printf("]}\n");
  return 0;
}

int main(int argc, char** argv) {
  int result = 2;
  if (argc == 3 && strcmp(argv[1], "calibrate") == 0) {
    set_up_work(kItems);
    result = calibrate(atof(argv[2]));
  } else if ((argc == 6 || argc == 7) && strcmp(argv[1], "run") == 0) {
    result = run(argv + 2);
  }
  if (result == 2)
    fprintf(stderr, "usage: share_load calibrate MS | run KERNELS DEPTH WARM SECONDS [EVERY_MS]\n");
  return result;
}
