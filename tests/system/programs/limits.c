// SPDX-License-Identifier: Apache-2.0
//
// The application that goes to its limits: one limit of the daemon's configuration per run, told as
// `key value` lines. Verdicts are the caller's: failure_limits.py.
//
// usage: limits in-flight MOST | build | kernel MS | memory BYTES | objects MOST | program BYTES | context
#include <time.h>

#include "ocl.h"

static cl_device_id device;
static cl_context context;
static volatile int notified = 0;

static void CL_CALLBACK on_context_error(const char* message, const void* info, size_t size,
                                         void* user) {
  (void)info;
  (void)size;
  (void)user;
  notified = 1;
  printf("notice %s\n", message);
}

static cl_command_queue make_queue(cl_command_queue_properties flags) {
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, flags, 0};
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, properties, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  return queue;
}

// Markers behind a user event until one is refused. Every `every`th has an event.
static void fill_queue(cl_command_queue_properties flags, int most, int every) {
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = make_queue(flags);
  cl_event gate = clCreateUserEvent(context, &code);
  ocl_check(code, "clCreateUserEvent");
  int accepted = 0;
  const double began = ocl_seconds();
  while (accepted <= 2 * most) {
    cl_event event = NULL;
    const int with_event = accepted % every == every - 1;
    code = clEnqueueMarkerWithWaitList(queue, 1, &gate, with_event ? &event : NULL);
    if (code != CL_SUCCESS) break;
    if (event != NULL) clReleaseEvent(event);
    ++accepted;
  }
  const char* order = flags == 0 ? "in_order" : "out_of_order";
  printf("accepted_%s_%d %d\nrefused_%s_%d %d\n", order, every, accepted, order, every, code);
  printf("refused_after_ms %d\n", (int)((ocl_seconds() - began) * 1e3));
  ocl_check(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
  ocl_check(clFinish(queue), "clFinish");
  clReleaseEvent(gate);
  clReleaseCommandQueue(queue);
}

// A marker, tried again for as long as the driver may take to end what was enqueued before: only
// what never ends keeps it refused.
static void enqueue_marker(cl_command_queue queue, const char* what) {
  const double end = ocl_seconds() + 20;
  cl_int code = CL_OUT_OF_RESOURCES;
  while (code == CL_OUT_OF_RESOURCES && ocl_seconds() < end) {
    code = clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL);
    if (code == CL_OUT_OF_RESOURCES) clReleaseCommandQueue(make_queue(0));  // Once there and back.
  }
  ocl_check(code, what);
}

// A command that ends is not in flight any more, in whatever way it was enqueued: none of these is
// refused.
static void use_again(int most) {
  cl_command_queue queue = make_queue(0);
  cl_command_queue other = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  for (int i = 0; i < 8 * most; ++i) {
    ocl_check(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL), "a marker");
    ocl_check(clEnqueueBarrierWithWaitList(other, 0, NULL, NULL), "a barrier");
    if (i % (most / 4) == 0) ocl_check(clFinish(queue) | clFinish(other), "clFinish");
  }
  for (int i = 0; i < 2 * most; ++i) {
    cl_command_queue brief = make_queue(0);
    enqueue_marker(brief, "a marker of a brief queue");
    clReleaseCommandQueue(brief);
  }
  // Failures too: the gate is set to an error each time. All commands before it have ended by then:
  // PoCL 3.1 aborts (pocl_update_event_finished, natively each time) if one ends while its
  // successor fails.
  for (int i = 0; i < 2 * most; ++i) {
    cl_int code = CL_SUCCESS;
    cl_command_queue failing = make_queue(0);
    cl_event gate = clCreateUserEvent(context, &code);
    ocl_check(code, "clCreateUserEvent");
    enqueue_marker(failing, "a marker before a failure");
    ocl_check(clFinish(failing), "clFinish before a failure");
    ocl_check(clEnqueueMarkerWithWaitList(failing, 1, &gate, NULL), "a marker that fails");
    ocl_check(clSetUserEventStatus(gate, -5), "clSetUserEventStatus");
    clFinish(failing);
    clReleaseEvent(gate);
    clReleaseCommandQueue(failing);
  }
  printf("used_again 1\n");
}

