// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/queues/queue_hints.h"

#include <string>

#include "absl/strings/str_split.h"
#include "daemon/worker/info_reader.h"
#include "daemon/worker/worker_process.h"

namespace sluice::worker {
namespace {

constexpr int kLowNice = 10;
constexpr uint32_t kWholeUtilisation = 1024;
constexpr uint32_t kLowUtilisation = kWholeUtilisation / 4;

bool DriverHas(cl_device_id device, const char* extension) {
  std::string names;
  const cl_int status = ReadInfo(
      [&](size_t size, void* value, size_t* size_ret) {
        return cl().clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, size, value, size_ret);
      },
      &names);
  if (status != CL_SUCCESS) return false;
  for (const std::string& name :
       std::vector<std::string>(absl::StrSplit(names.c_str(), ' ', absl::SkipEmpty()))) {
    if (name == extension) return true;
  }
  return false;
}

// Both extensions number their values alike.
static_assert(CL_QUEUE_PRIORITY_HIGH_KHR == CL_QUEUE_THROTTLE_HIGH_KHR);
static_assert(CL_QUEUE_PRIORITY_MED_KHR == CL_QUEUE_THROTTLE_MED_KHR);
static_assert(CL_QUEUE_PRIORITY_LOW_KHR == CL_QUEUE_THROTTLE_LOW_KHR);

bool ReadLevel(cl_queue_properties value, QueueLevel* level) {
  switch (value) {
    case CL_QUEUE_PRIORITY_HIGH_KHR:
      *level = QueueLevel::kHigh;
      return true;
    case CL_QUEUE_PRIORITY_MED_KHR:
      *level = QueueLevel::kMedium;
      return true;
    case CL_QUEUE_PRIORITY_LOW_KHR:
      *level = QueueLevel::kLow;
      return true;
    default:
      return false;
  }
}

}  // namespace

cl_int TakeQueueHints(cl_device_id device, std::vector<cl_queue_properties>* properties,
                      QueueHints* hints) {
  std::vector<cl_queue_properties> kept;
  bool on_device = false;
  bool hinted = false;
  for (size_t i = 0; i + 1 < properties->size(); i += 2) {
    const cl_queue_properties name = (*properties)[i];
    const cl_queue_properties value = (*properties)[i + 1];
    if (name == CL_QUEUE_PROPERTIES) on_device = (value & CL_QUEUE_ON_DEVICE) != 0;
    const bool is_priority = name == CL_QUEUE_PRIORITY_KHR;
    if (is_priority || name == CL_QUEUE_THROTTLE_KHR) {
      hinted = true;
      if (!ReadLevel(value, is_priority ? &hints->priority : &hints->throttle))
        return CL_INVALID_VALUE;
      if (!DriverHas(device, is_priority ? "cl_khr_priority_hints" : "cl_khr_throttle_hints"))
        continue;
    }
    kept.push_back(name);
    kept.push_back(value);
  }
  if (hinted && on_device) return CL_INVALID_QUEUE_PROPERTIES;
  *properties = std::move(kept);
  return CL_SUCCESS;
}

void SessionHints::Add(const QueueHints& hints) {
  ++queues_;
  if (hints.priority == QueueLevel::kLow) ++low_priority_;
  if (hints.throttle == QueueLevel::kLow) ++low_throttle_;
  Apply();
}

void SessionHints::Remove(const QueueHints& hints) {
  --queues_;
  if (hints.priority == QueueLevel::kLow) --low_priority_;
  if (hints.throttle == QueueLevel::kLow) --low_throttle_;
  Apply();
}

void SessionHints::Apply() {
  const bool nice = queues_ != 0 && low_priority_ == queues_;
  const bool clamped = queues_ != 0 && low_throttle_ == queues_;
  if (nice != nice_) {
    nice_ = nice;
    SetProcessNice(nice ? kLowNice : 0);
  }
  if (clamped != clamped_) {
    clamped_ = clamped;
    SetProcessUtilisation(clamped ? kLowUtilisation : kWholeUtilisation);
  }
}

}  // namespace sluice::worker
