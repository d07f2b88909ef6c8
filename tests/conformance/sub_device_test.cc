// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

class SubDeviceTest : public WithPlatform {
 protected:
  bool Has(cl_device_partition_property kind) const {
    const auto kinds =
        DeviceArray<cl_device_partition_property>(device(), CL_DEVICE_PARTITION_PROPERTIES);
    return Units() >= 2 && std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }
  cl_uint Units() const { return DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_COMPUTE_UNITS); }
  // One sub-device of one unit.
  Own<cl_device_id> OneUnit() const {
    const cl_device_partition_property list[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1,
                                                 CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    Own<cl_device_id> part;
    EXPECT_CL("clCreateSubDevices.by_counts", CL_SUCCESS,
              clCreateSubDevices(device(), list, 1, part.Out(), nullptr));
    return part;
  }
  // Two sub-devices of one unit each.
  struct Parts {
    cl_device_id list[2] = {nullptr, nullptr};
    Own<cl_device_id> first, second;
  };
  Parts TwoUnits() const {
    const cl_device_partition_property list[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
                                                 CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    Parts parts;
    EXPECT_EQ(clCreateSubDevices(device(), list, 2, parts.list, nullptr), CL_SUCCESS);
    parts.first = Own<cl_device_id>(parts.list[0]);
    parts.second = Own<cl_device_id>(parts.list[1]);
    return parts;
  }
  Own<cl_context> ContextOf(const Parts& parts) const {
    return MAKE("clCreateContext.sub_devices",
                clCreateContext(nullptr, 2, parts.list, nullptr, nullptr, error));
  }
};

// Partitioning equally gives units / n sub-devices of n units each, which know their parent.
TEST_F(SubDeviceTest, Equally) {
  if (!Has(CL_DEVICE_PARTITION_EQUALLY)) GTEST_SKIP() << "the device cannot be partitioned equally";
  const cl_device_partition_property list[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_uint count = 0;
  ASSERT_CL("clCreateSubDevices.count", CL_SUCCESS,
            clCreateSubDevices(device(), list, 0, nullptr, &count));
  EXPECT_EQ(count, Units());
  std::vector<cl_device_id> parts(count);
  ASSERT_CL("clCreateSubDevices.equally", CL_SUCCESS,
            clCreateSubDevices(device(), list, count, parts.data(), nullptr));
  for (cl_device_id part : parts) {
    EXPECT_EQ(DeviceValue<cl_uint>(part, CL_DEVICE_MAX_COMPUTE_UNITS), 1u);
    EXPECT_EQ(DeviceValue<cl_device_id>(part, CL_DEVICE_PARENT_DEVICE), device());
    EXPECT_EQ(DeviceValue<cl_platform_id>(part, CL_DEVICE_PLATFORM), platform());
    EXPECT_EQ(DeviceValue<cl_uint>(part, CL_DEVICE_REFERENCE_COUNT), 1u);
    const auto type = DeviceArray<cl_device_partition_property>(part, CL_DEVICE_PARTITION_TYPE);
    EXPECT_TRUE(type.size() == 3 && std::equal(type.begin(), type.end(), list));
    EXPECT_EQ(clReleaseDevice(part), CL_SUCCESS);
  }
}

// Sub-devices are counted, unlike root devices.
TEST_F(SubDeviceTest, AreCounted) {
  if (!Has(CL_DEVICE_PARTITION_BY_COUNTS))
    GTEST_SKIP() << "the device cannot be partitioned by counts";
  const Own<cl_device_id> part = OneUnit();
  EXPECT_CL("clRetainDevice.sub_device", CL_SUCCESS, clRetainDevice(part));
  EXPECT_EQ(DeviceValue<cl_uint>(part, CL_DEVICE_REFERENCE_COUNT), 2u);
  EXPECT_CL("clReleaseDevice.sub_device", CL_SUCCESS, clReleaseDevice(part));
  EXPECT_EQ(DeviceValue<cl_uint>(part, CL_DEVICE_REFERENCE_COUNT), 1u);
}

// A sub-device computes like a device.
TEST_F(SubDeviceTest, Computes) {
  if (!Has(CL_DEVICE_PARTITION_BY_COUNTS) || !HasCompiler())
    GTEST_SKIP() << "no partition by counts, or no compiler";
  const Own<cl_device_id> part = OneUnit();
  const cl_device_id one = part;
  const Own<cl_context> context = MAKE("clCreateContext.sub_device",
                                       clCreateContext(nullptr, 1, &one, nullptr, nullptr, error));
  const Own<cl_command_queue> queue =
      MAKE("clCreateCommandQueueWithProperties.sub_device",
           clCreateCommandQueueWithProperties(context, one, nullptr, error));
  const char* source =
      "kernel void k(global int* p) { p[get_global_id(0)] = get_global_id(0) * 3; }";
  const Own<cl_program> program =
      MAKE("clCreateProgramWithSource.sub_device",
           clCreateProgramWithSource(context, 1, &source, nullptr, error));
  ASSERT_CL("clBuildProgram.sub_device", CL_SUCCESS,
            clBuildProgram(program, 1, &one, "", nullptr, nullptr));
  const Own<cl_kernel> kernel =
      MAKE("clCreateKernel.sub_device", clCreateKernel(program, "k", error));
  const Own<cl_mem> out = MAKE("clCreateBuffer.sub_device",
                               clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, error));
  SetArg(kernel, 0, out);
  ASSERT_EQ(Launch(queue, kernel, 16), CL_SUCCESS);
  std::vector<cl_int> back(16);
  ASSERT_EQ(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, 64, back.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  for (cl_int i = 0; i < 16; ++i) EXPECT_EQ(back[static_cast<size_t>(i)], i * 3);
}

// A program has a binary for each of its devices, whatever they are parts of.
TEST_F(SubDeviceTest, ProgramsHaveBinaries) {
  if (!Has(CL_DEVICE_PARTITION_BY_COUNTS)) GTEST_SKIP() << "the device is not divided by counts";
  const Parts parts = TwoUnits();
  const Own<cl_context> context = ContextOf(parts);
  const char* source = "kernel void k(global int* x) { x[0] = 1; }";
  const Own<cl_program> program =
      MAKE("clCreateProgramWithSource.sub_devices",
           clCreateProgramWithSource(context, 1, &source, nullptr, error));
  ASSERT_EQ(clBuildProgram(program, 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
  cl_uint devices = 0;  // PoCL says 1, the device that both are parts of.
  ASSERT_EQ(clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof(devices), &devices, nullptr),
            CL_SUCCESS);
  std::vector<size_t> sizes(devices);
  size_t returned = 0;
  EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(size_t),
                             sizes.data(), &returned),
            CL_SUCCESS);
  EXPECT_EQ(returned, sizes.size() * sizeof(size_t));
  std::vector<std::vector<unsigned char>> binaries;
  std::vector<unsigned char*> pointers;
  for (const size_t size : sizes) {
    ASSERT_GT(size, 0u);
    binaries.emplace_back(size);
    pointers.push_back(binaries.back().data());
  }
  EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARIES, pointers.size() * sizeof(pointers[0]),
                             pointers.data(), nullptr),
            CL_SUCCESS);
  for (const auto& binary : binaries)
    EXPECT_NE(std::count(binary.begin(), binary.end(), 0), static_cast<ptrdiff_t>(binary.size()));
}

