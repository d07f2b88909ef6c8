// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include <atomic>
#include <thread>

#include "tests/conformance/harness/source_fixture.h"

namespace sluice::conformance {
namespace {

class ProgramLinkTest : public WithSource {
 protected:
  void SetUp() override {
    WithSource::SetUp();
    if (!IsSkipped() && DeviceValue<cl_bool>(device(), CL_DEVICE_LINKER_AVAILABLE) != CL_TRUE)
      GTEST_SKIP() << "the device has no linker";
  }
  Own<cl_program> Compiled(const char* text) const {
    Own<cl_program> program = Source(text);
    EXPECT_CL("clCompileProgram.plain", CL_SUCCESS, Compile(program));
    return program;
  }
  cl_program_binary_type BinaryType(cl_program program) const {
    cl_program_binary_type type = 77;
    EXPECT_EQ(clGetProgramBuildInfo(program, device(), CL_PROGRAM_BINARY_TYPE, sizeof(type), &type,
                                    nullptr),
              CL_SUCCESS);
    return type;
  }
};

constexpr char kMain[] = "int answer(int); kernel void k(global int* p) { *p = answer(20); }";
constexpr char kLibrary[] = "int answer(int x) { return 2 * x + 2; }";

// Two compiled programs link to one that runs.
TEST_F(ProgramLinkTest, CompiledProgramsLink) {
  const Own<cl_program> main = Compiled(kMain);
  const Own<cl_program> library = Compiled(kLibrary);
  EXPECT_EQ(BinaryType(main),
            static_cast<cl_program_binary_type>(CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT));
  const cl_device_id one = device();
  const cl_program both[] = {main, library};
  const Own<cl_program> linked =
      MAKE("clLinkProgram.plain",
           clLinkProgram(context(), 1, &one, "", 2, both, nullptr, nullptr, error));
  if (Differs("clLinkProgram.plain")) GTEST_SKIP() << "the driver links no two programs";
  EXPECT_EQ(BinaryType(linked),
            static_cast<cl_program_binary_type>(CL_PROGRAM_BINARY_TYPE_EXECUTABLE));
  EXPECT_EQ(RunK(linked), 42);
}

// A library is made by the linker, and links into a program.
TEST_F(ProgramLinkTest, LibrariesLink) {
  const Own<cl_program> part = Compiled(kLibrary);
  const cl_device_id one = device();
  const cl_program only[] = {part};
  const Own<cl_program> library =
      MAKE("clLinkProgram.library",
           clLinkProgram(context(), 1, &one, "-create-library", 1, only, nullptr, nullptr, error));
  EXPECT_EQ(BinaryType(library),
            static_cast<cl_program_binary_type>(CL_PROGRAM_BINARY_TYPE_LIBRARY));
  const Own<cl_program> main = Compiled(kMain);
  const cl_program both[] = {main, library};
  const Own<cl_program> linked =
      MAKE("clLinkProgram.with_library",
           clLinkProgram(context(), 1, &one, "", 2, both, nullptr, nullptr, error));
  if (Differs("clLinkProgram.with_library")) GTEST_SKIP() << "the driver links no library";
  EXPECT_EQ(RunK(linked), 42);
}

// Headers given as programs are found by their names, also in a folder.
TEST_F(ProgramLinkTest, EmbeddedHeadersAreFound) {
  const Own<cl_program> main = Source(
      "#include \"a.h\"\n#include \"sub/b.h\"\nkernel void k(global int* p) { *p = A + B; }");
  const Own<cl_program> header_a = Source("#define A 40\n");
  const Own<cl_program> header_b = Source("#define B 2\n");
  const cl_program headers[] = {header_a, header_b};
  const char* names[] = {"a.h", "sub/b.h"};
  const cl_device_id one = device();
  ASSERT_CL("clCompileProgram.headers", CL_SUCCESS,
            clCompileProgram(main, 1, &one, "", 2, headers, names, nullptr, nullptr));
  const cl_program only[] = {main};
  const Own<cl_program> linked =
      MAKE("clLinkProgram.with_headers",
           clLinkProgram(context(), 1, &one, "", 1, only, nullptr, nullptr, error));
  EXPECT_EQ(RunK(linked), 42);
}

// A link that makes no program keeps nothing: its context ends with its last release.
TEST_F(ProgramLinkTest, FailureKeepsNoContext) {
  const cl_device_id one = device();
  Own<cl_context> context =
      MAKE("clCreateContext.for_link", clCreateContext(nullptr, 1, &one, nullptr, nullptr, error));
  std::atomic<bool> gone = false;
  const auto note = [](cl_context, void* data) {
    static_cast<std::atomic<bool>*>(data)->store(true);
  };
  ASSERT_CL("clSetContextDestructorCallback.for_link", CL_SUCCESS,
            clSetContextDestructorCallback(context, note, &gone));
  const char* text = kMain;
  Own<cl_program> never_compiled =
      MAKE("clCreateProgramWithSource.for_link",
           clCreateProgramWithSource(context, 1, &text, nullptr, error));
  const cl_program only[] = {never_compiled};
  cl_int status = CL_SUCCESS;
  Own<cl_program> linked(clLinkProgram(context, 1, &one, "", 1, only, nullptr, nullptr, &status));
  // NVIDIA's driver (580) makes one of it, which then goes like any other.
  EXPECT_EQ(status == CL_SUCCESS, linked.get() != nullptr);
  linked.Reset();
  never_compiled.Reset();
  context.Reset();
  while (!gone) std::this_thread::yield();  // The watchdog ends a test that hangs.
}

// A compile error has its code and a log that names the culprit.
TEST_F(ProgramLinkTest, CompileErrorHasALog) {
  const Own<cl_program> program = Source("kernel void k(global int* p) { *p = no_such_name; }");
  EXPECT_CL("clCompileProgram.broken", CL_COMPILE_PROGRAM_FAILURE, Compile(program));
  std::string log(65536, '\0');
  EXPECT_EQ(clGetProgramBuildInfo(program, device(), CL_PROGRAM_BUILD_LOG, log.size(), log.data(),
                                  nullptr),
            CL_SUCCESS);
  EXPECT_NE(log.find("no_such_name"), std::string::npos) << log.c_str();
}

// A missing function is a link error, with a program to ask for the log.
TEST_F(ProgramLinkTest, LinkErrorHasACode) {
  const Own<cl_program> main = Compiled(
      "int no_such_function(int); kernel void k(global int* p) "
      "{ *p = no_such_function(20); }");
  const cl_device_id one = device();
  const cl_program only[] = {main};
  if (!MayRun("clLinkProgram.unresolved")) return;
  cl_int code = 77;
  const Own<cl_program> linked(
      clLinkProgram(context(), 1, &one, "", 1, only, nullptr, nullptr, &code));
  EXPECT_CL("clLinkProgram.unresolved", CL_LINK_PROGRAM_FAILURE, code);
}

// Each wrong argument of clCompileProgram has its code.
TEST_F(ProgramLinkTest, CompileRefusals) {
  const cl_device_id one = device();
  const cl_device_id with_null[] = {one, nullptr};
  const Own<cl_program> program = Source(kMain);
  const cl_program headers[] = {program};
  const char* names[] = {"x.h"};
  int user = 0;
  EXPECT_CL("clCompileProgram.null_program", CL_INVALID_PROGRAM,
            clCompileProgram(nullptr, 1, &one, "", 0, nullptr, nullptr, nullptr, nullptr));
  EXPECT_CL("clCompileProgram.list_without_count", CL_INVALID_VALUE,
            clCompileProgram(program, 0, &one, "", 0, nullptr, nullptr, nullptr, nullptr));
  EXPECT_CL("clCompileProgram.count_without_list", CL_INVALID_VALUE,
            clCompileProgram(program, 1, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr));
  EXPECT_CL("clCompileProgram.headers_without_count", CL_INVALID_VALUE,
            clCompileProgram(program, 1, &one, "", 0, headers, names, nullptr, nullptr));
  EXPECT_CL("clCompileProgram.count_without_headers", CL_INVALID_VALUE,
            clCompileProgram(program, 1, &one, "", 1, nullptr, nullptr, nullptr, nullptr));
  EXPECT_CL("clCompileProgram.data_without_notify", CL_INVALID_VALUE,
            clCompileProgram(program, 1, &one, "", 0, nullptr, nullptr, nullptr, &user));
  EXPECT_CL("clCompileProgram.null_device", CL_INVALID_DEVICE,
            clCompileProgram(program, 2, with_null, "", 0, nullptr, nullptr, nullptr, nullptr));
  EXPECT_CL("clCompileProgram.unknown_option", CL_INVALID_COMPILER_OPTIONS,
            Compile(program, "-cl-no-such-option"));
  const AnyOf refused{CL_INVALID_COMPILER_OPTIONS, CL_COMPILE_PROGRAM_FAILURE};
  EXPECT_CL("clCompileProgram.include_without_folder", refused, Compile(program, "-w -I"));
  if (!TheHarness().IsSluice()) return;  // PoCL 3.1 crashes; what others make of it is not known.
  const cl_program no_header[] = {program, nullptr};
  const char* const no_name[] = {"x.h", nullptr};
  const char* two_names[] = {"x.h", "y.h"};
  EXPECT_CL("clCompileProgram.null_header", CL_INVALID_PROGRAM,
            clCompileProgram(program, 1, &one, "", 2, no_header, two_names, nullptr, nullptr));
  const cl_program two_headers[] = {program, program};
  EXPECT_CL("clCompileProgram.null_header_name", CL_INVALID_VALUE,
            clCompileProgram(program, 1, &one, "", 2, two_headers,
                             const_cast<const char**>(no_name), nullptr, nullptr));
}

// Each wrong argument of clLinkProgram has its code.
TEST_F(ProgramLinkTest, LinkRefusals) {
  const cl_device_id one = device();
  const Own<cl_program> main = Compiled(kMain);
  const Own<cl_program> uncompiled = Source(kLibrary);
  const cl_program only[] = {main};
  const cl_program with_null[] = {main, nullptr};
  const cl_program with_source[] = {main, uncompiled};
  int user = 0;
  EXPECT_CREATE("clLinkProgram.null_context", CL_INVALID_CONTEXT,
                clLinkProgram(nullptr, 1, &one, "", 1, only, nullptr, nullptr, error));
  EXPECT_CREATE("clLinkProgram.list_without_count", CL_INVALID_VALUE,
                clLinkProgram(context(), 0, &one, "", 1, only, nullptr, nullptr, error));
  EXPECT_CREATE("clLinkProgram.count_without_list", CL_INVALID_VALUE,
                clLinkProgram(context(), 1, nullptr, "", 1, only, nullptr, nullptr, error));
  EXPECT_CREATE("clLinkProgram.no_programs", CL_INVALID_VALUE,
                clLinkProgram(context(), 1, &one, "", 0, only, nullptr, nullptr, error));
  EXPECT_CREATE("clLinkProgram.null_programs", CL_INVALID_VALUE,
                clLinkProgram(context(), 1, &one, "", 1, nullptr, nullptr, nullptr, error));
  EXPECT_CREATE("clLinkProgram.null_program", CL_INVALID_PROGRAM,
                clLinkProgram(context(), 1, &one, "", 2, with_null, nullptr, nullptr, error));
  EXPECT_CREATE("clLinkProgram.data_without_notify", CL_INVALID_VALUE,
                clLinkProgram(context(), 1, &one, "", 1, only, nullptr, &user, error));
  EXPECT_CREATE("clLinkProgram.uncompiled", CL_INVALID_OPERATION,
                clLinkProgram(context(), 1, &one, "", 2, with_source, nullptr, nullptr, error));
  EXPECT_CREATE(
      "clLinkProgram.unknown_option", CL_INVALID_LINKER_OPTIONS,
      clLinkProgram(context(), 1, &one, "-no-such-option", 1, only, nullptr, nullptr, error));
  if (!TheHarness().IsSluice()) return;  // PoCL 3.1 crashes; what others make of it is not known.
  EXPECT_CREATE(
      "clLinkProgram.include_without_folder", CL_INVALID_LINKER_OPTIONS,
      clLinkProgram(context(), 1, &one, "-create-library -I", 1, only, nullptr, nullptr, error));
}

// Programs of another context are none for a compilation or a link: their devices, and what serves
// them, may be others altogether.
TEST_F(ProgramLinkTest, ForeignProgramsAreRefused) {
  const cl_device_id one = device();
  const Own<cl_context> other = NewContext();
  const auto source = [&](const char* text) {
    return MAKE("clCreateProgramWithSource.plain",
                clCreateProgramWithSource(other, 1, &text, nullptr, error));
  };
  const Own<cl_program> header = source("#define A 1\n");
  const cl_program headers[] = {header};
  const char* names[] = {"a.h"};
  const Own<cl_program> main = Source("#include \"a.h\"\nkernel void k(global int* p) { *p = A; }");
  EXPECT_CL("clCompileProgram.foreign_header", CL_INVALID_PROGRAM,
            clCompileProgram(main, 1, &one, "", 1, headers, names, nullptr, nullptr));
  const Own<cl_program> library = source(kLibrary);
  EXPECT_CL("clCompileProgram.plain", CL_SUCCESS, Compile(library));
  const Own<cl_program> caller = Compiled(kMain);
  const cl_program both[] = {caller, library};
  EXPECT_CREATE("clLinkProgram.foreign_program", CL_INVALID_PROGRAM,
                clLinkProgram(context(), 1, &one, "", 2, both, nullptr, nullptr, error));
}

void CL_CALLBACK CountCall(cl_program, void* data) {
  static_cast<std::atomic<int>*>(data)->fetch_add(1);
}

// Compile and link call their notify function once.
TEST_F(ProgramLinkTest, CompileAndLinkNotify) {
  const cl_device_id one = device();
  const Own<cl_program> main = Source("kernel void k(global int* p) { *p = 42; }");
  std::atomic<int> compiles{0};
  ASSERT_CL("clCompileProgram.notify", CL_SUCCESS,
            clCompileProgram(main, 1, &one, "", 0, nullptr, nullptr, &CountCall, &compiles));
  while (compiles.load() == 0) std::this_thread::yield();
  std::atomic<int> links{0};
  const cl_program only[] = {main};
  const Own<cl_program> linked =
      MAKE("clLinkProgram.notify",
           clLinkProgram(context(), 1, &one, "", 1, only, &CountCall, &links, error));
  while (links.load() == 0) std::this_thread::yield();
  EXPECT_EQ(RunK(linked), 42);
  EXPECT_EQ(compiles.load(), 1);
  EXPECT_EQ(links.load(), 1);
}

// The answer about kernels' arguments is what the compilation asked for, if anything; PoCL goes by
// the link's options.
TEST_F(ProgramLinkTest, ArgumentInfo) {
  const char* const source = "kernel void k(global int* out) { out[0] = 1; }";
  const cl_device_id one = device();
  struct Options {
    const char* name;
    const char* value;
  };
  constexpr Options kNone = {"none", nullptr}, kEmpty = {"empty", ""}, kOther = {"other", "-w"},
                    kAsked = {"asked", "-cl-kernel-arg-info"};
  for (const Options& compile : {kNone, kEmpty, kOther, kAsked}) {
    for (const Options& link : {kNone, kEmpty}) {
      const Own<cl_program> compiled = Source(source);
      EXPECT_EQ(Compile(compiled, compile.value), CL_SUCCESS);
      const cl_program input = compiled;
      const Own<cl_program> linked =
          MAKE("clLinkProgram.arg_info",
               clLinkProgram(context(), 1, &one, link.value, 1, &input, nullptr, nullptr, error));
      const Own<cl_kernel> kernel = Kernel(linked, "k");
      const std::string check =
          std::string("clGetKernelArgInfo.compiled_") + compile.name + "_linked_" + link.name;
      EXPECT_CL(check.c_str(), (AnyOf{CL_SUCCESS, CL_KERNEL_ARG_INFO_NOT_AVAILABLE}),
                clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr));
    }
  }
}

}  // namespace
}  // namespace sluice::conformance
