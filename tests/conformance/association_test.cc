// SPDX-License-Identifier: Apache-2.0
// Codes that take more than one wrong argument: objects that are good, and not associated with each
// other. Sub-devices are the second device that most machines do not have.
#include <algorithm>
#include <vector>

#include "tests/conformance/harness/image_helpers.h"

namespace sluice::conformance {
namespace {

constexpr char kStores42[] = "kernel void k(global int* p) { *p = 42; }";

// A context of one part of the device, and another part that is not in it.
class ForeignDeviceTest : public WithPlatform {
 protected:
  void SetUp() override {
    const auto kinds =
        DeviceArray<cl_device_partition_property>(device(), CL_DEVICE_PARTITION_PROPERTIES);
    if (DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_COMPUTE_UNITS) < 2 || !HasCompiler() ||
        std::find(kinds.begin(), kinds.end(), CL_DEVICE_PARTITION_BY_COUNTS) == kinds.end()) {
      GTEST_SKIP() << "the device cannot be partitioned by counts, or has no compiler";
    }
    const cl_device_partition_property list[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
                                                 CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    ASSERT_EQ(clCreateSubDevices(device(), list, 2, parts_, nullptr), CL_SUCCESS);
    first_ = Own<cl_device_id>(parts_[0]);
    second_ = Own<cl_device_id>(parts_[1]);
    context_ = MAKE("clCreateContext.sub_device",
                    clCreateContext(nullptr, 1, parts_, nullptr, nullptr, error));
    both_ = MAKE("clCreateContext.sub_devices",
                 clCreateContext(nullptr, 2, parts_, nullptr, nullptr, error));
  }

  cl_context context() const { return context_; }
  // Of both parts.
  cl_context both() const { return both_; }
  const cl_device_id* own() const { return parts_; }
  const cl_device_id* foreign() const { return parts_ + 1; }

  Own<cl_program> Source(cl_context context, const char* text = kStores42) const {
    return MAKE("clCreateProgramWithSource.sub_device",
                clCreateProgramWithSource(context, 1, &text, nullptr, error));
  }
  // For all of its context's devices.
  Own<cl_program> Built(cl_context context) const {
    Own<cl_program> program = Source(context);
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    return program;
  }
  Own<cl_kernel> KernelOf(cl_program program) const {
    return MAKE("clCreateKernel.sub_device", clCreateKernel(program, "k", error));
  }

