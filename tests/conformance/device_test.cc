// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using DeviceTest = WithPlatform;

struct FixedParam {
  cl_device_info param;
  const char* name;
  size_t bytes;
};

#define FIXED(param, type) \
  { param, #param, sizeof(type) }
constexpr FixedParam kFixed[] = {
    FIXED(CL_DEVICE_TYPE, cl_device_type),
    FIXED(CL_DEVICE_VENDOR_ID, cl_uint),
    FIXED(CL_DEVICE_MAX_COMPUTE_UNITS, cl_uint),
    FIXED(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, cl_uint),
    FIXED(CL_DEVICE_MAX_WORK_GROUP_SIZE, size_t),
    FIXED(CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, cl_uint),
    FIXED(CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, cl_uint),
    FIXED(CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, cl_uint),
    FIXED(CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, cl_uint),
    FIXED(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, cl_uint),
    FIXED(CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, cl_uint),
    FIXED(CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, cl_uint),
    FIXED(CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR, cl_uint),
    FIXED(CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT, cl_uint),
    FIXED(CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, cl_uint),
    FIXED(CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG, cl_uint),
    FIXED(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, cl_uint),
    FIXED(CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, cl_uint),
    FIXED(CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, cl_uint),
    FIXED(CL_DEVICE_MAX_CLOCK_FREQUENCY, cl_uint),
    FIXED(CL_DEVICE_ADDRESS_BITS, cl_uint),
    FIXED(CL_DEVICE_MAX_MEM_ALLOC_SIZE, cl_ulong),
    FIXED(CL_DEVICE_IMAGE_SUPPORT, cl_bool),
    FIXED(CL_DEVICE_MAX_READ_IMAGE_ARGS, cl_uint),
    FIXED(CL_DEVICE_MAX_WRITE_IMAGE_ARGS, cl_uint),
    FIXED(CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, cl_uint),
    FIXED(CL_DEVICE_IMAGE2D_MAX_WIDTH, size_t),
    FIXED(CL_DEVICE_IMAGE2D_MAX_HEIGHT, size_t),
    FIXED(CL_DEVICE_IMAGE3D_MAX_WIDTH, size_t),
    FIXED(CL_DEVICE_IMAGE3D_MAX_HEIGHT, size_t),
    FIXED(CL_DEVICE_IMAGE3D_MAX_DEPTH, size_t),
    FIXED(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, size_t),
    FIXED(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, size_t),
    FIXED(CL_DEVICE_MAX_SAMPLERS, cl_uint),
    FIXED(CL_DEVICE_IMAGE_PITCH_ALIGNMENT, cl_uint),
    FIXED(CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, cl_uint),
    FIXED(CL_DEVICE_MAX_PIPE_ARGS, cl_uint),
    FIXED(CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS, cl_uint),
    FIXED(CL_DEVICE_PIPE_MAX_PACKET_SIZE, cl_uint),
    FIXED(CL_DEVICE_MAX_PARAMETER_SIZE, size_t),
    FIXED(CL_DEVICE_MEM_BASE_ADDR_ALIGN, cl_uint),
    FIXED(CL_DEVICE_SINGLE_FP_CONFIG, cl_device_fp_config),
    FIXED(CL_DEVICE_DOUBLE_FP_CONFIG, cl_device_fp_config),
    FIXED(CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, cl_device_mem_cache_type),
    FIXED(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, cl_uint),
    FIXED(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, cl_ulong),
    FIXED(CL_DEVICE_GLOBAL_MEM_SIZE, cl_ulong),
    FIXED(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, cl_ulong),
    FIXED(CL_DEVICE_MAX_CONSTANT_ARGS, cl_uint),
    FIXED(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, size_t),
    FIXED(CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE, size_t),
    FIXED(CL_DEVICE_LOCAL_MEM_TYPE, cl_device_local_mem_type),
    FIXED(CL_DEVICE_LOCAL_MEM_SIZE, cl_ulong),
    FIXED(CL_DEVICE_ERROR_CORRECTION_SUPPORT, cl_bool),
    FIXED(CL_DEVICE_PROFILING_TIMER_RESOLUTION, size_t),
    FIXED(CL_DEVICE_ENDIAN_LITTLE, cl_bool),
    FIXED(CL_DEVICE_AVAILABLE, cl_bool),
    FIXED(CL_DEVICE_COMPILER_AVAILABLE, cl_bool),
    FIXED(CL_DEVICE_LINKER_AVAILABLE, cl_bool),
    FIXED(CL_DEVICE_EXECUTION_CAPABILITIES, cl_device_exec_capabilities),
    FIXED(CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, cl_command_queue_properties),
    FIXED(CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, cl_command_queue_properties),
    FIXED(CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, cl_uint),
    FIXED(CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, cl_uint),
    FIXED(CL_DEVICE_MAX_ON_DEVICE_QUEUES, cl_uint),
    FIXED(CL_DEVICE_MAX_ON_DEVICE_EVENTS, cl_uint),
    FIXED(CL_DEVICE_PLATFORM, cl_platform_id),
    FIXED(CL_DEVICE_PRINTF_BUFFER_SIZE, size_t),
    FIXED(CL_DEVICE_PREFERRED_INTEROP_USER_SYNC, cl_bool),
    FIXED(CL_DEVICE_PARENT_DEVICE, cl_device_id),
    FIXED(CL_DEVICE_PARTITION_MAX_SUB_DEVICES, cl_uint),
    FIXED(CL_DEVICE_PARTITION_AFFINITY_DOMAIN, cl_device_affinity_domain),
    FIXED(CL_DEVICE_REFERENCE_COUNT, cl_uint),
    FIXED(CL_DEVICE_SVM_CAPABILITIES, cl_device_svm_capabilities),
    FIXED(CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT, cl_uint),
    FIXED(CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT, cl_uint),
    FIXED(CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT, cl_uint),
    FIXED(CL_DEVICE_MAX_NUM_SUB_GROUPS, cl_uint),
    FIXED(CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, cl_bool),
    FIXED(CL_DEVICE_NUMERIC_VERSION, cl_version),
    FIXED(CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, cl_device_atomic_capabilities),
    FIXED(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, cl_device_atomic_capabilities),
    FIXED(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, cl_bool),
    FIXED(CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, size_t),
    FIXED(CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, cl_bool),
    FIXED(CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, cl_bool),
    FIXED(CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, cl_device_device_enqueue_capabilities),
    FIXED(CL_DEVICE_PIPE_SUPPORT, cl_bool),
    FIXED(CL_DEVICE_HOST_UNIFIED_MEMORY, cl_bool),
    FIXED(CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, cl_uint),
};
#undef FIXED

// Every parameter of a fixed type has exactly that type's size, and a smaller place for it is
// refused.
TEST_F(DeviceTest, FixedParametersHaveTheirSizes) {
  for (const FixedParam& fixed : kFixed) {
    SCOPED_TRACE(fixed.name);
    const std::string check = std::string("clGetDeviceInfo.") + fixed.name;
    if (Differs(check)) continue;
    size_t bytes = 0;
    EXPECT_CL(check, CL_SUCCESS, clGetDeviceInfo(device(), fixed.param, 0, nullptr, &bytes));
    EXPECT_EQ(bytes, fixed.bytes);
    unsigned char value[64];
    std::memset(value, 0x5a, sizeof(value));
    EXPECT_CL(check, CL_SUCCESS,
              clGetDeviceInfo(device(), fixed.param, sizeof(value), value, nullptr));
    EXPECT_EQ(value[fixed.bytes], 0x5a) << "wrote past the value";
    EXPECT_CL("clGetDeviceInfo.too_small", CL_INVALID_VALUE,
              clGetDeviceInfo(device(), fixed.param, fixed.bytes - 1, value, nullptr));
  }
}

// Every string parameter is a terminated string of the size that the query says.
TEST_F(DeviceTest, StringParametersAreWhole) {
  for (cl_device_info param :
       {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DRIVER_VERSION, CL_DEVICE_PROFILE, CL_DEVICE_VERSION,
        CL_DEVICE_OPENCL_C_VERSION, CL_DEVICE_EXTENSIONS, CL_DEVICE_BUILT_IN_KERNELS,
        CL_DEVICE_IL_VERSION, CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED}) {
    SCOPED_TRACE(param);
    size_t bytes = 0;
    ASSERT_CL("clGetDeviceInfo.string", CL_SUCCESS,
              clGetDeviceInfo(device(), param, 0, nullptr, &bytes));
    ASSERT_GE(bytes, 1u);
    std::string text(bytes, '#');
    EXPECT_CL("clGetDeviceInfo.string", CL_SUCCESS,
              clGetDeviceInfo(device(), param, bytes, text.data(), nullptr));
    EXPECT_EQ(std::strlen(text.c_str()) + 1, bytes);
  }
  EXPECT_EQ(DeviceString(device(), CL_DEVICE_VERSION).rfind("OpenCL ", 0), 0u);
  EXPECT_EQ(DeviceString(device(), CL_DEVICE_OPENCL_C_VERSION).rfind("OpenCL C ", 0), 0u);
}

// Lists have whole elements, and what they list agrees with the strings.
TEST_F(DeviceTest, ListsMatchTheStrings) {
  const std::vector<size_t> sizes = DeviceArray<size_t>(device(), CL_DEVICE_MAX_WORK_ITEM_SIZES);
  EXPECT_EQ(sizes.size(), DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS));
  std::set<std::string> from_list;
  for (const auto& one :
       DeviceArray<cl_name_version>(device(), CL_DEVICE_EXTENSIONS_WITH_VERSION)) {
    from_list.insert(one.name);
  }
  std::istringstream words(DeviceString(device(), CL_DEVICE_EXTENSIONS));
  std::set<std::string> from_string;
  for (std::string word; words >> word;) from_string.insert(word);
  EXPECT_EQ(from_list, from_string);

  std::string built_in;
  for (const auto& one :
       DeviceArray<cl_name_version>(device(), CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION)) {
    built_in += (built_in.empty() ? "" : ";") + std::string(one.name);
  }
  if (Differs("clGetDeviceInfo.built_in_kernels")) built_in += ";";
  EXPECT_EQ(built_in, DeviceString(device(), CL_DEVICE_BUILT_IN_KERNELS));
  EXPECT_GE(DeviceArray<cl_name_version>(device(), CL_DEVICE_OPENCL_C_ALL_VERSIONS).size(), 1u);
  for (cl_device_info param : {CL_DEVICE_ILS_WITH_VERSION, CL_DEVICE_OPENCL_C_FEATURES}) {
    size_t bytes = 1;
    EXPECT_CL("clGetDeviceInfo.name_version_list", CL_SUCCESS,
              clGetDeviceInfo(device(), param, 0, nullptr, &bytes));
    EXPECT_EQ(bytes % sizeof(cl_name_version), 0u);
  }
}

