// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace sluice_bench {
namespace {

// `busy` takes a time in proportion to its rounds; what it stores depends on all of them.
constexpr char kSource[] =
    "kernel void empty(global uint* data, uint value) {}"
    "kernel void busy(global uint* data, uint rounds) {"
    "  uint x = data[0];"
    "  for (uint i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;"
    "  data[0] = x;"
    "}";
std::string DeviceText(cl_device_id device, cl_device_info what) {
  char text[256] = "";
  ocl_check(clGetDeviceInfo(device, what, sizeof(text), text, nullptr), "clGetDeviceInfo");
  return text;
}

}  // namespace

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double MedianSeconds(int repeats, const std::function<void()>& body) {
  body();
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const double start = ocl_seconds();
    body();
    times.push_back(ocl_seconds() - start);
  }
  return Median(std::move(times));
}

cl_mem NewBuffer(const Device& device, cl_mem_flags flags, size_t bytes) {
  cl_int code = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(device.context, flags, bytes, nullptr, &code);
  ocl_check(code, "clCreateBuffer");
  return buffer;
}

void Launch(const Device& device, cl_command_queue queue, cl_uint waits, const cl_event* wait_list,
            cl_event* event) {
  const size_t one = 1;
  ocl_check(clEnqueueNDRangeKernel(queue, device.empty, 1, nullptr, &one, nullptr, waits, wait_list,
                                   event),
            "clEnqueueNDRangeKernel");
}

Device OpenDevice() {
  Device device;
  char name[256];
  device.id = ocl_device(nullptr, name, sizeof(name));
  device.platform_name = name;
  device.name = DeviceText(device.id, CL_DEVICE_NAME);
  device.driver = DeviceText(device.id, CL_DRIVER_VERSION);
  cl_device_type type = 0;
  ocl_check(clGetDeviceInfo(device.id, CL_DEVICE_TYPE, sizeof(type), &type, nullptr),
            "clGetDeviceInfo");
  device.type = (type & CL_DEVICE_TYPE_CPU) != 0 ? "cpu" : "gpu";
  cl_int code = CL_SUCCESS;
  device.context = clCreateContext(nullptr, 1, &device.id, nullptr, nullptr, &code);
  ocl_check(code, "clCreateContext");
  device.queue = clCreateCommandQueueWithProperties(device.context, device.id, nullptr, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  device.program = ocl_build(device.context, device.id, kSource);
  device.empty = clCreateKernel(device.program, "empty", &code);
  ocl_check(code, "clCreateKernel");
  device.small = NewBuffer(device, CL_MEM_READ_WRITE, 4096);
  const cl_uint value = 0;
  ocl_check(clSetKernelArg(device.empty, 0, sizeof(cl_mem), &device.small), "clSetKernelArg");
  ocl_check(clSetKernelArg(device.empty, 1, sizeof(value), &value), "clSetKernelArg");
  device.busy = clCreateKernel(device.program, "busy", &code);
  ocl_check(code, "clCreateKernel");
  ocl_check(clSetKernelArg(device.busy, 0, sizeof(cl_mem), &device.small), "clSetKernelArg");
  Launch(device, device.queue, 0, nullptr, nullptr);
  ocl_check(clFinish(device.queue), "clFinish");
  return device;
}

double LoopbackRoundTripUs(const Options& options) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || bind(listener, generic, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, generic, &size) != 0) {
    std::perror("loopback listener");
    std::exit(1);
  }
  const int one = 1;
  std::thread echo([&] {
    const int peer = accept(listener, nullptr, nullptr);
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    char message[64];
    for (ssize_t got; (got = read(peer, message, sizeof(message))) > 0;) {
      if (write(peer, message, got) != got) break;
    }
    close(peer);
  });
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(client, generic, size) != 0) {
    std::perror("loopback connection");
    std::exit(1);
  }
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  char message[64] = {};
  const double seconds = MedianSeconds(options.quick ? 200 : 5000, [&] {
    if (write(client, message, sizeof(message)) != sizeof(message) ||
        recv(client, message, sizeof(message), MSG_WAITALL) != sizeof(message)) {
      std::perror("loopback round trip");
      std::exit(1);
    }
  });
  close(client);
  echo.join();
  close(listener);
  return seconds * 1e6;
}

}  // namespace sluice_bench
