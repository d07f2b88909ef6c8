// SPDX-License-Identifier: Apache-2.0
//
// Rows about calls and small commands: what an application pays per call, per launch and per wait.
#include <algorithm>
#include <string>
#include <vector>

#include "bench.h"

namespace sluice_bench {
namespace {

constexpr int kLaunchesAmortised = 1000;  // design.md section 12 names this number.
constexpr int kChainLength = 1000;
constexpr int kCallsPerSample = 1000;

// Host time of enqueueing alone; the device catches up outside the measured part.
double LaunchHostUs(const Device& device, int repeats) {
  double total = 0;
  std::vector<double> samples;
  for (int i = 0; i <= repeats; ++i) {
    const double start = ocl_seconds();
    for (int j = 0; j < kLaunchesAmortised; ++j) {
      Launch(device, device.queue, 0, nullptr, nullptr);
    }
    total = ocl_seconds() - start;
    ocl_check(clFinish(device.queue), "clFinish");
    if (i > 0) samples.push_back(total);
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2] / kLaunchesAmortised * 1e6;
}

// Calls that need no device: they must cost what they cost natively.
void MeasureLocalCalls(const Device& device, int repeats, Rows* rows) {
  const auto per_call_ns = [&](const char* name, const std::function<void(int)>& call) {
    const double seconds = MedianSeconds(repeats, [&] {
      for (int i = 0; i < kCallsPerSample; ++i) call(i);
    });
    rows->emplace_back(name, seconds / kCallsPerSample * 1e9);
  };
  per_call_ns("set_arg_value_ns", [&](int i) {
    const cl_uint value = i;
    ocl_check(clSetKernelArg(device.empty, 1, sizeof(value), &value), "clSetKernelArg");
  });
  per_call_ns("set_arg_buffer_ns", [&](int) {
    ocl_check(clSetKernelArg(device.empty, 0, sizeof(cl_mem), &device.small), "clSetKernelArg");
  });
  per_call_ns("retain_release_ns", [&](int) {
    ocl_check(clRetainMemObject(device.small), "clRetainMemObject");
    ocl_check(clReleaseMemObject(device.small), "clReleaseMemObject");
  });
  per_call_ns("get_mem_info_ns", [&](int) {
    size_t size = 0;
    ocl_check(clGetMemObjectInfo(device.small, CL_MEM_SIZE, sizeof(size), &size, nullptr),
              "clGetMemObjectInfo");
  });
  per_call_ns("get_device_info_ns", [&](int) {
    cl_uint units = 0;
    ocl_check(
        clGetDeviceInfo(device.id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, nullptr),
        "clGetDeviceInfo");
  });
  per_call_ns("get_kernel_work_group_info_ns", [&](int) {
    size_t size = 0;
    ocl_check(clGetKernelWorkGroupInfo(device.empty, device.id, CL_KERNEL_WORK_GROUP_SIZE,
                                       sizeof(size), &size, nullptr),
              "clGetKernelWorkGroupInfo");
  });
}

// A thousand launches, each waiting for the one before by its event, on a queue that would not
// order them.
double EventChainUs(const Device& device, int repeats) {
  cl_command_queue_properties supported = 0;
  ocl_check(clGetDeviceInfo(device.id, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, sizeof(supported),
                            &supported, nullptr),
            "clGetDeviceInfo");
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES,
                                            supported & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
  cl_int code = CL_SUCCESS;
  cl_command_queue queue =
      clCreateCommandQueueWithProperties(device.context, device.id, properties, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  const double seconds = MedianSeconds(repeats, [&] {
    cl_event last = nullptr;
    for (int i = 0; i < kChainLength; ++i) {
      cl_event next = nullptr;
      Launch(device, queue, last == nullptr ? 0 : 1, last == nullptr ? nullptr : &last, &next);
      if (last != nullptr) ocl_check(clReleaseEvent(last), "clReleaseEvent");
      last = next;
    }
    ocl_check(clWaitForEvents(1, &last), "clWaitForEvents");
    ocl_check(clReleaseEvent(last), "clReleaseEvent");
  });
  clReleaseCommandQueue(queue);
  return seconds * 1e6;
}

// A source that no compile cache has seen.
double BuildMs(const Device& device, int repeats) {
  int serial = 0;
  const double seconds = MedianSeconds(repeats, [&] {
    const std::string source =
        "kernel void k(global float* a, float b) { a[get_global_id(0)] += b * " +
        std::to_string(ocl_seconds()) + "f + " + std::to_string(++serial) + "; }";
    const char* text = source.c_str();
    cl_int code = CL_SUCCESS;
    cl_program program = clCreateProgramWithSource(device.context, 1, &text, nullptr, &code);
    ocl_check(code, "clCreateProgramWithSource");
    ocl_check(clBuildProgram(program, 1, &device.id, "", nullptr, nullptr), "clBuildProgram");
    ocl_check(clReleaseProgram(program), "clReleaseProgram");
  });
  return seconds * 1e3;
}

void Write(const Device& device, cl_mem buffer, cl_bool blocking, size_t bytes, const void* from) {
  ocl_check(
      clEnqueueWriteBuffer(device.queue, buffer, blocking, 0, bytes, from, 0, nullptr, nullptr),
      "clEnqueueWriteBuffer");
}

void Read(const Device& device, cl_mem buffer, size_t bytes, void* to) {
  ocl_check(clEnqueueReadBuffer(device.queue, buffer, CL_TRUE, 0, bytes, to, 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
}

// Commands that the application waits for, one at a time.
void MeasureSynchronous(const Device& device, int repeats, Rows* rows) {
  const auto median_us = [&](const char* name, const std::function<void()>& body) {
    rows->emplace_back(name, MedianSeconds(repeats, body) * 1e6);
  };
  cl_uint word = 0;
  median_us("launch_finish_us", [&] {
    Launch(device, device.queue, 0, nullptr, nullptr);
    ocl_check(clFinish(device.queue), "clFinish");
  });
  median_us("marker_wait_us", [&] {
    cl_event event = nullptr;
    ocl_check(clEnqueueMarkerWithWaitList(device.queue, 0, nullptr, &event),
              "clEnqueueMarkerWithWaitList");
    ocl_check(clWaitForEvents(1, &event), "clWaitForEvents");
    ocl_check(clReleaseEvent(event), "clReleaseEvent");
  });
  median_us("write_4b_us", [&] { Write(device, device.small, CL_TRUE, sizeof(word), &word); });
  median_us("read_4b_us", [&] { Read(device, device.small, sizeof(word), &word); });
  median_us("write_kernel_read_4b_us", [&] {
    Write(device, device.small, CL_FALSE, sizeof(word), &word);
    Launch(device, device.queue, 0, nullptr, nullptr);
    Read(device, device.small, sizeof(word), &word);
  });
}

// Commands sent without waiting, up to one clFinish.
void MeasurePipelined(const Device& device, bool quick, Rows* rows) {
  const auto per_second = [&](const char* name, int count, const std::function<void()>& body) {
    const double seconds = MedianSeconds(quick ? 1 : 5, [&] {
      for (int i = 0; i < count; ++i) body();
      ocl_check(clFinish(device.queue), "clFinish");
    });
    rows->emplace_back(name, count / seconds);
  };
  static const char kPage[4096] = {};
  per_second("launches_per_s", quick ? 1000 : 20000,
             [&] { Launch(device, device.queue, 0, nullptr, nullptr); });
  per_second("writes_4kib_per_s", quick ? 500 : 5000,
             [&] { Write(device, device.small, CL_FALSE, sizeof(kPage), kPage); });
  per_second("create_write_release_per_s", quick ? 200 : 2000, [&] {
    cl_mem buffer = NewBuffer(device, CL_MEM_READ_WRITE, sizeof(kPage));
    Write(device, buffer, CL_FALSE, sizeof(kPage), kPage);
    ocl_check(clReleaseMemObject(buffer), "clReleaseMemObject");
  });
}

}  // namespace

void MeasureCalls(const Device& device, const Options& options, Rows* rows) {
  const bool quick = options.quick;
  rows->emplace_back("launch_host_us", LaunchHostUs(device, quick ? 2 : 15));
  MeasureSynchronous(device, quick ? 50 : 1000, rows);
  MeasureLocalCalls(device, quick ? 3 : 21, rows);
  MeasurePipelined(device, quick, rows);
  rows->emplace_back("event_chain_1000_us", EventChainUs(device, quick ? 1 : 9));
  rows->emplace_back("build_ms", BuildMs(device, quick ? 1 : 5));
}

}  // namespace sluice_bench