 private:
  cl_device_id parts_[2] = {nullptr, nullptr};
  Own<cl_device_id> first_, second_;
  Own<cl_context> context_, both_;
};

// Programs are built for devices of their context only.
TEST_F(ForeignDeviceTest, Builds) {
  const Own<cl_program> program = Source(context());
  EXPECT_CL("clBuildProgram.foreign_device", CL_INVALID_DEVICE,
            clBuildProgram(program, 1, foreign(), "", nullptr, nullptr));
  EXPECT_CL("clCompileProgram.foreign_device", CL_INVALID_DEVICE,
            clCompileProgram(program, 1, foreign(), "", 0, nullptr, nullptr, nullptr, nullptr));
  EXPECT_CL("clCompileProgram.plain", CL_SUCCESS,
            clCompileProgram(program, 1, own(), "", 0, nullptr, nullptr, nullptr, nullptr));
  const cl_program only[] = {program};
  EXPECT_CREATE("clLinkProgram.foreign_device", CL_INVALID_DEVICE,
                clLinkProgram(context(), 1, foreign(), "", 1, only, nullptr, nullptr, error));
}

// A link names no device that is none.
TEST_F(ForeignDeviceTest, LinkForNoDevice) {
  const Own<cl_program> program = Source(context());
  EXPECT_CL("clCompileProgram.plain", CL_SUCCESS,
            clCompileProgram(program, 1, own(), "", 0, nullptr, nullptr, nullptr, nullptr));
  const cl_program only[] = {program};
  const cl_device_id with_null[] = {own()[0], nullptr};
  EXPECT_CREATE("clLinkProgram.null_device", CL_INVALID_DEVICE,
                clLinkProgram(context(), 2, with_null, "", 1, only, nullptr, nullptr, error));
}

// The result of a build is known for the program's devices.
TEST_F(ForeignDeviceTest, BuildInfo) {
  const Own<cl_program> program = Built(context());
  cl_build_status status = 77;
  EXPECT_CL("clGetProgramBuildInfo.foreign_device", CL_INVALID_DEVICE,
            clGetProgramBuildInfo(program, *foreign(), CL_PROGRAM_BUILD_STATUS, sizeof(status),
                                  &status, nullptr));
  EXPECT_CL("clGetProgramBuildInfo.sub_device", CL_SUCCESS,
            clGetProgramBuildInfo(program, *own(), CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
                                  nullptr));
  EXPECT_EQ(status, CL_BUILD_SUCCESS);
}

// So are a kernel's work-groups.
TEST_F(ForeignDeviceTest, KernelWorkGroups) {
  const Own<cl_program> program = Built(context());
  const Own<cl_kernel> kernel = KernelOf(program);
  size_t size = 0;
  EXPECT_CL("clGetKernelWorkGroupInfo.foreign_device", CL_INVALID_DEVICE,
            clGetKernelWorkGroupInfo(kernel, *foreign(), CL_KERNEL_WORK_GROUP_SIZE, sizeof(size),
                                     &size, nullptr));
  EXPECT_CL("clGetKernelWorkGroupInfo.only_device", CL_SUCCESS,
            clGetKernelWorkGroupInfo(kernel, nullptr, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size),
                                     &size, nullptr));
}

// A device may be left out only where there is one.
TEST_F(ForeignDeviceTest, KernelWorkGroupsOfNoDevice) {
  const Own<cl_program> program = Built(both());
  const Own<cl_kernel> kernel = KernelOf(program);
  size_t size = 0;
  EXPECT_CL("clGetKernelWorkGroupInfo.which_device", CL_INVALID_DEVICE,
            clGetKernelWorkGroupInfo(kernel, nullptr, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size),
                                     &size, nullptr));
}

// The same for sub-groups, whether the device has them or not.
TEST_F(ForeignDeviceTest, KernelSubGroups) {
  const size_t local = 1;
  size_t size = 0;
  const Own<cl_program> one = Built(context());
  EXPECT_CL(
      "clGetKernelSubGroupInfo.foreign_device", CL_INVALID_DEVICE,
      clGetKernelSubGroupInfo(KernelOf(one), *foreign(), CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
                              sizeof(local), &local, sizeof(size), &size, nullptr));
  const Own<cl_program> two = Built(both());
  EXPECT_CL(
      "clGetKernelSubGroupInfo.which_device", CL_INVALID_DEVICE,
      clGetKernelSubGroupInfo(KernelOf(two), nullptr, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
                              sizeof(local), &local, sizeof(size), &size, nullptr));
}

// Binaries are for devices of their context.
TEST_F(ForeignDeviceTest, Binaries) {
  const Own<cl_program> program = Built(context());
  size_t size = 0;
  ASSERT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr),
            CL_SUCCESS);
  std::vector<unsigned char> binary(size);
  unsigned char* out = binary.data();
  ASSERT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(out), &out, nullptr), CL_SUCCESS);
  const unsigned char* in = binary.data();
  EXPECT_CREATE("clCreateProgramWithBinary.foreign_device", CL_INVALID_DEVICE,
                clCreateProgramWithBinary(context(), 1, foreign(), &size, &in, nullptr, error));
  EXPECT_CREATE("clCreateProgramWithBinary.sub_device", CL_SUCCESS,
                clCreateProgramWithBinary(context(), 1, own(), &size, &in, nullptr, error));
}

// So are built-in kernels.
TEST_F(ForeignDeviceTest, BuiltInKernels) {
  EXPECT_CREATE("clCreateProgramWithBuiltInKernels.foreign_device", CL_INVALID_DEVICE,
                clCreateProgramWithBuiltInKernels(context(), 1, foreign(), "x", error));
}

TEST_F(ForeignDeviceTest, BuiltInKernelsForNoDevice) {
  const cl_device_id none = nullptr;
  EXPECT_CREATE("clCreateProgramWithBuiltInKernels.null_device", CL_INVALID_DEVICE,
                clCreateProgramWithBuiltInKernels(context(), 1, &none, "x", error));
}

