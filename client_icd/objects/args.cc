// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/args.h"

#include "client_icd/objects/context.h"
#include "client_icd/objects/device.h"
#include "client_icd/objects/event.h"

namespace sluice {

namespace {
constexpr size_t kMaxProperties = 64;
}  // namespace

bool ReadProperties(const uint64_t* properties, PropertyList* out) {
  out->words.clear();
  out->given = properties != nullptr;
  if (properties == nullptr) return true;
  for (size_t i = 0; properties[i] != 0; i += 2) {
    if (i / 2 == kMaxProperties) return false;
    out->words.push_back(properties[i]);
    out->words.push_back(properties[i + 1]);
  }
  return true;
}

const uint64_t* PropertyList::Find(uint64_t name) const {
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == name) return &words[i + 1];
  }
  return nullptr;
}

bool PropertyList::HasDuplicates() const {
  for (size_t i = 0; i < words.size(); i += 2) {
    if (Find(words[i]) != &words[i + 1]) return true;
  }
  return false;
}

absl::InlinedVector<uint64_t, 8> PropertyList::WithTerminator() const {
  absl::InlinedVector<uint64_t, 8> list = words;
  if (given) list.push_back(0);
  return list;
}

cl_int ReadWaitList(cl_uint count, const cl_event* list, const Context& context, WaitIds* ids,
                    LinkedEvents linked) {
  if ((count == 0) != (list == nullptr)) return CL_INVALID_EVENT_WAIT_LIST;
  for (cl_uint i = 0; i < count; ++i) {
    const Event* event = Event::From(list[i]);
    if (event == nullptr) return CL_INVALID_EVENT_WAIT_LIST;
    if (&event->context() != &context) return CL_INVALID_CONTEXT;
    if (event->is_linked() && linked == LinkedEvents::kRefuse) return CL_INVALID_EVENT;
    if (event->status() != CL_COMPLETE) ids->push_back(event->id());
  }
  return CL_SUCCESS;
}

cl_int ReadDevices(cl_uint count, const cl_device_id* list, std::span<Device* const> allowed,
                   Uint64List* ids) {
  if ((count == 0) != (list == nullptr)) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < count; ++i) {
    const Device* device = Device::From(list[i]);
    if (device == nullptr) return CL_INVALID_DEVICE;
    bool found = false;
    for (const Device* one : allowed) found = found || one == device;
    if (!found) return CL_INVALID_DEVICE;
    ids->Add(device->id());
  }
  return CL_SUCCESS;
}

cl_int CheckWorkDim(cl_uint work_dim) {
  return work_dim >= 1 && work_dim <= 3 ? CL_SUCCESS : CL_INVALID_WORK_DIMENSION;
}

}  // namespace sluice
