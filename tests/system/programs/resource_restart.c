/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application that shares a resource of the daemon's through cl_sluice_shared_resource while the
 * daemon is restarted. It holds one acquired, says READY, and waits for a line. Then it tries
 * everything once more, with the old resource first held and later let go, and reports the codes as
 * `key value` lines. Verdicts are the caller's: failure_kill.py.
 */
#include <string.h>

#include "ocl.h"
#include "shared_resource_functions.h"
#include "sluice/sluice.h"

enum { BYTES = 4096, TIMEOUT_MS = 10000 };

/* A new resource, made on this connection: its writers' capability. */
static sluice_status make(sluice_connection* daemon, sluice_capability* write) {
  sluice_create_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  info.shape.size_bytes = BYTES;
  info.label = "restart";
  return sluice_create(daemon, &info, NULL, write);
}

/* One turn at it, with a write; what ends it. */
static cl_int use(cl_command_queue queue, cl_mem shared) {
  const cl_uint value = 7;
  cl_int code = acquire(queue, 1, &shared, 0, NULL, NULL);
  if (code == CL_SUCCESS) {
    code = clEnqueueFillBuffer(queue, shared, &value, sizeof value, 0, BYTES, 0, NULL, NULL);
  }
  if (code == CL_SUCCESS) code = release(queue, 1, &shared, 0, NULL, NULL);
  return code == CL_SUCCESS ? clFinish(queue) : code;
}

/* Makes a memory object of a resource of the daemon that runs now, and uses it. */
static cl_mem begin_anew(cl_context context, cl_command_queue queue, sluice_connection* daemon,
                         const char* when) {
  sluice_capability write;
  cl_int code = CL_SUCCESS;
  printf("%s_resource %d\n", when, (int)make(daemon, &write));
  cl_mem shared = create(context, CL_MEM_READ_WRITE, write.bytes, 0, &code);
  printf("%s_object %d\n", when, code);
  printf("%s_use %d\n", when, shared == NULL ? code : use(queue, shared));
  return shared;
}

int main(void) {
  cl_platform_id platform;
  cl_device_id device = ocl_device(&platform, NULL, 0);
  find_functions(platform);
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  sluice_connection* before = NULL;
  sluice_capability write;
  if (sluice_connect(NULL, &before) != SLUICE_OK || make(before, &write) != SLUICE_OK) {
    fprintf(stderr, "no resource: %s\n", sluice_error_text());
    return 1;
  }
  cl_mem old = create(context, CL_MEM_READ_WRITE, write.bytes, 0, &code);
  ocl_check(code, "clCreateFromSharedResourceSLUICE");
  ocl_check(acquire(queue, 1, &old, 0, NULL, NULL), "acquire");
  ocl_check(clFinish(queue), "clFinish");
  puts("READY");
  fflush(stdout);
  getchar();

  sluice_hold hold;
  printf("old_connection %d\n",
         (int)sluice_acquire(before, &write, SLUICE_WRITE, TIMEOUT_MS, &hold));
  sluice_connection* after = NULL;
  printf("connect %d\n", (int)sluice_connect(NULL, &after));
  cl_mem first = begin_anew(context, queue, after, "held");
  code = release(queue, 1, &old, 0, NULL, NULL);
  if (code == CL_SUCCESS) code = clFinish(queue);
  printf("old_release %d\n", code);
  cl_mem second = begin_anew(context, queue, after, "later");
  puts("DONE");
  sluice_disconnect(before);
  sluice_disconnect(after);
  if (first != NULL) clReleaseMemObject(first);
  if (second != NULL) clReleaseMemObject(second);
  clReleaseMemObject(old);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