// A kernel has one definition, whatever device it runs on.
TEST_F(ForeignDeviceTest, DefinitionsThatDiffer) {
  const Own<cl_program> program = Source(both(), "kernel void k(global T* p) { *p = 0; }");
  ASSERT_EQ(clBuildProgram(program, 1, own(), "-DT=int", nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clBuildProgram(program, 1, foreign(), "-DT=float4", nullptr, nullptr), CL_SUCCESS);
  EXPECT_CREATE("clCreateKernel.definitions_differ", CL_INVALID_KERNEL_DEFINITION,
                clCreateKernel(program, "k", error));
}

class ProgramKindTest : public WithProgram {};

// A program without source cannot be compiled.
TEST_F(ProgramKindTest, BinariesAreNotCompiled) {
  size_t size = 0;
  ASSERT_EQ(clGetProgramInfo(program(), CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr),
            CL_SUCCESS);
  std::vector<unsigned char> binary(size);
  unsigned char* out = binary.data();
  ASSERT_EQ(clGetProgramInfo(program(), CL_PROGRAM_BINARIES, sizeof(out), &out, nullptr),
            CL_SUCCESS);
  const cl_device_id one = device();
  const unsigned char* in = binary.data();
  const Own<cl_program> loaded =
      MAKE("clCreateProgramWithBinary.plain",
           clCreateProgramWithBinary(context(), 1, &one, &size, &in, nullptr, error));
  EXPECT_CL("clCompileProgram.binary", CL_INVALID_OPERATION,
            clCompileProgram(loaded, 1, &one, "", 0, nullptr, nullptr, nullptr, nullptr));
}

// Nor is what kernels are made of.
TEST_F(ProgramKindTest, IsNotCompiledUnderAKernel) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const cl_device_id one = device();
  EXPECT_CL("clCompileProgram.kernels_attached", CL_INVALID_OPERATION,
            clCompileProgram(program(), 1, &one, "", 0, nullptr, nullptr, nullptr, nullptr));
}

// Built-in kernels have no source either.
TEST_F(ProgramKindTest, BuiltInKernelsAreNotCompiled) {
  const std::string names = DeviceString(device(), CL_DEVICE_BUILT_IN_KERNELS);
  if (names.empty()) GTEST_SKIP() << "the device has no built-in kernels";
  const cl_device_id one = device();
  const Own<cl_program> built_in =
      MAKE("clCreateProgramWithBuiltInKernels.plain",
           clCreateProgramWithBuiltInKernels(context(), 1, &one, names.c_str(), error));
  EXPECT_CL("clCompileProgram.built_in", CL_INVALID_OPERATION,
            clCompileProgram(built_in, 1, &one, "", 0, nullptr, nullptr, nullptr, nullptr));
}

class ImageParentTest : public WithImages {
 protected:
  static constexpr cl_image_format kFormat = {CL_RGBA, CL_UNSIGNED_INT8};

  // Over `parent`, which may be none.
  cl_image_desc Over(cl_mem_object_type type, cl_mem parent) const {
    cl_image_desc desc = Describe(type, 4, type == CL_MEM_OBJECT_IMAGE1D_BUFFER ? 0 : 4,
                                  type == CL_MEM_OBJECT_IMAGE3D ? 4 : 0);
    desc.mem_object = parent;
    return desc;
  }
};

// An image of a buffer has one.
TEST_F(ImageParentTest, NoBuffer) {
  const cl_image_desc desc = Over(CL_MEM_OBJECT_IMAGE1D_BUFFER, nullptr);
  EXPECT_CREATE("clCreateImage.no_buffer", CL_INVALID_IMAGE_DESCRIPTOR,
                clCreateImage(context(), CL_MEM_READ_WRITE, &kFormat, &desc, nullptr, error));
}

// Only some kinds can be made from another object, of the same context.
TEST_F(ImageParentTest, WrongKind) {
  const Own<cl_mem> buffer = Buffer(4096);
  const cl_image_desc desc = Over(CL_MEM_OBJECT_IMAGE3D, buffer);
  EXPECT_CREATE("clCreateImage.parent_of_3d", CL_INVALID_IMAGE_DESCRIPTOR,
                clCreateImage(context(), CL_MEM_READ_WRITE, &kFormat, &desc, nullptr, error));
}

