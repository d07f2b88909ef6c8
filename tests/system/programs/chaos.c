// SPDX-License-Identifier: Apache-2.0
//
// One application of the chaos test: it does something else each round, checks every result, and
// goes on with a new context whenever its session is lost. It ends with 0 at the end of its
// standard input. It ends at once with kWrong (a result), kCode (a code that is not documented for
// a lost session) or kNoPlatform (no device when it began). Prints a line for each loss, and
// counts.
//
// usage: chaos SEED
#define _GNU_SOURCE
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#include "ocl.h"

enum { kWrong = 4, kCode = 5, kNoPlatform = 6, kMostWords = 1 << 19, kRetrySeconds = 300 };

enum Outcome { kDone, kLost };

static const char* kSource =
    "kernel void stir(global uint* p, uint key) { size_t i = get_global_id(0);"
    "  p[i] = (p[i] ^ key) * 2654435761u + (uint)i; }"
    "kernel void spin(global uint* p, uint n) { uint x = p[0] | 1u;"
    "  for (uint i = 0; i < n; ++i) x = x * 1664525u + 1013904223u; p[1] = x; }";

struct App {
  cl_device_id device;
  cl_bool has_images;
  int is_gpu;
  cl_context context;
  cl_command_queue queue;
  cl_command_queue any_order;  // Out of order where the device can.
  cl_program program;
  cl_kernel stir;
  cl_kernel spin;
  uint32_t* host;
  uint32_t* back;
};

static uint64_t state;

static uint32_t any(uint32_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)((state >> 16) % below);
}

static uint32_t mixed(uint32_t word, uint32_t key, uint32_t at) {
  return (word ^ key) * 2654435761u + at;
}

static void wrong(const char* what, size_t at, uint32_t got, uint32_t expected) {
  printf("WRONG %s: word %zu is %#x, expected %#x\n", what, at, got, expected);
  fflush(stdout);
  _exit(kWrong);
}

// The codes of client_icd/session/README.md: the session has gone, or a command's wait list has with it.
static enum Outcome lost(cl_int code, const char* call) {
  const int is_loss =
      code == CL_DEVICE_NOT_AVAILABLE || code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  printf("%s %s %d\n", is_loss ? "LOST" : "CODE", call, code);
  fflush(stdout);
  if (!is_loss) _exit(kCode);
  return kLost;
}

// By the driver, for now.
static enum Outcome refused(const char* call, cl_int code) {
  printf("REFUSED %s %d\n", call, code);
  fflush(stdout);
  return kLost;
}

