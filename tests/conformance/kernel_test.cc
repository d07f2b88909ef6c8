// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using KernelTest = WithProgram;

template <typename T>
T KernelInfo(cl_kernel kernel, cl_kernel_info param) {
  T value{};
  size_t bytes = 0;
  EXPECT_CL("clGetKernelInfo.plain", CL_SUCCESS,
            clGetKernelInfo(kernel, param, sizeof(value), &value, &bytes));
  EXPECT_EQ(bytes, sizeof(value));
  return value;
}

std::string KernelText(cl_kernel kernel, cl_kernel_info param) {
  char text[512] = "#";
  size_t bytes = 0;
  EXPECT_CL("clGetKernelInfo.text", CL_SUCCESS,
            clGetKernelInfo(kernel, param, sizeof(text), text, &bytes));
  EXPECT_EQ(bytes, std::strlen(text) + 1);
  return text;
}

// A kernel is found by its name.
TEST_F(KernelTest, IsCreatedByName) {
  const Own<cl_kernel> kernel =
      MAKE("clCreateKernel.plain", clCreateKernel(program(), "fill_int", error));
  EXPECT_EQ(KernelText(kernel, CL_KERNEL_FUNCTION_NAME), "fill_int");
  EXPECT_EQ(KernelInfo<cl_uint>(kernel, CL_KERNEL_NUM_ARGS), 2u);
  EXPECT_EQ(KernelInfo<cl_uint>(kernel, CL_KERNEL_REFERENCE_COUNT), 1u);
  EXPECT_EQ(KernelInfo<cl_context>(kernel, CL_KERNEL_CONTEXT), context());
  EXPECT_EQ(KernelInfo<cl_program>(kernel, CL_KERNEL_PROGRAM), program());
}

// The attributes of a kernel that has them are in its string.
TEST_F(KernelTest, AttributesAreTold) {
  const Own<cl_kernel> kernel = Kernel("group_of_8");
  const std::string text = KernelText(kernel, CL_KERNEL_ATTRIBUTES);
  EXPECT_NE(text.find("reqd_work_group_size"), std::string::npos) << text;
  if (!Differs("clGetKernelInfo.attributes")) {
    EXPECT_NE(text.find("reqd_work_group_size(8,1,1)"), std::string::npos) << text;
    EXPECT_EQ(text.find("__attribute__"), std::string::npos) << text;
  }
}

// Each wrong argument of clCreateKernel has its code.
TEST_F(KernelTest, CreateRefusals) {
  EXPECT_CREATE("clCreateKernel.null_program", CL_INVALID_PROGRAM,
                clCreateKernel(nullptr, "fill_int", error));
  EXPECT_CREATE("clCreateKernel.null_name", CL_INVALID_VALUE,
                clCreateKernel(program(), nullptr, error));
  EXPECT_CREATE("clCreateKernel.unknown_name", CL_INVALID_KERNEL_NAME,
                clCreateKernel(program(), "nothing", error));
  const char* text = "kernel void k(global int* p) { *p = 1; }";
  const Own<cl_program> unbuilt =
      MAKE("clCreateProgramWithSource.unbuilt",
           clCreateProgramWithSource(context(), 1, &text, nullptr, error));
  EXPECT_CREATE("clCreateKernel.unbuilt", CL_INVALID_PROGRAM_EXECUTABLE,
                clCreateKernel(unbuilt, "k", error));
}

// All kernels of a program can be made at once.
TEST_F(KernelTest, AllKernelsAtOnce) {
  cl_uint count = 0;
  ASSERT_CL("clCreateKernelsInProgram.count", CL_SUCCESS,
            clCreateKernelsInProgram(program(), 0, nullptr, &count));
  ASSERT_EQ(count, 8u);
  std::vector<cl_kernel> kernels(count, nullptr);
  ASSERT_CL("clCreateKernelsInProgram.all", CL_SUCCESS,
            clCreateKernelsInProgram(program(), count, kernels.data(), nullptr));
  std::set<std::string> names;
  for (cl_kernel kernel : kernels) {
    names.insert(KernelText(kernel, CL_KERNEL_FUNCTION_NAME));
    EXPECT_EQ(clReleaseKernel(kernel), CL_SUCCESS);
  }
  EXPECT_EQ(names.size(), count);
  EXPECT_CL("clCreateKernelsInProgram.no_room", CL_INVALID_VALUE,
            clCreateKernelsInProgram(program(), 1, kernels.data(), nullptr));
  EXPECT_CL("clCreateKernelsInProgram.null_program", CL_INVALID_PROGRAM,
            clCreateKernelsInProgram(nullptr, 0, nullptr, &count));
  const char* text = "kernel void k(global int* p) { *p = 1; }";
  const Own<cl_program> unbuilt =
      MAKE("clCreateProgramWithSource.unbuilt",
           clCreateProgramWithSource(context(), 1, &text, nullptr, error));
  EXPECT_CL("clCreateKernelsInProgram.unbuilt", CL_INVALID_PROGRAM_EXECUTABLE,
            clCreateKernelsInProgram(unbuilt, 0, nullptr, &count));
}

