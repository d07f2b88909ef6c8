/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes on frames that another program renders, through cl_sluice_shared_resource:
 *
 *   cl_frames COUNT FRAMES ACK      the capabilities that gl_frames printed
 *   cl_frames COUNT                 the same from standard input, as gl_frames prints them: other
 *                                   users of a machine see its command lines (ps)
 *
 * A kernel compares every pixel of every frame with what it must be; the acknowledgement goes back
 * through a buffer that is a shared resource too.
 */
#include <string.h>

#include "ocl.h"
#include "shared_frames.h"
#include "shared_resource_functions.h"

static const char* kSource =
    "kernel void count_wrong(read_only image2d_t image, int frame, global uint* wrong) {"
    "  int x = get_global_id(0), y = get_global_id(1);"
    "  const sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | "
    "CLK_FILTER_NEAREST;"
    "  int4 seen = convert_int4_rte(read_imagef(image, nearest, (int2)(x, y)) * 255.0f);"
    "  int4 wanted = (int4)(" PIXEL_RED ", " PIXEL_GREEN ", " PIXEL_BLUE
    ", 255);"
    "  if (any(seen != wanted)) atomic_inc(wrong);"
    "}";

static void check_capability(cl_int code, const char* what) {
  if (code == CL_INVALID_SHARED_RESOURCE_SLUICE) {
    fprintf(stderr, "%s opens no such resource: gl_frames prints FRAMES, then ACK\n", what);
    exit(1);
  }
  ocl_check(code, what);
}

static int read_capabilities(char frames[SLUICE_CAPABILITY_TEXT_SIZE],
                             char ack[SLUICE_CAPABILITY_TEXT_SIZE]) {
  return scanf("frames %48s ack %48s", frames, ack) == 2;
}

int main(int argc, char** argv) {
  const int count = argc == 2 || argc == 4 ? number(argv[1], MOST_FRAMES) : 0;
  char read[2][SLUICE_CAPABILITY_TEXT_SIZE];
  if (count == 0 || (argc == 2 && !read_capabilities(read[0], read[1]))) {
    fprintf(
        stderr,
        "usage: cl_frames COUNT [FRAMES ACK]: up to %d frames; without FRAMES and ACK, which ps "
        "would show to other users, what gl_frames prints is read\n",
        MOST_FRAMES);
    return 2;
  }
  sluice_capability frames, ack;
  check(sluice_capability_from_text(argc == 2 ? read[0] : argv[2], &frames), "capability");
  check(sluice_capability_from_text(argc == 2 ? read[1] : argv[3], &ack), "capability");
  char name[256];
  cl_platform_id platform;
  cl_device_id device = ocl_device(&platform, name, sizeof name);
  find_functions(platform);
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  cl_program program = ocl_build(context, device, kSource);
  cl_kernel kernel = clCreateKernel(program, "count_wrong", &code);
  ocl_check(code, "clCreateKernel");

  cl_mem image = create(context, CL_MEM_READ_ONLY, frames.bytes, 0, &code);
  check_capability(code, "FRAMES");
  cl_mem word = create(context, CL_MEM_WRITE_ONLY, ack.bytes, 0, &code);
  check_capability(code, "ACK");
  cl_mem wrong = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(cl_uint), NULL, &code);
  ocl_check(code, "clCreateBuffer");
  cl_uint way = 0;
  ocl_check(clGetMemObjectInfo(image, CL_MEM_SHARING_WAY_SLUICE, sizeof way, &way, NULL), "way");
  size_t size[2];
  ocl_check(clGetImageInfo(image, CL_IMAGE_WIDTH, sizeof size[0], &size[0], NULL), "width");
  ocl_check(clGetImageInfo(image, CL_IMAGE_HEIGHT, sizeof size[1], &size[1], NULL), "height");

  /* OpenCL takes turns; libsluice tells when there is something new to take one for. */
  sluice_connection* daemon = NULL;
  check(sluice_connect(NULL, &daemon), "connect");
  sluice_watch* watch = NULL;
  check(sluice_watch_open(daemon, &frames, &watch), "watch");
  uint64_t written = 0;
  for (cl_int frame = 1; frame <= count; ++frame) {
    await_write(watch, &written, "gl_frames");
    const cl_uint zero = 0;
    cl_uint mistakes = 1;
    ocl_check(clEnqueueFillBuffer(queue, wrong, &zero, sizeof zero, 0, sizeof zero, 0, NULL, NULL),
              "clEnqueueFillBuffer");
    ocl_check(acquire(queue, 1, &image, 0, NULL, NULL), "acquire");
    ocl_check(clSetKernelArg(kernel, 0, sizeof image, &image), "image");
    ocl_check(clSetKernelArg(kernel, 1, sizeof frame, &frame), "frame");
    ocl_check(clSetKernelArg(kernel, 2, sizeof wrong, &wrong), "wrong");
    ocl_check(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, size, NULL, 0, NULL, NULL), "kernel");
    ocl_check(release(queue, 1, &image, 0, NULL, NULL), "release");
    ocl_check(
        clEnqueueReadBuffer(queue, wrong, CL_TRUE, 0, sizeof mistakes, &mistakes, 0, NULL, NULL),
        "clEnqueueReadBuffer");
    cl_bool indeterminate = CL_TRUE;
    ocl_check(clGetMemObjectInfo(image, CL_MEM_SHARED_RESOURCE_INDETERMINATE_SLUICE,
                                 sizeof indeterminate, &indeterminate, NULL),
              "indeterminate");
    if (mistakes != 0 || indeterminate) {
      fprintf(stderr, "frame %d: %u pixels differ%s\n", frame, mistakes,
              indeterminate ? ", indeterminate" : "");
      return 1;
    }
    ocl_check(acquire(queue, 1, &word, 0, NULL, NULL), "acquire");
    ocl_check(clEnqueueFillBuffer(queue, word, &frame, sizeof frame, 0, 64, 0, NULL, NULL), "fill");
    ocl_check(release(queue, 1, &word, 0, NULL, NULL), "release");
    ocl_check(clFinish(queue), "clFinish");
  }
  const char* const ways[] = {"unknown", "import", "shadow", "staging"};
  printf("verified %d frames of %zux%zu in OpenCL on %s, by %s\n", count, size[0], size[1], name,
         ways[way <= CL_SHARING_WAY_STAGING_SLUICE ? way : 0]);
  sluice_watch_close(watch);
  sluice_disconnect(daemon);
  clReleaseMemObject(image);
  clReleaseMemObject(word);
  clReleaseMemObject(wrong);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
