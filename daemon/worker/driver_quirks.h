// SPDX-License-Identifier: Apache-2.0
// Peculiarities of drivers, as named facts: the only file of the worker that names a driver.
// Everything else asks for a fact of the device's (DeviceObject::quirks), and tells the client what
// concerns it (ContextPlacement). Each row says which versions were seen to do it and when the row
// may go; with a row goes all that asks for its fact.
//
// Facts that can be tried are tried instead: host memory for buffers and images
// (memory/host_memory.h), a refused callback (queues/completions.h).
//
// These are kept without a fact, since they are right with every driver:
//
//   | where                        | driver       | what it would do otherwise             |
//   | ---------------------------- | ------------ | -------------------------------------- |
//   | handlers/svm.cc, migrate     | rusticl 25.0 | CL_INVALID_VALUE for memory of ours    |
//   | handlers/info.cc             | PoCL 3.1     | one binary for all sub-devices         |
//   | handlers/kernel.cc           | rusticl 25.0 | refuses an empty list by NULL          |
//   | handlers/memory.cc, migrate  | NVIDIA 580   | reads the list when the command runs   |
//   | handlers/memory.cc, rects    | PoCL 3.1     | takes an x beyond the pitch for more   |
//   | handlers/program.cc          | NVIDIA 580   | ptxas fails when asked for arguments   |
//   | handlers/program.cc          | rusticl 25.0 | crashes for built-in kernels it lacks  |
//   | handlers/program.cc, link    | PoCL 3.1     | goes by the options of the link alone  |
//   | handlers/sampler.cc          | NVIDIA 580   | crashes on an empty list of properties |
//   | handlers/sharing/shadow.cc   | NVIDIA 580   | waits in the call for the wait list    |
//   | memory/zero_fill.cc          | NVIDIA 580   | fills by single bytes fail at 2 GiB    |
//   | programs/argument_records.h  | NVIDIA 580   | no argument information in binaries    |
//   | programs/compile_cache.h     | PoCL         | its cache grows without bound          |
//   | programs/include_folder.h    | PoCL 3.1     | takes no quotes off a path             |
//   | queues/completions.h         | PoCL 3.1     | no callback for what fails by an event |
//   | queues/completions.h, keep   | NVIDIA 580   | uses a failed command's memory on      |
//   | queues/enqueuer.cc           | PoCL 3.1     | never ends what waits for the failed   |
//   | queues/own_commands.h        | PoCL 3.1     | markers wait for more than their list  |
//   | session.cc                   | NVIDIA 580   | hangs if shared memory is not released |
//
// Immutable.
#pragma once

#include <charconv>
#include <climits>
#include <cstdint>
#include <string_view>