// Retain and release count.
TEST_F(KernelTest, IsCounted) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  EXPECT_CL("clRetainKernel.plain", CL_SUCCESS, clRetainKernel(kernel));
  EXPECT_EQ(KernelInfo<cl_uint>(kernel, CL_KERNEL_REFERENCE_COUNT), 2u);
  EXPECT_CL("clReleaseKernel.plain", CL_SUCCESS, clReleaseKernel(kernel));
  EXPECT_EQ(KernelInfo<cl_uint>(kernel, CL_KERNEL_REFERENCE_COUNT), 1u);
  EXPECT_CL("clRetainKernel.null", CL_INVALID_KERNEL, clRetainKernel(nullptr));
  EXPECT_CL("clReleaseKernel.null", CL_INVALID_KERNEL, clReleaseKernel(nullptr));
}

// Wrong queries of a kernel are refused.
TEST_F(KernelTest, InfoRefusals) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  char value[64];
  EXPECT_CL("clGetKernelInfo.unknown", CL_INVALID_VALUE,
            clGetKernelInfo(kernel, 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetKernelInfo.too_small", CL_INVALID_VALUE,
            clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 2, value, nullptr));
  EXPECT_CL("clGetKernelInfo.null", CL_INVALID_KERNEL,
            clGetKernelInfo(nullptr, CL_KERNEL_NUM_ARGS, sizeof(value), value, nullptr));
}

// The sizes that a kernel's work-groups may have can be asked, with and without naming the only
// device.
TEST_F(KernelTest, WorkGroupInfo) {
  const Own<cl_kernel> kernel = Kernel("group_of_8");
  for (cl_device_id which : {device(), static_cast<cl_device_id>(nullptr)}) {
    size_t size = 0, multiple = 0;
    size_t required[3] = {};
    cl_ulong local = 77, own = 77;
    EXPECT_CL("clGetKernelWorkGroupInfo.size", CL_SUCCESS,
              clGetKernelWorkGroupInfo(kernel, which, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size),
                                       &size, nullptr));
    EXPECT_GE(size, 8u);
    EXPECT_LE(size, DeviceValue<size_t>(device(), CL_DEVICE_MAX_WORK_GROUP_SIZE));
    EXPECT_CL("clGetKernelWorkGroupInfo.required", CL_SUCCESS,
              clGetKernelWorkGroupInfo(kernel, which, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                       sizeof(required), required, nullptr));
    EXPECT_EQ(required[0], 8u);
    EXPECT_EQ(required[1], 1u);
    EXPECT_EQ(required[2], 1u);
    EXPECT_CL("clGetKernelWorkGroupInfo.multiple", CL_SUCCESS,
              clGetKernelWorkGroupInfo(kernel, which, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                                       sizeof(multiple), &multiple, nullptr));
    EXPECT_GE(multiple, 1u);
    EXPECT_CL("clGetKernelWorkGroupInfo.local", CL_SUCCESS,
              clGetKernelWorkGroupInfo(kernel, which, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(local),
                                       &local, nullptr));
    EXPECT_LE(local, DeviceValue<cl_ulong>(device(), CL_DEVICE_LOCAL_MEM_SIZE));
    EXPECT_CL("clGetKernelWorkGroupInfo.private", CL_SUCCESS,
              clGetKernelWorkGroupInfo(kernel, which, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof(own), &own,
                                       nullptr));
  }
}

