// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/conformance/harness/source_fixture.h"

namespace sluice::conformance {
namespace {

class ProgramTest : public WithSource {
 protected:
  cl_int Build(cl_program program, const char* options = "") const {
    const cl_device_id one = device();
    return clBuildProgram(program, 1, &one, options, nullptr, nullptr);
  }
  std::string Log(cl_program program) const { return Text(program, CL_PROGRAM_BUILD_LOG); }
  std::string Text(cl_program program, cl_program_build_info param) const {
    size_t bytes = 0;
    EXPECT_CL("clGetProgramBuildInfo.size", CL_SUCCESS,
              clGetProgramBuildInfo(program, device(), param, 0, nullptr, &bytes));
    std::string text(bytes, '\0');
    if (bytes == 0) return text;
    EXPECT_CL("clGetProgramBuildInfo.text", CL_SUCCESS,
              clGetProgramBuildInfo(program, device(), param, bytes, text.data(), nullptr));
    return text.c_str();
  }
  cl_build_status Status(cl_program program) const {
    cl_build_status status = 77;
    EXPECT_CL("clGetProgramBuildInfo.status", CL_SUCCESS,
              clGetProgramBuildInfo(program, device(), CL_PROGRAM_BUILD_STATUS, sizeof(status),
                                    &status, nullptr));
    return status;
  }
};

constexpr char kGood[] = "kernel void k(global int* p) { *p = 42; }";
constexpr char kBroken[] = "kernel void k(global int* p) { *p = no_such_name; }";

// A source may be one string, several, with and without lengths; all of it is seen by the compiler.
TEST_F(ProgramTest, SourceInPieces) {
  const char* pieces[] = {"kernel void k(global int* p)", " { *p = ", "42;XXXX", " }"};
  const size_t lengths[] = {0, 8, 3, 2};
  const Own<cl_program> program =
      MAKE("clCreateProgramWithSource.pieces",
           clCreateProgramWithSource(context(), 4, pieces, lengths, error));
  ASSERT_CL("clBuildProgram.pieces", CL_SUCCESS, Build(program));
  EXPECT_EQ(RunK(program), 42);
  size_t bytes = 0;
  EXPECT_CL("clGetProgramInfo.source_size", CL_SUCCESS,
            clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, nullptr, &bytes));
  std::string back(bytes, '#');
  EXPECT_CL("clGetProgramInfo.source", CL_SUCCESS,
            clGetProgramInfo(program, CL_PROGRAM_SOURCE, bytes, back.data(), nullptr));
  EXPECT_STREQ(back.c_str(), "kernel void k(global int* p) { *p = 42; }");
}

// Each wrong argument of clCreateProgramWithSource has its code.
TEST_F(ProgramTest, SourceRefusals) {
  const char* good = kGood;
  const char* with_null[] = {kGood, nullptr};
  EXPECT_CREATE("clCreateProgramWithSource.null_context", CL_INVALID_CONTEXT,
                clCreateProgramWithSource(nullptr, 1, &good, nullptr, error));
  EXPECT_CREATE("clCreateProgramWithSource.none", CL_INVALID_VALUE,
                clCreateProgramWithSource(context(), 0, &good, nullptr, error));
  EXPECT_CREATE("clCreateProgramWithSource.null_list", CL_INVALID_VALUE,
                clCreateProgramWithSource(context(), 1, nullptr, nullptr, error));
  EXPECT_CREATE("clCreateProgramWithSource.null_string", CL_INVALID_VALUE,
                clCreateProgramWithSource(context(), 2, with_null, nullptr, error));
}

// Options reach the compiler, and can be asked back.
TEST_F(ProgramTest, OptionsReachTheCompiler) {
  const Own<cl_program> program = Source("kernel void k(global int* p) { *p = VALUE; }");
  EXPECT_CL("clBuildProgram.options", CL_SUCCESS, Build(program, "-DVALUE=1234 -cl-mad-enable -w"));
  EXPECT_EQ(RunK(program), 1234);
  EXPECT_EQ(Text(program, CL_PROGRAM_BUILD_OPTIONS), "-DVALUE=1234 -cl-mad-enable -w");
  EXPECT_EQ(Status(program), CL_BUILD_SUCCESS);
  cl_program_binary_type type = 77;
  EXPECT_CL("clGetProgramBuildInfo.binary_type", CL_SUCCESS,
            clGetProgramBuildInfo(program, device(), CL_PROGRAM_BINARY_TYPE, sizeof(type), &type,
                                  nullptr));
  EXPECT_EQ(type, static_cast<cl_program_binary_type>(CL_PROGRAM_BINARY_TYPE_EXECUTABLE));
  size_t globals = 77;
  EXPECT_CL("clGetProgramBuildInfo.globals", CL_SUCCESS,
            clGetProgramBuildInfo(program, device(), CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE,
                                  sizeof(globals), &globals, nullptr));
  EXPECT_EQ(globals, 0u);
}

// A program can be built again with other options.
TEST_F(ProgramTest, IsBuiltAgain) {
  const Own<cl_program> program = Source("kernel void k(global int* p) { *p = VALUE; }");
  ASSERT_CL("clBuildProgram.first", CL_SUCCESS, Build(program, "-DVALUE=1"));
  EXPECT_EQ(RunK(program), 1);
  ASSERT_CL("clBuildProgram.again", CL_SUCCESS, Build(program, "-DVALUE=2"));
  EXPECT_EQ(RunK(program), 2);
}

// A program that has a kernel object cannot be built again.
TEST_F(ProgramTest, IsNotRebuiltUnderAKernel) {
  const Own<cl_program> program = Source(kGood);
  ASSERT_EQ(Build(program), CL_SUCCESS);
  const Own<cl_kernel> kernel = Kernel(program, "k");
  EXPECT_CL("clBuildProgram.has_kernel", CL_INVALID_OPERATION, Build(program));
}

// A failed build says so in its code, its status and its log, which names the culprit.
TEST_F(ProgramTest, FailedBuildHasALog) {
  const Own<cl_program> program = Source(kBroken);
  EXPECT_EQ(Status(program), CL_BUILD_NONE);
  EXPECT_CL("clBuildProgram.broken", CL_BUILD_PROGRAM_FAILURE, Build(program));
  EXPECT_EQ(Status(program), CL_BUILD_ERROR);
  EXPECT_NE(Log(program).find("no_such_name"), std::string::npos) << Log(program);
  EXPECT_CREATE("clCreateKernel.failed_build", CL_INVALID_PROGRAM_EXECUTABLE,
                clCreateKernel(program, "k", error));
}

// Each wrong argument of clBuildProgram has its code.
TEST_F(ProgramTest, BuildRefusals) {
  const cl_device_id one = device();
  const cl_device_id with_null[] = {one, nullptr};
  const Own<cl_program> program = Source(kGood);
  int user = 0;
  EXPECT_CL("clBuildProgram.null_program", CL_INVALID_PROGRAM,
            clBuildProgram(nullptr, 1, &one, "", nullptr, nullptr));
  EXPECT_CL("clBuildProgram.list_without_count", CL_INVALID_VALUE,
            clBuildProgram(program, 0, &one, "", nullptr, nullptr));
  EXPECT_CL("clBuildProgram.count_without_list", CL_INVALID_VALUE,
            clBuildProgram(program, 1, nullptr, "", nullptr, nullptr));
  EXPECT_CL("clBuildProgram.data_without_notify", CL_INVALID_VALUE,
            clBuildProgram(program, 1, &one, "", nullptr, &user));
  EXPECT_CL("clBuildProgram.null_device", CL_INVALID_DEVICE,
            clBuildProgram(program, 2, with_null, "", nullptr, nullptr));
  EXPECT_CL("clBuildProgram.unknown_option", CL_INVALID_BUILD_OPTIONS,
            Build(program, "-cl-no-such-option"));
  // Memory behind the end of the options is not their business.
  const AnyOf refused{CL_INVALID_BUILD_OPTIONS, CL_BUILD_PROGRAM_FAILURE};
  EXPECT_CL("clBuildProgram.include_without_folder", refused, Build(program, "-w -I"));
  EXPECT_CL("clBuildProgram.macro_without_name", refused, Build(program, "-w -D "));
}

// Of a build that was refused for its options a program tells as of any that failed: that it did,
// with which options, and why. There is no executable then, also where there was one.
TEST_F(ProgramTest, RefusedOptionsAreTold) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "PoCL 3.1 crashes in clCreateKernel after that";
  const Own<cl_program> program = Source(kGood);
  for (const char* options : {"-cl-no-such-option", "-w -I", "-w -D "}) {
    ASSERT_EQ(Build(program, "-w"), CL_SUCCESS);
    EXPECT_NE(Build(program, options), CL_SUCCESS);
    EXPECT_EQ(Status(program), CL_BUILD_ERROR) << options;
    char told[64] = "";
    EXPECT_CL("clGetProgramBuildInfo.refused_options", CL_SUCCESS,
              clGetProgramBuildInfo(program, device(), CL_PROGRAM_BUILD_OPTIONS, sizeof(told), told,
                                    nullptr));
    EXPECT_STREQ(told, options);
    EXPECT_GT(Log(program).size(), 1u) << options;
    EXPECT_CREATE("clCreateKernel.refused_options", CL_INVALID_PROGRAM_EXECUTABLE,
                  clCreateKernel(program, "k", error));
  }
}

