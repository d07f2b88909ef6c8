// SPDX-License-Identifier: Apache-2.0
// cl_sluice_shared_resource in memory that the daemon has of Vulkan: a GPU's own, which the
// device's driver imports, or that of a device on the CPU, which is mapped.
#include <CL/cl_ext.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/sharing/shared_resource_fixture.h"

namespace sluice::gltest {
namespace {

constexpr uint32_t kAbgr = 0x34324241;  // DRM_FORMAT_ABGR8888: RGBA in memory.

// A context that has a worker of its own, a queue in it, and what shares resources there.
struct OtherSession {
  Own<cl_context> context;
  Own<cl_command_queue> queue;

  explicit OtherSession(cl_device_id device) {
    const cl_context_properties properties[] = {CL_CONTEXT_TERMINATE_KHR, CL_TRUE, 0};
    cl_int status = CL_SUCCESS;
    context = Own<cl_context>(clCreateContext(properties, 1, &device, nullptr, nullptr, &status));
    EXPECT_EQ(status, CL_SUCCESS);
    queue = Own<cl_command_queue>(
        clCreateCommandQueueWithProperties(context, device, nullptr, &status));
    EXPECT_EQ(status, CL_SUCCESS);
  }
};

class VulkanResources : public SharedResources {
 protected:
  void SetUp() override {
    SharedResources::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (TheHarness().kind == Kind::kNetwork)
      GTEST_SKIP() << "no resource is shared with a daemon on another machine";
    const std::string reason = WhyUnusable();
    if (!reason.empty()) GTEST_SKIP() << reason;
    std::printf("Vulkan's memory is %s\n", mappable_ ? "mapped" : "imported by the driver");
  }

  // Why OpenCL's device cannot get at the memory; nothing if it can, and must.
  std::string WhyUnusable() {
    sluice_create_info info = {};
    info.struct_size = sizeof(info);
    info.shape.size_bytes = kBytes;
    info.backing = SLUICE_BACKING_VULKAN;
    sluice_capability write = {};
    const sluice_status made = sluice_create(daemon_, &info, nullptr, &write);
    if (made != SLUICE_OK) {
      EXPECT_EQ(made, SLUICE_UNSUPPORTED) << sluice_error_text();
      return sluice_error_text();
    }
    sluice_handle handle = {};
    handle.struct_size = sizeof(handle);
    EXPECT_EQ(sluice_export(daemon_, &write, SLUICE_WRITE, &handle), SLUICE_OK);
    void* mapped = nullptr;
    const sluice_status map = sluice_map(&handle, &mapped);
    mappable_ = map == SLUICE_OK;
    if (mappable_) {
      sluice_unmap(mapped, kBytes);
    } else {
      EXPECT_EQ(map, SLUICE_UNSUPPORTED) << sluice_error_text();
    }
    uint8_t own[CL_UUID_SIZE_KHR] = {};
    const bool has_uuid =
        clGetDeviceInfo(device(), CL_DEVICE_UUID_KHR, sizeof(own), own, nullptr) == CL_SUCCESS;
    const bool same = has_uuid && std::memcmp(own, handle.device_uuid, sizeof(own)) == 0;
    sluice_handle_close(&handle);
    if (mappable_ || same) return "";
    return "Vulkan's memory is a device's own, and not that of this OpenCL device: it can neither "
           "be mapped nor imported";
  }

  // A device's own memory has one way. Mapped memory goes by any way: CheckEachWay forces them.
  void CheckWay(cl_mem memory, cl_uint expected) {
    cl_uint way = 0;
    EXPECT_EQ(clGetMemObjectInfo(memory, CL_MEM_SHARING_WAY_SLUICE, sizeof(way), &way, nullptr),
              CL_SUCCESS);
    if (!mappable_) {
      EXPECT_EQ(way, expected);
    }
  }

