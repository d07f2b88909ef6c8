// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <sstream>

#include "tests/conformance/fixtures.h"

namespace sluice::conformance {
namespace {

// Binaries, intermediate language, specialisation constants and built-in kernels.
class ProgramBinaryTest : public WithProgram {
 protected:
  std::vector<unsigned char> BinaryOf(cl_program built) const {
    size_t bytes = 0;
    EXPECT_CL("clGetProgramInfo.binary_sizes", CL_SUCCESS,
              clGetProgramInfo(built, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, nullptr));
    std::vector<unsigned char> binary(bytes);
    unsigned char* pointer = binary.data();
    EXPECT_CL("clGetProgramInfo.binaries", CL_SUCCESS,
              clGetProgramInfo(built, CL_PROGRAM_BINARIES, sizeof(pointer), &pointer, nullptr));
    return binary;
  }
  Own<cl_program> FromBinary(const std::vector<unsigned char>& binary, cl_int* status) const {
    const cl_device_id one = device();
    const size_t bytes = binary.size();
    const unsigned char* pointer = binary.data();
    return MAKE("clCreateProgramWithBinary.plain",
                clCreateProgramWithBinary(context(), 1, &one, &bytes, &pointer, status, error));
  }
};

// A built program's binary makes a program that computes the same, with buffers and with values as
// arguments.
TEST_F(ProgramBinaryTest, BinaryComputesTheSame) {
  const std::vector<unsigned char> binary = BinaryOf(program());
  ASSERT_FALSE(binary.empty());
  cl_int status = -77;
  const Own<cl_program> loaded = FromBinary(binary, &status);
  EXPECT_EQ(status, CL_SUCCESS);
  const cl_device_id one = device();
  ASSERT_CL("clBuildProgram.binary", CL_SUCCESS,
            clBuildProgram(loaded, 1, &one, "", nullptr, nullptr));
  const Own<cl_kernel> fill = Kernel(loaded, "fill_int");
  const Own<cl_mem> buffer = Buffer(64 * sizeof(cl_int));
  SetArg(fill, 0, buffer);
  SetArg(fill, 1, cl_int{77});
  ASSERT_EQ(Launch(queue(), fill, 64), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(buffer, 64), std::vector<cl_int>(64, 77));
  const Own<cl_kernel> reverse = Kernel(loaded, "reverse_groups");
  Write(buffer, Counting(64));
  SetArg(reverse, 0, buffer);
  EXPECT_EQ(clSetKernelArg(reverse, 1, 8 * sizeof(cl_int), nullptr), CL_SUCCESS);
  const size_t global = 64, local = 8;
  ASSERT_EQ(
      clEnqueueNDRangeKernel(queue(), reverse, 1, nullptr, &global, &local, 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(buffer, 9), (std::vector<cl_int>{7, 6, 5, 4, 3, 2, 1, 0, 15}));
}

// A pointer-sized value that looks like nothing special stays a value in a program from a binary.
TEST_F(ProgramBinaryTest, PointerSizedValuesStayValues) {
  const Own<cl_program> source =
      Program("kernel void k(global ulong* out, ulong value) { *out = value; }");
  cl_int status = -77;
  const Own<cl_program> loaded = FromBinary(BinaryOf(source), &status);
  const cl_device_id one = device();
  ASSERT_EQ(clBuildProgram(loaded, 1, &one, "", nullptr, nullptr), CL_SUCCESS);
  const Own<cl_kernel> kernel = Kernel(loaded, "k");
  const Own<cl_mem> out = Buffer(sizeof(cl_ulong));
  SetArg(kernel, 0, out);
  // As a value, the bits of a live handle are just bits.
  const cl_ulong values[] = {1, 0x123456789abcdef0, reinterpret_cast<cl_ulong>(out.get())};
  for (cl_ulong value : values) {
    SetArg(kernel, 1, value);
    ASSERT_EQ(Launch(queue(), kernel, 1), CL_SUCCESS);
    EXPECT_EQ(Read<cl_ulong>(out, 1)[0], value);
  }
}

// A program that was not built has no binary.
TEST_F(ProgramBinaryTest, UnbuiltProgramHasNoBinary) {
  const char* text = "kernel void k(global int* p) { *p = 1; }";
  const Own<cl_program> unbuilt =
      MAKE("clCreateProgramWithSource.unbuilt",
           clCreateProgramWithSource(context(), 1, &text, nullptr, error));
  size_t bytes = 77;
  EXPECT_CL("clGetProgramInfo.unbuilt_binary_sizes", CL_SUCCESS,
            clGetProgramInfo(unbuilt, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, nullptr));
  if (!Differs("clGetProgramInfo.unbuilt_binary_sizes")) {
    EXPECT_EQ(bytes, 0u);
  }
}

// Each wrong argument of clCreateProgramWithBinary has its code; a damaged binary is told per
// device.
TEST_F(ProgramBinaryTest, BinaryRefusals) {
  const cl_device_id one = device();
  const cl_device_id no_device = nullptr;
  const std::vector<unsigned char> binary = BinaryOf(program());
  const size_t bytes = binary.size(), zero = 0;
  const unsigned char* pointer = binary.data();
  const unsigned char* null = nullptr;
  cl_int status = 0;
  EXPECT_CREATE("clCreateProgramWithBinary.null_context", CL_INVALID_CONTEXT,
                clCreateProgramWithBinary(nullptr, 1, &one, &bytes, &pointer, &status, error));
  EXPECT_CREATE("clCreateProgramWithBinary.no_devices", CL_INVALID_VALUE,
                clCreateProgramWithBinary(context(), 0, &one, &bytes, &pointer, &status, error));
  EXPECT_CREATE("clCreateProgramWithBinary.null_devices", CL_INVALID_VALUE,
                clCreateProgramWithBinary(context(), 1, nullptr, &bytes, &pointer, &status, error));
  EXPECT_CREATE(
      "clCreateProgramWithBinary.null_device", CL_INVALID_DEVICE,
      clCreateProgramWithBinary(context(), 1, &no_device, &bytes, &pointer, &status, error));
  EXPECT_CREATE("clCreateProgramWithBinary.null_lengths", CL_INVALID_VALUE,
                clCreateProgramWithBinary(context(), 1, &one, nullptr, &pointer, &status, error));
  EXPECT_CREATE("clCreateProgramWithBinary.null_binaries", CL_INVALID_VALUE,
                clCreateProgramWithBinary(context(), 1, &one, &bytes, nullptr, &status, error));
  EXPECT_CREATE("clCreateProgramWithBinary.zero_length", CL_INVALID_VALUE,
                clCreateProgramWithBinary(context(), 1, &one, &zero, &pointer, &status, error));
  EXPECT_CREATE("clCreateProgramWithBinary.null_binary", CL_INVALID_VALUE,
                clCreateProgramWithBinary(context(), 1, &one, &bytes, &null, &status, error));
  const unsigned char junk[64] = {'n', 'o', ' ', 'b', 'i', 'n', 'a', 'r', 'y'};
  const unsigned char* junk_pointer = junk;
  const size_t junk_bytes = sizeof(junk);
  EXPECT_CREATE(
      "clCreateProgramWithBinary.junk", CL_INVALID_BINARY,
      clCreateProgramWithBinary(context(), 1, &one, &junk_bytes, &junk_pointer, &status, error));
  if (!Differs("clCreateProgramWithBinary.junk")) {
    EXPECT_EQ(status, CL_INVALID_BINARY);
  }
}

// A kernel that adds specialisation constant 7 (default 5): SPIR-V 1.0 by hand, with "k" writing
// the constant. Only devices that take SPIR-V see it.
const std::array<cl_uint, 59> kSpirv = {
    0x07230203, 0x00010000, 0,          12,         0,  0x00020011,
    4,          0x00020011, 6,                              // OpCapability Addresses, Kernel
    0x0003000e, 2,          2,                              // OpMemoryModel Physical64 OpenCL
    0x0004000f, 6,          1,          0x0000006b,         // OpEntryPoint Kernel %1 "k"
    0x00040047, 2,          1,          7,                  // OpDecorate %2 SpecId 7
    0x00020013, 3,          0x00040015, 4,          32, 0,  // void, uint
    0x00040020, 5,          5,          4,                  // pointer CrossWorkgroup uint
    0x00040021, 6,          3,          5,                  // function type void(uint*)
    0x00040032, 4,          2,          5,                  // OpSpecConstant uint %2 = 5
    0x00050036, 3,          1,          0,          6,  0x00030037,
    5,          7,  // OpFunction, OpFunctionParameter
    0x000200f8, 8,          0x0005003e, 7,          2,  2,
    4,                        // OpLabel, OpStore aligned 4
    0x000100fd, 0x00010038};  // OpReturn, OpFunctionEnd

// A program from intermediate language computes, with the constant's default and with a set value.
// A device without intermediate languages refuses.
TEST_F(ProgramBinaryTest, IntermediateLanguage) {
  const void* code = kSpirv.data();
  const size_t bytes = sizeof(kSpirv);
  const cl_uint value = 99;
  EXPECT_CL("clSetProgramSpecializationConstant.of_source", CL_INVALID_PROGRAM,
            clSetProgramSpecializationConstant(program(), 7, sizeof(value), &value));
  EXPECT_CL("clSetProgramSpecializationConstant.null_program", CL_INVALID_PROGRAM,
            clSetProgramSpecializationConstant(nullptr, 7, sizeof(value), &value));
  EXPECT_CREATE("clCreateProgramWithIL.null_context", CL_INVALID_CONTEXT,
                clCreateProgramWithIL(nullptr, code, bytes, error));
  if (DeviceString(device(), CL_DEVICE_IL_VERSION).find("SPIR-V") == std::string::npos) {
    EXPECT_CREATE("clCreateProgramWithIL.unsupported", CL_INVALID_OPERATION,
                  clCreateProgramWithIL(context(), code, bytes, error));
    GTEST_SKIP() << "the device takes no SPIR-V (CL_DEVICE_IL_VERSION)";
  }
  EXPECT_CREATE("clCreateProgramWithIL.null_code", CL_INVALID_VALUE,
                clCreateProgramWithIL(context(), nullptr, bytes, error));
  EXPECT_CREATE("clCreateProgramWithIL.zero_size", CL_INVALID_VALUE,
                clCreateProgramWithIL(context(), code, 0, error));
  EXPECT_CREATE("clCreateProgramWithIL.junk", CL_INVALID_VALUE,
                clCreateProgramWithIL(context(), "not intermediate language", 24, error));
  const Own<cl_program> from_il =
      MAKE("clCreateProgramWithIL.plain", clCreateProgramWithIL(context(), code, bytes, error));
  EXPECT_CL("clSetProgramSpecializationConstant.unknown_id", CL_INVALID_SPEC_ID,
            clSetProgramSpecializationConstant(from_il, 8, sizeof(value), &value));
  EXPECT_CL("clSetProgramSpecializationConstant.wrong_size", CL_INVALID_VALUE,
            clSetProgramSpecializationConstant(from_il, 7, 1, &value));
  EXPECT_CL("clSetProgramSpecializationConstant.plain", CL_SUCCESS,
            clSetProgramSpecializationConstant(from_il, 7, sizeof(value), &value));
  const cl_device_id one = device();
  ASSERT_CL("clBuildProgram.il", CL_SUCCESS,
            clBuildProgram(from_il, 1, &one, "", nullptr, nullptr));
  if (Differs("clBuildProgram.il")) GTEST_SKIP() << "the driver does not build this SPIR-V";
  const Own<cl_kernel> kernel = Kernel(from_il, "k");
  const Own<cl_mem> out = Buffer(sizeof(cl_uint));
  SetArg(kernel, 0, out);
  ASSERT_EQ(Launch(queue(), kernel, 1), CL_SUCCESS);
  EXPECT_EQ(Read<cl_uint>(out, 1)[0], value);
  size_t il_bytes = 0;
  EXPECT_CL("clGetProgramInfo.il", CL_SUCCESS,
            clGetProgramInfo(from_il, CL_PROGRAM_IL, 0, nullptr, &il_bytes));
  EXPECT_EQ(il_bytes, bytes);
}

// Built-in kernels that the device names make a program that has them.
TEST_F(ProgramBinaryTest, BuiltInKernels) {
  const cl_device_id one = device();
  EXPECT_CREATE("clCreateProgramWithBuiltInKernels.null_context", CL_INVALID_CONTEXT,
                clCreateProgramWithBuiltInKernels(nullptr, 1, &one, "x", error));
  EXPECT_CREATE("clCreateProgramWithBuiltInKernels.no_devices", CL_INVALID_VALUE,
                clCreateProgramWithBuiltInKernels(context(), 0, &one, "x", error));
  EXPECT_CREATE("clCreateProgramWithBuiltInKernels.null_devices", CL_INVALID_VALUE,
                clCreateProgramWithBuiltInKernels(context(), 1, nullptr, "x", error));
  EXPECT_CREATE("clCreateProgramWithBuiltInKernels.null_names", CL_INVALID_VALUE,
                clCreateProgramWithBuiltInKernels(context(), 1, &one, nullptr, error));
  EXPECT_CREATE("clCreateProgramWithBuiltInKernels.unknown_name", CL_INVALID_VALUE,
                clCreateProgramWithBuiltInKernels(context(), 1, &one, "no.such.kernel", error));
  const std::string names = DeviceString(device(), CL_DEVICE_BUILT_IN_KERNELS);
  if (names.empty()) GTEST_SKIP() << "the device has no built-in kernels";
  const std::string first = names.substr(0, names.find(';'));
  const Own<cl_program> built_in =
      MAKE("clCreateProgramWithBuiltInKernels.plain",
           clCreateProgramWithBuiltInKernels(context(), 1, &one, first.c_str(), error));
  if (Differs("clCreateProgramWithBuiltInKernels.needs_build")) {
    // "CL_INVALID_OPERATION if program was not created with clCreateProgramWithSource,
    // clCreateProgramWithIL or clCreateProgramWithBinary".
    EXPECT_CL("clBuildProgram.built_in", CL_INVALID_OPERATION,
              clBuildProgram(built_in, 1, &one, "", nullptr, nullptr));
    if (Differs("clBuildProgram.built_in")) return;
  }
  char seen[256] = "";
  EXPECT_CL("clGetProgramInfo.built_in_names", CL_SUCCESS,
            clGetProgramInfo(built_in, CL_PROGRAM_KERNEL_NAMES, sizeof(seen), seen, nullptr));
  EXPECT_EQ(first, seen);
  MAKE("clCreateKernel.built_in", clCreateKernel(built_in, first.c_str(), error));
}

}  // namespace
}  // namespace sluice::conformance
