// SPDX-License-Identifier: Apache-2.0
// Every error code of cl_sluice_shared_resource (client_icd/cl_sluice_shared_resource.txt), and
// what stands beside them: turns, contents by each way, what is indeterminate.
// CL_DEVICE_NOT_AVAILABLE needs a dead daemon: tests/unit/resources has libsluice's side of it.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/sharing/shared_resource_fixture.h"

namespace sluice::gltest {
namespace {

constexpr uint32_t kXrgb = 0x34325258;  // DRM_FORMAT_XRGB8888: OpenCL has no such image.

// "CL_INVALID_OPERATION if the daemon of context is on another machine"; what is wrong with the
// arguments themselves is said first.
TEST_F(SharedResources, NotOverTheNetwork) {
  if (TheHarness().kind != Kind::kNetwork) GTEST_SKIP() << "the daemon is on this machine";
  const Made made = MakeBuffer();
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.network", CL_INVALID_OPERATION,
                create_(context(), CL_MEM_READ_WRITE, made.write.bytes, 0, error));
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.network_flags", CL_INVALID_VALUE,
                create_(context(), 0, made.write.bytes, 0, error));
  const cl_mem none = nullptr;
  EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.network_null_object", CL_INVALID_MEM_OBJECT,
            acquire_(queue(), 1, &none, 0, nullptr, nullptr));
}

// Each refusal of clCreateFromSharedResourceSLUICE that the arguments themselves bring about.
TEST_F(SharedResources, CreateArguments) {
  SKIP_OVER_NETWORK();
  const Made made = MakeBuffer();
  const uint8_t* write = made.write.bytes;
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.null_context", CL_INVALID_CONTEXT,
                create_(nullptr, CL_MEM_READ_WRITE, write, 0, error));
  for (const cl_mem_flags flags :
       {cl_mem_flags{0}, cl_mem_flags{CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY},
        cl_mem_flags{CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR}, cl_mem_flags{CL_MEM_USE_HOST_PTR},
        cl_mem_flags{CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY}, cl_mem_flags{1} << 40}) {
    EXPECT_CREATE("clCreateFromSharedResourceSLUICE.flags", CL_INVALID_VALUE,
                  create_(context(), flags, write, 0, error));
  }
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.null_capability", CL_INVALID_VALUE,
                create_(context(), CL_MEM_READ_WRITE, nullptr, 0, error));
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.buffer_plane", CL_INVALID_VALUE,
                create_(context(), CL_MEM_READ_WRITE, write, 1, error));
  const Made planar = MakeImage(kNv12, 16);
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.image_plane", CL_INVALID_VALUE,
                create_(context(), CL_MEM_READ_WRITE, planar.write.bytes, 2, error));
  const cl_mem without_code = create_(context(), CL_MEM_READ_WRITE, write, 0, nullptr);
  ASSERT_NE(without_code, nullptr);
  EXPECT_EQ(clReleaseMemObject(without_code), CL_SUCCESS);
}

// CL_INVALID_SHARED_RESOURCE_SLUICE: the capability opens nothing, or not for that; it has ended;
// OpenCL has no such image.
TEST_F(SharedResources, CreateResources) {
  SKIP_OVER_NETWORK();
  const Made made = MakeBuffer();
  sluice_capability unknown = made.write;
  unknown.bytes[23] ^= 1;
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.unknown", CL_INVALID_SHARED_RESOURCE_SLUICE,
                create_(context(), CL_MEM_READ_WRITE, unknown.bytes, 0, error));
  for (const cl_mem_flags flags :
       {cl_mem_flags{CL_MEM_READ_WRITE}, cl_mem_flags{CL_MEM_WRITE_ONLY}}) {
    EXPECT_CREATE("clCreateFromSharedResourceSLUICE.read_capability",
                  CL_INVALID_SHARED_RESOURCE_SLUICE,
                  create_(context(), flags, made.read.bytes, 0, error));
  }
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.write_capability_to_read", CL_SUCCESS,
                create_(context(), CL_MEM_READ_ONLY, made.write.bytes, 0, error));
  ASSERT_EQ(sluice_destroy(daemon_, &made.write), SLUICE_OK);
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.destroyed", CL_INVALID_SHARED_RESOURCE_SLUICE,
                create_(context(), CL_MEM_READ_WRITE, made.write.bytes, 0, error));
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.no_format", CL_INVALID_SHARED_RESOURCE_SLUICE,
                create_(context(), CL_MEM_READ_WRITE, MakeImage(kXrgb, 16).write.bytes, 0, error));
}

