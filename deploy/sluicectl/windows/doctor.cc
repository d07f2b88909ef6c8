// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/windows/doctor.h"

#include <windows.h>
// After windows.h.
#include <CL/cl.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/os/dynamic_library.h"
#include "broker/os/installation.h"
#include "broker/os/this_process.h"
#include "deploy/sluicectl/broker_client.h"
#include "deploy/sluicectl/doctor_report.h"
#include "deploy/sluicectl/endpoint.h"
#include "deploy/sluicectl/remote_client.h"

namespace sluice::ctl {
namespace {

constexpr char kLoader[] = "OpenCL.dll";

class Examination {
 public:
  explicit Examination(const CommonFlags& flags) : flags_(flags) {}

  int Run() {
    CheckLoader();
    CheckDriver();
    std::vector<absl::Status> refused;
    const absl::StatusOr<std::vector<EndpointAddress>> endpoints =
        ResolveEndpoints(flags_.endpoint, &refused);
    for (const absl::Status& status : refused) {
      steps_.Failed("endpoint", std::string(status.message()),
                    "correct SLUICE_ENDPOINT or --endpoint");
    }
    if (endpoints.ok()) {
      for (const EndpointAddress& endpoint : *endpoints) CheckDaemon(endpoint);
    }
    CheckPlatforms();
    return steps_.Report(
        flags_.json, "An application started like this sees Sluice's devices.\n",
        "An application started like this does not see all of Sluice's devices.\n");
  }

 private:
  void CheckLoader() {
    absl::StatusOr<os::DynamicLibrary> loader = os::DynamicLibrary::Open(kLoader);
    if (!loader.ok()) {
      return steps_.Failed("OpenCL loader", std::string(loader.status().message()),
                           "OpenCL.dll comes with the driver of a graphics adapter; Khronos' is in "
                           "the releases of github.com/KhronosGroup/OpenCL-SDK");
    }
    loader_ = *std::move(loader);
    loader_.KeepForever();
    const void* const function = loader_.Find("clGetPlatformIDs");
    if (function == nullptr) {
      loader_ = os::DynamicLibrary();
      return steps_.Failed("OpenCL loader", "the system's OpenCL.dll is no loader of OpenCL's",
                           "install the graphics adapter's driver again");
    }
    steps_.Ok("OpenCL loader", os::LibraryFileOf(function));
  }

  void CheckDriver() {
    const std::vector<std::string> drivers = os::RegisteredDrivers();
    if (drivers.empty()) {
      steps_.Failed("driver's entry", "no entry of OpenCL's loader names sluice_icd.dll",
                    "`sluicectl install --no-service`, as an administrator, makes one");
    }
    for (const std::string& driver : drivers) {
      steps_.Ok("driver's entry", driver);
      absl::StatusOr<os::DynamicLibrary> library = os::DynamicLibrary::Open(driver);
      if (!library.ok()) {
        steps_.Failed("driver", std::string(library.status().message()),
                      "unpack or install Sluice there again, or `sluicectl install` from where it "
                      "is");
        continue;
      }
      library->KeepForever();
      steps_.Ok("driver", absl::StrCat(driver, " loads"));
    }
  }

  void CheckDaemon(const EndpointAddress& endpoint) {
    steps_.Ok("endpoint", endpoint.text);
    if (!endpoint.local()) {
      const absl::StatusOr<std::string> snapshot =
          DescribeNetwork(endpoint.target, flags_.timeout_ms);
      if (snapshot.ok()) return CheckDevices("", *snapshot);
      return steps_.Failed("daemon on the network", std::string(snapshot.status().message()),
                           "is sluiced running there with a [[network]] entry, does a firewall let "
                           "it through, and do SLUICE_TLS_CA, SLUICE_TLS_CERT, SLUICE_TLS_KEY and "
                           "SLUICE_TOKEN_FILE fit that entry?");
    }
    const absl::StatusOr<Greeting> greeting = Greet(endpoint.target, flags_.timeout_ms);
    if (!greeting.ok()) {
      const std::string service = os::DescribeService();
      return steps_.Failed(
          "daemon's pipe", std::string(greeting.status().message()),
          service.empty() ? "`sluicectl status` says what the service does" : service);
    }
    steps_.Ok("daemon's pipe", "the daemon answers");
    CheckDevices(greeting->problem, greeting->snapshot);
    if (greeting->tells_quotas) {
      absl::StatusOr<ToldQuotas> told = AskQuotas(greeting->socket.get(), flags_.timeout_ms);
      if (told.ok()) steps_.Quotas(told->account, std::move(told->quotas));
    }
    const absl::Status session = TrySession(greeting->socket.get(), flags_.timeout_ms);
    if (session.ok()) return steps_.Ok("session", "the daemon opened one for this user");
    steps_.Failed("session", std::string(session.message()),
                  "end a session (`sluicectl sessions`), raise [limits], or look into the event "
                  "log (application, source Sluice)");
  }

