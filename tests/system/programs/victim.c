// SPDX-License-Identifier: Apache-2.0
//
// The application in the failure tests. It reaches a moment (idle, in a long kernel, in big
// transfers, in a build, with a buffer mapped, holding a shared object acquired) and says READY. It
// goes on until something breaks or a line on its standard input ends the wait or the transfers. It
// then reports what it saw as `key value` lines, the error codes above all, and opens a new
// context, which must work. It must never hang or crash, whatever was killed. Verdicts are the
// caller's: failure_kill.py.
//
// usage: victim idle|kernel|transfer|acquired|build|map [ROUNDS]
//   (so many kernels of about a second; a program of so many times 4096 statements)
#define _GNU_SOURCE
#include <CL/cl_ext.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ocl.h"

enum { kTransferBytes = 64 << 20, kLoopPasses = 1 << 30 };

static const char* kSource =
    "kernel void spin(global uint* out, uint n) {"
    "  uint x = out[0] | 1u; for (uint i = 0; i < n; ++i) x = x * 1664525u + 1013904223u;"
    "  out[get_global_id(0)] = x; }";

static volatile int notified = 0;

static void CL_CALLBACK on_context_error(const char* message, const void* info, size_t size,
                                         void* user) {
  (void)info;
  (void)size;
  (void)user;
  notified = 1;
  fprintf(stderr, "context notice: %s\n", message);
}

struct Setup {
  cl_device_id device;
  cl_device_id part;  // A sub-device, of this session alone.
  cl_context context;
  cl_command_queue queue;
  cl_kernel kernel;
  cl_mem buffer;
};

static void ready(const char* moment) {
  printf("READY %s\n", moment);
  fflush(stdout);
}

// Everything needed to launch; the code of the first call that failed otherwise.
static cl_int set_up(struct Setup* s) {
  cl_int code = CL_SUCCESS;
  s->context = clCreateContext(NULL, 1, &s->device, on_context_error, NULL, &code);
  if (code != CL_SUCCESS) return code;
  s->queue = clCreateCommandQueueWithProperties(s->context, s->device, NULL, &code);
  if (code != CL_SUCCESS) return code;
  const char* source = kSource;
  cl_program program = clCreateProgramWithSource(s->context, 1, &source, NULL, &code);
  if (code != CL_SUCCESS) return code;
  code = clBuildProgram(program, 1, &s->device, "", NULL, NULL);
  if (code != CL_SUCCESS) return code;
  s->kernel = clCreateKernel(program, "spin", &code);
  if (code != CL_SUCCESS) return code;
  clReleaseProgram(program);
  s->buffer = clCreateBuffer(s->context, CL_MEM_READ_WRITE, kTransferBytes, NULL, &code);
  return code;
}

static void report_available(const char* what, cl_device_id device) {
  cl_bool available = 77;
  const cl_int code =
      clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL);
  printf("%s %d\n", what, code == CL_SUCCESS ? (int)available : code);
}

static cl_int launch(struct Setup* s, cl_uint passes, cl_event* event) {
  const size_t one = 1;
  cl_int code = clSetKernelArg(s->kernel, 0, sizeof(cl_mem), &s->buffer);
  if (code == CL_SUCCESS) code = clSetKernelArg(s->kernel, 1, sizeof(passes), &passes);
  if (code != CL_SUCCESS) return code;
  return clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &one, NULL, 0, NULL, event);
}

static void wait_for_line(void) {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0 && byte != '\n') {
  }
}

typedef cl_int(CL_API_CALL* SyncGralloc)(cl_command_queue, cl_uint, const cl_mem*, cl_uint,
                                         const cl_event*, cl_event*);