// The limits are at least what the specification asks of a full-profile device that is not custom.
TEST_F(DeviceTest, LimitsReachTheMinimum) {
  if (DeviceString(device(), CL_DEVICE_PROFILE) != "FULL_PROFILE")
    GTEST_SKIP() << "not a full-profile device";
  EXPECT_GE(DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS), 3u);
  EXPECT_GE(DeviceValue<size_t>(device(), CL_DEVICE_MAX_PARAMETER_SIZE), 1024u);
  EXPECT_GE(DeviceValue<cl_ulong>(device(), CL_DEVICE_LOCAL_MEM_SIZE), 32u * 1024);
  EXPECT_GE(DeviceValue<cl_ulong>(device(), CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE), 64u * 1024);
  EXPECT_GE(DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_CONSTANT_ARGS), 8u);
  EXPECT_EQ(DeviceValue<cl_platform_id>(device(), CL_DEVICE_PLATFORM), platform());
  EXPECT_EQ(DeviceValue<cl_device_id>(device(), CL_DEVICE_PARENT_DEVICE), nullptr);
  EXPECT_EQ(DeviceValue<cl_uint>(device(), CL_DEVICE_REFERENCE_COUNT), 1u);
  EXPECT_NE(DeviceValue<cl_command_queue_properties>(device(), CL_DEVICE_QUEUE_ON_HOST_PROPERTIES) &
                CL_QUEUE_PROFILING_ENABLE,
            0u);
  if (!HasImages()) return;
  EXPECT_GE(DeviceValue<size_t>(device(), CL_DEVICE_IMAGE2D_MAX_WIDTH), 8192u);
  EXPECT_GE(DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_SAMPLERS), 16u);
}

