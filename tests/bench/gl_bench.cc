// SPDX-License-Identifier: Apache-2.0
// The cost of sharing with OpenGL, beside the same work without the extension, in one process.
//
//   gl_bench [--quick]
//
// Prints the rows of one platform (ocl.h says how it is chosen) as JSON, of 64 KiB, 1 and 16 MiB.
// Without the extension, so on every platform: memcpy, glReadPixels, glGetTexImage, and what a
// program does that has both APIs and no sharing. With it, on Sluice: acquire and release of a
// texture and of a buffer, and frames. SLUICE_SHARING says which way. Nothing of GL's is imported:
// of that way a gralloc buffer is measured. The last frame of each kind is verified.
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "client_icd/include/CL/cl_sluice.h"
#include "tests/bench/bench.h"
#include "tests/system/programs/headless_gl.h"

namespace sluice_bench {
namespace {

// Of RGBA8.
struct Size {
  const char* name;
  size_t side;
  size_t bytes() const { return side * side * 4; }
};
constexpr Size kSizes[] = {{"64k", 128}, {"1m", 512}, {"16m", 2048}};

std::string RowName(const char* what, const Size& size) {
  return std::string(what) + "_" + size.name + "_us";
}
constexpr size_t kWidth = 1920;
constexpr size_t kHeight = 1080;

const char kInvertSource[] = R"(
__kernel void invert_image(read_only image2d_t in, write_only image2d_t out) {
  const int2 at = (int2)(get_global_id(0), get_global_id(1));
  const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
  write_imagef(out, at, (float4)(1.0f) - read_imagef(in, sampler, at));
}
__kernel void touch_image(write_only image2d_t out) {
  write_imagef(out, (int2)(0, 0), (float4)(1.0f));
}
__kernel void touch_buffer(__global uint* out) { out[0] = 1; }
)";

struct BufferFunctions {
  PFNGLGENBUFFERSPROC gen = headless::Function<PFNGLGENBUFFERSPROC>("glGenBuffers");
  PFNGLBINDBUFFERPROC bind = headless::Function<PFNGLBINDBUFFERPROC>("glBindBuffer");
  PFNGLBUFFERDATAPROC data = headless::Function<PFNGLBUFFERDATAPROC>("glBufferData");
  PFNGLBUFFERSUBDATAPROC write = headless::Function<PFNGLBUFFERSUBDATAPROC>("glBufferSubData");
  PFNGLGETBUFFERSUBDATAPROC read =
      headless::Function<PFNGLGETBUFFERSUBDATAPROC>("glGetBufferSubData");
};

// A texture that can be rendered to and read from.
struct Texture {
  GLuint name = 0;
  GLuint framebuffer = 0;
  GLsizei width = 0;
  GLsizei height = 0;