// A program is executable on the devices it was built for, and on no other of its context; a later
// build for another leaves it so.
TEST_F(SubDeviceTest, ProgramsRunWhereTheyAreBuilt) {
  if (!Has(CL_DEVICE_PARTITION_BY_COUNTS) || !HasCompiler())
    GTEST_SKIP() << "no partition by counts, or no compiler";
  const Parts parts = TwoUnits();
  const Own<cl_context> context = ContextOf(parts);
  const char* source = "kernel void k() {}";
  const Own<cl_command_queue> first =
      MAKE("clCreateCommandQueueWithProperties.sub_device",
           clCreateCommandQueueWithProperties(context, parts.first, nullptr, error));
  const Own<cl_command_queue> second =
      MAKE("clCreateCommandQueueWithProperties.sub_device",
           clCreateCommandQueueWithProperties(context, parts.second, nullptr, error));
  for (const bool for_both : {false, true}) {
    const Own<cl_program> program =
        MAKE("clCreateProgramWithSource.sub_devices",
             clCreateProgramWithSource(context, 1, &source, nullptr, error));
    ASSERT_EQ(clBuildProgram(program, 1, parts.list, "", nullptr, nullptr), CL_SUCCESS);
    if (for_both) {
      ASSERT_EQ(clBuildProgram(program, 1, parts.list + 1, "", nullptr, nullptr), CL_SUCCESS);
    }
    const Own<cl_kernel> kernel =
        MAKE("clCreateKernel.sub_device", clCreateKernel(program, "k", error));
    if (!for_both) {
      EXPECT_CL("clEnqueueNDRangeKernel.not_built", CL_INVALID_PROGRAM_EXECUTABLE,
                Launch(second, kernel, 1));
    }
    EXPECT_EQ(Launch(first, kernel, 1), CL_SUCCESS);
    if (for_both) {
      EXPECT_EQ(Launch(second, kernel, 1), CL_SUCCESS);
    }
    EXPECT_EQ(clFinish(first), CL_SUCCESS);
    EXPECT_EQ(clFinish(second), CL_SUCCESS);
  }
}

