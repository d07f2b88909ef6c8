// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using PlatformTest = WithPlatform;

// The count and the list agree, and the platform under test is in the list.
TEST_F(PlatformTest, ListsPlatforms) {
  cl_uint count = 0;
  ASSERT_CL("clGetPlatformIDs.count", CL_SUCCESS, clGetPlatformIDs(0, nullptr, &count));
  ASSERT_GE(count, 1u);
  std::vector<cl_platform_id> platforms(count);
  ASSERT_CL("clGetPlatformIDs.list", CL_SUCCESS,
            clGetPlatformIDs(count, platforms.data(), nullptr));
  EXPECT_EQ(std::count(platforms.begin(), platforms.end(), platform()), 1);
  cl_platform_id first = nullptr;
  cl_uint again = 0;
  EXPECT_CL("clGetPlatformIDs.both", CL_SUCCESS, clGetPlatformIDs(1, &first, &again));
  EXPECT_EQ(first, platforms[0]);
  EXPECT_EQ(again, count);
}

// A list without room, or no place for any answer, is refused.
TEST_F(PlatformTest, ListRefusesNoRoom) {
  cl_platform_id one = nullptr;
  EXPECT_CL("clGetPlatformIDs.zero_entries", CL_INVALID_VALUE, clGetPlatformIDs(0, &one, nullptr));
  EXPECT_CL("clGetPlatformIDs.nothing_asked", CL_INVALID_VALUE,
            clGetPlatformIDs(0, nullptr, nullptr));
}

// Every string of the platform is there, ends with a zero, and its size is exact.
TEST_F(PlatformTest, StringsAreWhole) {
  for (cl_platform_info param :
       {CL_PLATFORM_PROFILE, CL_PLATFORM_VERSION, CL_PLATFORM_NAME, CL_PLATFORM_VENDOR,
        CL_PLATFORM_EXTENSIONS, CL_PLATFORM_ICD_SUFFIX_KHR}) {
    SCOPED_TRACE(param);
    size_t bytes = 0;
    ASSERT_CL("clGetPlatformInfo.size", CL_SUCCESS,
              clGetPlatformInfo(platform(), param, 0, nullptr, &bytes));
    ASSERT_GE(bytes, 1u);
    std::string text(bytes + 8, '#');
    size_t written = 0;
    EXPECT_CL("clGetPlatformInfo.value", CL_SUCCESS,
              clGetPlatformInfo(platform(), param, text.size(), text.data(), &written));
    EXPECT_EQ(written, bytes);
    EXPECT_EQ(std::strlen(text.c_str()) + 1, bytes);
    EXPECT_EQ(text.substr(bytes), "########") << "wrote past the value";
    if (bytes > 1) {
      EXPECT_CL("clGetPlatformInfo.too_small", CL_INVALID_VALUE,
                clGetPlatformInfo(platform(), param, bytes - 1, text.data(), nullptr));
    }
  }
}

// The strings follow the formats that the specification gives them.
TEST_F(PlatformTest, StringsFollowTheirFormats) {
  const std::string version = PlatformString(platform(), CL_PLATFORM_VERSION);
  EXPECT_EQ(version.rfind("OpenCL ", 0), 0u) << version;
  const std::string profile = PlatformString(platform(), CL_PLATFORM_PROFILE);
  EXPECT_TRUE(profile == "FULL_PROFILE" || profile == "EMBEDDED_PROFILE") << profile;
  EXPECT_TRUE(HasPlatformExtension(platform(), "cl_khr_icd"));
  if (!TheHarness().IsSluice()) return;
  EXPECT_EQ(PlatformString(platform(), CL_PLATFORM_ICD_SUFFIX_KHR), "SLUICE");
  EXPECT_EQ(TheHarness().platform_name.rfind("Sluice (", 0), 0u) << TheHarness().platform_name;
}

