// SPDX-License-Identifier: Apache-2.0
//
// Creates and releases memory as its caller says, a line on stdin each, and prints what came of it:
//
//   device            `global BYTES`, `largest BYTES`
//   make COUNT BYTES  buffers: `made COUNT CODE`, how many there were before the first error
//   each COUNT BYTES  the same, of which each is released before the next
//   svm BYTES         `svm 1` if there was memory (it stays), else `svm 0`
//   work              writes to the newest buffer and reads it back: `work 1` if it was the same
//   free COUNT        the newest buffers
#include <inttypes.h>

#include "ocl.h"

#define MOST 100000

static cl_mem buffers[MOST];
static int count = 0;

static void make(cl_context context, cl_command_queue queue, int wanted, size_t bytes, int keep) {
  cl_int code = CL_SUCCESS;
  int made = 0;
  while (made < wanted && count < MOST) {
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    if (code != CL_SUCCESS) break;
    ++made;
    if (keep) {
      buffers[count++] = buffer;
    } else {
      clReleaseMemObject(buffer);
    }
  }
  // Objects created without an answer have come by then, too.
  ocl_check(clFinish(queue), "clFinish");
  printf("made %d %d\n", made, code);
}

static int work(cl_command_queue queue) {
  cl_uint value = 4711, back = 0;
  if (count == 0) return 0;
  cl_mem buffer = buffers[count - 1];
  return clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 4, &value, 0, NULL, NULL) == CL_SUCCESS &&
         clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, &back, 0, NULL, NULL) == CL_SUCCESS &&
         back == value;
}

int main(void) {
  cl_int code = CL_SUCCESS;
  cl_device_id device = ocl_device(NULL, NULL, 0);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  printf("READY\n");
  fflush(stdout);
  char line[128];
  while (fgets(line, sizeof(line), stdin) != NULL) {
    int number = 0;
    size_t bytes = 0;
    if (strcmp(line, "device\n") == 0) {
      cl_ulong global = 0, largest = 0;
      clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(global), &global, NULL);
      clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(largest), &largest, NULL);
      printf("global %" PRIu64 "\nlargest %" PRIu64 "\n", (uint64_t)global, (uint64_t)largest);
    } else if (sscanf(line, "make %d %zu", &number, &bytes) == 2) {
      make(context, queue, number, bytes, 1);
    } else if (sscanf(line, "each %d %zu", &number, &bytes) == 2) {
      make(context, queue, number, bytes, 0);
    } else if (sscanf(line, "svm %zu", &bytes) == 1) {
      printf("svm %d\n", clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0) != NULL);
    } else if (strcmp(line, "work\n") == 0) {
      printf("work %d\n", work(queue));
    } else if (sscanf(line, "free %d", &number) == 1) {
      while (number-- > 0 && count > 0) clReleaseMemObject(buffers[--count]);
      ocl_check(clFinish(queue), "clFinish");
    }
    printf("END\n");
    fflush(stdout);
  }
  return 0;
}