  Texture(size_t wide, size_t high)
      : width(static_cast<GLsizei>(wide)), height(static_cast<GLsizei>(high)) {
    glGenTextures(1, &name);
    glBindTexture(GL_TEXTURE_2D, name);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
    headless::Function<PFNGLGENFRAMEBUFFERSPROC>("glGenFramebuffers")(1, &framebuffer);
    Bind();
    headless::Function<PFNGLFRAMEBUFFERTEXTURE2DPROC>("glFramebufferTexture2D")(
        GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, name, 0);
  }
  void Bind() const {
    static const auto bind = headless::Function<PFNGLBINDFRAMEBUFFERPROC>("glBindFramebuffer");
    bind(GL_FRAMEBUFFER, framebuffer);
    glBindTexture(GL_TEXTURE_2D, name);
    glViewport(0, 0, width, height);
  }
  void Clear(int frame) const {
    Bind();
    glClearColor(static_cast<float>(frame % 256) / 255.0f, 0.0f, 1.0f, 1.0f);
    glClear(GL_COLOR_BUFFER_BIT);
  }
  void Read(void* pixels) const {
    Bind();
    glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
  }
  void Get(void* pixels) const {
    Bind();
    glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
  }
  void Write(const void* pixels) const {
    Bind();
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    glFinish();
  }
};

cl_mem NewImage(const Device& device, size_t width, size_t height) {
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = width;
  desc.image_height = height;
  cl_int code = CL_SUCCESS;
  const cl_mem image =
      clCreateImage(device.context, CL_MEM_READ_WRITE, &format, &desc, nullptr, &code);
  ocl_check(code, "clCreateImage");
  return image;
}

cl_kernel NewKernel(cl_program program, const char* name) {
  cl_int code = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(program, name, &code);
  ocl_check(code, "clCreateKernel");
  return kernel;
}

void MoveImage(const Device& device, cl_mem image, size_t width, size_t height, void* pixels,
               bool write) {
  const size_t origin[3] = {0, 0, 0};
  const size_t region[3] = {width, height, 1};
  ocl_check(write ? clEnqueueWriteImage(device.queue, image, CL_TRUE, origin, region, 0, 0, pixels,
                                        0, nullptr, nullptr)
                  : clEnqueueReadImage(device.queue, image, CL_TRUE, origin, region, 0, 0, pixels,
                                       0, nullptr, nullptr),
            "image transfer");
}

void Invert(const Device& device, cl_kernel kernel, cl_mem in, cl_mem out) {
  const size_t global[2] = {kWidth, kHeight};
  ocl_check(clSetKernelArg(kernel, 0, sizeof(in), &in), "argument");
  ocl_check(clSetKernelArg(kernel, 1, sizeof(out), &out), "argument");
  ocl_check(clEnqueueNDRangeKernel(device.queue, kernel, 2, nullptr, global, nullptr, 0, nullptr,
                                   nullptr),
            "kernel");
}

// Frames per second of `frame`, whose last one must have left the inverse in `out`.
double FramesPerSecond(const Texture& out, int frames, const std::function<void(int)>& frame) {
  for (int i = 0; i < 5; ++i) frame(i);
  const double begin = ocl_seconds();
  for (int i = 0; i < frames; ++i) frame(i);
  glFinish();
  const double seconds = ocl_seconds() - begin;
  std::vector<uint8_t> pixels(kWidth * kHeight * 4);
  out.Read(pixels.data());
  const uint8_t wanted[4] = {static_cast<uint8_t>(255 - (frames - 1) % 256), 255, 0, 0};
  for (size_t i = 0; i < pixels.size(); i += 4) {
    if (std::memcmp(&pixels[i], wanted, 4) != 0) headless::Fail("the last frame is wrong");
  }
  return frames / seconds;
}

// Measures what every program can do that has OpenGL and OpenCL, of one size.
void MeasureCopies(const Device& device, const Size& size, int repeats, Rows* rows) {
  const size_t bytes = size.bytes();
  std::vector<uint8_t> from(bytes, 1), to(bytes, 2);
  const auto measure = [&](const char* name, const std::function<void()>& work) {
    rows->emplace_back(RowName(name, size), 1e6 * MedianSeconds(repeats, work));
  };
  measure("memcpy", [&] { std::memcpy(to.data(), from.data(), bytes); });
  const Texture texture(size.side, size.side);
  texture.Clear(1);
  measure("read_pixels", [&] { texture.Read(to.data()); });
  measure("get_tex_image", [&] { texture.Get(to.data()); });
  const cl_mem image = NewImage(device, size.side, size.side);
  const auto move_image = [&](bool write) {
    MoveImage(device, image, size.side, size.side, to.data(), write);
  };
  measure("texture_in_without", [&] {
    texture.Read(to.data());
    move_image(/*write=*/true);
  });
  measure("texture_in_without_by_get", [&] {
    texture.Get(to.data());
    move_image(/*write=*/true);
  });
  measure("texture_out_without", [&] {
    move_image(/*write=*/false);
    texture.Write(to.data());
  });
  const BufferFunctions gl;
  GLuint name = 0;
  gl.gen(1, &name);
  gl.bind(GL_ARRAY_BUFFER, name);
  gl.data(GL_ARRAY_BUFFER, static_cast<GLsizeiptr>(bytes), from.data(), GL_DYNAMIC_COPY);
  const cl_mem buffer = NewBuffer(device, CL_MEM_READ_WRITE, bytes);
  measure("buffer_in_without", [&] {
    gl.read(GL_ARRAY_BUFFER, 0, static_cast<GLsizeiptr>(bytes), to.data());
    ocl_check(clEnqueueWriteBuffer(device.queue, buffer, CL_TRUE, 0, bytes, to.data(), 0, nullptr,
                                   nullptr),
              "write");
  });
  measure("buffer_out_without", [&] {
    ocl_check(clEnqueueReadBuffer(device.queue, buffer, CL_TRUE, 0, bytes, to.data(), 0, nullptr,
                                  nullptr),
              "read");
    gl.write(GL_ARRAY_BUFFER, 0, static_cast<GLsizeiptr>(bytes), to.data());
    glFinish();
  });
  clReleaseMemObject(image);
  clReleaseMemObject(buffer);
}

void MeasureWithout(const Device& device, cl_program program, const Options& options, Rows* rows) {
  for (const Size& size : kSizes) MeasureCopies(device, size, options.quick ? 3 : 31, rows);
  std::vector<uint8_t> to(kWidth * kHeight * 4);
  const Texture in(kWidth, kHeight), out(kWidth, kHeight);
  const cl_mem source = NewImage(device, kWidth, kHeight);
  const cl_mem target = NewImage(device, kWidth, kHeight);
  const cl_kernel invert = NewKernel(program, "invert_image");
  rows->emplace_back("frames_without_per_s",
                     FramesPerSecond(out, options.quick ? 10 : 100, [&](int frame) {
                       in.Clear(frame);
                       in.Read(to.data());
                       MoveImage(device, source, kWidth, kHeight, to.data(), /*write=*/true);
                       Invert(device, invert, source, target);
                       MoveImage(device, target, kWidth, kHeight, to.data(), /*write=*/false);
                       out.Write(to.data());
                     }));
  clReleaseMemObject(source);
  clReleaseMemObject(target);
  clReleaseKernel(invert);
}

using Enqueue = decltype(&clEnqueueAcquireGLObjects);

struct Turns {
  Enqueue acquire = &clEnqueueAcquireGLObjects;
  Enqueue release = &clEnqueueReleaseGLObjects;
};

void Synchronise(const Device& device, Enqueue call, const std::vector<cl_mem>& objects) {
  ocl_check(
      call(device.queue, static_cast<cl_uint>(objects.size()), objects.data(), 0, nullptr, nullptr),
      "acquire or release");
  ocl_check(clFinish(device.queue), "clFinish");
}

// Acquires, lets `kernel` write, releases; the medians of both go to rows of this name.
void MeasureObject(const Device& device, const std::string& name, const Size& size, cl_mem memory,
                   cl_kernel kernel, const Turns& turns, int rounds, Rows* rows) {
  std::vector<double> acquires, releases;
  ocl_check(clSetKernelArg(kernel, 0, sizeof(memory), &memory), "argument");
  for (int round = 0; round < rounds + 3; ++round) {
    glFinish();
    const double begin = ocl_seconds();
    Synchronise(device, turns.acquire, {memory});
    const double acquired = ocl_seconds();
    const size_t one = 1;
    ocl_check(clEnqueueNDRangeKernel(device.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr,
                                     nullptr),
              "kernel");
    ocl_check(clFinish(device.queue), "clFinish");
    const double written = ocl_seconds();
    Synchronise(device, turns.release, {memory});
    const double released = ocl_seconds();
    if (round < 3) continue;  // Warm.
    acquires.push_back(acquired - begin);
    releases.push_back(released - written);
  }
  rows->emplace_back(RowName((name + "_acquire").c_str(), size), 1e6 * Median(acquires));
  rows->emplace_back(RowName((name + "_release").c_str(), size), 1e6 * Median(releases));
  clReleaseMemObject(memory);
  clReleaseKernel(kernel);
}

cl_mem ShareTexture(const Device& device, cl_mem_flags flags, const Texture& texture) {
  cl_int code = CL_SUCCESS;
  const cl_mem memory =
      clCreateFromGLTexture(device.context, flags, GL_TEXTURE_2D, 0, texture.name, &code);
  ocl_check(code, "clCreateFromGLTexture");
  return memory;
}

void MeasureWith(const Device& device, cl_program program, const Options& options, Rows* rows) {
  const int rounds = options.quick ? 3 : 31;
  for (const Size& size : kSizes) {
    const Texture texture(size.side, size.side);
    texture.Clear(1);
    MeasureObject(device, "texture", size, ShareTexture(device, CL_MEM_READ_WRITE, texture),
                  NewKernel(program, "touch_image"), {}, rounds, rows);
    const BufferFunctions gl;
    GLuint name = 0;
    gl.gen(1, &name);
    gl.bind(GL_ARRAY_BUFFER, name);
    gl.data(GL_ARRAY_BUFFER, static_cast<GLsizeiptr>(size.bytes()), nullptr, GL_DYNAMIC_COPY);
    cl_int code = CL_SUCCESS;
    const cl_mem buffer = clCreateFromGLBuffer(device.context, CL_MEM_READ_WRITE, name, &code);
    ocl_check(code, "clCreateFromGLBuffer");
    MeasureObject(device, "buffer", size, buffer, NewKernel(program, "touch_buffer"), {}, rounds,
                  rows);
  }

  const Texture in(kWidth, kHeight), out(kWidth, kHeight);
  const std::vector<cl_mem> both = {ShareTexture(device, CL_MEM_READ_ONLY, in),
                                    ShareTexture(device, CL_MEM_WRITE_ONLY, out)};
  const cl_kernel invert = NewKernel(program, "invert_image");
  rows->emplace_back(
      "frames_per_s", FramesPerSecond(out, options.quick ? 10 : 100, [&](int frame) {
        in.Clear(frame);
        ocl_check(clEnqueueAcquireGLObjects(device.queue, 2, both.data(), 0, nullptr, nullptr),
                  "acquire");
        Invert(device, invert, both[0], both[1]);
        // Waits for its own end: a context is current here (cl_khr_gl_event).
        ocl_check(clEnqueueReleaseGLObjects(device.queue, 2, both.data(), 0, nullptr, nullptr),
                  "release");
      }));
  for (const cl_mem memory : both) clReleaseMemObject(memory);
}

// A gralloc handle over a sealed memfd: memory that both sides work in.
cl_mem ImportMemory(const Device& device, size_t bytes) {
  const int fd = memfd_create("gl_bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    headless::Fail("memfd_create");
  }
  int handle[] = {3 * sizeof(int), 1, 0, fd};  // native_handle_t: its size, descriptors, numbers.
  cl_int code = CL_SUCCESS;
  const cl_mem memory = clCreateBuffer(
      device.context, CL_MEM_READ_WRITE | CL_MEM_USE_GRALLOC_PTR_IMG, 0, handle, &code);
  close(fd);
  if (code == CL_SUCCESS) return memory;
  std::fprintf(stderr, "no import here: clCreateBuffer of a gralloc handle: %d\n", code);
  return nullptr;
}

void MeasureImported(const Device& device, cl_program program, const Options& options, Rows* rows) {
  cl_platform_id platform = nullptr;
  ocl_check(clGetDeviceInfo(device.id, CL_DEVICE_PLATFORM, sizeof(platform), &platform, nullptr),
            "platform");
  const auto find = [platform](const char* name) {
    return reinterpret_cast<Enqueue>(clGetExtensionFunctionAddressForPlatform(platform, name));
  };
  const Turns turns = {find("clEnqueueAcquireGrallocObjectsIMG"),
                       find("clEnqueueReleaseGrallocObjectsIMG")};
  for (const Size& size : kSizes) {
    const cl_mem memory = ImportMemory(device, size.bytes());
    if (memory == nullptr) return;
    MeasureObject(device, "buffer", size, memory, NewKernel(program, "touch_buffer"), turns,
                  options.quick ? 3 : 31, rows);
  }
}

// As OpenDevice, with a context that shares with OpenGL where the platform is Sluice's.
Device OpenSharingDevice(const headless::Gl& gl, bool* shares) {
  Device device = OpenDevice();
  *shares = device.platform_name.rfind(OCL_SLUICE_PREFIX, 0) == 0;
  if (!*shares) return device;
  cl_platform_id platform = nullptr;
  ocl_check(clGetDeviceInfo(device.id, CL_DEVICE_PLATFORM, sizeof(platform), &platform, nullptr),
            "platform");
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform),
                                              CL_GL_CONTEXT_KHR,
                                              reinterpret_cast<cl_context_properties>(gl.context),
                                              CL_EGL_DISPLAY_KHR,
                                              reinterpret_cast<cl_context_properties>(gl.display),
                                              0};
  cl_int code = CL_SUCCESS;
  device.context = clCreateContext(properties, 1, &device.id, nullptr, nullptr, &code);
  ocl_check(code, "clCreateContext with OpenGL");
  device.queue = clCreateCommandQueue(device.context, device.id, 0, &code);
  ocl_check(code, "clCreateCommandQueue");
  return device;
}

}  // namespace
}  // namespace sluice_bench