namespace sluice::worker {

struct DriverQuirks {
  // If a user event fails while the last other thing that a command waits for ends, the command
  // ends twice and the process aborts (guards.h).
  bool aborts_on_failed_wait = false;
  // The status of what has failed by its wait list is -1, which as a code means that there is no
  // device.
  bool fails_waits_with_minus_one = false;
  // A command that has failed by one it waits for is freed, and used again after that
  // (queues/kept_events.h).
  bool frees_failed_commands = false;
  // Copies of rectangles, or from and to images, crash if a buffer is a sub-buffer
  // (memory/whole_buffer.h).
  bool crashes_on_sub_buffers = false;
  // Shared virtual memory is to commands only what its own clSVMAlloc has given: fills of other
  // memory crash, and maps and unmaps give no event. Kernels may use it (handlers/svm.cc).
  bool knows_own_svm_only = false;
  // Commands of a queue out of order pass others that wait. Drivers need not do so.
  bool overtakes = false;
  // Callbacks come from a thread that looks every 20 ms: events are polled (queues/completions.h).
  bool calls_back_late = false;
  // A command that runs is CL_SUBMITTED, and one that waits for others CL_QUEUED
  // (queues/kernel_watch.h).
  bool never_says_running = false;
  // Once somebody has asked for it, the event of a kernel or a marker ends only after all that the
  // context's other queues were given before. That of a small write does not, and no more does
  // clFinish: a queue in order is marked by writes (InOrderQueue::Mark).
  bool kernels_end_late = false;
  // The thread that finds a kernel ended writes its text after that: for another thread the kernel
  // has ended and nothing has been printed (pool/shared_contexts.h). Needs calls_back_late.
  bool prints_late = false;
  // A command that has begun and fails (a fault on the device) takes its whole context with it: in
  // a queue in order, one that has completed says that those before it have.
  bool faults_end_contexts = false;
  // The fill of a 3D image returns when all before it has ended (handlers/image.cc).
  bool waits_in_volume_fills = false;
  // A 1D image over a buffer that the driver has imported can be made, and kernels that use it
  // fail.
  bool fails_images_of_imports = false;
  // Its driver UUID is not that of the same vendor's graphics driver, whose memory it imports all
  // the same (memory/opaque_memory.cc).
  bool has_uuid_of_its_own = false;
  // To go from one process's work to another's costs the device more than many a kernel: workers
  // take turns (queues/turn_gate.h).
  bool switches_slowly = false;
};

// As the driver says of itself: CL_DEVICE_VENDOR_ID, CL_DEVICE_VERSION and CL_DRIVER_VERSION.
struct DriverVersion {
  uint32_t vendor_id = 0;
  std::string_view device_version;
  std::string_view driver_version;
};

enum class KnownDriver { kOther, kPocl, kNvidia };

inline KnownDriver NameDriver(const DriverVersion& version) {
  // "OpenCL 3.0 PoCL HSTR: ...": its devices have the vendor ids of their processors.
  if (version.device_version.find(" PoCL") != std::string_view::npos) return KnownDriver::kPocl;
  return version.vendor_id == 0x10de ? KnownDriver::kNvidia : KnownDriver::kOther;
}

// The first number of CL_DRIVER_VERSION ("3.1+debian", "580.65.06"); 0 if there is none.
inline int DriverMajor(std::string_view driver_version) {
  int major = 0;
  std::from_chars(driver_version.data(), driver_version.data() + driver_version.size(), major);
  return major;
}

struct QuirkRow {
  bool DriverQuirks::*fact;
  KnownDriver driver;
  int first_major;
  int last_major;  // A version that nobody has tried is taken for the newest that was.
};

inline constexpr int kAnyLater = INT_MAX;

inline constexpr QuirkRow kQuirkRows[] = {
    // 3.1, 6.0 and 7.1 (see guards.h for how often). Until pocl_update_event_failed holds the
    // command's lock.
    {&DriverQuirks::aborts_on_failed_wait, KnownDriver::kPocl, 0, kAnyLater},
    // The same versions. Until it answers CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST.
    {&DriverQuirks::fails_waits_with_minus_one, KnownDriver::kPocl, 0, kAnyLater},
    // 3.1: aborts in the first rounds of what 7.1 stands thousands of. 6.0: in one of some thousand
    // ("pocl_lock_events_inorder: ... refcount > 0"). Until Debian 13 is no longer supported.
    {&DriverQuirks::frees_failed_commands, KnownDriver::kPocl, 0, 6},
    // 3.1 and 6.0; 7.1 copies them right. Until Debian 13 is no longer supported.
    {&DriverQuirks::crashes_on_sub_buffers, KnownDriver::kPocl, 0, 6},
    // 6.0 and 7.1; 3.1 takes any memory. Until it looks up what it has not allocated.
    {&DriverQuirks::knows_own_svm_only, KnownDriver::kPocl, 4, kAnyLater},
    // 3.1, 6.0 and 7.1. This is no fault: the row stays as long as the driver does so.
    {&DriverQuirks::overtakes, KnownDriver::kPocl, 0, kAnyLater},
    // 580 on an H200: eight writes that had ended after 0.65 ms were told after 20. Until callbacks
    // come at once.
    {&DriverQuirks::calls_back_late, KnownDriver::kNvidia, 0, kAnyLater},
    // 580 on an H100. Until a command that runs is CL_RUNNING.
    {&DriverQuirks::never_says_running, KnownDriver::kNvidia, 0, kAnyLater},
    // 580.159.04 (H200): beside eight kernels of 20 ms in another queue 147 ms for 12 us. Until an
    // event ends with its own queue.
    {&DriverQuirks::kernels_end_late, KnownDriver::kNvidia, 0, kAnyLater},
    // 580.159.04 (H200): 172 of 3,200 lines. Until an event ends after its kernel's text.
    {&DriverQuirks::prints_late, KnownDriver::kNvidia, 0, kAnyLater},
    // 580.159.04 (H100): after a wild write every command of the context fails. No fault of the
    // driver's: the row stays as long as it does so.
    {&DriverQuirks::faults_end_contexts, KnownDriver::kNvidia, 0, kAnyLater},
    // 580.159.04, as the two below (H100 and H200). Until the fill returns at once.
    {&DriverQuirks::waits_in_volume_fills, KnownDriver::kNvidia, 0, kAnyLater},
    // Until a kernel reads such an image.
    {&DriverQuirks::fails_images_of_imports, KnownDriver::kNvidia, 0, kAnyLater},
    // 580 on an H100: 137 us. No fault of the driver's: the row stays as long as it does so.
    {&DriverQuirks::switches_slowly, KnownDriver::kNvidia, 0, kAnyLater},
    // Until CL_DRIVER_UUID_KHR is Vulkan's.
    {&DriverQuirks::has_uuid_of_its_own, KnownDriver::kNvidia, 0, kAnyLater},
};

inline DriverQuirks QuirksOf(const DriverVersion& version) {
  const KnownDriver driver = NameDriver(version);
  const int major = DriverMajor(version.driver_version);
  DriverQuirks quirks;
  for (const QuirkRow& row : kQuirkRows) {
    if (row.driver == driver && row.first_major <= major && major <= row.last_major)
      quirks.*row.fact = true;
  }
  return quirks;
}

}  // namespace sluice::worker
