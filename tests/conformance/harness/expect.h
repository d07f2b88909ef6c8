// SPDX-License-Identifier: Apache-2.0
//
// The checks of the suite. Each carries the name "clEntryPoint.what". By it tests/meta sees that
// every entry point has a success and an error expectation; the table of differences and recorded
// runs are keyed by it.
//   EXPECT_CL("clFlush.null_queue", CL_INVALID_COMMAND_QUEUE, clFlush(nullptr));
//   EXPECT_CREATE("clCreateBuffer.zero_size", CL_INVALID_BUFFER_SIZE, clCreateBuffer(c, 0, 0,
//   nullptr, error)); Own<cl_mem> buffer = MAKE("clCreateBuffer.plain", clCreateBuffer(c, 0, 64,
//   nullptr, error));
// In the two last forms `error` is the cl_int* to pass; what was created is released
// (EXPECT_CREATE) or owned (MAKE). Owner: none. Thread: any. Trust: none needed.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/conformance/harness/differences.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/own.h"

namespace sluice::conformance {

// One code, or the codes that the specification leaves to the implementation.
struct AnyOf {
  AnyOf(cl_int code)
      : codes{code} {}  // NOLINT(google-explicit-constructor): reads as a code in the macros.
  AnyOf(std::initializer_list<cl_int> list) : codes(list) {}
  std::vector<cl_int> codes;
};

std::string CodeName(cl_int code);

// From now on a crash prints the name of the check that began last.
void NameChecksInCrashes();
// All tests have ended: the exit that follows is no crash.
void ForgetLastCheck();

// False if the table says that the check must not be run here; the reason is printed.
bool MayRun(std::string_view name);

// Judges `seen`; adds a failure of the running test if it is not what it should be. Returns whether
// it was.
bool CheckCode(const char* file, int line, std::string_view name, const AnyOf& expected,
               cl_int seen, const char* text);

// A create function returns a handle exactly if it returns CL_SUCCESS; a difference is listed as
// "NAME/handle".
void CheckHandle(const char* file, int line, std::string_view name, cl_int seen, bool has_handle,
                 const char* text);

template <typename Call>
auto CreateChecked(const char* file, int line, std::string_view name, const AnyOf& expected,
                   const char* text, Call&& call) {
  using Handle = decltype(call(static_cast<cl_int*>(nullptr)));
  if (!MayRun(name)) return Own<Handle>();
  cl_int code = 0x7fffffff;  // A create function that does not write its error is a failure too.
  Own<Handle> handle(call(&code));
  CheckCode(file, line, name, expected, code, text);
  CheckHandle(file, line, name, code, handle.get() != nullptr, text);
  return handle;
}

}  // namespace sluice::conformance

#define EXPECT_CL(name, expected, ...)                                                    \
  do {                                                                                    \
    if (::sluice::conformance::MayRun(name)) {                                            \
      ::sluice::conformance::CheckCode(__FILE__, __LINE__, name, expected, (__VA_ARGS__), \
                                       #__VA_ARGS__);                                     \
    }                                                                                     \
  } while (false)

// As EXPECT_CL, and leaves the test if the code is not the expected one.
#define ASSERT_CL(name, expected, ...)                                                       \
  do {                                                                                       \
    if (!::sluice::conformance::MayRun(name)) return;                                        \
    if (!::sluice::conformance::CheckCode(__FILE__, __LINE__, name, expected, (__VA_ARGS__), \
                                          #__VA_ARGS__)) {                                   \
      return;                                                                                \
    }                                                                                        \
  } while (false)

#define EXPECT_CREATE(name, expected, ...)                                               \
  ::sluice::conformance::CreateChecked(__FILE__, __LINE__, name, expected, #__VA_ARGS__, \
                                       [&](cl_int* error) { return __VA_ARGS__; })

#define MAKE(name, ...) EXPECT_CREATE(name, CL_SUCCESS, __VA_ARGS__)
