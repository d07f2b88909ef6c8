// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/shadow_semaphores.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/worker/info_reader.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

absl::StatusOr<std::function<absl::StatusOr<os::UniqueFd>()>> MakeByVulkan(
    const os::ExternalMemoryDevice& device) {
  ASSIGN_OR_RETURN(std::unique_ptr<os::ExternalSemaphore> made, device.CreateSemaphore());
  return [semaphore = std::shared_ptr<const os::ExternalSemaphore>(std::move(made))] {
    return semaphore->Export();
  };
}

SemaphoreMaker& Maker() {
  static SemaphoreMaker& maker = *new SemaphoreMaker(&MakeByVulkan);
  return maker;
}

absl::Status CheckImports(const DeviceObject& device) {
  std::string bytes;
  const cl_int status = ReadInfo(
      [&](size_t size, void* value, size_t* size_ret) {
        return cl().clGetDeviceInfo(device.handle, CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR,
                                    size, value, size_ret);
      },
      &bytes);
  std::vector<cl_external_semaphore_handle_type_khr> types(bytes.size() / sizeof(cl_uint));
  bytes.copy(reinterpret_cast<char*>(types.data()), types.size() * sizeof(cl_uint));
  const bool takes =
      std::find(types.begin(), types.end(), CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR) != types.end();
  return status == CL_SUCCESS && takes
             ? absl::OkStatus()
             : absl::UnimplementedError("the driver has no cl_khr_external_semaphore_opaque_fd");
}

}  // namespace

void SetSemaphoreMakerForTesting(SemaphoreMaker maker) {
  Maker() = maker != nullptr ? std::move(maker) : &MakeByVulkan;
}

absl::StatusOr<std::unique_ptr<ShadowSemaphores>> ShadowSemaphores::Make(
    const ContextObject& context, const os::ExternalMemoryDevice& device) {
  if (context.devices.size() != 1) {
    return absl::UnimplementedError("the context has several devices");
  }
  const DeviceObject& own = *context.devices[0];
  RETURN_IF_ERROR(CheckImports(own));
  const auto find = [&own](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(
        cl().clGetExtensionFunctionAddressForPlatform(own.platform, name));
  };
  Functions functions;
  find(&functions.create, "clCreateSemaphoreWithPropertiesKHR");
  find(&functions.release, "clReleaseSemaphoreKHR");
  find(&functions.wait, "clEnqueueWaitSemaphoresKHR");
  find(&functions.signal, "clEnqueueSignalSemaphoresKHR");
  if (functions.create == nullptr || functions.release == nullptr || functions.wait == nullptr ||
      functions.signal == nullptr) {
    return absl::UnimplementedError("the driver lacks functions of cl_khr_semaphore");
  }
  std::unique_ptr<ShadowSemaphores> made(new ShadowSemaphores(functions));
  RETURN_IF_ERROR(made->MakeOne(context.handle.get(), device, &made->from_client_));
  RETURN_IF_ERROR(made->MakeOne(context.handle.get(), device, &made->to_client_));
  return made;
}

absl::Status ShadowSemaphores::MakeOne(cl_context context, const os::ExternalMemoryDevice& device,
                                       One* one) {
  ASSIGN_OR_RETURN(one->export_fd, Maker()(device));
  ASSIGN_OR_RETURN(os::UniqueFd fd, one->export_fd());
  const cl_semaphore_properties_khr properties[] = {
      CL_SEMAPHORE_TYPE_KHR, CL_SEMAPHORE_TYPE_BINARY_KHR, CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR,
      static_cast<cl_semaphore_properties_khr>(fd.get()), 0};
  cl_int status = CL_SUCCESS;
  one->handle = functions_.create(context, properties, &status);
  if (status != CL_SUCCESS) {
    one->handle = nullptr;
    return absl::UnavailableError(
        absl::StrCat("the driver does not import the semaphore: ", status));
  }
  // The import has taken the descriptor (cl_khr_external_semaphore_opaque_fd).
  static_cast<void>(fd.release());
  return absl::OkStatus();
}

ShadowSemaphores::~ShadowSemaphores() {
  for (const One* one : {&from_client_, &to_client_}) {
    if (one->handle != nullptr) functions_.release(one->handle);
  }
}

absl::StatusOr<std::array<os::UniqueFd, 2>> ShadowSemaphores::Export() const {
  std::array<os::UniqueFd, 2> fds;
  ASSIGN_OR_RETURN(fds[0], from_client_.export_fd());
  ASSIGN_OR_RETURN(fds[1], to_client_.export_fd());
  return fds;
}

cl_int ShadowSemaphores::EnqueueWait(cl_command_queue queue) const {
  return functions_.wait(queue, 1, &from_client_.handle, nullptr, 0, nullptr, nullptr);
}

cl_int ShadowSemaphores::EnqueueSignal(cl_command_queue queue) const {
  return functions_.signal(queue, 1, &to_client_.handle, nullptr, 0, nullptr, nullptr);
}

}  // namespace sluice::worker
