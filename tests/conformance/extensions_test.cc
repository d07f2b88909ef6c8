// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using ExtensionsTest = WithProgram;

// Not in the headers of every distribution, so written out as the extension's text has it.
using GetKernelSuggestedLocalWorkSize = cl_int(CL_API_CALL*)(cl_command_queue, cl_kernel, cl_uint,
                                                             const size_t*, const size_t*, size_t*);
using CreateQueue = cl_command_queue(CL_API_CALL*)(cl_context, cl_device_id,
                                                   const cl_queue_properties_khr*, cl_int*);
using CreateFromIl = cl_program(CL_API_CALL*)(cl_context, const void*, size_t, cl_int*);
using GetSubGroupInfo = cl_int(CL_API_CALL*)(cl_kernel, cl_device_id, cl_kernel_sub_group_info,
                                             size_t, const void*, size_t, void*, size_t*);

// Sluice has the functions of these extensions on every device, whether or not the device's driver
// does.
#define REQUIRE_FUNCTION(function)                                             \
  if ((function) == nullptr) {                                                 \
    ASSERT_FALSE(TheHarness().IsSluice()) << "Sluice must have this function"; \
    GTEST_SKIP() << "the driver has no such function";                         \
  }

// clCreateCommandQueueWithPropertiesKHR makes queues like its core form.
TEST_F(ExtensionsTest, CreateQueueKhr) {
  const auto clCreateCommandQueueWithPropertiesKHR =
      Extension<CreateQueue>("clCreateCommandQueueWithPropertiesKHR");
  REQUIRE_FUNCTION(clCreateCommandQueueWithPropertiesKHR);
  // Applications look for the name, not for the function.
  if (TheHarness().IsSluice()) {
    EXPECT_TRUE(HasDeviceExtension(device(), "cl_khr_create_command_queue"));
  }
  const cl_queue_properties_khr list[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  const Own<cl_command_queue> made =
      MAKE("clCreateCommandQueueWithPropertiesKHR.plain",
           clCreateCommandQueueWithPropertiesKHR(context(), device(), list, error));
  EXPECT_EQ(clFinish(made), CL_SUCCESS);
  EXPECT_CREATE("clCreateCommandQueueWithPropertiesKHR.null_context", CL_INVALID_CONTEXT,
                clCreateCommandQueueWithPropertiesKHR(nullptr, device(), list, error));
  const cl_queue_properties_khr unknown[] = {0x7ffe, 1, 0};
  EXPECT_CREATE("clCreateCommandQueueWithPropertiesKHR.unknown_property", CL_INVALID_VALUE,
                clCreateCommandQueueWithPropertiesKHR(context(), device(), unknown, error));
}

// clCreateProgramWithILKHR refuses what its core form refuses.
TEST_F(ExtensionsTest, CreateProgramWithIlKhr) {
  const auto clCreateProgramWithILKHR = Extension<CreateFromIl>("clCreateProgramWithILKHR");
  REQUIRE_FUNCTION(clCreateProgramWithILKHR);
  // SPIR-V 1.0 with nothing in it: OpCapability Addresses, Kernel; OpMemoryModel Physical64 OpenCL.
  const cl_uint module[] = {0x07230203, 0x00010000, 0, 1,          0, 0x00020011,
                            4,          0x00020011, 6, 0x0003000e, 2, 2};
  EXPECT_CREATE("clCreateProgramWithILKHR.null_context", CL_INVALID_CONTEXT,
                clCreateProgramWithILKHR(nullptr, module, sizeof(module), error));
  if (DeviceString(device(), CL_DEVICE_IL_VERSION).find("SPIR-V") == std::string::npos) {
    EXPECT_CREATE("clCreateProgramWithILKHR.unsupported", CL_INVALID_OPERATION,
                  clCreateProgramWithILKHR(context(), module, sizeof(module), error));
    GTEST_SKIP() << "the device takes no SPIR-V (CL_DEVICE_IL_VERSION)";
  }
  EXPECT_CREATE("clCreateProgramWithILKHR.null_code", CL_INVALID_VALUE,
                clCreateProgramWithILKHR(context(), nullptr, sizeof(module), error));
  MAKE("clCreateProgramWithILKHR.plain",
       clCreateProgramWithILKHR(context(), module, sizeof(module), error));
}

// clGetKernelSubGroupInfoKHR answers as its core form does.
TEST_F(ExtensionsTest, SubGroupInfoKhr) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const size_t local = 8;
  size_t core_value = 0, khr_value = 0;
  EXPECT_CL(
      "clGetKernelSubGroupInfoKHR.null_kernel", CL_INVALID_KERNEL,
      clGetKernelSubGroupInfoKHR(nullptr, device(), CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
                                 sizeof(local), &local, sizeof(khr_value), &khr_value, nullptr));
  if (DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_NUM_SUB_GROUPS) == 0) {
    EXPECT_CL(
        "clGetKernelSubGroupInfoKHR.unsupported", CL_INVALID_OPERATION,
        clGetKernelSubGroupInfoKHR(kernel, device(), CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
                                   sizeof(local), &local, sizeof(khr_value), &khr_value, nullptr));
    GTEST_SKIP() << "the device has no sub-groups (CL_DEVICE_MAX_NUM_SUB_GROUPS is 0)";
  }
  EXPECT_CL(
      "clGetKernelSubGroupInfoKHR.plain", CL_SUCCESS,
      clGetKernelSubGroupInfoKHR(kernel, device(), CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
                                 sizeof(local), &local, sizeof(khr_value), &khr_value, nullptr));
  EXPECT_EQ(
      clGetKernelSubGroupInfo(kernel, device(), CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
                              sizeof(local), &local, sizeof(core_value), &core_value, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(khr_value, core_value);
}

// A suggested local size divides the global one and can be launched.
TEST_F(ExtensionsTest, SuggestedLocalWorkSize) {
  const auto clGetKernelSuggestedLocalWorkSizeKHR =
      Extension<GetKernelSuggestedLocalWorkSize>("clGetKernelSuggestedLocalWorkSizeKHR");
  REQUIRE_FUNCTION(clGetKernelSuggestedLocalWorkSizeKHR);
  const Own<cl_kernel> kernel = Kernel("add_one");
  const Own<cl_mem> data = Buffer(4096);
  size_t global[3] = {1024, 1, 1}, suggested[3] = {};
  EXPECT_CL("clGetKernelSuggestedLocalWorkSizeKHR.null_queue", CL_INVALID_COMMAND_QUEUE,
            clGetKernelSuggestedLocalWorkSizeKHR(nullptr, kernel, 1, nullptr, global, suggested));
  EXPECT_CL("clGetKernelSuggestedLocalWorkSizeKHR.null_kernel", CL_INVALID_KERNEL,
            clGetKernelSuggestedLocalWorkSizeKHR(queue(), nullptr, 1, nullptr, global, suggested));
  SetArg(kernel, 0, data);
  const cl_int code =
      clGetKernelSuggestedLocalWorkSizeKHR(queue(), kernel, 1, nullptr, global, suggested);
  if (code == CL_INVALID_OPERATION)
    GTEST_SKIP() << "the driver has no cl_khr_suggested_local_work_size";
  ASSERT_CL("clGetKernelSuggestedLocalWorkSizeKHR.plain", CL_SUCCESS, code);
  if (Differs("clGetKernelSuggestedLocalWorkSizeKHR.plain")) GTEST_SKIP() << "it suggests nothing";
  ASSERT_GE(suggested[0], 1u);
  EXPECT_EQ(global[0] % suggested[0], 0u);
  EXPECT_EQ(
      clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, global, suggested, 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_CL("clGetKernelSuggestedLocalWorkSizeKHR.zero_dims", CL_INVALID_WORK_DIMENSION,
            clGetKernelSuggestedLocalWorkSizeKHR(queue(), kernel, 0, nullptr, global, suggested));
  EXPECT_CL("clGetKernelSuggestedLocalWorkSizeKHR.null_result", CL_INVALID_VALUE,
            clGetKernelSuggestedLocalWorkSizeKHR(queue(), kernel, 1, nullptr, global, nullptr));
  Finish();
}

// A device that offers cl_khr_device_uuid has identities of the right sizes.
TEST_F(ExtensionsTest, DeviceUuid) {
  if (!HasDeviceExtension(device(), "cl_khr_device_uuid"))
    GTEST_SKIP() << "the device has no cl_khr_device_uuid";
  std::array<cl_uchar, CL_UUID_SIZE_KHR> uuid = {};
  size_t bytes = 0;
  for (cl_device_info param : {CL_DEVICE_UUID_KHR, CL_DRIVER_UUID_KHR}) {
    EXPECT_CL("clGetDeviceInfo.uuid", CL_SUCCESS,
              clGetDeviceInfo(device(), param, sizeof(uuid), uuid.data(), &bytes));
    EXPECT_EQ(bytes, sizeof(uuid));
    EXPECT_TRUE(std::any_of(uuid.begin(), uuid.end(), [](cl_uchar byte) { return byte != 0; }));
  }
  cl_bool valid = 77;
  EXPECT_CL("clGetDeviceInfo.luid_valid", CL_SUCCESS,
            clGetDeviceInfo(device(), CL_DEVICE_LUID_VALID_KHR, sizeof(valid), &valid, nullptr));
  EXPECT_LE(valid, static_cast<cl_bool>(CL_TRUE));
}

// A device that offers cl_khr_pci_bus_info tells where it is.
TEST_F(ExtensionsTest, PciBusInfo) {
  if (!HasDeviceExtension(device(), "cl_khr_pci_bus_info"))
    GTEST_SKIP() << "the device has no cl_khr_pci_bus_info";
  cl_device_pci_bus_info_khr where = {};
  size_t bytes = 0;
  EXPECT_CL("clGetDeviceInfo.pci_bus_info", CL_SUCCESS,
            clGetDeviceInfo(device(), CL_DEVICE_PCI_BUS_INFO_KHR, sizeof(where), &where, &bytes));
  EXPECT_EQ(bytes, sizeof(where));
  EXPECT_LT(where.pci_device, 32u);
  EXPECT_LT(where.pci_function, 8u);
}

#undef REQUIRE_FUNCTION

}  // namespace
}  // namespace sluice::conformance