// Local memory that was given as an argument is in the kernel's local size.
TEST_F(KernelTest, LocalArgumentsCount) {
  const Own<cl_kernel> kernel = Kernel("reverse_groups");
  cl_ulong before = 0, after = 0;
  EXPECT_EQ(clSetKernelArg(kernel, 1, 16, nullptr), CL_SUCCESS);
  EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, device(), CL_KERNEL_LOCAL_MEM_SIZE, sizeof(before),
                                     &before, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(kernel, 1, 1024, nullptr), CL_SUCCESS);
  EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, device(), CL_KERNEL_LOCAL_MEM_SIZE, sizeof(after),
                                     &after, nullptr),
            CL_SUCCESS);
  if (!Differs("clGetKernelWorkGroupInfo.local_arguments")) {
    EXPECT_GE(after, before + 1008);
  }
}

// Wrong work-group queries are refused; the global size is for custom devices and built-in kernels.
TEST_F(KernelTest, WorkGroupInfoRefusals) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  size_t value[4] = {};
  EXPECT_CL("clGetKernelWorkGroupInfo.null", CL_INVALID_KERNEL,
            clGetKernelWorkGroupInfo(nullptr, device(), CL_KERNEL_WORK_GROUP_SIZE, sizeof(value),
                                     value, nullptr));
  EXPECT_CL("clGetKernelWorkGroupInfo.unknown", CL_INVALID_VALUE,
            clGetKernelWorkGroupInfo(kernel, device(), 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL(
      "clGetKernelWorkGroupInfo.too_small", CL_INVALID_VALUE,
      clGetKernelWorkGroupInfo(kernel, device(), CL_KERNEL_WORK_GROUP_SIZE, 1, value, nullptr));
  EXPECT_CL("clGetKernelWorkGroupInfo.global_size", CL_INVALID_VALUE,
            clGetKernelWorkGroupInfo(kernel, device(), CL_KERNEL_GLOBAL_WORK_SIZE, sizeof(value),
                                     value, nullptr));
}

// The arguments' names, types and qualifiers are told when the program was built to keep them.
TEST_F(KernelTest, ArgumentInfo) {
  const Own<cl_program> kept = Program(
      "kernel void k(global const int* restrict in, local float* scratch, constant uint* table, "
      "float4 value) { }",
      "-cl-kernel-arg-info");
  const Own<cl_kernel> kernel = Kernel(kept, "k");
  struct Argument {
    cl_kernel_arg_address_qualifier address;
    cl_kernel_arg_type_qualifier type;
    const char* type_name;
    const char* name;
  };
  const Argument expected[] = {
      {CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_TYPE_CONST | CL_KERNEL_ARG_TYPE_RESTRICT, "int*",
       "in"},
      {CL_KERNEL_ARG_ADDRESS_LOCAL, CL_KERNEL_ARG_TYPE_NONE, "float*", "scratch"},
      {CL_KERNEL_ARG_ADDRESS_CONSTANT, CL_KERNEL_ARG_TYPE_CONST, "uint*", "table"},
      {CL_KERNEL_ARG_ADDRESS_PRIVATE, CL_KERNEL_ARG_TYPE_NONE, "float4", "value"},
  };
  for (cl_uint i = 0; i < std::size(expected); ++i) {
    SCOPED_TRACE(i);
    cl_kernel_arg_address_qualifier address = 0;
    cl_kernel_arg_access_qualifier access = 0;
    cl_kernel_arg_type_qualifier type = 77;
    char type_name[64] = "", name[64] = "";
    EXPECT_CL("clGetKernelArgInfo.address", CL_SUCCESS,
              clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address),
                                 &address, nullptr));
    EXPECT_EQ(address, expected[i].address);
    EXPECT_CL("clGetKernelArgInfo.access", CL_SUCCESS,
              clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access), &access,
                                 nullptr));
    EXPECT_EQ(access, static_cast<cl_kernel_arg_access_qualifier>(CL_KERNEL_ARG_ACCESS_NONE));
    EXPECT_CL(
        "clGetKernelArgInfo.type", CL_SUCCESS,
        clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(type), &type, nullptr));
    EXPECT_EQ(type, expected[i].type);
    EXPECT_CL("clGetKernelArgInfo.type_name", CL_SUCCESS,
              clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof(type_name), type_name,
                                 nullptr));
    EXPECT_STREQ(type_name, expected[i].type_name);
    EXPECT_CL("clGetKernelArgInfo.name", CL_SUCCESS,
              clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_NAME, sizeof(name), name, nullptr));
    EXPECT_STREQ(name, expected[i].name);
  }
}