static void try_in_flight(int most) {
  fill_queue(0, most, 1);
  fill_queue(0, most, 2 * most + 2);  // None has an event.
  fill_queue(0, most, 7);
  fill_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, most, 1);
  fill_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, most, 7);
  use_again(most);
}

// A source whose preprocessing takes hours and no memory.
static char* endless_source(void) {
  static char text[4096] = "#define A0\n";
  for (int i = 1; i <= 14; ++i) {
    char line[256];
    int length = snprintf(line, sizeof(line), "#define A%d", i);
    for (int k = 0; k < 10; ++k)
      length += snprintf(line + length, sizeof(line) - (size_t)length, " A%d", i - 1);
    strcat(strcat(text, line), "\n");
  }
  return strcat(text, "A14\nkernel void k() {}\n");
}

static void pause_for(int ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static void try_build(void) {
  const char* source = endless_source();
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
  ocl_check(code, "clCreateProgramWithSource");
  const double began = ocl_seconds();
  code = clBuildProgram(program, 1, &device, "", NULL, NULL);
  printf("build %d\nbuild_ms %d\n", code, (int)((ocl_seconds() - began) * 1e3));
  cl_build_status status = 0;
  static char log[4096];
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status, NULL);
  code = clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log, NULL);
  printf("build_status %d\nlog_code %d\nlog %s\n", status, code, log);
  for (int i = 0; i < 5000 && !notified; ++i) pause_for(1);
  printf("notified %d\n", notified);
  clReleaseProgram(program);
  clReleaseContext(context);
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  printf("new_context %d\n", code);
}

// Kernels that together take more than twice the limit, none alone: they all end.
static cl_int run_short_kernels(cl_kernel kernel, cl_command_queue queue, int limit_ms) {
  const size_t one = 1;
  const double end = ocl_seconds() + 2.2e-3 * limit_ms;
  cl_int code = CL_SUCCESS;
  while (code == CL_SUCCESS && ocl_seconds() < end) {
    for (int i = 0; i < 64 && code == CL_SUCCESS; ++i)
      code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
    if (code == CL_SUCCESS) code = clFinish(queue);
  }
  return code;
}

static void try_kernel(int limit_ms) {
  const char* source =
      "kernel void count(global volatile uint* out, uint times)"
      "{ for (uint i = 0; i != times; ++i) out[1] += 1; }"
      "kernel void endless(global volatile uint* out) { while (out[0] == 0) out[1] += 1; }";
  const size_t one = 1;
  const cl_uint times = 10000;
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
  ocl_check(code, "clCreateProgramWithSource");
  ocl_check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  cl_kernel count = clCreateKernel(program, "count", &code);
  ocl_check(code, "clCreateKernel");
  cl_kernel endless = clCreateKernel(program, "endless", &code);
  ocl_check(code, "clCreateKernel");
  cl_uint zeros[2] = {0, 0};
  cl_mem memory = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros, &code);
  ocl_check(code, "clCreateBuffer");
  ocl_check(clSetKernelArg(count, 0, sizeof(memory), &memory), "clSetKernelArg");
  ocl_check(clSetKernelArg(count, 1, sizeof(times), &times), "clSetKernelArg");
  ocl_check(clSetKernelArg(endless, 0, sizeof(memory), &memory), "clSetKernelArg");
  cl_command_queue queue = make_queue(0);
  cl_command_queue other = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  printf("short %d\n", run_short_kernels(count, queue, limit_ms));
  printf("short_out_of_order %d\n", run_short_kernels(count, other, limit_ms));
  // A command that waits does not run.
  cl_event gate = clCreateUserEvent(context, &code);
  ocl_check(code, "clCreateUserEvent");
  ocl_check(clEnqueueNDRangeKernel(queue, count, 1, NULL, &one, NULL, 1, &gate, NULL),
            "a kernel that waits");
  ocl_check(clFlush(queue), "clFlush");
  pause_for(2 * limit_ms);
  ocl_check(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
  printf("held %d\n", clFinish(queue));
  const double began = ocl_seconds();
  ocl_check(clEnqueueNDRangeKernel(queue, endless, 1, NULL, &one, NULL, 0, NULL, NULL),
            "the endless kernel");
  printf("endless %d\n", clFinish(queue));
  printf("endless_ms %d\n", (int)((ocl_seconds() - began) * 1e3));
  for (int i = 0; i < 5000 && !notified; ++i) pause_for(1);
  printf("notified %d\n", notified);
  clReleaseContext(context);
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  printf("new_context %d\n", code);
}