// A parameter that does not exist, and no device, are refused.
TEST_F(DeviceTest, InfoRefusesUnknownAndNull) {
  char value[64];
  EXPECT_CL("clGetDeviceInfo.unknown", CL_INVALID_VALUE,
            clGetDeviceInfo(device(), 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetDeviceInfo.null_device", CL_INVALID_DEVICE,
            clGetDeviceInfo(nullptr, CL_DEVICE_TYPE, sizeof(value), value, nullptr));
}

// The devices of each type are listed; ALL holds them, DEFAULT is exactly one of them.
TEST_F(DeviceTest, ListsDevicesByType) {
  cl_uint all = 0;
  ASSERT_CL("clGetDeviceIDs.count", CL_SUCCESS,
            clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 0, nullptr, &all));
  ASSERT_GE(all, 1u);
  std::vector<cl_device_id> devices(all);
  ASSERT_CL("clGetDeviceIDs.list", CL_SUCCESS,
            clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, all, devices.data(), nullptr));
  std::vector<cl_device_id> again(all);
  ASSERT_EQ(clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, all, again.data(), nullptr), CL_SUCCESS);
  EXPECT_EQ(devices, again) << "the same devices in the same order every time";
  cl_device_id standard = nullptr;
  cl_uint standards = 0;
  EXPECT_CL("clGetDeviceIDs.default", CL_SUCCESS,
            clGetDeviceIDs(platform(), CL_DEVICE_TYPE_DEFAULT, 1, &standard, &standards));
  EXPECT_EQ(standards, 1u);
  EXPECT_EQ(std::count(devices.begin(), devices.end(), standard), 1);
  const cl_device_type type =
      DeviceValue<cl_device_type>(standard, CL_DEVICE_TYPE) & ~CL_DEVICE_TYPE_DEFAULT;
  cl_device_id same_type = nullptr;
  EXPECT_CL("clGetDeviceIDs.by_type", CL_SUCCESS,
            clGetDeviceIDs(platform(), type, 1, &same_type, nullptr));
}