  // All of a buffer, as a session of its own sees it in its turn.
  std::vector<uint8_t> ReadIn(const OtherSession& other, const Made& made, size_t bytes) {
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> theirs(create_(other.context, CL_MEM_READ_ONLY, made.read.bytes, 0, &status));
    EXPECT_EQ(status, CL_SUCCESS);
    CheckWay(theirs, BufferWay());
    const cl_mem handle = theirs;
    std::vector<uint8_t> seen(bytes);
    EXPECT_EQ(acquire_(other.queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clEnqueueReadBuffer(other.queue, theirs, CL_TRUE, 0, bytes, seen.data(), 0, nullptr,
                                  nullptr),
              CL_SUCCESS);
    EXPECT_EQ(release_(other.queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clFinish(other.queue), CL_SUCCESS);
    return seen;
  }

  // NVIDIA's driver gets a buffer of its own beside the imported one (client_icd/sharing/README.md,
  // Images over shared buffers).
  cl_uint BufferWay() const {
    const bool nvidia = conformance::DeviceValue<cl_uint>(device(), CL_DEVICE_VENDOR_ID) == 0x10de;
    return nvidia ? CL_SHARING_WAY_SHADOW_SLUICE : CL_SHARING_WAY_IMPORT_SLUICE;
  }

  bool mappable_ = false;
};

// Another session's commands read what a kernel writes in one, by the best way that there is. Fresh
// memory is zero to its last byte, though that of the round before was not and has just gone.
TEST_F(VulkanResources, KernelToOtherSession) {
  const char* source =
      "kernel void mark(global uchar* bytes, uint round) {"
      "  const uint i = get_global_id(0); bytes[i] = (uchar)(i * 7 + round + 1) | 1; }";
  const Own<cl_program> program = Program(source);
  const Own<cl_kernel> kernel = Kernel(program, "mark");
  const OtherSession other(device());
  for (const uint64_t bytes : {uint64_t{3}, uint64_t{65'537}, uint64_t{5'000'003}}) {
    for (cl_uint round = 0; round < 3; ++round) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, round " << round);
      const Made made = MakeBuffer(bytes, SLUICE_BACKING_VULKAN);
      const Own<cl_mem> shared = Share(made);
      ASSERT_NE(shared.get(), nullptr);
      CheckWay(shared, BufferWay());
      ASSERT_EQ(Acquire(shared), CL_SUCCESS);
      EXPECT_EQ(Read<uint8_t>(shared, bytes), std::vector<uint8_t>(bytes, 0));
      conformance::SetArg(kernel, 0, shared);
      conformance::SetArg(kernel, 1, round);
      ASSERT_EQ(conformance::Launch(queue(), kernel, bytes), CL_SUCCESS);
      ASSERT_EQ(Release(shared), CL_SUCCESS);
      Finish();

      std::vector<uint8_t> expected(bytes);
      for (size_t i = 0; i < bytes; ++i)
        expected[i] = static_cast<uint8_t>((static_cast<uint8_t>(i * 7 + round + 1)) | 1);
      EXPECT_EQ(ReadIn(other, made, bytes), expected);
      ASSERT_EQ(sluice_destroy(daemon_, &made.write), SLUICE_OK);
    }
  }
}

// Kernels use a part of a shared buffer, and a 1D image over all of it, as the buffer itself: what
// they write another session reads, and what they do not write stays.
TEST_F(VulkanResources, PartsAndImagesOfBuffers) {
  constexpr size_t kPixels = kBytes / 4;
  const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
  const Made made = MakeBuffer(kBytes, SLUICE_BACKING_VULKAN);
  const Own<cl_mem> shared = Share(made);
  ASSERT_NE(shared.get(), nullptr);
  const OtherSession other(device());
  const cl_buffer_region region = {kBytes / 2, kBytes / 2};
  cl_int status = CL_SUCCESS;
  const Own<cl_mem> half(
      clCreateSubBuffer(shared, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const Own<cl_program> program = Program(
      "kernel void mark(global uchar* bytes) {"
      "  const uint i = get_global_id(0); bytes[i] = (uchar)(i * 7 + 1); }"
      "kernel void add(read_only image1d_buffer_t in, global uchar4* out) {"
      "  const int i = get_global_id(0); out[i] = convert_uchar4(read_imageui(in, i)) + (uchar4)1; "
      "}"
      "kernel void store(global uchar4* in, write_only image1d_buffer_t out) {"
      "  const int i = get_global_id(0); write_imageui(out, i, convert_uint4(in[i])); }");
  const Own<cl_kernel> mark = Kernel(program, "mark");
  conformance::SetArg(mark, 0, half);
  ASSERT_EQ(Acquire(shared), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(queue(), mark, kBytes / 2), CL_SUCCESS);
  ASSERT_EQ(Release(shared), CL_SUCCESS);
  Finish();
  std::vector<uint8_t> expected(kBytes);
  for (size_t i = 0; i < kBytes / 2; ++i)
    expected[kBytes / 2 + i] = static_cast<uint8_t>(i * 7 + 1);
  EXPECT_EQ(ReadIn(other, made, kBytes), expected);

  if (!HasImages()) GTEST_SKIP() << "the device has no images";
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  desc.image_width = kPixels;
  desc.buffer = shared;
  const Own<cl_mem> image(
      clCreateImage(context(), CL_MEM_READ_WRITE, &format, &desc, nullptr, &status));
  if (status == CL_IMAGE_FORMAT_NOT_SUPPORTED)
    GTEST_SKIP() << "the device has no such images of buffers";
  ASSERT_EQ(status, CL_SUCCESS);
  const Own<cl_mem> own = Buffer(kBytes);
  const Own<cl_kernel> add = Kernel(program, "add");
  const Own<cl_kernel> store = Kernel(program, "store");
  conformance::SetArg(add, 0, image);
  conformance::SetArg(add, 1, own);
  conformance::SetArg(store, 0, own);
  conformance::SetArg(store, 1, image);
  ASSERT_EQ(Acquire(shared), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(queue(), add, kPixels), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(queue(), store, kPixels), CL_SUCCESS);
  ASSERT_EQ(Release(shared), CL_SUCCESS);
  Finish();
  for (uint8_t& byte : expected) ++byte;
  EXPECT_EQ(ReadIn(other, made, kBytes), expected);
}

// By each way, where the memory can be mapped. A device's own has no other way than the best, and
// is refused if that is not allowed.
TEST_F(VulkanResources, ContentsByEachWay) {
  if (mappable_) return CheckEachWay(SLUICE_BACKING_VULKAN);
  const Made made = MakeBuffer(kBytes, SLUICE_BACKING_VULKAN);
  const Made image = MakeImage(kAbgr, 16, SLUICE_BACKING_VULKAN);
  AllowWays("staging");
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.vulkan_staged", CL_INVALID_SHARED_RESOURCE_SLUICE,
                create_(context(), CL_MEM_READ_WRITE, made.write.bytes, 0, error));
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.vulkan_staged", CL_INVALID_SHARED_RESOURCE_SLUICE,
                create_(context(), CL_MEM_READ_WRITE, image.write.bytes, 0, error));
  AllowWays("");
  EXPECT_NE(Share(made).get(), nullptr) << "an attempt that failed has left something";
}

// Images, and planes that do not begin with the memory: what one session writes, another reads,
// and what it does not write stays.
TEST_F(VulkanResources, ImageToOtherSession) {
  if (!HasImages()) GTEST_SKIP() << "the device has no images";
  constexpr size_t kSide = 50;
  const OtherSession other(device());
  struct Row {
    const char* what;
    uint32_t fourcc;
    cl_uint plane;
    size_t side, pixel_bytes;
  };
  for (const Row& row : {Row{"RGBA", kAbgr, 0, kSide, 4}, Row{"plane of NV12", kNv12, 1, 25, 2}}) {
    SCOPED_TRACE(row.what);
    const Made made = MakeImage(row.fourcc, kSide, SLUICE_BACKING_VULKAN);
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> image(
        create_(context(), CL_MEM_READ_WRITE, made.write.bytes, row.plane, &status));
    if (status == CL_IMAGE_FORMAT_NOT_SUPPORTED) {
      std::printf("left out, since the device has no such image: %s\n", row.what);
      continue;
    }
    ASSERT_EQ(status, CL_SUCCESS);
    CheckWay(image, CL_SHARING_WAY_SHADOW_SLUICE);
    const size_t bytes = row.side * row.side * row.pixel_bytes;
    std::vector<uint8_t> wrote(bytes), seen(bytes, 1);
    const size_t origin[3] = {0, 0, 0}, region[3] = {row.side, row.side, 1};
    ASSERT_EQ(Acquire(image), CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadImage(queue(), image, CL_TRUE, origin, region, 0, 0, seen.data(), 0,
                                 nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(seen, wrote) << "fresh memory is zero";
    // All but the last row.
    for (size_t i = 0; i < bytes - row.side * row.pixel_bytes; ++i)
      wrote[i] = static_cast<uint8_t>(i * 7 + 1);
    const size_t part[3] = {row.side, row.side - 1, 1};
    ASSERT_EQ(clEnqueueWriteImage(queue(), image, CL_TRUE, origin, part, 0, 0, wrote.data(), 0,
                                  nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(Release(image), CL_SUCCESS);
    Finish();

    const Own<cl_mem> theirs(
        create_(other.context, CL_MEM_READ_ONLY, made.read.bytes, row.plane, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    const cl_mem handle = theirs;
    ASSERT_EQ(acquire_(other.queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadImage(other.queue, theirs, CL_TRUE, origin, region, 0, 0, seen.data(), 0,
                                 nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(release_(other.queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(other.queue), CL_SUCCESS);
    EXPECT_EQ(seen, wrote);
    if (!mappable_ || row.plane != 0) continue;
    void* const mapped = Map(made);
    EXPECT_EQ(std::memcmp(mapped, wrote.data(), bytes), 0) << "rows lie where the shape says";
    sluice_unmap(mapped, bytes);
  }
}

// A holder that is gone leaves Vulkan's memory indeterminate, too, and readers whom nobody trusts
// do not get it.
TEST_F(VulkanResources, TurnsAndReaders) {
  const Made made = MakeBuffer(kBytes, SLUICE_BACKING_VULKAN);
  Own<cl_mem> forgetful = Share(made);
  const Own<cl_mem> next = Share(made);
  ASSERT_EQ(Acquire(forgetful), CL_SUCCESS);
  Finish();
  forgetful.Reset();
  ASSERT_EQ(Acquire(next), CL_SUCCESS);
  Finish();
  EXPECT_TRUE(IsIndeterminate(next));
  ASSERT_EQ(Release(next), CL_SUCCESS);
  Finish();
  sluice_create_info info = {};
  info.struct_size = sizeof(info);
  info.shape.size_bytes = kBytes;
  info.backing = SLUICE_BACKING_VULKAN;
  Made untrusting;
  ASSERT_EQ(sluice_create(daemon_, &info, &untrusting.read, &untrusting.write), SLUICE_OK);
  EXPECT_CREATE("clCreateFromSharedResourceSLUICE.vulkan_reader", CL_INVALID_SHARED_RESOURCE_SLUICE,
                create_(context(), CL_MEM_READ_ONLY, untrusting.read.bytes, 0, error));
}

}  // namespace
}  // namespace sluice::gltest
