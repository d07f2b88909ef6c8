// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/harness/child_process.h"
#include "tests/conformance/harness/differences.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/own.h"

namespace sluice::conformance {
namespace {

// A child's means to run one kernel; scenes have no GoogleTest around them, so they return a
// number.
struct Stage {
  Own<cl_context> context;
  Own<cl_command_queue> queue;
  Own<cl_program> program;
  Own<cl_kernel> kernel;

  bool Set(const char* source, const char* name) {
    const cl_device_id device = TheHarness().device;
    context = Own<cl_context>(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr));
    queue = Own<cl_command_queue>(
        clCreateCommandQueueWithProperties(context, device, nullptr, nullptr));
    program = Own<cl_program>(clCreateProgramWithSource(context, 1, &source, nullptr, nullptr));
    if (clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) return false;
    kernel = Own<cl_kernel>(clCreateKernel(program, name, nullptr));
    return queue.get() != nullptr && kernel.get() != nullptr;
  }
  cl_int Run(size_t global, cl_event* event = nullptr) const {
    return clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, event);
  }
};

// Writes past stdio, so that the order against the kernel's output is the order of the calls.
void Say(const char* text) {
  std::fflush(stdout);
  if (write(STDOUT_FILENO, text, std::strlen(text)) < 0) std::abort();
}

CHILD_SCENE(PrintfFormats) {
  Stage stage;
  if (!stage.Set("kernel void k() { printf(\"int %d hex %x str %s float %.2f vec %v4hld pct "
                 "%%\\n\", -7, 255, \"abc\","
                 " 1.5f, (int4)(1, 2, 3, 4)); }",
                 "k")) {
    return 3;
  }
  if (stage.Run(1) != CL_SUCCESS || clFinish(stage.queue) != CL_SUCCESS) return 4;
  return 0;
}

CHILD_SCENE(PrintfOrder) {
  Stage stage;
  if (!stage.Set("kernel void k(int n) { printf(\"kernel %d\\n\", n); }", "k")) return 3;
  for (cl_int i = 0; i < 5; ++i) {
    clSetKernelArg(stage.kernel, 0, sizeof(i), &i);
    if (stage.Run(1) != CL_SUCCESS || clFinish(stage.queue) != CL_SUCCESS) return 4;
    Say(("host " + std::to_string(i) + "\n").c_str());
  }
  // The same with a wait for the event alone.
  cl_int nine = 9;
  clSetKernelArg(stage.kernel, 0, sizeof(nine), &nine);
  Own<cl_event> event;
  if (stage.Run(1, event.Out()) != CL_SUCCESS || clWaitForEvents(1, event.AsList()) != CL_SUCCESS)
    return 4;
  Say("host 9\n");
  return 0;
}

CHILD_SCENE(PrintfMany) {
  Stage stage;
  if (!stage.Set("kernel void k() { printf(\"item %d of many\\n\", (int)get_global_id(0)); }", "k"))
    return 3;
  if (stage.Run(2000) != CL_SUCCESS || clFinish(stage.queue) != CL_SUCCESS) return 4;
  Say("end\n");
  return 0;
}

class PrintfTest : public testing::Test {
 protected:
  void SetUp() override {
    if (DeviceValue<cl_bool>(TheHarness().device, CL_DEVICE_COMPILER_AVAILABLE) != CL_TRUE) {
      GTEST_SKIP() << "the device has no compiler (CL_DEVICE_COMPILER_AVAILABLE is false)";
    }
  }
};

// A kernel's formatted output is on the stdout of the process that ran it.
TEST_F(PrintfTest, FormatsReachStdout) {
  const ChildResult child = RunInChild("PrintfFormats");
  EXPECT_FALSE(child.timed_out);
  EXPECT_EQ(child.exit_code, 0) << "signal " << child.signal;
  EXPECT_EQ(child.output.rfind("int -7 hex ff str abc float 1.50", 0), 0u) << child.output;
  if (!Differs("clEnqueueNDRangeKernel.printf_vectors")) {
    EXPECT_EQ(child.output, "int -7 hex ff str abc float 1.50 vec 1,2,3,4 pct %\n");
  }
}

// It is there before clFinish or clWaitForEvents returns, so it stands in order with what the host
// prints.
TEST_F(PrintfTest, OutputIsInOrder) {
  const ChildResult child = RunInChild("PrintfOrder");
  EXPECT_FALSE(child.timed_out);
  EXPECT_EQ(child.exit_code, 0) << "signal " << child.signal;
  EXPECT_EQ(
      child.output,
      "kernel 0\nhost 0\nkernel 1\nhost 1\nkernel 2\nhost 2\nkernel 3\nhost 3\nkernel 4\nhost 4\n"
      "kernel 9\nhost 9\n");
}

// Every line of every work-item comes out whole, and before the host's next line.
TEST_F(PrintfTest, ManyLinesComeWhole) {
  const ChildResult child = RunInChild("PrintfMany");
  EXPECT_FALSE(child.timed_out);
  EXPECT_EQ(child.exit_code, 0) << "signal " << child.signal;
  std::vector<bool> seen(2000, false);
  size_t at = 0, lines = 0;
  while (at < child.output.size()) {
    const size_t end = child.output.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    const std::string line = child.output.substr(at, end - at);
    at = end + 1;
    if (line == "end") break;
    int item = -1;
    ASSERT_EQ(std::sscanf(line.c_str(), "item %d of many", &item), 1) << line;
    ASSERT_TRUE(item >= 0 && item < 2000 && !seen[static_cast<size_t>(item)]) << line;
    seen[static_cast<size_t>(item)] = true;
    ++lines;
  }
  EXPECT_EQ(lines, 2000u);
  EXPECT_EQ(at, child.output.size()) << "output after the host's last line";
}

}  // namespace
}  // namespace sluice::conformance