// All of a program's facts can be asked.
TEST_F(ProgramTest, InfoTellsAll) {
  const Own<cl_program> program =
      Source("kernel void a(global int* p) { } kernel void b(global int* p) { }");
  size_t count = 77;
  // "CL_INVALID_PROGRAM_EXECUTABLE if param_name is CL_PROGRAM_NUM_KERNELS ... and a successful
  // program executable has not been built".
  EXPECT_CL("clGetProgramInfo.num_kernels_unbuilt", CL_INVALID_PROGRAM_EXECUTABLE,
            clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof(count), &count, nullptr));
  ASSERT_EQ(Build(program), CL_SUCCESS);
  cl_uint references = 0;
  cl_context seen_context = nullptr;
  cl_uint devices = 0;
  cl_device_id seen_device = nullptr;
  char names[64] = "";
  EXPECT_CL("clGetProgramInfo.references", CL_SUCCESS,
            clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof(references), &references,
                             nullptr));
  EXPECT_EQ(references, 1u);
  EXPECT_CL(
      "clGetProgramInfo.context", CL_SUCCESS,
      clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof(seen_context), &seen_context, nullptr));
  EXPECT_EQ(seen_context, context());
  EXPECT_CL("clGetProgramInfo.num_devices", CL_SUCCESS,
            clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof(devices), &devices, nullptr));
  EXPECT_EQ(devices, 1u);
  EXPECT_CL(
      "clGetProgramInfo.devices", CL_SUCCESS,
      clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(seen_device), &seen_device, nullptr));
  EXPECT_EQ(seen_device, device());
  EXPECT_CL("clGetProgramInfo.num_kernels", CL_SUCCESS,
            clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof(count), &count, nullptr));
  EXPECT_EQ(count, 2u);
  EXPECT_CL("clGetProgramInfo.kernel_names", CL_SUCCESS,
            clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof(names), names, nullptr));
  EXPECT_TRUE(std::string(names) == "a;b" || std::string(names) == "b;a") << names;
  size_t bytes = 77;
  EXPECT_CL("clGetProgramInfo.il_of_source", CL_SUCCESS,
            clGetProgramInfo(program, CL_PROGRAM_IL, 0, nullptr, &bytes));
  EXPECT_EQ(bytes, 0u) << "a program from source has no intermediate language";
  for (cl_program_info param :
       {CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT, CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT}) {
    cl_bool present = 77;
    EXPECT_CL("clGetProgramInfo.global_ctors", CL_SUCCESS,
              clGetProgramInfo(program, param, sizeof(present), &present, nullptr));
    EXPECT_EQ(present, static_cast<cl_bool>(CL_FALSE));
  }
}

