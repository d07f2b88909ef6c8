// SPDX-License-Identifier: Apache-2.0
//
// Shared by the benchmark's row files: the device under measurement, a clock, medians, and the list
// of results. A row is one number under a fixed name; units are in the name's end (_us, _ns, _ms,
// _gbs, _per_s). bench.py knows which direction is better and what the budget is.
//
// Owner: main. One thread. Any OpenCL error ends the program with the call's name: a benchmark of
// calls that fail measures nothing.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../system/programs/ocl.h"

namespace sluice_bench {

using Rows = std::vector<std::pair<std::string, double>>;

struct Options {
  bool quick = false;  // Few repetitions: a smoke test, not a measurement.
  bool calls = false;  // Only what MeasureCalls measures.
};

// One device with a context, an in-order queue and an empty kernel that takes a buffer and a
// number.
struct Device {
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  cl_kernel empty = nullptr;
  cl_kernel busy = nullptr;  // Argument 1: how many rounds it works.
  cl_mem small = nullptr;    // 4 KiB, argument 0 of `empty`.
  std::string platform_name, name, driver, type;
};

double Median(std::vector<double> values);  // Of at least one.

// The median of the seconds that `repeats` runs of `body` took, after one run that does not count.
double MedianSeconds(int repeats, const std::function<void()>& body);

// The device under test: see ocl.h for the environment that chooses it.
Device OpenDevice();
cl_mem NewBuffer(const Device& device, cl_mem_flags flags, size_t bytes);
// Starts the empty kernel; `event` may be null.
void Launch(const Device& device, cl_command_queue queue, cl_uint waits, const cl_event* wait_list,
            cl_event* event);

// The rows: calls and commands, and bulk data.
void MeasureCalls(const Device& device, const Options& options, Rows* rows);
void MeasureTransfers(const Device& device, const Options& options, Rows* rows);
void MeasureSustained(const Device& device, const Options& options, Rows* rows);

// The median round trip of 64 bytes over a loopback TCP connection between two threads, in
// microseconds.
double LoopbackRoundTripUs(const Options& options);

}  // namespace sluice_bench