// And not told otherwise, but to who gave no options at all: PoCL tells those.
TEST_F(KernelTest, ArgumentInfoUnasked) {
  const char* const source = "kernel void k(global int* out) { out[0] = 1; }";
  const Own<cl_program> unasked = Program(source, "-w");
  const Own<cl_kernel> kernel = Kernel(unasked, "k");
  EXPECT_CL("clGetKernelArgInfo.unasked", CL_KERNEL_ARG_INFO_NOT_AVAILABLE,
            clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr));
  for (const cl_kernel_arg_info param :
       {CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_TYPE_NAME,
        CL_KERNEL_ARG_TYPE_QUALIFIER}) {
    EXPECT_CL(("clGetKernelArgInfo.unasked_" + std::to_string(param)).c_str(),
              (AnyOf{CL_SUCCESS, CL_KERNEL_ARG_INFO_NOT_AVAILABLE}),
              clGetKernelArgInfo(kernel, 0, param, 0, nullptr, nullptr));
  }
  // A kernel whose information is hidden is judged as any other.
  EXPECT_CL("clSetKernelArg.unasked", CL_INVALID_ARG_SIZE, clSetKernelArg(kernel, 0, 3, source));
  EXPECT_CL("clGetKernelArgInfo.unasked_index", CL_INVALID_ARG_INDEX,
            clGetKernelArgInfo(kernel, 1, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr));
  const Own<cl_kernel> empty = Kernel(Program(source, ""), "k");
  EXPECT_CL("clGetKernelArgInfo.empty_options", CL_KERNEL_ARG_INFO_NOT_AVAILABLE,
            clGetKernelArgInfo(empty, 0, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr));
  const Own<cl_kernel> none = Kernel(Program(source, nullptr), "k");
  EXPECT_CL("clGetKernelArgInfo.no_options", (AnyOf{CL_SUCCESS, CL_KERNEL_ARG_INFO_NOT_AVAILABLE}),
            clGetKernelArgInfo(none, 0, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr));
}

// Images in a kernel's arguments tell how they are accessed.
TEST_F(KernelTest, ImageArgumentInfo) {
  if (!HasImages()) GTEST_SKIP() << "the device has no images";
  const Own<cl_program> kept = Program(
      "kernel void k(read_only image2d_t in, write_only image2d_t out) { }", "-cl-kernel-arg-info");
  const Own<cl_kernel> kernel = Kernel(kept, "k");
  const cl_kernel_arg_access_qualifier expected[] = {CL_KERNEL_ARG_ACCESS_READ_ONLY,
                                                     CL_KERNEL_ARG_ACCESS_WRITE_ONLY};
  for (cl_uint i = 0; i < 2; ++i) {
    cl_kernel_arg_access_qualifier access = 0;
    char type_name[64] = "";
    EXPECT_CL("clGetKernelArgInfo.image_access", CL_SUCCESS,
              clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access), &access,
                                 nullptr));
    EXPECT_EQ(access, expected[i]);
    EXPECT_CL("clGetKernelArgInfo.image_type", CL_SUCCESS,
              clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof(type_name), type_name,
                                 nullptr));
    EXPECT_STREQ(type_name, "image2d_t");
  }
}

// Wrong argument queries are refused.
TEST_F(KernelTest, ArgumentInfoRefusals) {
  const Own<cl_program> kept = Program("kernel void k(global int* p) { }", "-cl-kernel-arg-info");
  const Own<cl_kernel> kernel = Kernel(kept, "k");
  char value[64];
  EXPECT_CL("clGetKernelArgInfo.null", CL_INVALID_KERNEL,
            clGetKernelArgInfo(nullptr, 0, CL_KERNEL_ARG_NAME, sizeof(value), value, nullptr));
  EXPECT_CL("clGetKernelArgInfo.index", CL_INVALID_ARG_INDEX,
            clGetKernelArgInfo(kernel, 1, CL_KERNEL_ARG_NAME, sizeof(value), value, nullptr));
  EXPECT_CL("clGetKernelArgInfo.unknown", CL_INVALID_VALUE,
            clGetKernelArgInfo(kernel, 0, 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetKernelArgInfo.too_small", CL_INVALID_VALUE,
            clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, 1, value, nullptr));
}

