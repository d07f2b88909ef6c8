// SPDX-License-Identifier: Apache-2.0
// Sharing must leave alone the application's GL state, and must survive this: deleted objects,
// contexts that go early, commands that wait for the application.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "client_icd/include/CL/cl_sluice.h"
#include "tests/sharing/gl_state_fixture.h"

namespace sluice::gltest {
namespace {

class GlState : public WithGlState {};

// Every entry point leaves the application's GL as it was, an error that it has not fetched
// included.
TEST_P(GlState, Untouched) {
  if (promise() == Promise::kNoError) GTEST_SKIP() << "it leaves an error behind";
  const Format& rgba = FormatOf(GL_RGBA8);
  const GLuint texture = Texture2D(rgba, 8, 8, Pattern(rgba, 64, 1).data());
  const GLuint buffer = Buffer("12345678", 8);
  GLuint renderbuffer = 0;
  gl().GenRenderbuffers(1, &renderbuffer);
  gl().BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
  gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, 4, 4);
  Disturb(texture, buffer);
  Own<cl_mem> memories[3];
  const auto check = [&](const char* call, const std::function<void()>& body) {
    CheckUntouched(call, body);
  };
  Own<cl_context> another;
  check("clCreateContext", [&] { another = NewGlContext(app()); });
  check("clReleaseContext", [&] { another.Reset(); });
  check("clGetGLContextInfoKHR", [&] {
    const auto query = Extension<decltype(&clGetGLContextInfoKHR)>("clGetGLContextInfoKHR");
    const std::vector<cl_context_properties> list = Properties(app());
    cl_device_id found = nullptr;
    EXPECT_EQ(
        query(list.data(), CL_CURRENT_DEVICE_FOR_GL_CONTEXT_KHR, sizeof(found), &found, nullptr),
        CL_SUCCESS);
  });
  check("clCreateFromGLBuffer", [&] {
    memories[0] =
        MAKE("clCreateFromGLBuffer.state", clCreateFromGLBuffer(context(), 0, buffer, error));
  });
  check("clCreateFromGLTexture", [&] {
    memories[1] =
        MAKE("clCreateFromGLTexture.state",
             clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  });
  check("clCreateFromGLRenderbuffer", [&] {
    memories[2] =
        MAKE("clCreateFromGLRenderbuffer.state",
             clCreateFromGLRenderbuffer(context(), CL_MEM_READ_WRITE, renderbuffer, error));
  });
  check("refused", [&] {
    EXPECT_CREATE("clCreateFromGLTexture.state_refused", CL_INVALID_GL_OBJECT,
                  clCreateFromGLTexture(context(), 0, GL_TEXTURE_3D, 0, texture, error));
  });
  const cl_mem all[3] = {memories[0], memories[1], memories[2]};
  const cl_uint value = 0x01020304;
  check("clEnqueueAcquireGLObjects", [&] {
    ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 3, all, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  });
  ASSERT_EQ(clEnqueueFillBuffer(queue(), all[0], &value, 4, 0, 8, 0, nullptr, nullptr), CL_SUCCESS);
  WriteImage(all[1], 8, 8, 1, Pattern(rgba, 64, 2));
  WriteImage(all[2], 4, 4, 1, Pattern(rgba, 16, 3));
  check("clEnqueueReleaseGLObjects", [&] {
    ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 3, all, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  });
  check("clGetGLObjectInfo", [&] {
    cl_gl_object_type type = 0;
    for (const Own<cl_mem>& memory : memories)
      EXPECT_EQ(clGetGLObjectInfo(memory, &type, nullptr), CL_SUCCESS);
  });
  check("clGetGLTextureInfo", [&] {
    cl_GLint level = -1;
    EXPECT_EQ(clGetGLTextureInfo(memories[1], CL_GL_MIPMAP_LEVEL, sizeof(level), &level, nullptr),
              CL_SUCCESS);
  });
  check("clReleaseMemObject", [&] {
    for (Own<cl_mem>& memory : memories) memory.Reset();
  });
}

// So do the older entry points, textures of the other targets, contexts of a device type and events
// of fences.
TEST_P(GlState, UntouchedByTheOthers) {
  if (promise() == Promise::kNoError) GTEST_SKIP() << "it leaves an error behind";
  const Format& rgba = FormatOf(GL_RGBA8);
  const std::vector<uint8_t> bytes = Pattern(rgba, 64, 1);
  const GLuint flat = Texture2D(rgba, 8, 8, bytes.data());
  struct {
    GLenum target;
    GLuint texture;
    bool in_es;
  } textures[] = {{GL_TEXTURE_1D, 0, false},
                  {GL_TEXTURE_1D_ARRAY, 0, false},
                  {GL_TEXTURE_RECTANGLE, 0, false},
                  {GL_TEXTURE_2D_ARRAY, 0, true},
                  {GL_TEXTURE_3D, 0, true}};
  for (auto& [target, texture, in_es] : textures) {
    if (es() && !in_es) continue;
    gl().GenTextures(1, &texture);
    gl().BindTexture(target, texture);
    if (target == GL_TEXTURE_1D) {
      gl().TexImage1D(target, 0, GL_RGBA8, 64, 0, GL_RGBA, GL_UNSIGNED_BYTE, bytes.data());
    } else if (in_es) {
      gl().TexImage3D(target, 0, GL_RGBA8, 4, 4, 4, 0, GL_RGBA, GL_UNSIGNED_BYTE, bytes.data());
    } else {
      gl().TexImage2D(target, 0, GL_RGBA8, 8, 8, 0, GL_RGBA, GL_UNSIGNED_BYTE, bytes.data());
    }
    gl().TexParameteri(target, GL_TEXTURE_MAX_LEVEL, 0);
  }
  Disturb(flat, Buffer("12345678", 8));
  const auto from_sync =
      Extension<decltype(&clCreateEventFromGLsyncKHR)>("clCreateEventFromGLsyncKHR");
  ASSERT_NE(from_sync, nullptr);
  Own<cl_context> typed;
  CheckUntouched("clCreateContextFromType", [&] {
    typed = MAKE("clCreateContextFromType.state",
                 clCreateContextFromType(Properties(app()).data(), CL_DEVICE_TYPE_ALL, nullptr,
                                         nullptr, error));
  });
  CheckUntouched("its clReleaseContext", [&] { typed.Reset(); });
  const auto use = [this](Own<cl_mem> image) {
    ASSERT_NE(image.get(), nullptr);
    ASSERT_EQ(Acquire(image), CL_SUCCESS);
    const uint8_t texel[4] = {};
    const size_t origin[3] = {}, region[3] = {1, 1, 1};
    ASSERT_EQ(clEnqueueWriteImage(queue(), image, CL_FALSE, origin, region, 0, 0, texel, 0, nullptr,
                                  nullptr),
              CL_SUCCESS);
    const float colour[4] = {};
    ASSERT_EQ(clEnqueueFillImage(queue(), image, colour, origin, region, 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(Release(image), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  };
  CheckUntouched("clCreateFromGLTexture2D", [&] {
    use(MAKE("clCreateFromGLTexture2D.state",
             clCreateFromGLTexture2D(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, flat, error)));
  });
  CheckUntouched("clCreateFromGLTexture3D", [&] {
    use(MAKE("clCreateFromGLTexture3D.state",
             clCreateFromGLTexture3D(context(), CL_MEM_READ_WRITE, GL_TEXTURE_3D, 0,
                                     textures[4].texture, error)));
  });
  for (const auto& [target, texture, in_es] : textures) {
    if (texture == 0) continue;
    SCOPED_TRACE(target);
    CheckUntouched("clCreateFromGLTexture", [&] {
      cl_int status = CL_SUCCESS;
      Own<cl_mem> image(
          clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, target, 0, texture, &status));
      if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE && ShadowIsForced()) return;
      ASSERT_EQ(status, CL_SUCCESS);
      use(std::move(image));
    });
  }
  const cl_GLsync fence =
      reinterpret_cast<cl_GLsync>(gl().FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0));
  gl().Flush();
  CheckUntouched("clCreateEventFromGLsyncKHR", [&] {
    const Own<cl_event> event =
        MAKE("clCreateEventFromGLsyncKHR.state", from_sync(context(), fence, error));
    EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  });
}

// A deleted texture's contents stay OpenCL's, and a new texture of the same name is another.
TEST_P(GlState, DeletedAndNameUsedAgain) {
  const Format& format = FormatOf(GL_RGBA8);
  const std::vector<uint8_t> old_bytes = Pattern(format, 256, 1);
  const GLuint texture = Texture2D(format, 16, 16, old_bytes.data());
  Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.deleted",
           clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  ASSERT_NE(image.get(), nullptr);
  const GLuint buffer = Buffer(old_bytes.data(), 1024);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.deleted",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  gl().DeleteTextures(1, &texture);
  gl().DeleteBuffers(1, &buffer);
  const std::vector<uint8_t> new_bytes = Pattern(format, 256, 2);
  // Compatible contexts and OpenGL ES take any free name: that of the deleted objects.
  gl().BindTexture(GL_TEXTURE_2D, texture);
  gl().TexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, 16, 16, 0, format.format, format.type,
                  new_bytes.data());
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().BufferData(GL_ARRAY_BUFFER, 1024, new_bytes.data(), GL_STATIC_DRAW);
  ASSERT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
  const cl_mem both[2] = {image, memory};
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(ReadImage(image, 16, 16, 1, 4), old_bytes);
  std::vector<uint8_t> seen(1024);
  ASSERT_EQ(
      clEnqueueReadBuffer(queue(), memory, CL_TRUE, 0, 1024, seen.data(), 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(seen, old_bytes);
  WriteImage(image, 16, 16, 1, Pattern(format, 256, 3));
  ASSERT_EQ(clEnqueueWriteBuffer(queue(), memory, CL_TRUE, 0, 1024, Pattern(format, 256, 4).data(),
                                 0, nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, texture, 0, format, 16, 16, 1), new_bytes);
  EXPECT_EQ(ReadBuffer(buffer, 1024), new_bytes);
}

// The application's context may go first: ours keeps the share group, and releases work.
TEST_P(GlState, ContextDestroyedEarly) {
  const Format& format = FormatOf(GL_RGBA8);
  const std::vector<uint8_t> bytes = Pattern(format, 64, 1);
  const GLuint texture = Texture2D(format, 8, 8, bytes.data());
  Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.orphan",
           clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  ASSERT_NE(image.get(), nullptr);
  gl().Finish();
  app().DestroyContext();
  ASSERT_EQ(Acquire(image), CL_SUCCESS);
  EXPECT_EQ(ReadImage(image, 8, 8, 1, 4), bytes);
  ASSERT_EQ(Release(image), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
}

// An acquire that waits for a user event fetches what GL wrote before the event was set, and blocks
// nobody; neither does a release.
TEST_P(GlState, UserEventsGate) {
  const std::vector<cl_uint> first(64, 1);
  const GLuint buffer = Buffer(first.data(), 256);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.gate",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  cl_int status = CL_SUCCESS;
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  const cl_mem handle = memory;
  cl_event event = nullptr;
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 1, &handle, 1, gate.AsList(), &event), CL_SUCCESS);
  Own<cl_event> acquired(event);
  Own<cl_kernel> kernel =
      BuildKernel("kernel void add(global uint* v) { v[get_global_id(0)] += 1; }", "add");
  conformance::SetArg(kernel, 0, memory);
  ASSERT_EQ(conformance::Launch(queue(), kernel, 64), CL_SUCCESS);
  ASSERT_EQ(Release(memory, &event), CL_SUCCESS);
  Own<cl_event> released(event);
  EXPECT_GT(conformance::StatusOf(acquired), CL_COMPLETE);
  EXPECT_GT(conformance::StatusOf(released), CL_COMPLETE);
  const std::vector<cl_uint> second(64, 5);
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().BufferSubData(GL_ARRAY_BUFFER, 0, 256, second.data());
  gl().BindBuffer(GL_ARRAY_BUFFER, 0);
  gl().Finish();
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  const std::vector<uint8_t> bytes = ReadBuffer(buffer, 256);
  cl_uint seen = 0;
  std::memcpy(&seen, bytes.data(), 4);
  EXPECT_EQ(seen, 6u);
}

// A gate that fails fails the acquire and all behind it; GL keeps its contents.
TEST_P(GlState, FailedGate) {
  const std::vector<cl_uint> values(64, 1);
  const GLuint buffer = Buffer(values.data(), 256);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.failed_gate",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  cl_int status = CL_SUCCESS;
  Own<cl_command_queue> own_queue(
      clCreateCommandQueueWithProperties(context(), device(), nullptr, &status));
  Own<cl_event> gate(clCreateUserEvent(context(), &status));
  const cl_mem handle = memory;
  cl_event event = nullptr;
  ASSERT_EQ(clEnqueueAcquireGLObjects(own_queue, 1, &handle, 1, gate.AsList(), &event), CL_SUCCESS);
  Own<cl_event> acquired(event);
  const cl_uint two = 2;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(
        clEnqueueFillBuffer(own_queue, memory, &two, sizeof(two), 0, 256, 0, nullptr, nullptr),
        CL_SUCCESS);
  }
  ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
  EXPECT_LT(clWaitForEvents(1, acquired.AsList()), 0);
  EXPECT_LT(conformance::StatusOf(acquired), 0);
  clEnqueueReleaseGLObjects(own_queue, 1, &handle, 0, nullptr, nullptr);
  clFinish(own_queue);
  const std::vector<uint8_t> bytes = ReadBuffer(buffer, 256);
  EXPECT_EQ(std::memcmp(bytes.data(), values.data(), 256), 0);
}

// One queue uses what another acquired, ordered by events across queues.
TEST_P(GlState, WaitListsAcrossQueues) {
  const std::vector<cl_uint> values(1024, 10);
  const GLuint buffer = Buffer(values.data(), 4096);
  Own<cl_mem> memory = MAKE("clCreateFromGLBuffer.queues",
                            clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  cl_int status = CL_SUCCESS;
  Own<cl_command_queue> second(
      clCreateCommandQueueWithProperties(context(), device(), nullptr, &status));
  Own<cl_kernel> kernel =
      BuildKernel("kernel void twice(global uint* v) { v[get_global_id(0)] *= 2; }", "twice");
  conformance::SetArg(kernel, 0, memory);
  cl_event event = nullptr;
  ASSERT_EQ(Acquire(memory, &event), CL_SUCCESS);
  Own<cl_event> acquired(event);
  const size_t global = 1024;
  ASSERT_EQ(clEnqueueNDRangeKernel(second, kernel, 1, nullptr, &global, nullptr, 1,
                                   acquired.AsList(), &event),
            CL_SUCCESS);
  Own<cl_event> computed(event);
  const cl_mem handle = memory;
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 1, &handle, 1, computed.AsList(), &event),
            CL_SUCCESS);
  Own<cl_event> released(event);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  const std::vector<uint8_t> bytes = ReadBuffer(buffer, 4096);
  cl_uint seen[1024];
  std::memcpy(seen, bytes.data(), sizeof(seen));
  for (const cl_uint one : seen) ASSERT_EQ(one, 20u);
}

