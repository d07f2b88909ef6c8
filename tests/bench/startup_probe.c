// SPDX-License-Identifier: Apache-2.0
//
// A small process for the rows that need a fresh one. It measures the first platform query, and the
// time at which the first device is known (on the monotonic clock, for the parent to subtract its
// own). It also tells how much resident memory and how many threads OpenCL adds to a plain process.
// The heap shared with the worker is left out: it is counted as shared memory by the kernel. Of the
// rest, pages that were written, which only this process has, are told apart from those of files,
// which all processes with the same libraries share. Prints one JSON object.
//
// usage: startup_probe query|memory
#include "../system/programs/ocl.h"

static const char* kSource = "kernel void empty(global uint* data) {}";

// The number behind a name in /proc/self/status.
static long status_of(const char* name) {
  FILE* status = fopen("/proc/self/status", "r");
  char line[256];
  long value = 0;
  while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) value = strtol(line + strlen(name), NULL, 10);
  }
  if (status != NULL) fclose(status);
  return value;
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
  const long plain_anon_kib = status_of("RssAnon:");
  const long plain_file_kib = status_of("RssFile:");
  const double start = ocl_seconds();
  cl_device_id device = ocl_device(NULL, NULL, 0);
  const double known = ocl_seconds();
  if (strcmp(argv[1], "memory") == 0) {
    use(device);
    const double anon_mib = (double)(status_of("RssAnon:") - plain_anon_kib) / 1024;
    const double file_mib = (double)(status_of("RssFile:") - plain_file_kib) / 1024;
    printf("{\"client_memory_mib\": %.3f, \"client_written_mib\": %.3f, ", anon_mib + file_mib,
           anon_mib);
    printf("\"client_threads\": %ld}\n", status_of("Threads:") - 1);
  } else {
    printf("{\"first_query_ms\": %.3f, \"device_known_s\": %.9f}\n", (known - start) * 1e3, known);
  }
  return 0;
}