// A memory object for reading that is made with a capability for writing costs no writer anything,
// though readers are not trusted; what it reads cannot be written through it.
TEST_F(SharedResources, ReadingWithAWritersCapability) {
  SKIP_OVER_NETWORK();
  sluice_create_info info = {};
  info.shape.size_bytes = kBytes;
  const Made made = Make(info, 0);
  const Own<cl_mem> reader = MAKE("clCreateFromSharedResourceSLUICE.reader",
                                  create_(context(), CL_MEM_READ_ONLY, made.write.bytes, 0, error));
  const Own<cl_mem> writer = Share(made);
  ASSERT_NE(writer.get(), nullptr);
  ASSERT_EQ(Acquire(writer), CL_SUCCESS);
  ASSERT_EQ(Fill(writer, 0x11223344), CL_SUCCESS);
  ASSERT_EQ(Release(writer), CL_SUCCESS);
  ASSERT_EQ(Acquire(reader), CL_SUCCESS);
  EXPECT_EQ(Fill(reader, 1), CL_INVALID_OPERATION);
  EXPECT_EQ(Read<cl_uint>(reader, 8)[7], 0x11223344u);
  ASSERT_EQ(Release(reader), CL_SUCCESS);
  Finish();
}

// "CL_INVALID_IMAGE_SIZE if no device of context has images as large as that."
TEST_F(SharedResources, ImagesThatNoDeviceHolds) {
  SKIP_OVER_NETWORK();
  if (!HasImages()) GTEST_SKIP() << "the device has no images";
  constexpr size_t kMostOfAResource = 65536;  // ImageShape in proto/resources.proto.
  const size_t widest = conformance::DeviceValue<size_t>(device(), CL_DEVICE_IMAGE2D_MAX_WIDTH);
  if (widest >= kMostOfAResource) GTEST_SKIP() << "the device holds every image of a resource";
  sluice_create_info info = {};
  info.shape.channel_order = CL_RGBA;
  info.shape.channel_type = CL_UNORM_INT8;
  info.shape.width = widest;
  info.shape.height = 1;
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.widest", CL_SUCCESS,
                create_(context(), CL_MEM_READ_WRITE, Make(info).write.bytes, 0, error));
  ++info.shape.width;
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.too_wide", CL_INVALID_IMAGE_SIZE,
                create_(context(), CL_MEM_READ_WRITE, Make(info).write.bytes, 0, error));
}

// CL_IMAGE_FORMAT_NOT_SUPPORTED exactly if the device has no such image: both planes of NV12.
TEST_F(SharedResources, PlanesNeedTheirFormat) {
  SKIP_OVER_NETWORK();
  if (!HasImages()) GTEST_SKIP() << "the device has no images";
  const Made planar = MakeImage(kNv12, 16);
  cl_uint count = 0;
  clGetSupportedImageFormats(context(), CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, nullptr,
                             &count);
  std::vector<cl_image_format> formats(count);
  clGetSupportedImageFormats(context(), CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, count,
                             formats.data(), nullptr);
  const cl_channel_order orders[2] = {CL_R, CL_RG};
  for (cl_uint plane = 0; plane < 2; ++plane) {
    const bool has =
        std::any_of(formats.begin(), formats.end(), [&](const cl_image_format& format) {
          return format.image_channel_order == orders[plane] &&
                 format.image_channel_data_type == CL_UNORM_INT8;
        });
    const Own<cl_mem> image =
        EXPECT_CREATE("clCreateFromSharedResourceSLUICE.plane_format",
                      has ? CL_SUCCESS : CL_IMAGE_FORMAT_NOT_SUPPORTED,
                      create_(context(), CL_MEM_READ_WRITE, planar.write.bytes, plane, error));
    if (!has) continue;
    size_t width = 0;
    EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_WIDTH, sizeof(width), &width, nullptr), CL_SUCCESS);
    EXPECT_EQ(width, plane == 0 ? 16u : 8u);
  }
}

