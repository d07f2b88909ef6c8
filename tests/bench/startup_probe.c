// SPDX-License-Identifier: Apache-2.0
//
// A small process for the rows that need a fresh one: the first platform query, the time at which
// the first device is known (on the monotonic clock, for the parent to subtract its own), and how
// much resident memory OpenCL adds to a plain process. The heap shared with the worker is left out:
// it is counted as shared memory by the kernel. Prints one JSON object.
//
// usage: startup_probe query|memory
#include "../system/programs/ocl.h"

static const char* kSource = "kernel void empty(global uint* data) {}";

// Resident KiB of this process without shared memory.
static long resident_kib(void) {
  FILE* status = fopen("/proc/self/status", "r");
  char line[256];
  long total = 0;
  while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
    if (strncmp(line, "RssAnon:", 8) == 0 || strncmp(line, "RssFile:", 8) == 0) {
      total += strtol(line + 8, NULL, 10);
    }
  }
  if (status != NULL) fclose(status);
  return total;
}

// A context, a kernel that ran, and a 16 MiB transfer: what an ordinary application has.
static void use(cl_device_id device) {
  enum { kBytes = 16 << 20 };
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  cl_program program = ocl_build(context, device, kSource);
  cl_kernel kernel = clCreateKernel(program, "empty", &code);
  ocl_check(code, "clCreateKernel");
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, kBytes, NULL, &code);
  ocl_check(code, "clCreateBuffer");
  ocl_check(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), "clSetKernelArg");
  char* data = calloc(1, kBytes);
  const size_t one = 1;
  ocl_check(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, kBytes, data, 0, NULL, NULL), "write");
  ocl_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL), "launch");
  ocl_check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, kBytes, data, 0, NULL, NULL), "read");
  // A large allocation goes back to the system when freed, so it does not count.
  free(data);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: startup_probe query|memory\n");
    return 2;
  }
  const long plain_kib = resident_kib();
  const double start = ocl_seconds();
  cl_device_id device = ocl_device(NULL, NULL, 0);
  const double known = ocl_seconds();
  if (strcmp(argv[1], "memory") == 0) {
    use(device);
    printf("{\"client_memory_mib\": %.3f}\n", (double)(resident_kib() - plain_kib) / 1024);
  } else {
    printf("{\"first_query_ms\": %.3f, \"device_known_s\": %.9f}\n", (known - start) * 1e3, known);
  }
  return 0;
}
