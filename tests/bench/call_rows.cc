// SPDX-License-Identifier: Apache-2.0
//
// Rows about calls and small commands: what an application pays per call, per launch and per wait.
#include <algorithm>
#include <string>
#include <vector>

#include "bench.h"

namespace sluice_bench {
namespace {

constexpr int kLaunchesAmortised = 1000;  // The number that the budget is for.
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

cl_command_queue NewQueue(const Device& device, cl_command_queue_properties flags) {
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, flags, 0};
  cl_int code = CL_SUCCESS;
  cl_command_queue queue =
      clCreateCommandQueueWithProperties(device.context, device.id, properties, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  return queue;
}

// A thousand launches, each waiting for the one before by its event, on a queue that would not
// order them (if the device has one), or on one that would.
double EventChainUs(const Device& device, bool in_order, int repeats) {
  cl_command_queue_properties supported = 0;
  ocl_check(clGetDeviceInfo(device.id, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, sizeof(supported),
                            &supported, nullptr),
            "clGetDeviceInfo");
  cl_command_queue queue =
      NewQueue(device, in_order ? 0 : supported & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
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
  per_second("launches_local_per_s", quick ? 1000 : 20000, [&] {
    const size_t one = 1;
    ocl_check(clEnqueueNDRangeKernel(device.queue, device.empty, 1, nullptr, &one, &one, 0, nullptr,
                                     nullptr),
              "clEnqueueNDRangeKernel");
  });
  per_second("writes_4kib_per_s", quick ? 500 : 5000,
             [&] { Write(device, device.small, CL_FALSE, sizeof(kPage), kPage); });
  per_second("create_write_release_per_s", quick ? 200 : 2000, [&] {
    cl_mem buffer = NewBuffer(device, CL_MEM_READ_WRITE, sizeof(kPage));
    Write(device, buffer, CL_FALSE, sizeof(kPage), kPage);
    ocl_check(clReleaseMemObject(buffer), "clReleaseMemObject");
  });
  per_second("create_release_per_s", quick ? 200 : 2000, [&] {
    cl_mem buffer = NewBuffer(device, CL_MEM_READ_WRITE, sizeof(kPage));
    ocl_check(clReleaseMemObject(buffer), "clReleaseMemObject");
  });
}

void LaunchBusy(const Device& device, cl_command_queue queue, double rounds, cl_event* event) {
  const size_t one = 1;
  const auto count = static_cast<cl_uint>(rounds);
  ocl_check(clSetKernelArg(device.busy, 1, sizeof(count), &count), "clSetKernelArg");
  ocl_check(clEnqueueNDRangeKernel(queue, device.busy, 1, nullptr, &one, &one, 0, nullptr, event),
            "clEnqueueNDRangeKernel");
}

// By the device's clock; the median of some.
double BusySeconds(const Device& device, cl_command_queue profiling, double rounds) {
  std::vector<double> samples;
  for (int i = 0; i < 3; ++i) {
    cl_event event = nullptr;
    LaunchBusy(device, profiling, rounds, &event);
    ocl_check(clWaitForEvents(1, &event), "clWaitForEvents");
    cl_ulong start = 0, end = 0;
    ocl_check(
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start, nullptr),
        "clGetEventProfilingInfo");
    ocl_check(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr),
              "clGetEventProfilingInfo");
    ocl_check(clReleaseEvent(event), "clReleaseEvent");
    samples.push_back(static_cast<double>(end - start) * 1e-9);
  }
  return Median(std::move(samples));
}

// Launch and clFinish of kernels that take long: by how much the wait is longer than the kernel.
void MeasureLongKernels(const Device& device, bool quick, Rows* rows) {
  cl_command_queue profiling = NewQueue(device, CL_QUEUE_PROFILING_ENABLE);
  double rounds_per_second = 1e6;
  for (int i = 0; i < 3; ++i)
    rounds_per_second *= 0.01 / BusySeconds(device, profiling, rounds_per_second * 0.01);
  const std::vector<double> lengths_ms = {0.2, 0.5, 1, 2, 5, 10, 100};
  for (const double ms : lengths_ms) {
    const double rounds = rounds_per_second * ms * 1e-3;
    const double kernel = BusySeconds(device, profiling, rounds);
    const double wait = MedianSeconds(quick     ? 1
                                      : ms > 50 ? 5
                                                : 25,
                                      [&] {
                                        LaunchBusy(device, device.queue, rounds, nullptr);
                                        ocl_check(clFinish(device.queue), "clFinish");
                                      });
    std::string name = "long_kernel_" + std::to_string(static_cast<int>(ms * 1000)) + "us_over_us";
    rows->emplace_back(std::move(name), (wait - kernel) * 1e6);
  }
  clReleaseCommandQueue(profiling);
}

double CreateContextMs(const Device& device, int repeats) {
  const double seconds = MedianSeconds(repeats, [&] {
    cl_int code = CL_SUCCESS;
    cl_context context = clCreateContext(nullptr, 1, &device.id, nullptr, nullptr, &code);
    ocl_check(code, "clCreateContext");
    ocl_check(clReleaseContext(context), "clReleaseContext");
  });
  return seconds * 1e3;
}

}  // namespace

void MeasureCalls(const Device& device, const Options& options, Rows* rows) {
  const bool quick = options.quick;
  rows->emplace_back("launch_host_us", LaunchHostUs(device, quick ? 2 : 15));
  MeasureSynchronous(device, quick ? 50 : 1000, rows);
  MeasureLocalCalls(device, quick ? 3 : 21, rows);
  MeasurePipelined(device, quick, rows);
  rows->emplace_back("event_chain_1000_us", EventChainUs(device, false, quick ? 1 : 9));
  rows->emplace_back("event_chain_in_order_1000_us", EventChainUs(device, true, quick ? 1 : 9));
  MeasureLongKernels(device, quick, rows);
  rows->emplace_back("create_context_ms", CreateContextMs(device, quick ? 1 : 5));
  rows->emplace_back("build_ms", BuildMs(device, quick ? 1 : 5));
}

}  // namespace sluice_bench