// Each refusal of acquire and release, for both alike.
TEST_F(SharedResources, AcquireAndRelease) {
  SKIP_OVER_NETWORK();
  const Own<cl_mem> shared = Share(MakeBuffer());
  const Own<cl_mem> ordinary = Buffer(64);
  const Own<cl_context> plain = NewContext();
  cl_int status = CL_SUCCESS;
  const Own<cl_command_queue> other_queue(
      clCreateCommandQueueWithProperties(plain, device(), nullptr, &status));
  const cl_mem good = shared;
  const cl_mem bad = ordinary;
  const cl_mem none = nullptr;
  EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.nothing", CL_SUCCESS,
            acquire_(queue(), 0, nullptr, 0, nullptr, nullptr));
  using Call = decltype(acquire_);
  for (const Call call : {acquire_, Call{release_}}) {
    EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.zero", CL_INVALID_VALUE,
              call(queue(), 0, &good, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.null_list", CL_INVALID_VALUE,
              call(queue(), 1, nullptr, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.null_object", CL_INVALID_MEM_OBJECT,
              call(queue(), 1, &none, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.other_context", CL_INVALID_MEM_OBJECT,
              call(other_queue, 1, &good, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.ordinary", CL_INVALID_SHARED_RESOURCE_SLUICE,
              call(queue(), 1, &bad, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.null_queue", CL_INVALID_COMMAND_QUEUE,
              call(nullptr, 1, &good, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.null_waits", CL_INVALID_EVENT_WAIT_LIST,
              call(queue(), 1, &good, 1, nullptr, nullptr));
  }
  EXPECT_CL("clEnqueueReleaseSharedResourcesSLUICE.released",
            CL_SHARED_RESOURCE_NOT_ACQUIRED_SLUICE, Release(shared));
  ASSERT_EQ(Acquire(shared), CL_SUCCESS);
  EXPECT_CL("clEnqueueAcquireSharedResourcesSLUICE.twice",
            CL_SHARED_RESOURCE_ALREADY_ACQUIRED_SLUICE, Acquire(shared));
  EXPECT_CL("clEnqueueReleaseSharedResourcesSLUICE.plain", CL_SUCCESS, Release(shared));
  // One that is refused leaves the other as it was.
  const Own<cl_mem> second = Share(MakeBuffer());
  const cl_mem both[2] = {shared, ordinary};
  EXPECT_EQ(acquire_(queue(), 2, both, 0, nullptr, nullptr), CL_INVALID_SHARED_RESOURCE_SLUICE);
  EXPECT_EQ(Release(shared), CL_SHARED_RESOURCE_NOT_ACQUIRED_SLUICE);
  Finish();
}

// A resource that is not acquired is not used, and one that was made for reading is not written.
TEST_F(SharedResources, UseNeedsATurn) {
  SKIP_OVER_NETWORK();
  const Made made = MakeBuffer();
  const Own<cl_mem> writer = Share(made);
  const Own<cl_mem> reader = Share(made, CL_MEM_READ_ONLY);
  cl_uint word = 0;
  EXPECT_EQ(Fill(writer, 1), CL_SHARED_RESOURCE_NOT_ACQUIRED_SLUICE);
  EXPECT_EQ(clEnqueueReadBuffer(queue(), reader, CL_TRUE, 0, 4, &word, 0, nullptr, nullptr),
            CL_SHARED_RESOURCE_NOT_ACQUIRED_SLUICE);
  ASSERT_EQ(Acquire(reader), CL_SUCCESS);
  EXPECT_EQ(clEnqueueReadBuffer(queue(), reader, CL_TRUE, 0, 4, &word, 0, nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(Fill(reader, 1), CL_INVALID_OPERATION);
  EXPECT_EQ(clEnqueueWriteBuffer(queue(), reader, CL_TRUE, 0, 4, &word, 0, nullptr, nullptr),
            CL_INVALID_OPERATION);
  cl_int status = CL_SUCCESS;
  EXPECT_EQ(clEnqueueMapBuffer(queue(), reader, CL_TRUE, CL_MAP_WRITE, 0, 4, 0, nullptr, nullptr,
                               &status),
            nullptr);
  EXPECT_EQ(status, CL_INVALID_OPERATION);
  ASSERT_EQ(Release(reader), CL_SUCCESS);
  Finish();
}

// The events say what they are of.
TEST_F(SharedResources, EventsTellTheirCommand) {
  SKIP_OVER_NETWORK();
  const Own<cl_mem> shared = Share(MakeBuffer());
  Own<cl_event> acquired, released;
  ASSERT_EQ(Acquire(shared, acquired.Out()), CL_SUCCESS);
  ASSERT_EQ(Release(shared, released.Out()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  cl_command_type type = 0;
  EXPECT_EQ(clGetEventInfo(acquired, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(type, static_cast<cl_command_type>(CL_COMMAND_ACQUIRE_SHARED_RESOURCES_SLUICE));
  EXPECT_EQ(clGetEventInfo(released, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(type, static_cast<cl_command_type>(CL_COMMAND_RELEASE_SHARED_RESOURCES_SLUICE));
}

// Both sides see each other's bytes by each way, whatever is behind them; a release without a write
// is no new generation.
TEST_F(SharedResources, ContentsByEachWay) {
  SKIP_OVER_NETWORK();
  CheckEachWay(SLUICE_BACKING_MEMFD);
}

}  // namespace

void SharedResources::CheckEachWay(sluice_backing backing) {
  const bool is_cpu = (conformance::DeviceValue<cl_device_type>(device(), CL_DEVICE_TYPE) &
                       CL_DEVICE_TYPE_CPU) != 0;
  const char* left_out =
      std::getenv("SLUICE_TEST_WITHOUT_WAY");  // By who runs this, who knows why.
  for (const char* way : {"import", "staging"}) {
    SCOPED_TRACE(way);
    if (left_out != nullptr && std::strcmp(way, left_out) == 0) continue;
    if (!is_cpu && std::strcmp(way, "import") == 0) continue;
    const Made made = MakeBuffer(kBytes, backing);
    uint32_t* const words = Map(made);
    ASSERT_NE(words, nullptr);
    AllowWays(way);
    const Own<cl_mem> shared = Share(made);
    AllowWays("");
    cl_uint taken = 0;
    ASSERT_EQ(clGetMemObjectInfo(shared, CL_MEM_SHARING_WAY_SLUICE, sizeof(taken), &taken, nullptr),
              CL_SUCCESS);
    const bool imported = std::strcmp(way, "import") == 0;
    EXPECT_EQ(taken, static_cast<cl_uint>(imported ? CL_SHARING_WAY_IMPORT_SLUICE
                                                   : CL_SHARING_WAY_STAGING_SLUICE));
    words[7] = 0x01020304;
    sluice_hold hold = {};
    ASSERT_EQ(Acquire(shared), CL_SUCCESS);
    EXPECT_EQ(Read<cl_uint>(shared, 8)[7], 0x01020304u);
    ASSERT_EQ(Release(shared), CL_SUCCESS);
    Finish();
    ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_READ, 5000, &hold), SLUICE_OK);
    EXPECT_EQ(hold.generation, 0u);
    ASSERT_EQ(sluice_release(daemon_, &hold, 0), SLUICE_OK);
    ASSERT_EQ(Acquire(shared), CL_SUCCESS);
    ASSERT_EQ(Fill(shared, 0x0a0b0c0d), CL_SUCCESS);
    ASSERT_EQ(Release(shared), CL_SUCCESS);
    Finish();
    ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_READ, 5000, &hold), SLUICE_OK);
    EXPECT_EQ(hold.generation, 1u);
    EXPECT_EQ(words[kBytes / 4 - 1], 0x0a0b0c0du);
    ASSERT_EQ(sluice_release(daemon_, &hold, 0), SLUICE_OK);
    sluice_unmap(words, kBytes);
  }
}

namespace {

// A memory object that goes while it is acquired gives its turn up and leaves the contents
// indeterminate, until somebody writes them whole.
TEST_F(SharedResources, ForgottenTurnIsIndeterminate) {
  SKIP_OVER_NETWORK();
  const Made made = MakeBuffer();
  Own<cl_mem> forgetful = Share(made);
  const Own<cl_mem> next = Share(made);
  ASSERT_EQ(Acquire(forgetful), CL_SUCCESS);
  Finish();
  EXPECT_FALSE(IsIndeterminate(forgetful));
  forgetful.Reset();
  ASSERT_EQ(Acquire(next), CL_SUCCESS);
  Finish();
  EXPECT_TRUE(IsIndeterminate(next));
  ASSERT_EQ(Fill(next, 1), CL_SUCCESS);
  ASSERT_EQ(Release(next), CL_SUCCESS);
  ASSERT_EQ(Acquire(next), CL_SUCCESS);
  Finish();
  EXPECT_FALSE(IsIndeterminate(next));
  ASSERT_EQ(Release(next), CL_SUCCESS);
  Finish();
}

// One that is let go before its acquire has been seen to end gives its turn up as well, though
// nobody waits for anything.
TEST_F(SharedResources, TurnLetGoWhilePending) {
  SKIP_OVER_NETWORK();
  const Made made = MakeBuffer();
  Own<cl_mem> shared = Share(made);
  ASSERT_EQ(Acquire(shared), CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  sluice_description seen = {};
  seen.struct_size = sizeof(seen);
  const auto begin = std::chrono::steady_clock::now();
  while (seen.state.writer == 0 &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(10)) {
    ASSERT_EQ(sluice_describe(daemon_, &made.read, &seen), SLUICE_OK);
  }
  ASSERT_EQ(seen.state.writer, 1u);
  shared.Reset();
  sluice_hold hold = {};
  ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_WRITE, 10000, &hold), SLUICE_OK);
  ASSERT_EQ(sluice_release(daemon_, &hold, 0), SLUICE_OK);
}

// Says that it runs, and runs until the host says so, or for very long.
constexpr char kWritesUntilTold[] = R"(
kernel void WritesUntilTold(global volatile uint* words) {
  words[0] = 1;
  for (ulong left = 1UL << 36; words[1] == 0 && left != 0; --left) words[2] += 1;
  words[3] = 1;
})";

// Section 5.5.1 (clReleaseMemObject): a memory object is deleted after the commands that use it
// have finished. While a kernel writes in the resource's own memory nobody else gets the turn,
// though the application has let go of everything.
TEST_F(SharedResources, TurnOutlivesReleaseWhileAKernelWrites) {
  SKIP_OVER_NETWORK();
  const Made made = MakeBuffer();
  auto* const words = static_cast<volatile uint32_t*>(Map(made));
  ASSERT_NE(words, nullptr);
  Own<cl_mem> shared = Share(made);
  cl_uint way = 0;
  ASSERT_EQ(clGetMemObjectInfo(shared, CL_MEM_SHARING_WAY_SLUICE, sizeof(way), &way, nullptr),
            CL_SUCCESS);
  if (way != CL_SHARING_WAY_IMPORT_SLUICE) GTEST_SKIP() << "the device has memory of its own";
  Own<cl_program> program = Program(kWritesUntilTold);
  Own<cl_kernel> kernel = Kernel(program, "WritesUntilTold");
  ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), shared.AsList()), CL_SUCCESS);
  ASSERT_EQ(Acquire(shared), CL_SUCCESS);
  const size_t one = 1;
  ASSERT_EQ(clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  const auto begin = std::chrono::steady_clock::now();
  while (words[0] == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
  }
  ASSERT_EQ(words[0], 1u);
  kernel.Reset();
  program.Reset();
  shared.Reset();
  sluice_hold hold = {};
  EXPECT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_WRITE, 500, &hold), SLUICE_TIMED_OUT);
  words[1] = 1;
  ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_WRITE, 10000, &hold), SLUICE_OK);
  EXPECT_EQ(words[3], 1u);
  EXPECT_EQ(hold.indeterminate, 1u);
  ASSERT_EQ(sluice_release(daemon_, &hold, 0), SLUICE_OK);
  sluice_unmap(const_cast<uint32_t*>(words), kBytes);
}

