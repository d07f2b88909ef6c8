/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL application that is there while the daemon is restarted. It does what each line of its
 * stdin says, and prints one line for it: look   uses what it has: "old: fill=CODE finish=CODE
 * create=CODE notified=COUNT" anew   makes a context, queue and buffer, and uses them: "new: CODE";
 * those are "old" from then on end    gives everything back: "released"
 */
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

static volatile int notified = 0;

static void CL_CALLBACK on_error(const char* text, const void* data, size_t size, void* user) {
  (void)text, (void)data, (void)size, (void)user;
  ++notified;
}

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_mem buffer;

static void give_back(void) {
  if (buffer != NULL) clReleaseMemObject(buffer);
  if (queue != NULL) clReleaseCommandQueue(queue);
  if (context != NULL) clReleaseContext(context);
  buffer = NULL, queue = NULL, context = NULL;
}

static cl_int use(void) {
  const cl_uint seven = 7;
  cl_uint seen = 0;
  cl_int code = clEnqueueFillBuffer(queue, buffer, &seven, 4, 0, 4096, 0, NULL, NULL);
  if (code != CL_SUCCESS) return code;
  code = clEnqueueReadBuffer(queue, buffer, CL_TRUE, 4092, 4, &seen, 0, NULL, NULL);
  if (code != CL_SUCCESS) return code;
  return seen == seven ? CL_SUCCESS : 1;
}

static cl_int anew(void) {
  cl_int code;
  give_back();
  context = clCreateContext(NULL, 1, &device, on_error, NULL, &code);
  if (code == CL_SUCCESS) queue = clCreateCommandQueue(context, device, 0, &code);
  if (code == CL_SUCCESS) buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &code);
  notified = 0;
  return code == CL_SUCCESS ? use() : code;
}

static void look(void) {
  const cl_uint eight = 8;
  cl_int create;
  cl_int fill = clEnqueueFillBuffer(queue, buffer, &eight, 4, 0, 4096, 0, NULL, NULL);
  cl_int finish = clFinish(queue);
  cl_mem other = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &create);
  if (other != NULL) clReleaseMemObject(other);
  printf("old: fill=%d finish=%d create=%d notified=%d\n", fill, finish, create, notified);
}

int main(void) {
  cl_platform_id platform;
  char line[64];
  setvbuf(stdout, NULL, _IONBF, 0);
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
    puts("no device");
    return 2;
  }
  while (fgets(line, sizeof(line), stdin) != NULL) {
    if (strncmp(line, "look", 4) == 0) look();
    if (strncmp(line, "anew", 4) == 0) printf("new: %d\n", anew());
    if (strncmp(line, "end", 3) == 0) {
      give_back();
      puts("released");
      return 0;
    }
  }
  return 3;
}