// Types that do not exist, no room, and types that no device has, each have their code.
TEST_F(DeviceTest, ListRefusals) {
  cl_device_id one = nullptr;
  cl_uint count = 0;
  EXPECT_CL("clGetDeviceIDs.no_type", CL_INVALID_DEVICE_TYPE,
            clGetDeviceIDs(platform(), 0, 1, &one, &count));
  EXPECT_CL("clGetDeviceIDs.unknown_type", CL_INVALID_DEVICE_TYPE,
            clGetDeviceIDs(platform(), cl_device_type{1} << 20, 1, &one, &count));
  EXPECT_CL("clGetDeviceIDs.zero_entries", CL_INVALID_VALUE,
            clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 0, &one, nullptr));
  EXPECT_CL("clGetDeviceIDs.nothing_asked", CL_INVALID_VALUE,
            clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, 0, nullptr, nullptr));
  for (cl_device_type type : {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                              CL_DEVICE_TYPE_CUSTOM}) {
    const cl_int code = clGetDeviceIDs(platform(), type, 0, nullptr, &count);
    if (code == CL_SUCCESS) continue;
    const bool custom = type == CL_DEVICE_TYPE_CUSTOM;
    EXPECT_CL(custom ? "clGetDeviceIDs.no_custom_device" : "clGetDeviceIDs.type_without_device",
              CL_DEVICE_NOT_FOUND, code);
  }
}