// An acquire waits for its turn without holding up the caller; a turn that does not come within ten
// seconds fails the command, and its release with it, and nothing is held afterwards.
TEST_F(SharedResources, TurnsHaveADeadline) {
  SKIP_OVER_NETWORK();
  const Made made = MakeBuffer();
  const Own<cl_mem> shared = Share(made);
  sluice_hold hold = {};
  ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_WRITE, 5000, &hold), SLUICE_OK);
  Own<cl_event> acquired, released;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(Acquire(shared, acquired.Out()), CL_SUCCESS);
  EXPECT_GT(conformance::StatusOf(acquired), CL_COMPLETE);
  EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  const auto waited = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(conformance::StatusOf(acquired), 0);
  EXPECT_GE(waited, std::chrono::seconds(9));
  EXPECT_LT(waited, std::chrono::seconds(20));
  ASSERT_EQ(Release(shared, released.Out()), CL_SUCCESS);
  clWaitForEvents(1, released.AsList());
  EXPECT_LT(conformance::StatusOf(released), 0);
  ASSERT_EQ(sluice_release(daemon_, &hold, 0), SLUICE_OK);
  ASSERT_EQ(sluice_acquire(daemon_, &made.write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  EXPECT_EQ(hold.indeterminate, 0u);
  ASSERT_EQ(sluice_release(daemon_, &hold, 0), SLUICE_OK);
}

// An acquire that fails at one object gives the turns of the others up before its event says so:
// here that of the first of two memory objects of one resource. Their release fails too.
TEST_F(SharedResources, FailedAcquireHoldsNothing) {
  SKIP_OVER_NETWORK();
  const Made made = MakeBuffer();
  const Made other = MakeBuffer();
  const Own<cl_mem> third = Share(other);
  const Own<cl_mem> first = Share(made);
  const Own<cl_mem> second = Share(made);
  const cl_mem all[3] = {third, first, second};
  Own<cl_event> acquired, released;
  ASSERT_EQ(acquire_(queue(), 3, all, 0, nullptr, acquired.Out()), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  for (const Made& one : {made, other}) {
    sluice_hold hold = {};
    ASSERT_EQ(sluice_acquire(daemon_, &one.write, SLUICE_WRITE, 0, &hold), SLUICE_OK)
        << sluice_error_text();
    EXPECT_EQ(hold.indeterminate, 0u);
    EXPECT_EQ(hold.generation, 0u);
    ASSERT_EQ(sluice_release(daemon_, &hold, SLUICE_CONTENTS_UNTOUCHED), SLUICE_OK);
  }
  ASSERT_EQ(release_(queue(), 3, all, 0, nullptr, released.Out()), CL_SUCCESS);
  clWaitForEvents(1, released.AsList());
  EXPECT_LT(conformance::StatusOf(released), 0);
  GoOn();  // Their events have told their errors.
  ASSERT_EQ(Acquire(first), CL_SUCCESS);
  ASSERT_EQ(Release(first), CL_SUCCESS);
  Finish();
}

}  // namespace
}  // namespace sluice::gltest