// Our objects in the application's share group are gone with the OpenCL context: programs that copy
// (a shadow by shaders, where the GL has them) and buffers for bytes under way.
TEST_P(GlState, NothingStaysInTheShareGroup) {
  using Names = std::vector<std::array<bool, 4>>;
  const auto take = [&] {
    Names names(1024);
    for (GLuint name = 1; name < names.size(); ++name) {
      names[name] = {gl().IsProgram(name) == GL_TRUE, gl().IsShader(name) == GL_TRUE,
                     gl().IsBuffer(name) == GL_TRUE, gl().IsTexture(name) == GL_TRUE};
    }
    EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
    return names;
  };
  const auto count_programs = [](const Names& names) {
    return std::count_if(names.begin(), names.end(), [](const auto& is) { return is[0]; });
  };
  const Format& format = FormatOf(GL_RGBA8);
  const GLuint texture = Texture2D(format, 16, 16, Pattern(format, 256, 1).data());
  const Names before = take();
  const char* const ways = std::getenv("SLUICE_SHARING");
  const std::string saved = ways == nullptr ? "" : ways;
  SetVariable("SLUICE_SHARING", "shadow,staging,shader");
  Own<cl_context> another = NewGlContext(app());
  cl_int status = CL_SUCCESS;
  Own<cl_command_queue> own_queue(
      clCreateCommandQueueWithProperties(another, device(), nullptr, &status));
  Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.stays",
           clCreateFromGLTexture(another, CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
  SetVariable("SLUICE_SHARING", saved.c_str());
  ASSERT_NE(image.get(), nullptr);
  cl_uint way = 0;
  ASSERT_EQ(clGetMemObjectInfo(image, CL_MEM_SHARING_WAY_SLUICE, sizeof(way), &way, nullptr),
            CL_SUCCESS);
  const cl_mem handle = image;
  ASSERT_EQ(clEnqueueAcquireGLObjects(own_queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGLObjects(own_queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFinish(own_queue), CL_SUCCESS);
  if (way == CL_SHARING_WAY_SHADOW_SLUICE && !es()) {
    EXPECT_GT(count_programs(take()), count_programs(before)) << "nothing to see here";
  }
  image.Reset();
  own_queue.Reset();
  another.Reset();
  // The end of the last command may keep the context a little longer than the application does.
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool gone = take() == before;
  while (!gone && std::chrono::steady_clock::now() < enough) {
    std::this_thread::yield();
    gone = take() == before;
  }
  EXPECT_TRUE(gone);
}

// Hundreds of frames, and dozens of lives of every object, leave neither descriptors nor memory
// behind, here and in the worker.
TEST_P(GlState, ManyFrames) {
  constexpr size_t kSide = 256;
  constexpr cl_uint kLives = 40, kWarm = 20, kFrames = 4;
  // A leak of one image, or of its copy, per life or frame would exceed this in every round. An
  // allocator's free memory comes and goes by more (Mesa 25.0 with glibc 2.41): the growth of one
  // round alone says nothing.
  constexpr size_t kGrowth = kSide * kSide * 4 * kLives * 3 / 4;
  constexpr int kRounds = 6;
  const Format& format = FormatOf(GL_RGBA8UI);
  const GLuint texture = Texture2D(format, kSide, kSide, nullptr);
  Own<cl_kernel> kernel = BuildKernel(
      "kernel void put(write_only image2d_t out, uint frame) {"
      "  write_imageui(out, (int2)(get_global_id(0), get_global_id(1)), (uint4)(frame & 255)); }",
      "put");
  const auto live = [&](cl_uint lives) {
    for (cl_uint life = 0; life < lives; ++life) {
      Own<cl_context> temporary = NewGlContext(app());
      temporary.Reset();
      Own<cl_mem> image = MAKE(
          "clCreateFromGLTexture.frames",
          clCreateFromGLTexture(context(), CL_MEM_WRITE_ONLY, GL_TEXTURE_2D, 0, texture, error));
      conformance::SetArg(kernel, 0, image);
      for (cl_uint frame = 0; frame < kFrames; ++frame) {
        conformance::SetArg(kernel, 1, life * kFrames + frame);
        ASSERT_EQ(Acquire(image), CL_SUCCESS);
        const size_t global[2] = {kSide, kSide};
        ASSERT_EQ(clEnqueueNDRangeKernel(queue(), kernel, 2, nullptr, global, nullptr, 0, nullptr,
                                         nullptr),
                  CL_SUCCESS);
        ASSERT_EQ(Release(image), CL_SUCCESS);
      }
      ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
    }
  };
  ASSERT_NO_FATAL_FAILURE(live(kWarm));
  const size_t descriptors = OpenDescriptors();
  std::string grown = "not looked at";
  for (int round = 0; round < kRounds && !grown.empty(); ++round) {
    const std::map<int, size_t> before = ResidentBytes();
    ASSERT_NO_FATAL_FAILURE(live(kLives));
    const std::map<int, size_t> after = ResidentBytes();
    grown.clear();
    for (const auto& [process, first] : before) {
      const auto last = after.find(process);
      if (last != after.end() && last->second > first + kGrowth) {
        grown += "process " + std::to_string(process) + ": " + std::to_string(first) + " to " +
                 std::to_string(last->second) + " bytes ";
      }
    }
  }
  EXPECT_EQ(grown, "") << "in each of " << kRounds << " rounds";
  // The contexts' threads end on their own: what they hold may go a moment later, never grow.
  EXPECT_LE(OpenDescriptors(), descriptors + 8);
}

// A context that loses its share group on a reset can be shared with as any other.
TEST_P(GlState, RobustContext) {
  if (GetParam() == Binding::kGlx) GTEST_SKIP() << "made by EGL";
  std::string why;
  std::unique_ptr<GlApp> robust = GlApp::Make(GetParam(), &why, nullptr, Promise::kRobust);
  if (robust == nullptr) GTEST_SKIP() << why;
  Own<cl_context> made = NewGlContext(*robust);
  EXPECT_NE(made.get(), nullptr);
  made.Reset();
  robust.reset();
  app().MakeCurrent();
}

// Objects of any context of the share group can be shared, with none current on the calling thread.
TEST_P(GlState, OtherContextOfTheGroup) {
  std::string why;
  std::unique_ptr<GlApp> second = GlApp::Make(GetParam(), &why, &app(), promise());
  if (second == nullptr) GTEST_SKIP() << why;
  if (GetParam() != Binding::kGlx) {
    const Format& format = FormatOf(GL_RGBA8);
    const std::vector<uint8_t> bytes = Pattern(format, 16, 1);
    GLuint texture = 0;
    second->gl().GenTextures(1, &texture);
    second->gl().BindTexture(GL_TEXTURE_2D, texture);
    second->gl().TexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, 4, 4, 0, GL_RGBA, GL_UNSIGNED_BYTE,
                            bytes.data());
    second->gl().Finish();
    second->ClearCurrent();
    Own<cl_mem> image =
        MAKE("clCreateFromGLTexture.other_context",
             clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_2D, 0, texture, error));
    ASSERT_NE(image.get(), nullptr);
    std::thread([&] {
      ASSERT_EQ(Acquire(image), CL_SUCCESS);
      EXPECT_EQ(ReadImage(image, 4, 4, 1, 4), bytes);
      ASSERT_EQ(Release(image), CL_SUCCESS);
    }).join();
  }
  second.reset();
  app().MakeCurrent();
}

INSTANTIATE_TEST_SUITE_P(All, GlState, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