// Wrong queries of a program are refused.
TEST_F(ProgramTest, InfoRefusals) {
  const Own<cl_program> program = Source(kGood);
  char value[8];
  EXPECT_CL("clGetProgramInfo.unknown", CL_INVALID_VALUE,
            clGetProgramInfo(program, 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetProgramInfo.too_small", CL_INVALID_VALUE,
            clGetProgramInfo(program, CL_PROGRAM_SOURCE, 1, value, nullptr));
  EXPECT_CL("clGetProgramInfo.null", CL_INVALID_PROGRAM,
            clGetProgramInfo(nullptr, CL_PROGRAM_SOURCE, sizeof(value), value, nullptr));
  EXPECT_CL("clGetProgramBuildInfo.unknown", CL_INVALID_VALUE,
            clGetProgramBuildInfo(program, device(), 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetProgramBuildInfo.too_small", CL_INVALID_VALUE,
            clGetProgramBuildInfo(program, device(), CL_PROGRAM_BUILD_STATUS, 1, value, nullptr));
  EXPECT_CL("clGetProgramBuildInfo.null", CL_INVALID_PROGRAM,
            clGetProgramBuildInfo(nullptr, device(), CL_PROGRAM_BUILD_STATUS, sizeof(value), value,
                                  nullptr));
  EXPECT_CL("clGetProgramBuildInfo.null_device", CL_INVALID_DEVICE,
            clGetProgramBuildInfo(program, nullptr, CL_PROGRAM_BUILD_STATUS, sizeof(value), value,
                                  nullptr));
}

// Retain and release count; a kernel keeps its program.
TEST_F(ProgramTest, IsCounted) {
  Own<cl_program> program = Source(kGood);
  cl_uint references = 0;
  EXPECT_CL("clRetainProgram.plain", CL_SUCCESS, clRetainProgram(program));
  EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof(references), &references,
                             nullptr),
            CL_SUCCESS);
  EXPECT_EQ(references, 2u);
  EXPECT_CL("clReleaseProgram.plain", CL_SUCCESS, clReleaseProgram(program));
  EXPECT_CL("clRetainProgram.null", CL_INVALID_PROGRAM, clRetainProgram(nullptr));
  EXPECT_CL("clReleaseProgram.null", CL_INVALID_PROGRAM, clReleaseProgram(nullptr));
  ASSERT_EQ(Build(program), CL_SUCCESS);
  const Own<cl_kernel> kernel = Kernel(program, "k");
  program.Reset();
  const Own<cl_mem> out = BufferOf(std::vector<cl_int>(1, -1));
  SetArg(kernel, 0, out);
  EXPECT_EQ(Launch(queue(), kernel, 1), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(out, 1)[0], 42);
}

