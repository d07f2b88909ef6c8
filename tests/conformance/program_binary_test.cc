// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <sstream>

#include "tests/conformance/harness/fixtures.h"

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
const std::array<cl_uint, 55> kSpirv = {
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

// As OpenCL C, with the constants from 1 to 5 of types bool, uchar, ushort, uint, ulong:
// kernel void values(global ulong* out) { out[0] = c1; ... out[4] = c5; }
const std::array<cl_uint, 191> kSpirvOfEveryWidth = {
    0x07230203, 0x00010000, 0x00070000, 30,         0,          0x00020011, 4,          0x00020011,
    6,          0x00020011, 39,         0x00020011, 22,         0x00020011, 11,         0x0003000e,
    2,          2,          0x0005000f, 6,          1,          0x756c6176, 29541,      0x00040047,
    2,          1,          1,          0x00040047, 3,          1,          2,          0x00040047,
    4,          1,          3,          0x00040047, 5,          1,          4,          0x00040047,
    6,          1,          5,          0x00020013, 7,          0x00020014, 8,          0x00040015,
    9,          8,          0,          0x00040015, 10,         16,         0,          0x00040015,
    11,         32,         0,          0x00040015, 12,         64,         0,          0x00040020,
    13,         5,          12,         0x00040021, 14,         7,          13,         0x00030030,
    8,          2,          0x00040032, 9,          3,          2,          0x00040032, 10,
    4,          3,          0x00040032, 11,         5,          4,          0x00050032, 12,
    6,          5,          0,          0x0005002b, 12,         15,         0,          0,
    0x0005002b, 12,         16,         1,          0,          0x0005002b, 12,         17,
    2,          0,          0x0005002b, 12,         18,         3,          0,          0x0005002b,
    12,         19,         4,          0,          0x00050036, 7,          1,          0,
    14,         0x00030037, 13,         20,         0x000200f8, 21,         0x000600a9, 12,
    22,         2,          16,         15,         0x00040071, 12,         23,         3,
    0x00040071, 12,         24,         4,          0x00040071, 12,         25,         5,
    0x00050046, 13,         26,         20,         16,         0x00050046, 13,         27,
    20,         17,         0x00050046, 13,         28,         20,         18,         0x00050046,
    13,         29,         20,         19,         0x0005003e, 20,         22,         2,
    8,          0x0005003e, 26,         23,         2,          8,          0x0005003e, 27,
    24,         2,          8,          0x0005003e, 28,         25,         2,          8,
    0x0005003e, 29,         6,          2,          8,          0x000100fd, 0x00010038};

template <typename T>
cl_int SetConstant(cl_program program, cl_uint id, T value) {
  return clSetProgramSpecializationConstant(program, id, sizeof(value), &value);
}

class SpecialisationTest : public ProgramBinaryTest {
 protected:
  void SetUp() override {
    ProgramBinaryTest::SetUp();
    if (DeviceString(device(), CL_DEVICE_IL_VERSION).find("SPIR-V") == std::string::npos)
      GTEST_SKIP() << "the device takes no SPIR-V (CL_DEVICE_IL_VERSION)";
    if (Differs("clBuildProgram.il")) GTEST_SKIP() << "the driver does not build such SPIR-V";
    code_ = Own<cl_program>(clCreateProgramWithIL(context(), kSpirvOfEveryWidth.data(),
                                                  sizeof(kSpirvOfEveryWidth), nullptr));
    ASSERT_NE(code_.get(), nullptr);
  }
  cl_program code() const { return code_; }
  std::vector<cl_ulong> ValuesOf(cl_program built) const {
    const Own<cl_kernel> kernel = Kernel(built, "values");
    const Own<cl_mem> out = Buffer(5 * sizeof(cl_ulong));
    SetArg(kernel, 0, out);
    EXPECT_EQ(Launch(queue(), kernel, 1), CL_SUCCESS);
    return Read<cl_ulong>(out, 5);
  }

 private:
  Own<cl_program> code_;
};

// Constants of each size arrive as they were set, for the builds that follow; before, each is the
// module's own.
TEST_F(SpecialisationTest, ValuesOfEverySizeArrive) {
  ASSERT_EQ(clBuildProgram(code(), 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(ValuesOf(code()), (std::vector<cl_ulong>{1, 2, 3, 4, 5}));
  EXPECT_CL("clSetProgramSpecializationConstant.bool", CL_SUCCESS,
            SetConstant(code(), 1, cl_uchar{0}));
  EXPECT_CL("clSetProgramSpecializationConstant.uchar", CL_SUCCESS,
            SetConstant(code(), 2, cl_uchar{0xab}));
  EXPECT_CL("clSetProgramSpecializationConstant.ushort", CL_SUCCESS,
            SetConstant(code(), 3, cl_ushort{0xabcd}));
  EXPECT_CL("clSetProgramSpecializationConstant.uint", CL_SUCCESS,
            SetConstant(code(), 4, cl_uint{0xdeadbeef}));
  EXPECT_CL("clSetProgramSpecializationConstant.ulong", CL_SUCCESS,
            SetConstant(code(), 5, cl_ulong{0x0123456789abcdef}));
  EXPECT_EQ(ValuesOf(code()), (std::vector<cl_ulong>{1, 2, 3, 4, 5})) << "built before";
  ASSERT_EQ(clBuildProgram(code(), 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(ValuesOf(code()),
            (std::vector<cl_ulong>{0, 0xab, 0xabcd, 0xdeadbeef, 0x0123456789abcdef}));
}

// A size that is not the constant's, an id that is none, no value: refused, and nothing is set.
TEST_F(SpecialisationTest, Refusals) {
  EXPECT_CL("clSetProgramSpecializationConstant.bool_as_uint", CL_INVALID_VALUE,
            SetConstant(code(), 1, cl_uint{0}));
  EXPECT_CL("clSetProgramSpecializationConstant.ushort_as_uchar", CL_INVALID_VALUE,
            SetConstant(code(), 3, cl_uchar{0}));
  EXPECT_CL("clSetProgramSpecializationConstant.ulong_as_uint", CL_INVALID_VALUE,
            SetConstant(code(), 5, cl_uint{0}));
  EXPECT_CL("clSetProgramSpecializationConstant.null_value", CL_INVALID_VALUE,
            clSetProgramSpecializationConstant(code(), 5, sizeof(cl_ulong), nullptr));
  EXPECT_CL("clSetProgramSpecializationConstant.zero_size", CL_INVALID_VALUE,
            clSetProgramSpecializationConstant(code(), 5, 0, &kSpirvOfEveryWidth));
  EXPECT_CL("clSetProgramSpecializationConstant.largest_id", CL_INVALID_SPEC_ID,
            SetConstant(code(), ~cl_uint{0}, cl_uint{0}));
  ASSERT_EQ(clBuildProgram(code(), 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(ValuesOf(code()), (std::vector<cl_ulong>{1, 2, 3, 4, 5}));
}

// Compiled and linked, a module has the constants that it had when it was compiled.
TEST_F(SpecialisationTest, CompiledAndLinked) {
  ASSERT_EQ(SetConstant(code(), 4, cl_uint{44}), CL_SUCCESS);
  EXPECT_CL("clCompileProgram.il", CL_SUCCESS,
            clCompileProgram(code(), 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr));
  ASSERT_EQ(SetConstant(code(), 4, cl_uint{45}), CL_SUCCESS);
  const cl_program input = code();
  const Own<cl_program> linked =
      MAKE("clLinkProgram.il",
           clLinkProgram(context(), 0, nullptr, "", 1, &input, nullptr, nullptr, error));
  const cl_ulong kept = Differs("clLinkProgram.il_constants") ? 4 : 44;
  EXPECT_EQ(ValuesOf(linked), (std::vector<cl_ulong>{1, 2, 3, kept, 5}));
}

// The module can be asked back, byte by byte; a program of source has none.
TEST_F(SpecialisationTest, TheModuleIsToldAsItWasGiven) {
  std::vector<cl_uint> seen(kSpirvOfEveryWidth.size());
  const size_t bytes = sizeof(kSpirvOfEveryWidth);
  EXPECT_CL("clGetProgramInfo.il_bytes", CL_SUCCESS,
            clGetProgramInfo(code(), CL_PROGRAM_IL, bytes, seen.data(), nullptr));
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), kSpirvOfEveryWidth.begin()));
  EXPECT_CL("clGetProgramInfo.il_too_small", CL_INVALID_VALUE,
            clGetProgramInfo(code(), CL_PROGRAM_IL, bytes - 1, seen.data(), nullptr));
  size_t none = 1;
  EXPECT_CL("clGetProgramInfo.il_of_source", CL_SUCCESS,
            clGetProgramInfo(program(), CL_PROGRAM_IL, 0, nullptr, &none));
  EXPECT_EQ(none, 0u);
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