// A clone has its source's arguments, and from then on its own.
TEST_F(KernelTest, CloneKeepsArguments) {
  const Own<cl_mem> first = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_mem> second = BufferOf(std::vector<cl_int>(16, 0));
  const Own<cl_kernel> kernel = Kernel("fill_int");
  SetArg(kernel, 0, first);
  SetArg(kernel, 1, cl_int{1});
  const Own<cl_kernel> clone = MAKE("clCloneKernel.plain", clCloneKernel(kernel, error));
  SetArg(kernel, 0, second);
  SetArg(kernel, 1, cl_int{2});
  ASSERT_EQ(Launch(queue(), clone, 16), CL_SUCCESS);
  ASSERT_EQ(Launch(queue(), kernel, 16), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(first, 16), std::vector<cl_int>(16, 1));
  EXPECT_EQ(Read<cl_int>(second, 16), std::vector<cl_int>(16, 2));
  EXPECT_EQ(KernelText(clone, CL_KERNEL_FUNCTION_NAME), "fill_int");
  EXPECT_EQ(KernelInfo<cl_program>(clone, CL_KERNEL_PROGRAM), program());
  EXPECT_CREATE("clCloneKernel.null", CL_INVALID_KERNEL, clCloneKernel(nullptr, error));
}

// A clone of a kernel whose arguments are not set can be set and used.
TEST_F(KernelTest, CloneWithoutArguments) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const Own<cl_kernel> clone = MAKE("clCloneKernel.no_args", clCloneKernel(kernel, error));
  EXPECT_CL("clEnqueueNDRangeKernel.clone_unset", CL_INVALID_KERNEL_ARGS,
            Launch(queue(), clone, 16));
  const Own<cl_mem> out = BufferOf(std::vector<cl_int>(16, 0));
  SetArg(clone, 0, out);
  SetArg(clone, 1, cl_int{5});
  ASSERT_EQ(Launch(queue(), clone, 16), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(out, 16), std::vector<cl_int>(16, 5));
}

// Sub-group queries answer where there are sub-groups, and are refused where there are none.
TEST_F(KernelTest, SubGroupInfo) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const size_t local[1] = {8};
  size_t value = 0;
  const auto ask = [&](cl_kernel which, cl_kernel_sub_group_info param) {
    return clGetKernelSubGroupInfo(which, device(), param, sizeof(local), local, sizeof(value),
                                   &value, nullptr);
  };
  EXPECT_CL("clGetKernelSubGroupInfo.null", CL_INVALID_KERNEL,
            ask(nullptr, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE));
  if (DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_NUM_SUB_GROUPS) == 0) {
    // "CL_INVALID_OPERATION if device does not support subgroups".
    EXPECT_CL("clGetKernelSubGroupInfo.unsupported", CL_INVALID_OPERATION,
              ask(kernel, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE));
    GTEST_SKIP() << "the device has no sub-groups (CL_DEVICE_MAX_NUM_SUB_GROUPS is 0)";
  }
  EXPECT_CL("clGetKernelSubGroupInfo.size", CL_SUCCESS,
            ask(kernel, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE));
  EXPECT_GE(value, 1u);
  EXPECT_CL("clGetKernelSubGroupInfo.count", CL_SUCCESS,
            ask(kernel, CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE));
  EXPECT_GE(value, 1u);
  EXPECT_CL("clGetKernelSubGroupInfo.unknown", CL_INVALID_VALUE, ask(kernel, 0x7ffe));
  size_t maximum = 0;
  EXPECT_CL("clGetKernelSubGroupInfo.max_num", CL_SUCCESS,
            clGetKernelSubGroupInfo(kernel, device(), CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, nullptr,
                                    sizeof(maximum), &maximum, nullptr));
  if (!Differs("clGetKernelSubGroupInfo.max_num_value")) {
    EXPECT_GE(maximum, 1u);
  }
}