// Holds a gralloc allocation acquired while it waits; returns what its release answers.
static cl_int hold_acquired(struct Setup* s) {
  cl_platform_id platform;
  clGetDeviceInfo(s->device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL);
  const SyncGralloc acquire = (SyncGralloc)clGetExtensionFunctionAddressForPlatform(
      platform, "clEnqueueAcquireGrallocObjectsIMG");
  const SyncGralloc release = (SyncGralloc)clGetExtensionFunctionAddressForPlatform(
      platform, "clEnqueueReleaseGrallocObjectsIMG");
  const int memory = memfd_create("victim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (acquire == NULL || release == NULL || memory < 0) return CL_INVALID_OPERATION;
  if (ftruncate(memory, kTransferBytes) != 0) return CL_INVALID_OPERATION;
  if (fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return CL_INVALID_OPERATION;
  int handle[] = {3 * sizeof(int), 1, 0, memory};  // A native_handle_t.
  cl_int code = CL_SUCCESS;
  cl_mem shared = clCreateBuffer(s->context, CL_MEM_USE_GRALLOC_PTR_IMG, 0, handle, &code);
  if (code != CL_SUCCESS) return code;
  code = acquire(s->queue, 1, &shared, 0, NULL, NULL);
  const cl_uint value = 7;
  if (code == CL_SUCCESS) {
    code = clEnqueueFillBuffer(s->queue, shared, &value, sizeof(value), 0, kTransferBytes, 0, NULL,
                               NULL);
  }
  if (code == CL_SUCCESS) code = clFinish(s->queue);
  if (code != CL_SUCCESS) return code;
  ready("acquired");
  wait_for_line();
  code = release(s->queue, 1, &shared, 0, NULL, NULL);
  if (code == CL_SUCCESS) code = clFinish(s->queue);
  clReleaseMemObject(shared);
  close(memory);
  return code;
}

static void CL_CALLBACK on_built(cl_program program, void* user) {
  (void)program;
  *(volatile int*)user = 1;
}

// In a build, until its callback comes; returns the build's status, or why it is not to be had. Its
// options are of this run alone, or a cache would have the binary.
static cl_int stay_in_build(int rounds, struct Setup* s) {
  static volatile int built = 0;
  enum { kMostRounds = 64 };
  char source[1024] =
      "#define A x = x * RUN + 1013904223u;\n#define B A A A A A A A A\n#define C B B B B B B B B\n"
      "#define D C C C C C C C C\n#define E D D D D D D D D\nkernel void slow(global uint* out) {"
      " uint x = out[0]; ";
  for (int i = 0; i < rounds && i < kMostRounds; ++i) strcat(source, "E ");
  strcat(source, "out[1] = x; }");
  const char* text = source;
  char options[64];
  snprintf(options, sizeof(options), "-DRUN=%lluu", (unsigned long long)(ocl_seconds() * 1e3));
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(s->context, 1, &text, NULL, &code);
  if (code == CL_SUCCESS)
    code = clBuildProgram(program, 1, &s->device, options, on_built, (void*)&built);
  if (code != CL_SUCCESS) return code;
  ready("build");
  while (!built) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  cl_build_status status = CL_BUILD_NONE;
  code = clGetProgramBuildInfo(program, s->device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
                               NULL);
  clReleaseProgram(program);
  return code == CL_SUCCESS ? status : code;
}

// With a buffer mapped, whose memory stays the application's whatever ends; returns what its unmap
// answers.
static cl_int hold_mapped(struct Setup* s) {
  cl_int code = CL_SUCCESS;
  unsigned char* mapped =
      clEnqueueMapBuffer(s->queue, s->buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                         kTransferBytes, 0, NULL, NULL, &code);
  if (code != CL_SUCCESS) return code;
  memset(mapped, 1, kTransferBytes / 2);
  ready("map");
  wait_for_line();
  memset(mapped, 2, kTransferBytes);
  size_t right = 0;
  for (size_t i = 0; i < kTransferBytes; ++i) right += mapped[i] == 2;
  printf("mapped_bytes_right %d\n", right == kTransferBytes);
  code = clEnqueueUnmapMemObject(s->queue, s->buffer, mapped, 0, NULL, NULL);
  return code == CL_SUCCESS ? clFinish(s->queue) : code;
}

// Holds the process in its moment until the moment is over; returns the code that ended it.
static cl_int stay_in(const char* moment, int rounds, struct Setup* s) {
  cl_int code = CL_SUCCESS;
  if (strcmp(moment, "idle") == 0) {
    ready(moment);
    wait_for_line();
    return CL_SUCCESS;
  }
  if (strcmp(moment, "acquired") == 0) return hold_acquired(s);
  if (strcmp(moment, "build") == 0) return stay_in_build(rounds, s);
  if (strcmp(moment, "map") == 0) return hold_mapped(s);
  if (strcmp(moment, "kernel") == 0) {
    cl_event event = NULL;
    for (int i = 0; i < rounds && code == CL_SUCCESS; ++i) {
      if (event != NULL) clReleaseEvent(event);
      code = launch(s, kLoopPasses, &event);
    }
    if (code == CL_SUCCESS) code = clFlush(s->queue);
    ready(moment);
    if (code == CL_SUCCESS) code = clWaitForEvents(1, &event);
    cl_int status = CL_COMPLETE;
    if (event != NULL) {
      clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
      clReleaseEvent(event);
    }
    printf("event_status %d\n", status);
    return code;
  }
  char* host = calloc(1, kTransferBytes);
  struct pollfd line = {.fd = STDIN_FILENO, .events = POLLIN};
  for (int round = 0; code == CL_SUCCESS && (round < 2 || poll(&line, 1, 0) == 0); ++round) {
    code =
        clEnqueueWriteBuffer(s->queue, s->buffer, CL_FALSE, 0, kTransferBytes, host, 0, NULL, NULL);
    if (code == CL_SUCCESS) {
      code =
          clEnqueueReadBuffer(s->queue, s->buffer, CL_TRUE, 0, kTransferBytes, host, 0, NULL, NULL);
    }
    if (round == 1) ready(moment);
  }
  free(host);
  return code;
}

// Of a program that no cache has: the worker's compiler needs its files still.
static cl_int build_anew(struct Setup* s) {
  char source[256];
  snprintf(source, sizeof(source),
           "kernel void anew(global uint* out) { out[0] = %uu + (uint)get_global_id(0); }",
           (unsigned)(ocl_seconds() * 1e3));
  const char* text = source;
  const size_t one = 1;
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(s->context, 1, &text, NULL, &code);
  if (code == CL_SUCCESS) code = clBuildProgram(program, 1, &s->device, "", NULL, NULL);
  cl_kernel kernel = code == CL_SUCCESS ? clCreateKernel(program, "anew", &code) : NULL;
  if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 0, sizeof(cl_mem), &s->buffer);
  if (code == CL_SUCCESS)
    code = clEnqueueNDRangeKernel(s->queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
  if (code == CL_SUCCESS) code = clFinish(s->queue);
  if (kernel != NULL) clReleaseKernel(kernel);
  if (program != NULL) clReleaseProgram(program);
  return code;
}

// The codes of calls made after the end of the moment: the later calls of client_icd/session/README.md.
static void report_later_calls(struct Setup* s) {
  cl_int code = CL_SUCCESS;
  cl_uint value = 0;
  printf("later_launch %d\n", launch(s, 1, NULL));
  code = clEnqueueReadBuffer(s->queue, s->buffer, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL);
  printf("later_read %d\n", code);
  cl_mem buffer = clCreateBuffer(s->context, CL_MEM_READ_WRITE, 64, NULL, &code);
  printf("later_create %d\n", code);
  if (buffer != NULL) clReleaseMemObject(buffer);
  printf("later_build %d\n", build_anew(s));
  code = clFinish(s->queue);
  printf("later_finish %d\n", code);
  report_available("later_available", s->device);
  if (s->part != NULL) report_available("later_part_available", s->part);
  // The notice comes on a thread of its own; once the context is released nobody may be told.
  for (int i = 0; i < 5000 && code != CL_SUCCESS && !notified; ++i) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  // Releases must still be accepted: the application's own clean-up may not fail or crash.
  printf("release %d\n", clReleaseMemObject(s->buffer) | clReleaseKernel(s->kernel) |
                             clReleaseCommandQueue(s->queue) | clReleaseContext(s->context));
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: victim idle|kernel|transfer|acquired|build|map [ROUNDS]\n");
    return 2;
  }
  struct Setup s;
  char name[256];
  s.device = ocl_device(NULL, name, sizeof(name));
  ocl_check(set_up(&s), "the first context");
  ocl_check(launch(&s, 1, NULL), "the first launch");
  ocl_check(clFinish(s.queue), "the first clFinish");
  const cl_device_partition_property one[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 0, 0};
  if (clCreateSubDevices(s.device, one, 1, &s.part, NULL) != CL_SUCCESS) s.part = NULL;
  const int rounds = argc > 2 ? atoi(argv[2]) : 64;
  printf("ended_with %d\n", stay_in(argv[1], rounds, &s));
  report_later_calls(&s);
  struct Setup fresh = {.device = s.device};
  cl_int code = set_up(&fresh);
  if (code == CL_SUCCESS) code = launch(&fresh, 1, NULL);
  if (code == CL_SUCCESS) code = clFinish(fresh.queue);
  printf("new_context %d\nnotified %d\nDONE\n", code, notified);
  return 0;
}