// Reference counting of a root device changes nothing; of no device, it is refused.
TEST_F(DeviceTest, RootDevicesAreNotCounted) {
  EXPECT_CL("clRetainDevice.root", CL_SUCCESS, clRetainDevice(device()));
  EXPECT_EQ(DeviceValue<cl_uint>(device(), CL_DEVICE_REFERENCE_COUNT), 1u);
  EXPECT_CL("clReleaseDevice.root", CL_SUCCESS, clReleaseDevice(device()));
  EXPECT_CL("clReleaseDevice.root", CL_SUCCESS, clReleaseDevice(device()));
  EXPECT_EQ(DeviceValue<cl_uint>(device(), CL_DEVICE_REFERENCE_COUNT), 1u);
  EXPECT_CL("clRetainDevice.null", CL_INVALID_DEVICE, clRetainDevice(nullptr));
  EXPECT_CL("clReleaseDevice.null", CL_INVALID_DEVICE, clReleaseDevice(nullptr));
}

// Both timers move forward where the platform has them, and are refused where it has not.
TEST_F(DeviceTest, TimersMoveForward) {
  cl_ulong resolution = 0;
  clGetPlatformInfo(platform(), CL_PLATFORM_HOST_TIMER_RESOLUTION, sizeof(resolution), &resolution,
                    nullptr);
  cl_ulong device_time[2] = {};
  cl_ulong host_time[3] = {};
  if (resolution == 0) {
    EXPECT_CL("clGetDeviceAndHostTimer.unsupported", CL_INVALID_OPERATION,
              clGetDeviceAndHostTimer(device(), &device_time[0], &host_time[0]));
    EXPECT_CL("clGetHostTimer.unsupported", CL_INVALID_OPERATION,
              clGetHostTimer(device(), &host_time[0]));
    // Whatever else is wrong.
    EXPECT_CL("clGetDeviceAndHostTimer.unsupported_null", CL_INVALID_OPERATION,
              clGetDeviceAndHostTimer(device(), nullptr, nullptr));
    EXPECT_CL("clGetHostTimer.unsupported_null", CL_INVALID_OPERATION,
              clGetHostTimer(device(), nullptr));
    GTEST_SKIP() << "the platform has no host timer (CL_PLATFORM_HOST_TIMER_RESOLUTION is 0)";
  }
  EXPECT_CL("clGetDeviceAndHostTimer.first", CL_SUCCESS,
            clGetDeviceAndHostTimer(device(), &device_time[0], &host_time[0]));
  EXPECT_CL("clGetHostTimer.plain", CL_SUCCESS, clGetHostTimer(device(), &host_time[1]));
  EXPECT_CL("clGetDeviceAndHostTimer.second", CL_SUCCESS,
            clGetDeviceAndHostTimer(device(), &device_time[1], &host_time[2]));
  EXPECT_LE(device_time[0], device_time[1]);
  EXPECT_LE(host_time[0], host_time[1]);
  EXPECT_LE(host_time[1], host_time[2]);
  EXPECT_CL("clGetDeviceAndHostTimer.null_value", CL_INVALID_VALUE,
            clGetDeviceAndHostTimer(device(), nullptr, &host_time[0]));
  EXPECT_CL("clGetHostTimer.null_value", CL_INVALID_VALUE, clGetHostTimer(device(), nullptr));
}

// No device has no timer.
TEST_F(DeviceTest, TimersOfNoDevice) {
  cl_ulong time = 0;
  EXPECT_CL("clGetDeviceAndHostTimer.null_device", CL_INVALID_DEVICE,
            clGetDeviceAndHostTimer(nullptr, &time, &time));
  EXPECT_CL("clGetHostTimer.null_device", CL_INVALID_DEVICE, clGetHostTimer(nullptr, &time));
}

}  // namespace
}  // namespace sluice::conformance