int main(int argc, char** argv) {
  using namespace sluice_bench;
  Options options;
  options.quick = argc > 1 && std::string(argv[1]) == "--quick";
  const headless::Gl gl = headless::OpenGl();
  bool shares = false;
  const Device device = OpenSharingDevice(gl, &shares);
  const cl_program program = ocl_build(device.context, device.id, kInvertSource);
  Rows rows;
  MeasureWithout(device, program, options, &rows);
  const char* const way = std::getenv("SLUICE_SHARING");
  const bool imports = way != nullptr && std::string(way) == "import";
  if (shares) (imports ? MeasureImported : MeasureWith)(device, program, options, &rows);
  if (glGetError() != GL_NO_ERROR) headless::Fail("OpenGL has an error");
  std::printf(
      "{\"platform\": \"%s\", \"device\": \"%s\", \"type\": \"%s\", \"driver\": \"%s\", "
      "\"renderer\": \"%s\", \"rows\": {",
      device.platform_name.c_str(), device.name.c_str(), device.type.c_str(), device.driver.c_str(),
      reinterpret_cast<const char*>(glGetString(GL_RENDERER)));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::printf("%s\"%s\": %.6g", i == 0 ? "" : ", ", rows[i].first.c_str(), rows[i].second);
  }
  std::printf("}}\n");
  return 0;
}