// Buffers of a quarter of the limit each: three fit with all that the session needs itself.
static void try_memory(size_t bytes) {
  cl_mem buffers[16];
  int made = 0;
  cl_int code = CL_SUCCESS;
  for (; made < 16; ++made) {
    buffers[made] = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes / 4, NULL, &code);
    if (code != CL_SUCCESS) break;
  }
  printf("buffers %d\nrefused %d\n", made, code);
  clReleaseMemObject(buffers[0]);
  clReleaseMemObject(clCreateBuffer(context, CL_MEM_READ_WRITE, bytes / 4, NULL, &code));
  printf("after_release %d\n", code);
}

static void try_objects(int most) {
  cl_int code = CL_SUCCESS;
  int made = 0;
  cl_sampler last = NULL;
  for (; made <= 2 * most; ++made) {
    cl_sampler sampler =
        clCreateSampler(context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &code);
    if (code != CL_SUCCESS) break;
    last = sampler;
  }
  printf("objects %d\nrefused %d\n", made, code);
  clReleaseSampler(last);
  clReleaseSampler(clCreateSampler(context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &code));
  printf("after_release %d\n", code);
}

enum { kCodes = 4 };
typedef struct {
  cl_int codes[kCodes];
  int count;
} Codes;

static void note(Codes* codes, cl_int code) {
  for (int i = 0; i < codes->count; ++i) {
    if (codes->codes[i] == code) return;
  }
  if (codes->count < kCodes) codes->codes[codes->count++] = code;
}

// In one piece: notices are printed by another thread.
static void print_codes(const char* call, const Codes* codes) {
  char line[16 * kCodes + 1] = "";
  size_t used = 0;
  for (int i = 0; i < codes->count; ++i)
    used += (size_t)snprintf(line + used, sizeof(line) - used, " %d", codes->codes[i]);
  printf("codes_%s%s\n", call, line);
}

