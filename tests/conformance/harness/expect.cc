// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/expect.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>

namespace sluice::conformance {
namespace {

// The check that any thread began last, for the message of a crash. Written without a lock: a torn
// name is no harm.
std::atomic<char> last_check[128];

void NoteCheck(std::string_view name) {
  const size_t bytes = std::min(name.size(), std::size(last_check) - 1);
  for (size_t i = 0; i < bytes; ++i) last_check[i].store(name[i], std::memory_order_relaxed);
  last_check[bytes].store('\0', std::memory_order_relaxed);
}

// Async-signal-safe: names the check and lets the default action follow.
void OnCrash(int number) {
  std::signal(number, SIG_DFL);
  constexpr char kText[] = "\ncrashed in or after the check ";
  ssize_t ignored = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  char name[std::size(last_check)];
  for (size_t i = 0; i < sizeof(name); ++i) name[i] = last_check[i].load();
  ignored = write(STDERR_FILENO, name,
                  static_cast<size_t>(std::find(name, name + sizeof(name), '\0') - name));
  ignored = write(STDERR_FILENO, "\n", 1);
  static_cast<void>(ignored);
}

// For drivers that end the process themselves.
void OnExit() {
  if (last_check[0].load() != '\0') OnCrash(0);
}

std::string Joined(const AnyOf& expected) {
  std::string text;
  for (cl_int code : expected.codes) text += (text.empty() ? "" : " or ") + CodeName(code);
  return text;
}

// One line per check, so that two runs can be compared as sorted sets.
void Record(std::string_view name, cl_int seen) {
  const std::string& path = TheHarness().record_path;
  if (path.empty()) return;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  static std::FILE* file = std::fopen(path.c_str(), "a");
  if (file == nullptr) return;
  std::fprintf(file, "%.*s\t%s\n", static_cast<int>(name.size()), name.data(),
               CodeName(seen).c_str());
  std::fflush(file);
}

void PrintOnce(const Difference& row, const char* what) {
  static std::mutex mutex;
  static std::set<std::string_view> printed;
  std::lock_guard<std::mutex> lock(mutex);
  if (!printed.insert(row.name).second) return;
  std::printf("[ %s ] %.*s: %.*s\n", what, static_cast<int>(row.name.size()), row.name.data(),
              static_cast<int>(row.reason.size()), row.reason.data());
}

bool Contains(const AnyOf& expected, cl_int code) {
  return std::find(expected.codes.begin(), expected.codes.end(), code) != expected.codes.end();
}

}  // namespace

void NameChecksInCrashes() {
  for (int number : {SIGSEGV, SIGFPE, SIGILL, SIGABRT}) std::signal(number, &OnCrash);
#ifdef SIGBUS
  std::signal(SIGBUS, &OnCrash);
#endif
  std::atexit(&OnExit);
}

void ForgetLastCheck() { last_check[0] = '\0'; }

bool MayRun(std::string_view name) {
  NoteCheck(name);
  const Difference* row = FindDifference(name);
  if (row == nullptr || row->seen != kDoNotRun) return true;
  PrintOnce(*row, "NOT RUN");
  return false;
}

bool Differs(std::string_view name) {
  const Difference* row = FindDifference(name);
  if (row == nullptr) return false;
  PrintOnce(*row, "DIFFERS");
  return true;
}

bool CheckCode(const char* file, int line, std::string_view name, const AnyOf& expected,
               cl_int seen, const char* text) {
  Record(name, seen);
  const Difference* row = FindDifference(name);
  if (row == nullptr || row->seen == kBehaviour) {
    if (Contains(expected, seen)) return true;
    ADD_FAILURE_AT(file, line) << name << ": expected " << Joined(expected) << ", got "
                               << CodeName(seen) << "\n  from " << text;
    return false;
  }
  if (seen == row->seen) return true;
  // A driver behind Sluice may have been asked only after the client's own, specified, check.
  if (TheHarness().IsSluice() && Contains(expected, seen)) return true;
  ADD_FAILURE_AT(file, line) << name << ": the table of differences says " << CodeName(row->seen)
                             << " (" << row->reason << "), got " << CodeName(seen) << "\n  from "
                             << text;
  return false;
}

void CheckHandle(const char* file, int line, std::string_view name, cl_int seen, bool has_handle,
                 const char* text) {
  if (has_handle == (seen == CL_SUCCESS) || Differs(std::string(name) + "/handle")) return;
  ADD_FAILURE_AT(file, line) << name << ": " << CodeName(seen) << " came with "
                             << (has_handle ? "a handle" : "no handle") << "\n  from " << text;
}

std::string CodeName(cl_int code) {
#define NAME(code) \
  { code, #code }
  static const std::map<cl_int, const char*> names = {
      NAME(CL_SUCCESS),
      NAME(CL_DEVICE_NOT_FOUND),
      NAME(CL_DEVICE_NOT_AVAILABLE),
      NAME(CL_COMPILER_NOT_AVAILABLE),
      NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
      NAME(CL_OUT_OF_RESOURCES),
      NAME(CL_OUT_OF_HOST_MEMORY),
      NAME(CL_PROFILING_INFO_NOT_AVAILABLE),
      NAME(CL_MEM_COPY_OVERLAP),
      NAME(CL_IMAGE_FORMAT_MISMATCH),
      NAME(CL_IMAGE_FORMAT_NOT_SUPPORTED),
      NAME(CL_BUILD_PROGRAM_FAILURE),
      NAME(CL_MAP_FAILURE),
      NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET),
      NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
      NAME(CL_COMPILE_PROGRAM_FAILURE),
      NAME(CL_LINKER_NOT_AVAILABLE),
      NAME(CL_LINK_PROGRAM_FAILURE),
      NAME(CL_DEVICE_PARTITION_FAILED),
      NAME(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
      NAME(CL_INVALID_VALUE),
      NAME(CL_INVALID_DEVICE_TYPE),
      NAME(CL_INVALID_PLATFORM),
      NAME(CL_INVALID_DEVICE),
      NAME(CL_INVALID_CONTEXT),
      NAME(CL_INVALID_QUEUE_PROPERTIES),
      NAME(CL_INVALID_COMMAND_QUEUE),
      NAME(CL_INVALID_HOST_PTR),
      NAME(CL_INVALID_MEM_OBJECT),
      NAME(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
      NAME(CL_INVALID_IMAGE_SIZE),
      NAME(CL_INVALID_SAMPLER),
      NAME(CL_INVALID_BINARY),
      NAME(CL_INVALID_BUILD_OPTIONS),
      NAME(CL_INVALID_PROGRAM),
      NAME(CL_INVALID_PROGRAM_EXECUTABLE),
      NAME(CL_INVALID_KERNEL_NAME),
      NAME(CL_INVALID_KERNEL_DEFINITION),
      NAME(CL_INVALID_KERNEL),
      NAME(CL_INVALID_ARG_INDEX),
      NAME(CL_INVALID_ARG_VALUE),
      NAME(CL_INVALID_ARG_SIZE),
      NAME(CL_INVALID_KERNEL_ARGS),
      NAME(CL_INVALID_WORK_DIMENSION),
      NAME(CL_INVALID_WORK_GROUP_SIZE),
      NAME(CL_INVALID_WORK_ITEM_SIZE),
      NAME(CL_INVALID_GLOBAL_OFFSET),
      NAME(CL_INVALID_EVENT_WAIT_LIST),
      NAME(CL_INVALID_EVENT),
      NAME(CL_INVALID_OPERATION),
      NAME(CL_INVALID_GL_OBJECT),
      NAME(CL_INVALID_BUFFER_SIZE),
      NAME(CL_INVALID_MIP_LEVEL),
      NAME(CL_INVALID_GLOBAL_WORK_SIZE),
      NAME(CL_INVALID_PROPERTY),
      NAME(CL_INVALID_IMAGE_DESCRIPTOR),
      NAME(CL_INVALID_COMPILER_OPTIONS),
      NAME(CL_INVALID_LINKER_OPTIONS),
      NAME(CL_INVALID_DEVICE_PARTITION_COUNT),
      NAME(CL_INVALID_PIPE_SIZE),
      NAME(CL_INVALID_DEVICE_QUEUE),
      NAME(CL_INVALID_SPEC_ID),
      NAME(CL_MAX_SIZE_RESTRICTION_EXCEEDED),
      {kDoNotRun, "(not run)"},
      {0x7fffffff, "(no code written)"}};
#undef NAME
  const auto found = names.find(code);
  return found == names.end() ? std::to_string(code) : found->second;
}

}  // namespace sluice::conformance
