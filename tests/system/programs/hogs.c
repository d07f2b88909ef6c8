// SPDX-License-Identifier: Apache-2.0
// A tenant that takes more than its part of the machine, or one that counts what is left to it, in one session.
//
//   hogs count SECONDS   launches one kernel after the other and waits for each: "launches N"
//   hogs flood           kernels that keep every processor busy, until it is killed: "READY"
//   hogs forks           a kernel that forks until it is refused: "forks N error E"; then "READY" until a line comes,
//                        and "launch=CODE" of one launch more
//   hogs memory MIB      a kernel that takes so much memory of its worker's: "memory=CODE", "later=CODE" of a context
//                        made after that
#include "ocl.h"
#include "system_call.h"

#define CLONE NUMBER("56", "220")
#define NANOSLEEP NUMBER("35", "101")
#define MMAP NUMBER("9", "222")

static const char kSource[] = SYSTEM_CALL
    "kernel void add(global long* out) { out[0] += 1; }\n"
    "kernel void spin(global long* out) {\n"
    "  long x = get_global_id(0);\n"
    "  for (long i = 0; i < 20000000; ++i) x = x * 6364136223846793005L + 1442695040888963407L;\n"
    "  if (x == 42) out[1] = x;\n"
    "}\n"
    // A child sleeps for ever.
    "kernel void forks(global long* out) {\n"
    "  long time[2] = {1000, 0};\n"
    "  long s = 0, n = 0;\n"
    "  while (n < 100000 && (s = call(" CLONE
    ", 17, 0, 0, 0, 0, 0)) > 0) ++n;\n"
    "  while (s == 0) call(" NANOSLEEP
    ", (long)time, 0, 0, 0, 0, 0);\n"
    "  out[0] = n;\n"
    "  out[1] = s;\n"
    "}\n"
    "kernel void take(global long* out, long mib) {\n"
    "  for (long i = 0; i < mib; ++i) {\n"
    "    long at = call(" MMAP
    ", 0, 1048576, 3, 0x22, -1, 0);\n"
    "    if (at < 0 && at > -4096) { out[0] = at; return; }\n"
    "    for (long k = 0; k < 1048576; k += 4096) ((volatile global char*)at)[k] = 1;\n"
    "  }\n"
    "  out[0] = mib;\n"
    "}\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_mem out;

static cl_kernel Kernel(const char* name) {
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(program, name, &code);
  ocl_check(code, name);
  ocl_check(clSetKernelArg(kernel, 0, sizeof(out), &out), name);
  return kernel;
}

static cl_int Launch(cl_kernel kernel, size_t items) {
  const size_t local = 1;
  const cl_int code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &local, 0, NULL, NULL);
  return code != CL_SUCCESS ? code : clFinish(queue);
}

static void Count(double seconds) {
  cl_kernel add = Kernel("add");
  ocl_check(Launch(add, 1), "a launch");
  const double end = ocl_seconds() + seconds;
  long launches = 0;
  for (; ocl_seconds() < end; ++launches) ocl_check(Launch(add, 1), "a launch");
  printf("launches %ld\n", launches);
}

static void Flood(void) {
  cl_kernel spin = Kernel("spin");
  printf("READY\n");
  fflush(stdout);
  const size_t items = 64;
  const size_t local = 1;
  while (1) {
    for (int i = 0; i < 4; ++i)
      ocl_check(clEnqueueNDRangeKernel(queue, spin, 1, NULL, &items, &local, 0, NULL, NULL),
                "a launch");
    ocl_check(clFinish(queue), "clFinish");
  }
}

static void Forks(void) {
  long result[2] = {0, 0};
  ocl_check(Launch(Kernel("forks"), 1), "the kernel that forks");
  ocl_check(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof(result), result, 0, NULL, NULL),
            "clEnqueueReadBuffer");
  printf("forks %ld error %ld\nREADY\n", result[0], result[1]);
  fflush(stdout);
  getchar();
  printf("launch=%d\n", Launch(Kernel("add"), 1));
}

static void Memory(cl_long mib) {
  cl_kernel take = Kernel("take");
  ocl_check(clSetKernelArg(take, 1, sizeof(mib), &mib), "clSetKernelArg");
  printf("memory=%d\n", Launch(take, 1));
  cl_int later = CL_SUCCESS;
  clCreateContext(NULL, 1, &device, NULL, NULL, &later);
  printf("later=%d\n", later);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const long number = argc > 2 ? atol(argv[2]) : 0;
  cl_int code = CL_SUCCESS;
  device = ocl_device(NULL, NULL, 0);
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  queue = clCreateCommandQueue(context, device, 0, &code);
  ocl_check(code, "clCreateCommandQueue");
  program = ocl_build(context, device, kSource);
  out = clCreateBuffer(context, CL_MEM_READ_WRITE, 2 * sizeof(cl_long), NULL, &code);
  ocl_check(code, "clCreateBuffer");
  if (strcmp(what, "count") == 0) {
    Count((double)number);
  } else if (strcmp(what, "flood") == 0) {
    Flood();
  } else if (strcmp(what, "forks") == 0) {
    Forks();
  } else if (strcmp(what, "memory") == 0) {
    Memory(number);
  } else {
    fprintf(stderr, "usage: hogs count SECONDS | flood | forks | memory MIB\n");
    return 2;
  }
  return 0;
}