// The numeric version and the versioned extension list say the same as the strings.
TEST_F(PlatformTest, VersionedQueriesMatchTheStrings) {
  cl_version version = 0;
  ASSERT_CL("clGetPlatformInfo.numeric_version", CL_SUCCESS,
            clGetPlatformInfo(platform(), CL_PLATFORM_NUMERIC_VERSION, sizeof(version), &version,
                              nullptr));
  std::ostringstream start;
  start << "OpenCL " << CL_VERSION_MAJOR(version) << "." << CL_VERSION_MINOR(version) << " ";
  EXPECT_EQ(PlatformString(platform(), CL_PLATFORM_VERSION).rfind(start.str(), 0), 0u)
      << start.str();

  size_t bytes = 0;
  ASSERT_CL("clGetPlatformInfo.extensions_with_version", CL_SUCCESS,
            clGetPlatformInfo(platform(), CL_PLATFORM_EXTENSIONS_WITH_VERSION, 0, nullptr, &bytes));
  std::vector<cl_name_version> named(bytes / sizeof(cl_name_version));
  ASSERT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_EXTENSIONS_WITH_VERSION, bytes, named.data(),
                              nullptr),
            CL_SUCCESS);
  std::set<std::string> from_list;
  for (const cl_name_version& one : named) from_list.insert(one.name);
  std::istringstream words(PlatformString(platform(), CL_PLATFORM_EXTENSIONS));
  std::set<std::string> from_string;
  for (std::string word; words >> word;) from_string.insert(word);
  EXPECT_EQ(from_list, from_string);
}

// A platform without host timers says 0; one with them says a resolution that fits the timer.
TEST_F(PlatformTest, HostTimerResolutionIsAnswered) {
  cl_ulong resolution = 12345;
  EXPECT_CL("clGetPlatformInfo.host_timer_resolution", CL_SUCCESS,
            clGetPlatformInfo(platform(), CL_PLATFORM_HOST_TIMER_RESOLUTION, sizeof(resolution),
                              &resolution, nullptr));
  EXPECT_NE(resolution, 12345u);
}

// A parameter that does not exist is refused.
TEST_F(PlatformTest, UnknownParameterIsRefused) {
  char text[64];
  EXPECT_CL("clGetPlatformInfo.unknown", CL_INVALID_VALUE,
            clGetPlatformInfo(platform(), 0x7ffe, sizeof(text), text, nullptr));
}

// Unloading the compiler is a hint: it succeeds, and building afterwards works.
TEST_F(PlatformTest, UnloadedCompilerComesBack) {
  EXPECT_CL("clUnloadPlatformCompiler.plain", CL_SUCCESS, clUnloadPlatformCompiler(platform()));
  EXPECT_CL("clUnloadCompiler.plain", CL_SUCCESS, clUnloadCompiler());
  EXPECT_CL("clUnloadPlatformCompiler.null", CL_INVALID_PLATFORM,
            clUnloadPlatformCompiler(nullptr));
  if (!HasCompiler())
    GTEST_SKIP() << "the device has no compiler (CL_DEVICE_COMPILER_AVAILABLE is false)";
  const Own<cl_context> context = NewContext();
  const char* source = "kernel void k(global int* p) { *p = 1; }";
  const Own<cl_program> program =
      MAKE("clCreateProgramWithSource.after_unload",
           clCreateProgramWithSource(context, 1, &source, nullptr, error));
  const cl_device_id one = device();
  EXPECT_CL("clBuildProgram.after_unload", CL_SUCCESS,
            clBuildProgram(program, 1, &one, "", nullptr, nullptr));
}

// Names that no extension has, and no name, have no address.
TEST_F(PlatformTest, UnknownFunctionsHaveNoAddress) {
  // Success and refusal of these two are a pointer, not a code.
  const auto code = [](void* address) {
    return address == nullptr ? CL_INVALID_VALUE : CL_SUCCESS;
  };
  EXPECT_CL(
      "clGetExtensionFunctionAddressForPlatform.unknown", CL_INVALID_VALUE,
      code(clGetExtensionFunctionAddressForPlatform(platform(), "clNoSuchFunctionSLUICETEST")));
  EXPECT_CL("clGetExtensionFunctionAddressForPlatform.null_platform", CL_INVALID_VALUE,
            code(clGetExtensionFunctionAddressForPlatform(nullptr, "clIcdGetPlatformIDsKHR")));
  EXPECT_CL("clGetExtensionFunctionAddressForPlatform.null_name", CL_INVALID_VALUE,
            code(clGetExtensionFunctionAddressForPlatform(platform(), nullptr)));
  EXPECT_CL("clGetExtensionFunctionAddress.unknown", CL_INVALID_VALUE,
            code(clGetExtensionFunctionAddress("clNoSuchFunctionSLUICETEST")));
  EXPECT_CL("clGetExtensionFunctionAddressForPlatform.icd", CL_SUCCESS,
            code(clGetExtensionFunctionAddressForPlatform(platform(), "clIcdGetPlatformIDsKHR")));
  EXPECT_CL("clGetExtensionFunctionAddress.suffixed", CL_SUCCESS,
            code(clGetExtensionFunctionAddress("clCreateSubDevicesEXT")));
}

}  // namespace
}  // namespace sluice::conformance
