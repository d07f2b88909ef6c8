// SPDX-License-Identifier: Apache-2.0
// A texture and a buffer of OpenGL (EGL, no display) go to OpenCL, are inverted by a kernel, and
// come back: contents checked each time, acquire and release timed.
//
//   gl_ways [--way=import|shadow|staging] [--side=PIXELS] [--rounds=N] [--warm=N] [--hold]
//
// Prints one line for each object: way, bytes, median milliseconds of acquire and of release, over
// the rounds after the first --warm ones. With --way an object that goes another way is a failure
// (set SLUICE_SHARING too, to ask for one). With --hold it says "holding" while the objects are
// there, and waits for the end of its input.
#include <CL/cl.h>
#include <CL/cl_gl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "client_icd/include/CL/cl_sluice.h"
#include "tests/system/programs/headless_gl.h"

namespace {

[[noreturn]] void Die(const std::string& what) {
  std::printf("gl_ways: FAIL: %s\n", what.c_str());
  std::exit(1);
}

void Check(cl_int status, const char* what) {
  if (status != CL_SUCCESS) Die(std::string(what) + ": " + std::to_string(status));
}

using headless::Function;

struct Cl {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_kernel invert_image = nullptr;
  cl_kernel invert_buffer = nullptr;
};

const char kSource[] = R"(
__kernel void invert_image(read_only image2d_t in, write_only image2d_t out) {
  const int2 at = (int2)(get_global_id(0), get_global_id(1));
  const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
  write_imagef(out, at, (float4)(1.0f) - read_imagef(in, sampler, at));
}
__kernel void invert_buffer(__global uint* data) { data[get_global_id(0)] = ~data[get_global_id(0)]; }
)";

struct Options {
  std::string way;
  int side = 2048;
  int rounds = 20;
  int warm = 3;
  bool hold = false;
};

Cl OpenCl(const headless::Gl& gl) {
  cl_uint count = 0;
  Check(clGetPlatformIDs(0, nullptr, &count), "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs(count, platforms.data(), nullptr);
  for (const cl_platform_id platform : platforms) {
    char name[256] = {};
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name) - 1, name, nullptr);
    cl_device_id device = nullptr;
    if (std::strncmp(name, "Sluice (", 8) != 0 ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
      continue;
    Cl cl;
    cl_int status = CL_SUCCESS;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                reinterpret_cast<cl_context_properties>(platform),
                                                CL_GL_CONTEXT_KHR,
                                                reinterpret_cast<cl_context_properties>(gl.context),
                                                CL_EGL_DISPLAY_KHR,
                                                reinterpret_cast<cl_context_properties>(gl.display),
                                                0};
    cl.context = clCreateContext(properties, 1, &device, nullptr, nullptr, &status);
    Check(status, "clCreateContext");
    cl.queue = clCreateCommandQueue(cl.context, device, 0, &status);
    Check(status, "clCreateCommandQueue");
    const char* source = kSource;
    const cl_program program = clCreateProgramWithSource(cl.context, 1, &source, nullptr, &status);
    Check(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), "clBuildProgram");
    cl.invert_image = clCreateKernel(program, "invert_image", &status);
    Check(status, "clCreateKernel");
    cl.invert_buffer = clCreateKernel(program, "invert_buffer", &status);
    Check(status, "clCreateKernel");
    std::printf("gl_ways: %s with %s\n", name,
                reinterpret_cast<const char*>(glGetString(GL_RENDERER)));
    return cl;
  }
  Die("no platform of Sluice");
}

std::vector<uint32_t> Pattern(size_t count, uint32_t seed) {
  std::vector<uint32_t> words(count);
  uint32_t state = seed * 2654435761u + 1u;
  for (uint32_t& word : words) word = state = state * 1664525u + 1013904223u;
  return words;
}

double NowMs() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

std::string WayOf(cl_mem memory) {
  cl_sluice_sharing_way way = 0;
  Check(clGetMemObjectInfo(memory, CL_MEM_SHARING_WAY_SLUICE, sizeof(way), &way, nullptr),
        "CL_MEM_SHARING_WAY_SLUICE");
  return way == CL_SHARING_WAY_IMPORT_SLUICE   ? "import"
         : way == CL_SHARING_WAY_SHADOW_SLUICE ? "shadow"
                                               : "staging";
}

void Hold() {
  std::printf("holding\n");
  while (std::getchar() != EOF) {
  }
}

// One object through all rounds. `fill` and `read` are GL's, `run` the kernel.
template <typename Fill, typename Read, typename Run>
void Rounds(const Cl& cl, const char* what, cl_mem memory, size_t words, const Options& options,
            Fill fill, Read read, Run run) {
  std::vector<double> acquires, releases;
  for (int round = 0; round < options.warm + options.rounds; ++round) {
    const std::vector<uint32_t> before = Pattern(words, static_cast<uint32_t>(round));
    fill(before);
    glFinish();
    const double t0 = NowMs();
    Check(clEnqueueAcquireGLObjects(cl.queue, 1, &memory, 0, nullptr, nullptr), "acquire");
    Check(clFinish(cl.queue), "acquire's end");
    const double t1 = NowMs();
    run();
    Check(clFinish(cl.queue), "kernel");
    const double t2 = NowMs();
    Check(clEnqueueReleaseGLObjects(cl.queue, 1, &memory, 0, nullptr, nullptr), "release");
    Check(clFinish(cl.queue), "release's end");
    const double t3 = NowMs();
    const std::vector<uint32_t> after = read();
    for (size_t i = 0; i < words; ++i) {
      if (after[i] != ~before[i]) {
        Die(std::string(what) + ": word " + std::to_string(i) + " of round " +
            std::to_string(round) + " is wrong");
      }
    }
    if (round < options.warm) continue;
    acquires.push_back(t1 - t0);
    releases.push_back(t3 - t2);
  }
  const std::string taken = WayOf(memory);
  std::printf("%-8s %-8s %9zu bytes  acquire %8.3f ms  release %8.3f ms\n", what, taken.c_str(),
              words * 4, Median(acquires), Median(releases));
  if (!options.way.empty() && options.way != taken) Die(std::string(what) + " went by " + taken);
}