#define TRY(call)                                             \
  do {                                                        \
    const cl_int try_code = (call);                           \
    if (try_code != CL_SUCCESS) return lost(try_code, #call); \
  } while (0)

static void drop(struct App* app) {
  if (app->stir != NULL) clReleaseKernel(app->stir);
  if (app->spin != NULL) clReleaseKernel(app->spin);
  if (app->program != NULL) clReleaseProgram(app->program);
  if (app->queue != NULL) clReleaseCommandQueue(app->queue);
  if (app->any_order != NULL) clReleaseCommandQueue(app->any_order);
  if (app->context != NULL) clReleaseContext(app->context);
  app->context = NULL;
  app->queue = app->any_order = NULL;
  app->program = NULL;
  app->stir = app->spin = NULL;
}

static enum Outcome set_up(struct App* app) {
  cl_int code = CL_SUCCESS;
  app->context = clCreateContext(NULL, 1, &app->device, NULL, NULL, &code);
  // NVIDIA's driver, when it gets no time at a busy device for a minute (seen on an H100).
  if (code == CL_OUT_OF_HOST_MEMORY && app->is_gpu) return refused("clCreateContext", code);
  if (code != CL_SUCCESS) return lost(code, "clCreateContext");
  app->queue = clCreateCommandQueueWithProperties(app->context, app->device, NULL, &code);
  if (code != CL_SUCCESS) return lost(code, "clCreateCommandQueue");
  cl_command_queue_properties has = 0;
  TRY(clGetDeviceInfo(app->device, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, sizeof(has), &has, NULL));
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES,
                                            has & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
  app->any_order = clCreateCommandQueueWithProperties(app->context, app->device, properties, &code);
  if (code != CL_SUCCESS) return lost(code, "clCreateCommandQueue");
  app->program = clCreateProgramWithSource(app->context, 1, &kSource, NULL, &code);
  if (code != CL_SUCCESS) return lost(code, "clCreateProgramWithSource");
  TRY(clBuildProgram(app->program, 1, &app->device, "", NULL, NULL));
  app->stir = clCreateKernel(app->program, "stir", &code);
  if (code != CL_SUCCESS) return lost(code, "clCreateKernel");
  app->spin = clCreateKernel(app->program, "spin", &code);
  return code == CL_SUCCESS ? kDone : lost(code, "clCreateKernel");
}

static void pattern(struct App* app, uint32_t words, uint32_t key) {
  for (uint32_t i = 0; i < words; ++i) app->host[i] = (key + i) * 2246822519u;
}

static void check_mixed(struct App* app, const char* what, uint32_t words, uint32_t key) {
  for (uint32_t i = 0; i < words; ++i) {
    const uint32_t expected = mixed(app->host[i], key, i);
    if (app->back[i] != expected) wrong(what, i, app->back[i], expected);
  }
}

static enum Outcome enqueue_mix(struct App* app, cl_command_queue queue, cl_mem buffer,
                                uint32_t words, cl_uint key, cl_uint waits, const cl_event* list,
                                cl_event* event) {
  const size_t global = words;
  TRY(clSetKernelArg(app->stir, 0, sizeof(buffer), &buffer));
  TRY(clSetKernelArg(app->stir, 1, sizeof(key), &key));
  TRY(clEnqueueNDRangeKernel(queue, app->stir, 1, NULL, &global, NULL, waits, list, event));
  return kDone;
}

static enum Outcome there_and_back(struct App* app, cl_mem buffer, uint32_t words, uint32_t key) {
  const size_t bytes = words * sizeof(uint32_t);
  pattern(app, words, key);
  TRY(clEnqueueWriteBuffer(app->queue, buffer, CL_FALSE, 0, bytes, app->host, 0, NULL, NULL));
  if (enqueue_mix(app, app->queue, buffer, words, key, 0, NULL, NULL) != kDone) return kLost;
  TRY(clEnqueueReadBuffer(app->queue, buffer, CL_TRUE, 0, bytes, app->back, 0, NULL, NULL));
  check_mixed(app, "there and back", words, key);
  return kDone;
}

static enum Outcome with_map(struct App* app, cl_mem buffer, uint32_t words, uint32_t key) {
  const size_t bytes = words * sizeof(uint32_t);
  cl_int code = CL_SUCCESS;
  pattern(app, words, key);
  uint32_t* mapped = clEnqueueMapBuffer(app->queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION,
                                        0, bytes, 0, NULL, NULL, &code);
  if (code != CL_SUCCESS) return lost(code, "clEnqueueMapBuffer");
  memcpy(mapped, app->host, bytes);
  TRY(clEnqueueUnmapMemObject(app->queue, buffer, mapped, 0, NULL, NULL));
  if (enqueue_mix(app, app->queue, buffer, words, key, 0, NULL, NULL) != kDone) return kLost;
  mapped =
      clEnqueueMapBuffer(app->queue, buffer, CL_TRUE, CL_MAP_READ, 0, bytes, 0, NULL, NULL, &code);
  if (code != CL_SUCCESS) return lost(code, "clEnqueueMapBuffer");
  memcpy(app->back, mapped, bytes);
  TRY(clEnqueueUnmapMemObject(app->queue, buffer, mapped, 0, NULL, NULL));
  check_mixed(app, "map", words, key);
  return kDone;
}

// A write, a kernel and a read that wait for each other and for a user event, which completes.
static enum Outcome with_events(struct App* app, cl_mem buffer, uint32_t words, uint32_t key) {
  const size_t bytes = words * sizeof(uint32_t);
  cl_int code = CL_SUCCESS;
  cl_event events[4] = {NULL};
  pattern(app, words, key);
  events[0] = clCreateUserEvent(app->context, &code);
  if (code != CL_SUCCESS) return lost(code, "clCreateUserEvent");
  code = clEnqueueWriteBuffer(app->any_order, buffer, CL_FALSE, 0, bytes, app->host, 1, &events[0],
                              &events[1]);
  enum Outcome outcome = code == CL_SUCCESS ? kDone : lost(code, "clEnqueueWriteBuffer");
  if (outcome == kDone)
    outcome = enqueue_mix(app, app->any_order, buffer, words, key, 1, &events[1], &events[2]);
  if (outcome == kDone) {
    code = clEnqueueReadBuffer(app->any_order, buffer, CL_FALSE, 0, bytes, app->back, 1, &events[2],
                               &events[3]);
    if (code != CL_SUCCESS) outcome = lost(code, "clEnqueueReadBuffer");
  }
  clSetUserEventStatus(events[0], CL_COMPLETE);
  if (outcome == kDone) {
    code = clWaitForEvents(1, &events[3]);
    if (code != CL_SUCCESS) outcome = lost(code, "clWaitForEvents");
  }
  // Enqueued commands may still use the memory of this call's caller.
  if (outcome != kDone) clFinish(app->any_order);
  for (int i = 0; i < 4; ++i) {
    if (events[i] != NULL) clReleaseEvent(events[i]);
  }
  if (outcome == kDone) check_mixed(app, "events", words, key);
  return outcome;
}

// Copies between buffers, a sub-buffer and a fill.
static enum Outcome with_copies(struct App* app, cl_mem buffer, uint32_t words, uint32_t key) {
  const size_t bytes = words * sizeof(uint32_t);
  cl_int code = CL_SUCCESS;
  cl_mem other = clCreateBuffer(app->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
  if (code != CL_SUCCESS) return lost(code, "clCreateBuffer");
  const cl_buffer_region half = {bytes / 2 / 4096 * 4096, bytes / 2};
  cl_mem part =
      clCreateSubBuffer(other, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &half, &code);
  const uint32_t value = key | 1;
  pattern(app, words, key);
  if (code == CL_SUCCESS)
    code = clEnqueueWriteBuffer(app->queue, buffer, CL_FALSE, 0, bytes, app->host, 0, NULL, NULL);
  if (code == CL_SUCCESS)
    code = clEnqueueCopyBuffer(app->queue, buffer, other, 0, 0, bytes, 0, NULL, NULL);
  if (code == CL_SUCCESS)
    code =
        clEnqueueFillBuffer(app->queue, part, &value, sizeof(value), 0, half.size, 0, NULL, NULL);
  if (code == CL_SUCCESS)
    code = clEnqueueReadBuffer(app->queue, other, CL_TRUE, 0, bytes, app->back, 0, NULL, NULL);
  if (part != NULL) clReleaseMemObject(part);
  clReleaseMemObject(other);
  if (code != CL_SUCCESS) return lost(code, "a copy");
  const size_t first = half.origin / sizeof(uint32_t);
  const size_t end = first + half.size / sizeof(uint32_t);
  for (size_t i = 0; i < words; ++i) {
    const uint32_t expected = i >= first && i < end ? value : app->host[i];
    if (app->back[i] != expected) wrong("copies", i, app->back[i], expected);
  }
  return kDone;
}

static enum Outcome with_image(struct App* app, uint32_t key) {
  enum { kSide = 128 };
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  const cl_image_desc desc = {
      .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = kSide, .image_height = kSide};
  cl_int code = CL_SUCCESS;
  cl_mem image = clCreateImage(app->context, CL_MEM_READ_WRITE, &format, &desc, NULL, &code);
  if (code != CL_SUCCESS) return lost(code, "clCreateImage");
  const size_t origin[] = {0, 0, 0};
  const size_t region[] = {kSide, kSide, 1};
  pattern(app, kSide * kSide, key);
  code = clEnqueueWriteImage(app->queue, image, CL_FALSE, origin, region, 0, 0, app->host, 0, NULL,
                             NULL);
  if (code == CL_SUCCESS)
    code = clEnqueueReadImage(app->queue, image, CL_TRUE, origin, region, 0, 0, app->back, 0, NULL,
                              NULL);
  clReleaseMemObject(image);
  if (code != CL_SUCCESS) return lost(code, "an image");
  for (uint32_t i = 0; i < kSide * kSide; ++i) {
    if (app->back[i] != app->host[i]) wrong("image", i, app->back[i], app->host[i]);
  }
  return kDone;
}

static enum Outcome with_new_program(struct App* app, cl_mem buffer, uint32_t key) {
  char source[128];
  snprintf(source, sizeof(source), "kernel void one(global uint* p) { p[0] = %uu; }", key);
  const char* text = source;
  const size_t global = 1;
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(app->context, 1, &text, NULL, &code);
  if (code != CL_SUCCESS) return lost(code, "clCreateProgramWithSource");
  code = clBuildProgram(program, 1, &app->device, "", NULL, NULL);
  cl_kernel kernel = code == CL_SUCCESS ? clCreateKernel(program, "one", &code) : NULL;
  if (code == CL_SUCCESS) code = clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
  if (code == CL_SUCCESS)
    code = clEnqueueNDRangeKernel(app->queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
  if (code == CL_SUCCESS)
    code = clEnqueueReadBuffer(app->queue, buffer, CL_TRUE, 0, 4, app->back, 0, NULL, NULL);
  if (kernel != NULL) clReleaseKernel(kernel);
  clReleaseProgram(program);
  if (code != CL_SUCCESS) return lost(code, "a new program");
  if (app->back[0] != key) wrong("new program", 0, app->back[0], key);
  return kDone;
}

static enum Outcome with_churn(struct App* app) {
  cl_int code = CL_SUCCESS;
  for (int i = 0; i < 100; ++i) {
    cl_mem buffer = clCreateBuffer(app->context, CL_MEM_READ_WRITE, 64u << any(12), NULL, &code);
    if (code != CL_SUCCESS) return lost(code, "clCreateBuffer");
    code = clEnqueueWriteBuffer(app->queue, buffer, CL_FALSE, 0, 64, app->host, 0, NULL, NULL);
    clReleaseMemObject(buffer);
    if (code != CL_SUCCESS) return lost(code, "clEnqueueWriteBuffer");
  }
  TRY(clFinish(app->queue));
  return kDone;
}

static enum Outcome with_long_kernel(struct App* app, cl_mem buffer) {
  // One work-item of a GPU takes some ten times as long, and shares the device with all others.
  const cl_uint passes = 1u << ((app->is_gpu ? 16 : 20) + any(8));
  const size_t global = 1;
  TRY(clSetKernelArg(app->spin, 0, sizeof(buffer), &buffer));
  TRY(clSetKernelArg(app->spin, 1, sizeof(passes), &passes));
  TRY(clEnqueueNDRangeKernel(app->queue, app->spin, 1, NULL, &global, NULL, 0, NULL, NULL));
  TRY(clFinish(app->queue));
  return kDone;
}

static enum Outcome one_round(struct App* app) {
  const uint32_t key = any(UINT32_MAX);
  const uint32_t words = 2048u << any(9);
  const uint32_t what = any(10);
  if (what == 0) {  // Another session.
    drop(app);
    return set_up(app);
  }
  if (what == 1) return with_churn(app);
  if (what == 2 && app->has_images) return with_image(app, key);
  cl_int code = CL_SUCCESS;
  cl_mem buffer =
      clCreateBuffer(app->context, CL_MEM_READ_WRITE, words * sizeof(uint32_t), NULL, &code);
  if (code != CL_SUCCESS) return lost(code, "clCreateBuffer");
  const enum Outcome outcome = what == 3   ? with_map(app, buffer, words, key)
                               : what == 4 ? with_events(app, buffer, words, key)
                               : what == 5 ? with_copies(app, buffer, words, key)
                               : what == 6 ? with_new_program(app, buffer, key)
                               : what == 7 ? with_long_kernel(app, buffer)
                                           : there_and_back(app, buffer, words, key);
  // Enqueued commands use this program's memory until the session is seen to be over.
  if (outcome != kDone) clFinish(app->queue);
  clReleaseMemObject(buffer);
  return outcome;
}

static int is_told_to_end(int wait_ms) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, wait_ms) != 0;
}

// With a new context, as an application does that wants to go on: until the daemon is back.
static void begin_again(struct App* app) {
  const double end = ocl_seconds() + kRetrySeconds;
  do {
    drop(app);
    if (set_up(app) == kDone) return;
  } while (ocl_seconds() < end && !is_told_to_end(100));
  if (ocl_seconds() < end) return;
  printf("CODE no new context for %d s\n", kRetrySeconds);
  fflush(stdout);
  _exit(kCode);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: chaos SEED\n");
    return 2;
  }
  state = strtoull(argv[1], NULL, 10) * 0x9E3779B97F4A7C15u + 1;
  cl_platform_id platform;
  cl_uint platforms = 0;
  if (clGetPlatformIDs(1, &platform, &platforms) != CL_SUCCESS || platforms == 0)
    return kNoPlatform;
  struct App app = {.host = malloc(kMostWords * 4), .back = malloc(kMostWords * 4)};
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &app.device, NULL) != CL_SUCCESS)
    return kNoPlatform;
  clGetDeviceInfo(app.device, CL_DEVICE_IMAGE_SUPPORT, sizeof(app.has_images), &app.has_images,
                  NULL);
  cl_device_type type = 0;
  clGetDeviceInfo(app.device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
  app.is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
  if (set_up(&app) != kDone) begin_again(&app);
  unsigned long rounds = 0;
  unsigned long losses = 0;
  while (!is_told_to_end((int)any(20))) {
    if (one_round(&app) == kDone) {
      printf("ROUNDS %lu\n", ++rounds);
      fflush(stdout);
      continue;
    }
    ++losses;
    begin_again(&app);
  }
  drop(&app);
  printf("DONE %lu rounds, %lu losses\n", rounds, losses);
  free(app.host);
  free(app.back);
  return 0;
}