  void CheckDevices(const std::string& problem, const std::string& snapshot) {
    if (!problem.empty()) {
      return steps_.Failed("devices", problem,
                           "install the driver of the graphics adapter on the daemon's machine, "
                           "and start the daemon again");
    }
    const absl::StatusOr<std::vector<PlatformSummary>> platforms = DecodeSnapshot(snapshot);
    if (!platforms.ok()) {
      return steps_.Failed("devices", std::string(platforms.status().message()),
                           "install sluicectl and sluiced of one release");
    }
    std::vector<std::string> names;
    for (const PlatformSummary& platform : *platforms) {
      for (const DeviceSummary& device : platform.devices)
        names.push_back(absl::StrCat(platform.name, ": ", device.name));
    }
    if (!names.empty()) return steps_.Ok("devices", absl::StrJoin(names, "; "));
    steps_.Failed("devices", "the daemon offers none",
                  "check [devices] allow in the daemon's configuration");
  }

  // In this process, which a driver that crashes ends.
  void CheckPlatforms() {
    constexpr char kName[] = "application's view";
    steps_.Tell(flags_.json);
    if (!loader_.valid()) return steps_.Skipped(kName, "there is no loader");
    const auto list =
        reinterpret_cast<decltype(&clGetPlatformIDs)>(loader_.Find("clGetPlatformIDs"));
    const auto info =
        reinterpret_cast<decltype(&clGetPlatformInfo)>(loader_.Find("clGetPlatformInfo"));
    if (info == nullptr)
      return steps_.Failed(kName, "the loader lacks clGetPlatformInfo", "install another");
    cl_uint count = 0;
    if (list(0, nullptr, &count) != CL_SUCCESS) count = 0;
    std::vector<cl_platform_id> platforms(count);
    if (count != 0 && list(count, platforms.data(), nullptr) != CL_SUCCESS) platforms.clear();
    std::vector<std::string> names;
    bool ours = false;
    for (const cl_platform_id platform : platforms) {
      char name[1024] = {};
      if (info(platform, CL_PLATFORM_NAME, sizeof(name) - 1, name, nullptr) != CL_SUCCESS) continue;
      ours = ours || absl::StartsWith(name, "Sluice (");
      names.emplace_back(name);
    }
    const std::string found = names.empty() ? "the loader lists no platform at all"
                                            : absl::StrCat("the loader lists, in this order, ",
                                                           absl::StrJoin(names, "; "));
    if (ours) return steps_.Ok(kName, found);
    steps_.Failed(kName, found,
                  "mend the steps that failed above; if there are none, set SLUICE_LOG=debug and "
                  "run the application again");
  }

  const CommonFlags& flags_;
  Steps steps_;
  os::DynamicLibrary loader_;
};

}  // namespace

int DoctorCommand(const CommonFlags& flags) {
  // The driver looks where the other steps look.
  if (!flags.endpoint.empty()) {
    const std::u8string endpoint(flags.endpoint.begin(), flags.endpoint.end());
    ::SetEnvironmentVariableW(L"SLUICE_ENDPOINT", std::filesystem::path(endpoint).c_str());
  }
  return Examination(flags).Run();
}

}  // namespace sluice::ctl
