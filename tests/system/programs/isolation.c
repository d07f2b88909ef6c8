// SPDX-License-Identifier: Apache-2.0
//
// One tenant of two. `write` fills much device memory, and local memory too, with a pattern and,
// when told by a line on standard input, ends without releasing anything. `look` allocates the same
// amounts, reads them before anyone wrote them, and reports how many words carry the other tenant's
// pattern.
//
// usage: isolation write|look
#include <unistd.h>

#include "ocl.h"

enum { kBuffers = 16, kWords = 1 << 20, kPattern = 0x5ec2e7a5, kLocalWords = 2048 };

static const char* kSource =
    "kernel void mark(local uint* secret, uint pattern) {"
    "  for (uint i = get_local_id(0); i < 2048; i += get_local_size(0)) secret[i] = pattern; }"
    "kernel void look(local uint* found, global uint* out) {"
    "  for (uint i = get_local_id(0); i < 2048; i += get_local_size(0)) out[i] = found[i]; }";

struct Tenant {
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  cl_program program;
  uint32_t* words;
};

static cl_mem new_buffer(struct Tenant* t) {
  cl_int code = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(t->context, CL_MEM_READ_WRITE, kWords * 4, NULL, &code);
  ocl_check(code, "clCreateBuffer");
  return buffer;
}

static void run_local(struct Tenant* t, const char* name, cl_mem out) {
  cl_int code = CL_SUCCESS;
  const cl_uint pattern = kPattern;
  const size_t global = 64, local = 64;
  cl_kernel kernel = clCreateKernel(t->program, name, &code);
  ocl_check(code, "clCreateKernel");
  ocl_check(clSetKernelArg(kernel, 0, kLocalWords * 4, NULL), "clSetKernelArg");
  code = out != NULL ? clSetKernelArg(kernel, 1, sizeof(out), &out)
                     : clSetKernelArg(kernel, 1, sizeof(pattern), &pattern);
  ocl_check(code, "clSetKernelArg");
  ocl_check(clEnqueueNDRangeKernel(t->queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL),
            "launch");
  ocl_check(clFinish(t->queue), "clFinish");
  clReleaseKernel(kernel);
}

static void write_secrets(struct Tenant* t) {
  for (int i = 0; i < kWords; ++i) t->words[i] = kPattern;
  for (int i = 0; i < kBuffers; ++i) {
    ocl_check(clEnqueueWriteBuffer(t->queue, new_buffer(t), CL_TRUE, 0, kWords * 4, t->words, 0,
                                   NULL, NULL),
              "clEnqueueWriteBuffer");
  }
  run_local(t, "mark", NULL);
  printf("READY\n");
  fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0 && byte != '\n') {
  }
}

static long count_pattern(const uint32_t* words, int count) {
  long found = 0;
  for (int i = 0; i < count; ++i) found += words[i] == kPattern;
  return found;
}

static void look_for_secrets(struct Tenant* t) {
  long found = 0;
  for (int i = 0; i < kBuffers; ++i) {
    memset(t->words, 0, kWords * 4);
    ocl_check(clEnqueueReadBuffer(t->queue, new_buffer(t), CL_TRUE, 0, kWords * 4, t->words, 0,
                                  NULL, NULL),
              "clEnqueueReadBuffer");
    found += count_pattern(t->words, kWords);
  }
  cl_mem out = new_buffer(t);
  run_local(t, "look", out);
  ocl_check(
      clEnqueueReadBuffer(t->queue, out, CL_TRUE, 0, kLocalWords * 4, t->words, 0, NULL, NULL),
      "clEnqueueReadBuffer");
  printf("found_global %ld\nfound_local %ld\nDONE\n", found, count_pattern(t->words, kLocalWords));
}

int main(int argc, char** argv) {
  const int writes = argc == 2 && strcmp(argv[1], "write") == 0;
  if (!writes && (argc != 2 || strcmp(argv[1], "look") != 0)) {
    fprintf(stderr, "usage: isolation write|look\n");
    return 2;
  }
  struct Tenant t;
  cl_int code = CL_SUCCESS;
  t.device = ocl_device(NULL, NULL, 0);
  t.context = clCreateContext(NULL, 1, &t.device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  t.queue = clCreateCommandQueueWithProperties(t.context, t.device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  t.program = ocl_build(t.context, t.device, kSource);
  t.words = malloc(kWords * 4);
  if (writes) {
    write_secrets(&t);
  } else {
    look_for_secrets(&t);
  }
  return 0;
}
