// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/change_of_hands.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "daemon/worker/info_reader.h"

namespace sluice::worker {
namespace {

constexpr absl::Duration kMutexTimeout = absl::Seconds(2);

}  // namespace

cl_int ChangeOfHands::TakeMutex() const {
  if (mutex == nullptr) return CL_SUCCESS;
  const absl::Status taken = mutex->Acquire(os::kTextureUsersKey, kMutexTimeout);
  if (taken.ok()) {
    holds_mutex.store(true, std::memory_order_relaxed);
    return CL_SUCCESS;
  }
  Log(LogLevel::kWarning, "worker", "a shared texture is not acquired",
      {{"reason", std::string(taken.message())}});
  return CL_OUT_OF_RESOURCES;
}

UniqueCl<cl_event> ChangeOfHands::TakeFromDriver(cl_command_queue queue, cl_mem memory) const {
  UniqueCl<cl_event> released;
  if (driver_has_it.exchange(false)) {
    release(queue, 1, &memory, 0, nullptr, released.out());
    cl().clFlush(queue);
  }
  return released;
}

cl_int ChangeOfHands::ReturnMutex(cl_int status) const {
  if (!holds_mutex.exchange(false, std::memory_order_relaxed)) return status;
  const absl::Status given = mutex->Release(os::kTextureMakersKey);
  if (given.ok()) return status;
  Log(LogLevel::kWarning, "worker", "a shared texture is not given back",
      {{"reason", std::string(given.message())}});
  return status < 0 ? status : CL_OUT_OF_RESOURCES;
}

absl::StatusOr<std::shared_ptr<ChangeOfHands>> FindChangeOfHands(
    const DeviceObject& device, cl_external_memory_handle_type_khr type,
    absl::string_view extension) {
  std::string bytes;
  const cl_int status = ReadInfo(
      [&](size_t size, void* value, size_t* size_ret) {
        return cl().clGetDeviceInfo(device.handle,
                                    CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR, size, value,
                                    size_ret);
      },
      &bytes);
  std::vector<cl_external_memory_handle_type_khr> types(bytes.size() / sizeof(cl_uint));
  bytes.copy(reinterpret_cast<char*>(types.data()), types.size() * sizeof(cl_uint));
  if (status != CL_SUCCESS || std::find(types.begin(), types.end(), type) == types.end())
    return absl::UnimplementedError(absl::StrCat("the driver has no ", extension));
  const auto find = [&](const char* name) {
    return cl().clGetExtensionFunctionAddressForPlatform(device.platform, name);
  };
  auto hands = std::make_shared<ChangeOfHands>();
  hands->acquire = reinterpret_cast<clEnqueueAcquireExternalMemObjectsKHR_fn>(
      find("clEnqueueAcquireExternalMemObjectsKHR"));
  hands->release = reinterpret_cast<clEnqueueReleaseExternalMemObjectsKHR_fn>(
      find("clEnqueueReleaseExternalMemObjectsKHR"));
  if (hands->acquire == nullptr || hands->release == nullptr)
    return absl::UnimplementedError("the driver lacks functions of cl_khr_external_memory");
  return hands;
}

}  // namespace sluice::worker