struct BuildNotice {
  std::atomic<int> calls{0};
  std::atomic<cl_program> program{nullptr};
  std::atomic<cl_int> status{77};
  cl_device_id device = nullptr;
};

void CL_CALLBACK NoteBuild(cl_program program, void* data) {
  auto* notice = static_cast<BuildNotice*>(data);
  cl_build_status status = 77;
  clGetProgramBuildInfo(program, notice->device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
                        nullptr);
  notice->program = program;
  notice->status = status;
  notice->calls.fetch_add(1);
}

// A build with a notify function calls it once, when the build has ended, well or badly.
TEST_F(ProgramTest, BuildNotifies) {
  const cl_device_id one = device();
  for (const char* text : {kGood, kBroken}) {
    BuildNotice notice;
    notice.device = one;
    const Own<cl_program> program = Source(text);
    // With a notify function the failure may be told by the notice alone.
    EXPECT_CL(text == kGood ? "clBuildProgram.notify" : "clBuildProgram.notify_broken",
              text == kGood ? AnyOf{CL_SUCCESS} : (AnyOf{CL_SUCCESS, CL_BUILD_PROGRAM_FAILURE}),
              clBuildProgram(program, 1, &one, "", &NoteBuild, &notice));
    while (notice.calls.load() == 0) std::this_thread::yield();
    EXPECT_EQ(notice.program.load(), program.get());
    EXPECT_EQ(notice.status.load(), text == kGood ? CL_BUILD_SUCCESS : CL_BUILD_ERROR);
    EXPECT_EQ(notice.calls.load(), 1);
  }
}

// The release callback of 2.2 is refused by devices without program-scope destructors.
TEST_F(ProgramTest, ReleaseCallbackIsRefused) {
  const Own<cl_program> program = Source(kGood);
  // OpenCL 3.0: "CL_INVALID_OPERATION if no devices associated with program support destructors for
  // program scope global variables".
  EXPECT_CL("clSetProgramReleaseCallback.unsupported", CL_INVALID_OPERATION,
            clSetProgramReleaseCallback(
                program, [](cl_program, void*) {}, nullptr));
  EXPECT_CL("clSetProgramReleaseCallback.null_program", CL_INVALID_PROGRAM,
            clSetProgramReleaseCallback(
                nullptr, [](cl_program, void*) {}, nullptr));
}

}  // namespace
}  // namespace sluice::conformance
