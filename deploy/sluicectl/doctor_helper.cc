// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/doctor_helper.h"

#include <CL/cl.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "broker/os/dynamic_library.h"
#include "broker/os/file.h"
#include "deploy/sluicectl/doctor.h"
#include "deploy/sluicectl/exit_codes.h"

namespace sluice::ctl {

int LoadLibraryCommand(const std::string& path) {
  const absl::StatusOr<os::DynamicLibrary> library = os::DynamicLibrary::Open(path);
  std::string answer = kLoads;
  if (!library.ok()) {
    answer = std::string(library.status().message());
  } else if (library->Find("clGetExtensionFunctionAddress") == nullptr) {
    answer = absl::StrCat(path, " is no OpenCL driver");
  }
  const ssize_t written = ::write(kAnswerFd, answer.data(), answer.size());
  // Not by exit: what the library has registered may crash as well.
  std::_Exit(written == static_cast<ssize_t>(answer.size()) ? kExitOk : kExitFailed);
}

namespace {

// The functions of the loader's that an application begins with; false if one is missing.
struct LoaderFunctions {
  decltype(&clGetPlatformIDs) get_platforms;
  decltype(&clGetPlatformInfo) get_info;
  decltype(&clGetDeviceIDs) get_devices;
  decltype(&clCreateContext) create_context;
  decltype(&clReleaseContext) release_context;

  bool Find(const os::DynamicLibrary& loader) {
    return Take(loader, "clGetPlatformIDs", &get_platforms) &&
           Take(loader, "clGetPlatformInfo", &get_info) &&
           Take(loader, "clGetDeviceIDs", &get_devices) &&
           Take(loader, "clCreateContext", &create_context) &&
           Take(loader, "clReleaseContext", &release_context);
  }

  template <typename Function>
  static bool Take(const os::DynamicLibrary& loader, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(loader.Find(name));
    return *function != nullptr;
  }
};

bool Answer(absl::string_view prefix, const std::string& text) {
  const std::string line = absl::StrCat(prefix, absl::StrReplaceAll(text, {{"\n", " "}}), "\n");
  return ::write(kAnswerFd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

// The driver's own words: what it logs. Where somebody asked for its log, that is on stderr as they
// expect, and there are none here.
class DriverLog {
 public:
  DriverLog() {
    if (std::getenv("SLUICE_LOG") != nullptr) return;
    absl::StatusOr<os::UniqueFd> file = os::CreateScratchFile("driver-log");
    if (!file.ok() || ::dup2(file->get(), STDERR_FILENO) < 0) return;
    file_ = *std::move(file);
    ::setenv("SLUICE_LOG", "info", 1);
  }

  // The last line of that level since the last call, without whose it is; "" if there is none.
  std::string TakeLast(absl::string_view level) {
    std::string last;
    if (!file_.valid()) return last;
    const absl::StatusOr<std::string> log = os::ReadScratchFile(file_.get(), kMaxLogBytes);
    if (!log.ok()) return last;
    const std::string mark = absl::StrCat("] ", level, ": ");
    for (const absl::string_view line : absl::StrSplit(log->substr(taken_), '\n')) {
      const size_t at = line.find(mark);
      if (absl::StartsWith(line, "sluice-icd[") && at != absl::string_view::npos)
        last = std::string(line.substr(at + mark.size()));
    }
    taken_ = log->size();
    return last;
  }

 private:
  static constexpr size_t kMaxLogBytes = 1 << 20;
  os::UniqueFd file_;
  size_t taken_ = 0;
};

// kOpened, or the code and the driver's words for it.
std::string TryContext(const LoaderFunctions& cl, cl_platform_id platform, DriverLog* log) {
  cl_device_id device = nullptr;
  cl_int status = cl.get_devices(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
  if (status != CL_SUCCESS) return absl::StrCat("clGetDeviceIDs gives ", status);
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform), 0};
  log->TakeLast("error");
  const cl_context context = cl.create_context(properties, 1, &device, nullptr, nullptr, &status);
  const std::string words = log->TakeLast("error");
  if (context != nullptr) {
    cl.release_context(context);
    return kOpened;
  }
  return absl::StrCat("clCreateContext gives ", status, words.empty() ? "" : ": ", words);
}

}  // namespace

int ListPlatformsCommand() {
  DriverLog log;
  absl::StatusOr<os::DynamicLibrary> loader = os::DynamicLibrary::Open(kLoader);
  if (!loader.ok()) return kExitFailed;
  loader->KeepForever();
  LoaderFunctions cl;
  cl_platform_id ids[64];
  cl_uint count = 0;
  if (!cl.Find(*loader)) return kExitFailed;
  // Without any, some loaders say so by an error.
  if (cl.get_platforms(std::size(ids), ids, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> ours;
  for (cl_uint i = 0; i < count && i < std::size(ids); ++i) {
    char name[256] = {};
    if (cl.get_info(ids[i], CL_PLATFORM_NAME, sizeof(name) - 1, name, nullptr) != CL_SUCCESS)
      continue;
    if (!Answer(kPlatformLine, name)) return kExitFailed;
    if (IsOurs(name)) ours.push_back(ids[i]);
  }
  if (ours.empty() && !Answer(kNoneLine, log.TakeLast("error"))) return kExitFailed;
  // After all names: this one opens sessions, which may take its time.
  for (const cl_platform_id platform : ours) {
    if (!Answer(kContextLine, TryContext(cl, platform, &log))) return kExitFailed;
  }
  return kExitOk;
}

}  // namespace sluice::ctl