// Programs built for a device can be used by its sub-devices, for which nothing else was built
// (clGetProgramBuildInfo): programs that were built, and linked ones. They tell of it too.
TEST_F(SubDeviceTest, ProgramsOfTheParent) {
  if (!Has(CL_DEVICE_PARTITION_BY_COUNTS) || !HasCompiler())
    GTEST_SKIP() << "no partition by counts, or no compiler";
  const Parts parts = TwoUnits();
  const cl_device_id parent = device();
  const cl_device_id all[] = {parent, parts.first, parts.second};
  const Own<cl_context> context = MAKE("clCreateContext.parent_and_parts",
                                       clCreateContext(nullptr, 3, all, nullptr, nullptr, error));
  const char* source = "kernel void k(global int* p) { *p += 1; }";
  const auto make = [&] {
    return MAKE("clCreateProgramWithSource.sub_devices",
                clCreateProgramWithSource(context, 1, &source, nullptr, error));
  };
  const Own<cl_program> built = make();
  ASSERT_CL("clBuildProgram.parent", CL_SUCCESS,
            clBuildProgram(built, 1, &parent, "-w", nullptr, nullptr));
  const Own<cl_program> compiled = make();
  ASSERT_EQ(clCompileProgram(compiled, 1, &parent, "", 0, nullptr, nullptr, nullptr, nullptr),
            CL_SUCCESS);
  const cl_program object = compiled;
  const Own<cl_program> linked =
      MAKE("clLinkProgram.parent",
           clLinkProgram(context, 1, &parent, "", 1, &object, nullptr, nullptr, error));
  for (const cl_device_id part : all) {
    cl_build_status status = CL_BUILD_NONE;
    EXPECT_CL("clGetProgramBuildInfo.parents_status", CL_SUCCESS,
              clGetProgramBuildInfo(built, part, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
                                    nullptr));
    EXPECT_EQ(status, CL_BUILD_SUCCESS);
    cl_program_binary_type type = CL_PROGRAM_BINARY_TYPE_NONE;
    EXPECT_CL(
        "clGetProgramBuildInfo.parents_type", CL_SUCCESS,
        clGetProgramBuildInfo(built, part, CL_PROGRAM_BINARY_TYPE, sizeof(type), &type, nullptr));
    EXPECT_EQ(type, static_cast<cl_program_binary_type>(CL_PROGRAM_BINARY_TYPE_EXECUTABLE));
  }
  const Own<cl_mem> out = MAKE("clCreateBuffer.sub_device",
                               clCreateBuffer(context, CL_MEM_READ_WRITE, 4, nullptr, error));
  cl_int value = 0;
  for (const cl_program program : {cl_program(built), cl_program(linked)}) {
    const Own<cl_kernel> kernel =
        MAKE("clCreateKernel.parent", clCreateKernel(program, "k", error));
    SetArg(kernel, 0, out);
    for (const cl_device_id part : all) {
      const Own<cl_command_queue> queue =
          MAKE("clCreateCommandQueueWithProperties.sub_device",
               clCreateCommandQueueWithProperties(context, part, nullptr, error));
      value = 41;
      ASSERT_EQ(clEnqueueWriteBuffer(queue, out, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr),
                CL_SUCCESS);
      EXPECT_CL("clEnqueueNDRangeKernel.parents_program", CL_SUCCESS, Launch(queue, kernel, 1));
      ASSERT_EQ(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr),
                CL_SUCCESS);
      EXPECT_EQ(value, 42);
    }
  }
}

