// SPDX-License-Identifier: Apache-2.0
// Memory objects made from native objects: which way their bytes go, and what is asked of them.
// Acquiring and releasing is in sync.cc.
#include "client_icd/sharing/core/core.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "broker/os/this_process.h"
#include "client_icd/base/api.h"
#include "client_icd/base/client_log.h"
#include "client_icd/include/CL/cl_sluice.h"
#include "client_icd/objects/extensions.h"
#include "client_icd/sharing/core/shadow.h"
#include "client_icd/sharing/core/ways.h"

namespace sluice::client::sharing {
namespace {

static_assert(static_cast<cl_uint>(Way::kImport) == CL_SHARING_WAY_IMPORT_SLUICE);
static_assert(static_cast<cl_uint>(Way::kShadow) == CL_SHARING_WAY_SHADOW_SLUICE);
static_assert(static_cast<cl_uint>(Way::kStaging) == CL_SHARING_WAY_STAGING_SLUICE);

// The value of SLUICE_SHARING.
std::vector<std::string> SharingWords() {
  return absl::StrSplit(os::EnvironmentVariable("SLUICE_SHARING").value_or(""), ',',
                        absl::SkipEmpty());
}

// A word that means nothing would be taken for the default without anybody noticing. Said once.
void LogUnknownWords() {
  constexpr const char* kKnown[] = {"import",    "shadow",     "staging",      "shader",
                                    "no-shader", "semaphores", "no-semaphores"};
  static std::atomic<bool> said{false};
  for (const std::string& one : SharingWords()) {
    if (std::find(std::begin(kKnown), std::end(kKnown), one) != std::end(kKnown)) continue;
    if (said.exchange(true)) return;
    ClientLog(ClientLogLevel::kWarning,
              absl::StrCat("SLUICE_SHARING: \"", one, "\" is ignored: it is none of ",
                           absl::StrJoin(kKnown, ", ")));
  }
}

// SLUICE_SHARING: the ways that may be taken, for tests; all if it names none.
bool IsNamed(Way way) { return SharingNames(WayName(way)); }
bool MayTake(Way way) {
  const bool none = !IsNamed(Way::kImport) && !IsNamed(Way::kShadow) && !IsNamed(Way::kStaging);
  return none || IsNamed(way);
}

// Where the device works in the shared heap, staging is one copy by the native thread into memory
// that the device uses. A shadow is no faster there but for large buffers, and the first makes the
// worker open Vulkan (tests/bench/README.md). A device's own memory is not staged if it can be
// helped: a shadow is worth everything then.
bool IsShadowWorthIt(const MemObject& memory, const SharedObject& shared) {
  return !memory.context().buffers_in_heap() || IsNamed(Way::kShadow) ||
         !shared.native().CanStage().ok();
}

void LogWay(const SharedObject& shared, Way way, const absl::Status& outcome) {
  if (!ClientLogs(ClientLogLevel::kInfo)) return;
  ClientLog(ClientLogLevel::kInfo,
            absl::StrCat("sharing: ", shared.rules().name, " object by ", WayName(way),
                         outcome.ok() ? "" : ": not possible: ", outcome.message()));
}

void LogNoShadow(const SharedObject& shared) {
  if (!ClientLogs(ClientLogLevel::kInfo)) return;
  ClientLog(ClientLogLevel::kInfo,
            absl::StrCat("sharing: ", shared.rules().name, " object by ", WayName(Way::kShadow),
                         ": not worth it: the device works in the host's memory"));
}

cl_int MakeStaged(MemObject* memory) {
  return memory->is_image() ? MakeImage(memory, {}) : MakeBuffer(memory, nullptr);
}

// No way is left. Nobody would guess why.
cl_int RefuseObject(const SharedObject& shared, const std::string& lacking,
                    const absl::Status& cannot_stage) {
  ClientLog(ClientLogLevel::kWarning,
            absl::StrCat("sharing: ", shared.rules().name, " object cannot be used: ", lacking,
                         "staging: ", cannot_stage.message()));
  return shared.rules().invalid_object;
}

// Makes the worker's memory by the best way that both sides can go. The log says what a better way
// lacked; staging's own failure is the application's.
cl_int MakeByBestWay(MemObject* memory, SharedObject* shared) {
  std::string lacking;
  if (MayTake(Way::kImport)) {
    shared->SetWay(Way::kImport);
    const absl::Status made = MakeImported(memory, shared);
    LogWay(*shared, Way::kImport, made);
    if (made.ok()) return CL_SUCCESS;
    absl::StrAppend(&lacking, "import: ", made.message(), "; ");
  }
  if (MayTake(Way::kShadow) && !IsShadowWorthIt(*memory, *shared)) {
    LogNoShadow(*shared);
  } else if (MayTake(Way::kShadow)) {
    shared->SetWay(Way::kShadow);
    const absl::Status made = MakeShadowed(memory, shared);
    LogWay(*shared, Way::kShadow, made);
    if (made.ok()) return CL_SUCCESS;
    absl::StrAppend(&lacking, "shadow: ", made.message(), "; ");
  }
  // No way is possible without a worker.
  if (memory->session().lost()) return memory->session().lost_code();
  if (!MayTake(Way::kStaging)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  const absl::Status can_stage = shared->native().CanStage();
  if (!can_stage.ok()) return RefuseObject(*shared, lacking, can_stage);
  shared->SetWay(Way::kStaging);
  CL_RETURN_IF_ERROR(MakeStaged(memory));
  LogWay(*shared, Way::kStaging, absl::OkStatus());
  return CL_SUCCESS;
}

}  // namespace

bool SharingNames(std::string_view word) {
  for (const std::string& one : SharingWords()) {
    if (one == word) return true;
  }
  return false;
}

cl_int CreateShared(Context* context, MemObject::Description about, Api api,
                    std::unique_ptr<NativeObject> native, Ref<MemObject>* out) {
  LogUnknownWords();
  // clCreateImage's code: no list of a sharing extension has one for that.
  if (about.image.has_value() && !HoldsImages(*context, about.image->desc))
    return CL_INVALID_IMAGE_SIZE;
  const ApiRules& rules = RulesOf(api);
  const auto shared =
      std::make_shared<SharedObject>(rules, std::move(native), SharedRegistry::Of(*context));
  if (!shared->TakeKey()) return rules.created_twice;
  about.native = shared;
  auto memory = Ref<MemObject>::Adopt(new MemObject(Ref<Context>(context), std::move(about)));
  CL_RETURN_IF_ERROR(MakeByBestWay(memory.get(), shared.get()));
  *out = std::move(memory);
  return CL_SUCCESS;
}

cl_int CheckAccessFlags(cl_mem_flags* flags) {
  if ((*flags & ~cl_mem_flags{CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY | CL_MEM_READ_WRITE}) != 0) {
    return CL_INVALID_VALUE;
  }
  if (*flags == 0) *flags = CL_MEM_READ_WRITE;
  return CheckMemFlags(*flags);
}

cl_int CheckFormat(Context* context, cl_mem_flags flags, cl_mem_object_type type,
                   const cl_image_format& wanted, cl_int unsupported) {
  // Flags for the host would leave no format with some drivers.
  flags &= CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
  cl_uint count = 0;
  CL_RETURN_IF_ERROR(
      api::clGetSupportedImageFormats(context->handle(), flags, type, 0, nullptr, &count));
  std::vector<cl_image_format> formats(count);
  if (count != 0) {
    CL_RETURN_IF_ERROR(api::clGetSupportedImageFormats(context->handle(), flags, type, count,
                                                       formats.data(), nullptr));
  }
  const bool found =
      std::any_of(formats.begin(), formats.end(), [&wanted](const cl_image_format& one) {
        return one.image_channel_order == wanted.image_channel_order &&
               one.image_channel_data_type == wanted.image_channel_data_type;
      });
  return found ? CL_SUCCESS : unsupported;
}

SharedObject* FindShared(const MemObject& memory, Api api) {
  SharedObject* shared = SharedOf(memory);
  return shared != nullptr && shared->rules().api == api ? shared : nullptr;
}

}  // namespace sluice::client::sharing

namespace sluice::client {
namespace {

// Of an object that "was not created by" a function of the API, in whatever context it is (sections
// 9.6.6, 9.7.6, 9.8.6). Without the extension the name is none (5.5.5: CL_INVALID_VALUE).
cl_int CodeWithoutParam(const sharing::ApiRules& rules) {
  return IsInteropName(rules.extension) ? rules.no_param : CL_INVALID_VALUE;
}

}  // namespace

std::optional<cl_int> MemObject::GetSharedInfo(cl_mem_info param_name, const InfoSink& sink) {
  sharing::SharedObject* shared = sharing::SharedOf(*this);
  if (param_name == CL_MEM_SHARING_WAY_SLUICE) {
    return shared == nullptr ? CL_INVALID_VALUE
                             : sink.Value<cl_sluice_sharing_way>(
                                   static_cast<cl_sluice_sharing_way>(shared->way()));
  }
  const sharing::ApiRules* rules = sharing::RulesOfMemParam(param_name);
  if (rules == nullptr) {
    const cl_int answer =
        shared == nullptr ? CL_INVALID_VALUE : shared->native().GetMemInfo(param_name, sink);
    return answer == CL_INVALID_VALUE ? std::nullopt : std::optional<cl_int>(answer);
  }
  if (shared != nullptr && shared->rules().api == rules->api)
    return shared->native().GetMemInfo(param_name, sink);
  return CodeWithoutParam(*rules);
}

std::optional<cl_int> MemObject::GetSharedImageInfo(cl_image_info param_name,
                                                    const InfoSink& sink) {
  const sharing::ApiRules* rules = sharing::RulesOfImageParam(param_name);
  if (rules == nullptr) return std::nullopt;
  sharing::SharedObject* shared = sharing::SharedOf(*this);
  if (shared != nullptr && shared->rules().api == rules->api)
    return shared->native().GetImageInfo(param_name, sink);
  return CodeWithoutParam(*rules);
}

}  // namespace sluice::client
