// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/info_reader.h"

#include <CL/cl_ext.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/worker/driver.h"

namespace sluice::worker {
namespace {

// Extensions that only concern the kernel language or queries, or whose functions the ICD has.
constexpr const char* kForwarded[] = {
    "cl_khr_fp64",
    "cl_khr_fp16",
    "cl_khr_byte_addressable_store",
    "cl_khr_3d_image_writes",
    "cl_khr_global_int32_base_atomics",
    "cl_khr_global_int32_extended_atomics",
    "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
    "cl_khr_int64_base_atomics",
    "cl_khr_int64_extended_atomics",
    "cl_khr_select_fprounding_mode",
    "cl_khr_subgroups",
    "cl_khr_subgroup_extended_types",
    "cl_khr_subgroup_non_uniform_vote",
    "cl_khr_subgroup_ballot",
    "cl_khr_subgroup_non_uniform_arithmetic",
    "cl_khr_subgroup_shuffle",
    "cl_khr_subgroup_shuffle_relative",
    "cl_khr_subgroup_clustered_reduce",
    "cl_khr_subgroup_rotate",
    "cl_khr_subgroup_named_barrier",
    "cl_khr_integer_dot_product",
    "cl_khr_extended_bit_ops",
    "cl_khr_expect_assume",
    "cl_khr_async_work_group_copy_fence",
    "cl_khr_extended_async_copies",
    "cl_khr_il_program",
    "cl_khr_spir",
    "cl_khr_spirv_no_integer_wrap_decoration",
    "cl_khr_spirv_linkonce_odr",
    "cl_khr_device_uuid",
    "cl_khr_pci_bus_info",
    "cl_khr_create_command_queue",
    "cl_khr_extended_versioning",
    "cl_khr_suggested_local_work_size",
    "cl_khr_image2d_from_buffer",
    "cl_khr_srgb_image_writes",
    "cl_khr_depth_images",
    "cl_khr_kernel_clock",
    "cl_khr_work_group_uniform_arithmetic",
    "cl_khr_initialize_memory",
    "cl_ext_float_atomics",
    "cl_ext_cxx_for_opencl",
    "cl_intel_subgroups",
    "cl_intel_subgroups_short",
    "cl_intel_subgroups_char",
    "cl_intel_subgroups_long",
    "cl_intel_required_subgroup_size",
    "cl_intel_spirv_subgroups",
    "cl_nv_compiler_options",
    "cl_nv_device_attribute_query",
    "cl_nv_pragma_unroll",
    "cl_amd_device_attribute_query",
    "cl_amd_fp64",
    "cl_amd_media_ops",
    "cl_amd_media_ops2",
};

// Given by the daemon whatever the driver has: a worker can be ended with its context, and gives
// hints a meaning (queue_hints.h).
constexpr const char* kOwn[] = {"cl_khr_priority_hints", "cl_khr_throttle_hints",
                                "cl_khr_terminate_context"};

bool IsForwarded(std::string_view name) {
  return std::any_of(std::begin(kForwarded), std::end(kForwarded),
                     [&](const char* known) { return name == known; });
}

// Name-version arrays keep what the string of the same kind keeps.
std::string ForwardedVersions(const std::string& value) {
  std::string out;
  for (size_t at = 0; at + sizeof(cl_name_version) <= value.size(); at += sizeof(cl_name_version)) {
    cl_name_version entry;
    std::memcpy(&entry, value.data() + at, sizeof(entry));
    entry.name[sizeof(entry.name) - 1] = '\0';
    if (IsForwarded(entry.name)) out.append(value, at, sizeof(entry));
  }
  for (const char* const own : kOwn) {
    cl_name_version entry = {CL_MAKE_VERSION(1, 0, 0), {}};
    std::string_view(own).copy(entry.name, sizeof(entry.name) - 1);
    out.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  return out;
}

template <typename T, typename Change>
void ChangeValue(std::string* value, Change change) {
  if (value->size() != sizeof(T)) return;
  T number;
  std::memcpy(&number, value->data(), sizeof(number));
  number = change(number);
  std::memcpy(value->data(), &number, sizeof(number));
}

// Extensions that the driver has and a remoted device has not.
cl_device_svm_capabilities KeepCoarse(cl_device_svm_capabilities v) {
  return v & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
}
cl_device_svm_capabilities KeepNone(cl_device_svm_capabilities) { return 0; }

void NarrowDeviceValue(cl_device_info param, bool is_cpu, uint64_t memory_limit,
                       std::string* value) {
  switch (param) {
    case CL_DEVICE_EXTENSIONS:
      *value = ForwardedExtensions(*value) + '\0';
      break;
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
      *value = ForwardedVersions(*value);
      break;
    case CL_DEVICE_EXECUTION_CAPABILITIES:  // A native kernel is a function of the application's
                                            // own process.
      ChangeValue<cl_device_exec_capabilities>(
          value, [](cl_device_exec_capabilities v) { return v & CL_EXEC_KERNEL; });
      break;
    case CL_DEVICE_SVM_CAPABILITIES:
      // Coarse-grained where the worker's addresses can be the client's (handlers/svm.cc): on CPU
      // devices. Over the network the client takes that back.
      ChangeValue<cl_device_svm_capabilities>(value, is_cpu ? KeepCoarse : KeepNone);
      break;
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:  // Programs size their buffers by these.
      ChangeValue<cl_ulong>(value, [memory_limit](cl_ulong v) {
        return memory_limit == 0 ? v : std::min<cl_ulong>(v, memory_limit);
      });
      break;
    default:
      break;
  }
}

struct ParamRange {
  cl_uint first, last;
};

// The ranges in which OpenCL 3.0 and the vendors' extensions number their device queries. A driver
// refuses those it does not know.
constexpr ParamRange kDeviceParams[] = {{0x1000, 0x107F}, {0x2035, 0x2035}, {0x4000, 0x4060},
                                        {0x40A0, 0x40AF}, {0x410F, 0x410F}, {0x40E0, 0x40E0},
                                        {0x4104, 0x4108}, {0x4190, 0x419F}, {0x4230, 0x4233}};

bool IsClientKnowledge(cl_device_info param) {
  return param == CL_DEVICE_PLATFORM || param == CL_DEVICE_PARENT_DEVICE ||
         param == CL_DEVICE_REFERENCE_COUNT;
}

}  // namespace

std::string ForwardedExtensions(const std::string& extensions) {
  // The extensions that stay are passed on as they are, spaces included.
  std::string kept = extensions.c_str();
  for (size_t at = 0; at < kept.size();) {
    const size_t end = std::min(kept.find(' ', at), kept.size());
    if (end > at && !IsForwarded(std::string_view(kept).substr(at, end - at))) {
      kept.erase(at, end + 1 - at);
    } else {
      at = end + 1;
    }
  }
  for (const char* const own : kOwn) {
    absl::StrAppend(&kept, kept.empty() || kept.back() == ' ' ? "" : " ", own);
  }
  return kept;
}

void ReadDeviceInfo(cl_device_id device, uint64_t memory_limit,
                    google::protobuf::RepeatedPtrField<pb::InfoValue>* out) {
  cl_device_type type = 0;
  cl().clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, nullptr);
  const bool is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  for (const ParamRange& range : kDeviceParams) {
    for (cl_uint param = range.first; param <= range.last; ++param) {
      if (IsClientKnowledge(param)) continue;
      std::string value;
      const cl_int status = ReadInfo(
          [&](size_t size, void* data, size_t* size_ret) {
            return cl().clGetDeviceInfo(device, param, size, data, size_ret);
          },
          &value);
      if (status != CL_SUCCESS) continue;
      NarrowDeviceValue(param, is_cpu, memory_limit, &value);
      pb::InfoValue& info = *out->Add();
      info.set_param_name(param);
      info.set_value(std::move(value));
    }
  }
}

void ReadPlatformInfo(cl_platform_id platform,
                      google::protobuf::RepeatedPtrField<pb::InfoValue>* out) {
  for (const cl_platform_info param :
       {CL_PLATFORM_PROFILE, CL_PLATFORM_VERSION, CL_PLATFORM_NAME, CL_PLATFORM_VENDOR,
        CL_PLATFORM_EXTENSIONS, CL_PLATFORM_HOST_TIMER_RESOLUTION, CL_PLATFORM_NUMERIC_VERSION,
        CL_PLATFORM_EXTENSIONS_WITH_VERSION}) {
    std::string value;
    const cl_int status = ReadInfo(
        [&](size_t size, void* data, size_t* size_ret) {
          return cl().clGetPlatformInfo(platform, param, size, data, size_ret);
        },
        &value);
    if (status != CL_SUCCESS) continue;
    if (param == CL_PLATFORM_EXTENSIONS) value = ForwardedExtensions(value) + '\0';
    if (param == CL_PLATFORM_EXTENSIONS_WITH_VERSION) value = ForwardedVersions(value);
    pb::InfoValue& info = *out->Add();
    info.set_param_name(param);
    info.set_value(std::move(value));
  }
}

cl_int ReadImageFormats(cl_context context, cl_mem_flags flags, cl_mem_object_type type,
                        std::string* formats) {
  cl_uint count = 0;
  const cl_int status = cl().clGetSupportedImageFormats(context, flags, type, 0, nullptr, &count);
  if (status != CL_SUCCESS) return status;
  formats->resize(count * sizeof(cl_image_format));
  if (count == 0) return CL_SUCCESS;
  return cl().clGetSupportedImageFormats(
      context, flags, type, count, reinterpret_cast<cl_image_format*>(formats->data()), nullptr);
}

}  // namespace sluice::worker