// Commands with an event each, which waits for the one before, far beyond what the session may
// have, and one without an event behind each: every code that each call returned.
static void try_events(int most) {
  cl_command_queue queue = make_queue(0);
  cl_int code = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &code);
  ocl_check(code, "clCreateBuffer");
  const int all = 4 * most;
  cl_event* events = calloc((size_t)all, sizeof(cl_event));
  Codes enqueued = {0}, finished = {0}, waited = {0}, read = {0}, profiled = {0}, user = {0};
  int made = 0;
  for (int i = 0; i < all; ++i) {
    const cl_event* before = made > 0 ? &events[made - 1] : NULL;
    const cl_uint waits = before != NULL;
    const cl_uchar value = (cl_uchar)i;
    code = clEnqueueFillBuffer(queue, buffer, &value, 1, 0, 64, waits, before, &events[made]);
    note(&enqueued, code);
    if (code == CL_SUCCESS) ++made;
    note(&enqueued,
         clEnqueueFillBuffer(queue, buffer, &value, 1, 0, 64, 1, &events[made - 1], NULL));
    if (i % 16 == 1) {
      clFinish(queue);  // The refusals of the commands before are told.
      note(&enqueued,
           clEnqueueFillBuffer(queue, buffer, &value, 1, 0, 64, 1, &events[made - 1], NULL));
      note(&finished, clFinish(queue));
    }
    if (i % 16 == 5) note(&waited, clWaitForEvents(1, &events[made - 1]));
    if (i % 16 == 9) {
      cl_uchar bytes[64];
      note(&read,
           clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 64, bytes, 1, &events[made - 1], NULL));
    }
    if (i % 16 == 13) {
      cl_ulong when = 0;
      note(&profiled, clGetEventProfilingInfo(events[made - 1], CL_PROFILING_COMMAND_END,
                                              sizeof(when), &when, NULL));
      cl_event mine = clCreateUserEvent(context, &code);
      note(&user, code);
      if (mine == NULL) continue;
      clFinish(queue);
      note(&enqueued, clEnqueueFillBuffer(queue, buffer, &value, 1, 0, 64, 1, &mine, NULL));
      note(&user, clSetUserEventStatus(mine, CL_COMPLETE));
      note(&finished, clFinish(queue));
      clReleaseEvent(mine);
    }
  }
  print_codes("enqueue", &enqueued);
  print_codes("finish", &finished);
  print_codes("wait", &waited);
  print_codes("read", &read);
  print_codes("profile", &profiled);
  print_codes("user", &user);
  while (made > 0) clReleaseEvent(events[--made]);
  clFinish(queue);  // Of those that were refused.
  free(events);
  printf("after_release %d %d\n", clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL),
         clFinish(queue));
}

static void try_program(size_t bytes) {
  for (int over = 0; over < 2; ++over) {
    const size_t size = bytes + (size_t)over;
    char* text = malloc(size);
    memset(text, ' ', size);
    memcpy(text, "kernel void k() {}\n", 19);
    const char* source = text;
    cl_int code = CL_SUCCESS;
    clCreateProgramWithSource(context, 1, &source, &size, &code);
    printf("%s %d\n", over ? "over" : "within", code);
    free(text);
  }
}

// A wait list that names one pending event so often that its command would exceed every limit.
static void try_waits(size_t count) {
  cl_command_queue queue = make_queue(0);
  cl_int code = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(context, &code);
  ocl_check(code, "clCreateUserEvent");
  cl_event* list = malloc(count * sizeof(cl_event));
  for (size_t i = 0; i < count; ++i) list[i] = gate;
  cl_event after = NULL;
  code = clEnqueueMarkerWithWaitList(queue, (cl_uint)count, list, &after);
  printf("enqueue %d\n", code);
  free(list);
  ocl_check(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
  if (code == CL_SUCCESS) {
    printf("wait %d\n", clWaitForEvents(1, &after));
    cl_int status = CL_QUEUED;
    clGetEventInfo(after, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    printf("status %d\n", status);
  }
  printf("finish %d\n", clFinish(queue));
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 2) return 2;
  const char* which = argv[1];
  const long most = argc > 2 ? atol(argv[2]) : 0;
  cl_int code = CL_SUCCESS;
  device = ocl_device(NULL, NULL, 0);
  context = clCreateContext(NULL, 1, &device, on_context_error, NULL, &code);
  printf("context %d\n", code);
  if (code != CL_SUCCESS) return 0;
  if (strcmp(which, "in-flight") == 0) try_in_flight((int)most);
  if (strcmp(which, "build") == 0) try_build();
  if (strcmp(which, "kernel") == 0) try_kernel((int)most);
  if (strcmp(which, "memory") == 0) try_memory((size_t)most);
  if (strcmp(which, "objects") == 0) try_objects((int)most);
  if (strcmp(which, "events") == 0) try_events((int)most);
  if (strcmp(which, "program") == 0) try_program((size_t)most);
  if (strcmp(which, "waits") == 0) try_waits((size_t)most);
  if (strcmp(which, "context") == 0) {
    printf("READY\n");
    getchar();
  }
  return 0;
}