// Each wrong argument has its code.
TEST_F(SubDeviceTest, Refusals) {
  cl_device_id parts[4] = {};
  cl_uint count = 0;
  const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  EXPECT_CL("clCreateSubDevices.null_device", CL_INVALID_DEVICE,
            clCreateSubDevices(nullptr, equally, 4, parts, nullptr));
  EXPECT_CL("clCreateSubDevices.null_properties", CL_INVALID_VALUE,
            clCreateSubDevices(device(), nullptr, 4, parts, nullptr));
  const cl_device_partition_property unknown[] = {0x7ffe, 1, 0};
  EXPECT_CL("clCreateSubDevices.unknown_property", CL_INVALID_VALUE,
            clCreateSubDevices(device(), unknown, 4, parts, nullptr));
  if (!Has(CL_DEVICE_PARTITION_BY_COUNTS) || !Has(CL_DEVICE_PARTITION_EQUALLY)) {
    GTEST_SKIP() << "the device cannot be partitioned by counts and equally";
  }
  EXPECT_CL("clCreateSubDevices.no_room", CL_INVALID_VALUE,
            clCreateSubDevices(device(), equally, 1, parts, nullptr));
  const cl_device_partition_property too_many[] = {
      CL_DEVICE_PARTITION_BY_COUNTS, static_cast<cl_device_partition_property>(Units()) + 1,
      CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
  EXPECT_CL("clCreateSubDevices.too_many_units", CL_INVALID_DEVICE_PARTITION_COUNT,
            clCreateSubDevices(device(), too_many, 0, nullptr, &count));
  const cl_device_partition_property large[] = {
      CL_DEVICE_PARTITION_EQUALLY, static_cast<cl_device_partition_property>(Units()) + 1, 0};
  EXPECT_CL("clCreateSubDevices.part_too_large",
            (AnyOf{CL_DEVICE_PARTITION_FAILED, CL_INVALID_VALUE}),
            clCreateSubDevices(device(), large, 0, nullptr, &count));
}

// The functions of cl_ext_device_fission are there and refuse no device; they partition where the
// driver has them.
TEST_F(SubDeviceTest, FissionExtension) {
  EXPECT_CL("clCreateSubDevicesEXT.null_device", CL_INVALID_DEVICE,
            clCreateSubDevicesEXT(nullptr, nullptr, 0, nullptr, nullptr));
  EXPECT_CL("clRetainDeviceEXT.null_device", CL_INVALID_DEVICE, clRetainDeviceEXT(nullptr));
  EXPECT_CL("clReleaseDeviceEXT.null_device", CL_INVALID_DEVICE, clReleaseDeviceEXT(nullptr));
  if (!HasDeviceExtension(device(), "cl_ext_device_fission")) {
    GTEST_SKIP() << "the device has no cl_ext_device_fission";
  }
  const cl_device_partition_property_ext list[] = {CL_DEVICE_PARTITION_EQUALLY_EXT, 1,
                                                   CL_PROPERTIES_LIST_END_EXT};
  cl_uint count = 0;
  ASSERT_CL("clCreateSubDevicesEXT.count", CL_SUCCESS,
            clCreateSubDevicesEXT(device(), list, 0, nullptr, &count));
  std::vector<cl_device_id> parts(count);
  ASSERT_CL("clCreateSubDevicesEXT.plain", CL_SUCCESS,
            clCreateSubDevicesEXT(device(), list, count, parts.data(), nullptr));
  for (cl_device_id part : parts) {
    EXPECT_CL("clRetainDeviceEXT.plain", CL_SUCCESS, clRetainDeviceEXT(part));
    EXPECT_CL("clReleaseDeviceEXT.plain", CL_SUCCESS, clReleaseDeviceEXT(part));
    EXPECT_CL("clReleaseDeviceEXT.last", CL_SUCCESS, clReleaseDeviceEXT(part));
  }
}

}  // namespace
}  // namespace sluice::conformance
