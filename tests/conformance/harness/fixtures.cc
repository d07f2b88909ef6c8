// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {

const char kKernels[] = R"(
typedef struct { int a; float b; char c; } Mixed;

kernel void fill_int(global int* out, int value) { out[get_global_id(0)] = value; }
kernel void add_one(global int* data) { data[get_global_id(0)] += 1; }
kernel void copy_int(global const int* in, global int* out) {
  out[get_global_id(0)] = in[get_global_id(0)];
}
kernel void sum_args(global float* out, char a, short b, int c, long d, float e, Mixed f,
                     float4 g) {
  out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e;
  out[5] = f.a; out[6] = f.b; out[7] = f.c;
  out[8] = g.x; out[9] = g.y; out[10] = g.z; out[11] = g.w;
}
kernel void reverse_groups(global int* data, local int* scratch) {
  const size_t mine = get_local_id(0);
  scratch[mine] = data[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  data[get_global_id(0)] = scratch[get_local_size(0) - 1 - mine];
}
kernel void scale_by_table(global int* data, constant int* table) {
  data[get_global_id(0)] *= table[get_global_id(0) % 4];
}
kernel void record_range(global uint* out) {
  const size_t row = get_global_size(0), plane = get_global_size(0) * get_global_size(1);
  const size_t at = (get_global_id(0) - get_global_offset(0)) +
                    (get_global_id(1) - get_global_offset(1)) * row +
                    (get_global_id(2) - get_global_offset(2)) * plane;
  global uint* mine = out + at * 16;
  for (uint d = 0; d < 3; ++d) {
    mine[d] = get_global_id(d);
    mine[3 + d] = get_local_id(d);
    mine[6 + d] = get_group_id(d);
    mine[9 + d] = get_num_groups(d);
    mine[12 + d] = get_local_size(d);
  }
  mine[15] = get_work_dim();
}
kernel __attribute__((reqd_work_group_size(8, 1, 1))) void group_of_8(global int* out) {
  out[get_global_id(0)] = get_local_size(0);
}
)";

bool WithPlatform::HasOutOfOrder() const {
  return (DeviceValue<cl_command_queue_properties>(device(), CL_DEVICE_QUEUE_ON_HOST_PROPERTIES) &
          CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
}

Own<cl_context> WithPlatform::NewContext() const {
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()), 0};
  const cl_device_id one = device();
  return MAKE("clCreateContext.fixture",
              clCreateContext(properties, 1, &one, nullptr, nullptr, error));
}

void WithContext::SetUp() {
  context_ = NewContext();
  ASSERT_NE(context_.get(), nullptr);
}

Own<cl_mem> WithContext::Buffer(size_t bytes, cl_mem_flags flags, void* host) const {
  return MAKE("clCreateBuffer.fixture", clCreateBuffer(context_, flags, bytes, host, error));
}

Own<cl_event> WithContext::UserEvent() const {
  return MAKE("clCreateUserEvent.fixture", clCreateUserEvent(context_, error));
}

Own<cl_command_queue> WithContext::Queue(cl_command_queue_properties properties) const {
  const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
  return MAKE("clCreateCommandQueueWithProperties.fixture",
              clCreateCommandQueueWithProperties(context_, device(), list, error));
}

Own<cl_program> WithContext::Program(const std::string& source, const char* options) const {
  const char* text = source.c_str();
  Own<cl_program> program = MAKE("clCreateProgramWithSource.fixture",
                                 clCreateProgramWithSource(context_, 1, &text, nullptr, error));
  const cl_device_id one = device();
  const cl_int built = clBuildProgram(program, 1, &one, options, nullptr, nullptr);
  if (built != CL_SUCCESS) {
    std::string log(16384, '\0');
    clGetProgramBuildInfo(program, one, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
    ADD_FAILURE() << "build: " << CodeName(built) << "\n" << log.c_str();
  }
  return program;
}

Own<cl_kernel> WithContext::Kernel(cl_program program, const char* name) const {
  return MAKE("clCreateKernel.fixture", clCreateKernel(program, name, error));
}

void WithQueue::SetUp() {
  WithContext::SetUp();
  if (HasFatalFailure()) return;
  MakeQueue();
}

void WithQueue::MakeQueue() {
  queue_ = Queue(CL_QUEUE_PROFILING_ENABLE);
  ASSERT_NE(queue_.get(), nullptr);
}

void WithProgram::SetUp() {
  WithQueue::SetUp();
  if (HasFatalFailure()) return;
  if (!HasCompiler())
    GTEST_SKIP() << "the device has no compiler (CL_DEVICE_COMPILER_AVAILABLE is false)";
  program_ = Program(kKernels);
  ASSERT_NE(program_.get(), nullptr);
}

cl_int StatusOf(cl_event event) {
  cl_int status = 0x7fffffff;
  EXPECT_EQ(
      clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
      CL_SUCCESS);
  return status;
}

cl_int Launch(cl_command_queue queue, cl_kernel kernel, size_t global, cl_event* event) {
  return clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, event);
}

}  // namespace sluice::conformance