TEST_F(ImageParentTest, ImageWhereABufferBelongs) {
  const TestImage image = Make(KindOf(CL_MEM_OBJECT_IMAGE2D), kFormat);
  const cl_image_desc desc = Over(CL_MEM_OBJECT_IMAGE1D_BUFFER, image.memory);
  EXPECT_CREATE("clCreateImage.image_as_buffer", CL_INVALID_IMAGE_DESCRIPTOR,
                clCreateImage(context(), CL_MEM_READ_WRITE, &kFormat, &desc, nullptr, error));
}

TEST_F(ImageParentTest, ForeignBuffer) {
  const Own<cl_context> other = NewContext();
  const Own<cl_mem> buffer =
      MAKE("clCreateBuffer.plain", clCreateBuffer(other, CL_MEM_READ_WRITE, 4096, nullptr, error));
  const cl_image_desc desc = Over(CL_MEM_OBJECT_IMAGE1D_BUFFER, buffer);
  EXPECT_CREATE("clCreateImage.foreign_buffer", CL_INVALID_IMAGE_DESCRIPTOR,
                clCreateImage(context(), CL_MEM_READ_WRITE, &kFormat, &desc, nullptr, error));
}

// An image may do no more than what it is made from.
TEST_F(ImageParentTest, FlagsThatContradict) {
  const Own<cl_mem> buffer = Buffer(4096, CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS);
  const cl_image_desc desc = Over(CL_MEM_OBJECT_IMAGE1D_BUFFER, buffer);
  EXPECT_CREATE("clCreateImage.parent_not_written", CL_INVALID_VALUE,
                clCreateImage(context(), CL_MEM_WRITE_ONLY, &kFormat, &desc, nullptr, error));
  EXPECT_CREATE("clCreateImage.parent_without_host", CL_INVALID_VALUE,
                clCreateImage(context(), CL_MEM_READ_ONLY | CL_MEM_HOST_READ_ONLY, &kFormat, &desc,
                              nullptr, error));
}

// There are no images of several samples.
TEST_F(ImageParentTest, Samples) {
  cl_image_desc desc = Over(CL_MEM_OBJECT_IMAGE2D, nullptr);
  desc.num_samples = 4;
  EXPECT_CREATE("clCreateImage.samples", CL_INVALID_IMAGE_DESCRIPTOR,
                clCreateImage(context(), CL_MEM_READ_WRITE, &kFormat, &desc, nullptr, error));
}

// A kernel gets no image that it cannot read, or write, as it says.
TEST_F(ImageParentTest, AccessOfArguments) {
  if (!HasCompiler()) GTEST_SKIP() << "the device has no compiler";
  const Own<cl_program> source = Program(
      "kernel void k(read_only image2d_t from, write_only image2d_t to) "
      "{ write_imageui(to, (int2)(0, 0), read_imageui(from, (int2)(0, 0))); }");
  const Own<cl_kernel> kernel = Kernel(source, "k");
  const ImageKind& kind = KindOf(CL_MEM_OBJECT_IMAGE2D);
  const TestImage read = Make(kind, kFormat, CL_MEM_READ_ONLY);
  const TestImage written = Make(kind, kFormat, CL_MEM_WRITE_ONLY);
  const cl_mem to_read = read.memory, to_write = written.memory;
  EXPECT_CL("clSetKernelArg.image_not_read", CL_INVALID_ARG_VALUE,
            clSetKernelArg(kernel, 0, sizeof(cl_mem), &to_write));
  EXPECT_CL("clSetKernelArg.image_not_written", CL_INVALID_ARG_VALUE,
            clSetKernelArg(kernel, 1, sizeof(cl_mem), &to_read));
  EXPECT_CL("clSetKernelArg.image_read", CL_SUCCESS,
            clSetKernelArg(kernel, 0, sizeof(cl_mem), &to_read));
  EXPECT_CL("clSetKernelArg.image_written", CL_SUCCESS,
            clSetKernelArg(kernel, 1, sizeof(cl_mem), &to_write));
}

}  // namespace
}  // namespace sluice::conformance