void Texture(const Cl& cl, const Options& options) {
  const int side = options.side;
  const size_t words = static_cast<size_t>(side) * static_cast<size_t>(side);
  GLuint texture = 0;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, side, side, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
  glFinish();
  cl_int status = CL_SUCCESS;
  cl_mem memory =
      clCreateFromGLTexture(cl.context, CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, &status);
  Check(status, "clCreateFromGLTexture");
  // A kernel of OpenCL 1.2 reads one image and writes another.
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = static_cast<size_t>(side);
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_mem other = clCreateImage(cl.context, CL_MEM_READ_WRITE, &format, &desc, nullptr, &status);
  Check(status, "clCreateImage");
  Rounds(
      cl, "texture", memory, words, options,
      [&](const std::vector<uint32_t>& bytes) {
        glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, side, side, GL_RGBA, GL_UNSIGNED_BYTE,
                        bytes.data());
      },
      [&] {
        std::vector<uint32_t> bytes(words);
        glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, bytes.data());
        return bytes;
      },
      [&] {
        const size_t global[2] = {desc.image_width, desc.image_height};
        const size_t origin[3] = {0, 0, 0};
        const size_t region[3] = {global[0], global[1], 1};
        Check(clSetKernelArg(cl.invert_image, 0, sizeof(memory), &memory), "argument");
        Check(clSetKernelArg(cl.invert_image, 1, sizeof(other), &other), "argument");
        Check(clEnqueueNDRangeKernel(cl.queue, cl.invert_image, 2, nullptr, global, nullptr, 0,
                                     nullptr, nullptr),
              "kernel");
        Check(clEnqueueCopyImage(cl.queue, other, memory, origin, origin, region, 0, nullptr,
                                 nullptr),
              "copy");
      });
  clReleaseMemObject(other);
  clReleaseMemObject(memory);
  glDeleteTextures(1, &texture);
}

void Buffer(const Cl& cl, const Options& options) {
  const size_t words = static_cast<size_t>(options.side) * static_cast<size_t>(options.side);
  const auto gen = Function<PFNGLGENBUFFERSPROC>("glGenBuffers");
  const auto bind = Function<PFNGLBINDBUFFERPROC>("glBindBuffer");
  const auto data = Function<PFNGLBUFFERDATAPROC>("glBufferData");
  const auto sub_data = Function<PFNGLBUFFERSUBDATAPROC>("glBufferSubData");
  const auto get_data = Function<PFNGLGETBUFFERSUBDATAPROC>("glGetBufferSubData");
  GLuint buffer = 0;
  gen(1, &buffer);
  bind(GL_ARRAY_BUFFER, buffer);
  const GLsizeiptr bytes = static_cast<GLsizeiptr>(words * 4);
  data(GL_ARRAY_BUFFER, bytes, nullptr, GL_DYNAMIC_COPY);
  glFinish();
  cl_int status = CL_SUCCESS;
  cl_mem memory = clCreateFromGLBuffer(cl.context, CL_MEM_READ_WRITE, buffer, &status);
  Check(status, "clCreateFromGLBuffer");
  Rounds(
      cl, "buffer", memory, words, options,
      [&](const std::vector<uint32_t>& contents) {
        sub_data(GL_ARRAY_BUFFER, 0, bytes, contents.data());
      },
      [&] {
        std::vector<uint32_t> contents(words);
        get_data(GL_ARRAY_BUFFER, 0, bytes, contents.data());
        return contents;
      },
      [&] {
        Check(clSetKernelArg(cl.invert_buffer, 0, sizeof(memory), &memory), "argument");
        Check(clEnqueueNDRangeKernel(cl.queue, cl.invert_buffer, 1, nullptr, &words, nullptr, 0,
                                     nullptr, nullptr),
              "kernel");
      });
  if (options.hold) Hold();
  clReleaseMemObject(memory);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--way=", 0) == 0) {
      options.way = argument.substr(6);
    } else if (argument.rfind("--side=", 0) == 0) {
      options.side = std::atoi(argument.c_str() + 7);
    } else if (argument.rfind("--rounds=", 0) == 0) {
      options.rounds = std::atoi(argument.c_str() + 9);
    } else if (argument.rfind("--warm=", 0) == 0) {
      options.warm = std::atoi(argument.c_str() + 7);
    } else if (argument == "--hold") {
      options.hold = true;
    } else {
      Die("unknown argument " + argument);
    }
  }
  if (options.side < 1 || options.side > 16384 || options.rounds < 1 || options.warm < 0)
    Die("bad numbers");
  const Cl cl = OpenCl(headless::OpenGl());
  Texture(cl, options);
  Buffer(cl, options);
  if (glGetError() != GL_NO_ERROR) Die("GL has an error");
  std::printf("gl_ways: PASS\n");
  return 0;
}
