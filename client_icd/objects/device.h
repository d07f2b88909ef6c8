// SPDX-License-Identifier: Apache-2.0
// A device. Root devices are made from the snapshot with their platform and are never destroyed;
// sub-devices belong to one session, are counted, and keep their parent. A device reports what the
// daemon's probe saw, in InfoTable. Thread-safe: immutable after construction.
#pragma once

#include <CL/cl.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client_icd/base/args.h"
#include "client_icd/base/object.h"
#include "client_icd/session/info.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/command.pb.h"

namespace sluice::client {

namespace pb = v1;

class Platform;
class Session;

// Answers to a clGet*Info, taken once by the daemon.
class InfoTable {
 public:
  InfoTable() = default;
  explicit InfoTable(const google::protobuf::RepeatedPtrField<pb::InfoValue>& values);

  // The driver's answer; CL_INVALID_VALUE for a name it was not asked for.
  cl_int Answer(cl_uint param_name, const InfoSink& sink) const;
  // Null if the driver gave an error, or another size than T's.
  template <typename T>
  T Scalar(cl_uint param_name, T otherwise) const {
    const std::string* value = Find(param_name);
    if (value == nullptr || value->size() != sizeof(T)) return otherwise;
    T out;
    __builtin_memcpy(&out, value->data(), sizeof(out));
    return out;
  }
  std::string_view Text(
      cl_uint param_name) const;  // Without the terminator; empty if there is none.
  bool HasWord(cl_uint param_name, std::string_view word) const;  // In a list with blanks between.
  const std::string* Find(cl_uint param_name) const;
  // Makes the answer zero, if there is one: the device cannot do here what it does on its own host.
  void Zero(cl_uint param_name);

 private:
  struct Value {
    cl_int status;
    std::string bytes;
  };
  absl::flat_hash_map<cl_uint, Value> values_;
};

class Device : public ClObject<Device, cl_device_id, ObjectKind::kDevice> {
 public:
  // A root device.
  Device(Platform* platform, uint64_t id, uint64_t key, InfoTable info);
  // A sub-device. `partition` is the property list that made it, terminator included.
  Device(Ref<Device> parent, std::shared_ptr<Session> session, uint64_t id, InfoTable info,
         std::vector<cl_device_partition_property> partition);
  ~Device();

  Platform* platform() const { return platform_; }
  Device* parent() const { return parent_.get(); }
  bool is_root() const { return !parent_; }
  // Of a root device: by which a later session's worker knows it; 0 if the daemon gives none.
  uint64_t key() const { return key_; }
  // Of a sub-device; null for a root device, which every session of its endpoint knows.
  const std::shared_ptr<Session>& session() const { return session_; }

  const InfoTable& info() const { return info_; }
  cl_device_type type() const { return type_; }
  size_t max_work_group_size() const { return max_work_group_size_; }
  cl_uint max_work_item_dimensions() const { return max_work_item_dimensions_; }
  const std::vector<size_t>& max_work_item_sizes() const { return max_work_item_sizes_; }
  bool image_support() const { return image_support_; }
  // True if a context on it can have a worker to itself, which a sub-device, being of one session,
  // cannot.
  bool can_terminate() const { return is_root() && HasExtension("cl_khr_terminate_context"); }

  // As clGetDeviceInfo lists them: the driver's and ours.
  bool HasExtension(std::string_view name) const;

  cl_int GetInfo(cl_device_info param_name, const InfoSink& sink);

 private:
  std::vector<const char*> OwnExtensions() const;
  cl_bool IsAvailable() const;

  Platform* const platform_;
  const uint64_t key_ = 0;
  const Ref<Device> parent_;
  const std::shared_ptr<Session> session_;
  const std::vector<cl_device_partition_property> partition_;
  const InfoTable info_;
  // Of the table, for checks on every launch.
  const cl_device_type type_;
  const size_t max_work_group_size_;
  const cl_uint max_work_item_dimensions_;
  const std::vector<size_t> max_work_item_sizes_;
  const bool image_support_;
};

// The application's code when the worker has answered `status` for a device of ours. One that the
// worker does not know is no longer there. (Section 4.4: CL_DEVICE_NOT_AVAILABLE "if a device in
// devices is currently not available even though the device was returned by clGetDeviceIDs").
inline cl_int OfKnownDevice(cl_int status) {
  return status == CL_INVALID_DEVICE ? CL_DEVICE_NOT_AVAILABLE : status;
}

// A device list of a program or build call: CL_INVALID_VALUE for null against count (or a count of
// 0 with a list), CL_INVALID_DEVICE for a device that is none or not one of `allowed`. With no
// list: nothing is appended, and CL_SUCCESS.
cl_int ReadDevices(cl_uint count, const cl_device_id* list, std::span<Device* const> allowed,
                   Uint64List* ids);

}  // namespace sluice::client