// The query is answered for the range that was given: its dimensions and sizes reach the driver,
// and so does the room for the answer.
TEST_F(KernelTest, SubGroupsOfARange) {
  if (DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_NUM_SUB_GROUPS) == 0)
    GTEST_SKIP() << "the device has no sub-groups (CL_DEVICE_MAX_NUM_SUB_GROUPS is 0)";
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const auto ask = [&](cl_kernel_sub_group_info param, std::vector<size_t> input, size_t room,
                       void* out, size_t* bytes) {
    return clGetKernelSubGroupInfo(kernel, device(), param, input.size() * sizeof(size_t),
                                   input.empty() ? nullptr : input.data(), room, out, bytes);
  };
  size_t size = 0, count = 0, bytes = 0;
  for (const std::vector<size_t>& range :
       {std::vector<size_t>{24}, std::vector<size_t>{8, 3}, std::vector<size_t>{2, 3, 4}}) {
    EXPECT_CL("clGetKernelSubGroupInfo.size_of_range", CL_SUCCESS,
              ask(CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, range, sizeof(size), &size, &bytes));
    EXPECT_CL("clGetKernelSubGroupInfo.count_of_range", CL_SUCCESS,
              ask(CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, range, sizeof(count), &count, nullptr));
    EXPECT_EQ(bytes, sizeof(size_t));
    ASSERT_GE(size, 1u);
    EXPECT_EQ(count, (24 + size - 1) / size) << range.size() << " dimensions";
  }
  // The other way round: local sizes of one to three dimensions that make so many sub-groups.
  for (size_t dimensions = 1; dimensions <= 3; ++dimensions) {
    size_t local[3] = {7, 7, 7};
    EXPECT_CL("clGetKernelSubGroupInfo.local_size", CL_SUCCESS,
              ask(CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, {2}, dimensions * sizeof(size_t), local,
                  &bytes));
    EXPECT_EQ(bytes, dimensions * sizeof(size_t));
    const std::vector<size_t> range(local, local + dimensions);
    for (size_t i = dimensions; i < 3; ++i) EXPECT_EQ(local[i], 7u) << "beyond the room";
    // Zeros, as specified where no size makes so many.
    if (local[0] == 0 && Differs("clGetKernelSubGroupInfo.local_size_value")) continue;
    EXPECT_EQ(ask(CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, range, sizeof(count), &count, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(count, 2u);
  }
  EXPECT_CL("clGetKernelSubGroupInfo.compile_num", CL_SUCCESS,
            ask(CL_KERNEL_COMPILE_NUM_SUB_GROUPS, {}, sizeof(count), &count, nullptr));
  EXPECT_EQ(count, 0u) << "the kernel asks for no number";
}

// Section 5.9.4: "CL_INVALID_VALUE ... if input_value_size is not one of the values", and where
// there is an input, it must be given.
TEST_F(KernelTest, SubGroupInfoRefusals) {
  if (DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_NUM_SUB_GROUPS) == 0)
    GTEST_SKIP() << "the device has no sub-groups (CL_DEVICE_MAX_NUM_SUB_GROUPS is 0)";
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const size_t input[4] = {8, 1, 1, 1};
  size_t value[4] = {};
  const auto ask = [&](cl_kernel_sub_group_info param, size_t bytes, const void* in, size_t room) {
    return clGetKernelSubGroupInfo(kernel, device(), param, bytes, in, room, value, nullptr);
  };
  EXPECT_CL("clGetKernelSubGroupInfo.null_input", CL_INVALID_VALUE,
            ask(CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 8, nullptr, 8));
  EXPECT_CL("clGetKernelSubGroupInfo.no_input", CL_INVALID_VALUE,
            ask(CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, 0, input, 8));
  EXPECT_CL("clGetKernelSubGroupInfo.odd_input", CL_INVALID_VALUE,
            ask(CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, 4, input, 8));
  EXPECT_CL("clGetKernelSubGroupInfo.four_dimensions", CL_INVALID_VALUE,
            ask(CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, 32, input, 8));
  EXPECT_CL("clGetKernelSubGroupInfo.counts", CL_INVALID_VALUE,
            ask(CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, 16, input, 24));
  EXPECT_CL("clGetKernelSubGroupInfo.odd_room", CL_INVALID_VALUE,
            ask(CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, 8, input, 12));
  EXPECT_CL("clGetKernelSubGroupInfo.too_small", CL_INVALID_VALUE,
            ask(CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 8, input, 4));
}

}  // namespace
}  // namespace sluice::conformance
