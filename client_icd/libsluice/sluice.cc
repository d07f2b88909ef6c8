// SPDX-License-Identifier: Apache-2.0
//
// The C entry points of libsluice: check pointers, translate, call, translate back. Nothing throws
// across them. Thread-safe as sluice.h says.
#include "sluice/sluice.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/base/endpoint_address.h"
#include "broker/os/local_endpoint.h"
#include "broker/os/native_handle.h"
#include "broker/os/this_process.h"
#include "broker/os/threads.h"
#include "client_icd/libsluice/entry.h"
#include "client_icd/libsluice/resource_connection.h"
#include "client_icd/libsluice/resource_watch.h"
#include "client_icd/libsluice/texture_turns.h"
#include "client_icd/libsluice/translation.h"
#include "proto/status_macros.h"

struct sluice_connection {
  std::unique_ptr<sluice::client::ResourceConnection> to;
};

struct sluice_watch {
  std::unique_ptr<sluice::client::ResourceWatch> of;
  int pid = sluice::os::ProcessId();
};

namespace sluice::client {
namespace {

thread_local std::string last_error;

sluice_status StatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return SLUICE_OK;
    case absl::StatusCode::kInvalidArgument:
      return SLUICE_INVALID_ARGUMENT;
    case absl::StatusCode::kPermissionDenied:
      return SLUICE_PERMISSION_DENIED;
    case absl::StatusCode::kNotFound:
      return SLUICE_NOT_FOUND;
    case absl::StatusCode::kResourceExhausted:
      return SLUICE_LIMIT;
    case absl::StatusCode::kDeadlineExceeded:
      return SLUICE_TIMED_OUT;
    case absl::StatusCode::kAborted:
      return SLUICE_DESTROYED;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return SLUICE_UNSUPPORTED;
    case absl::StatusCode::kUnavailable:
      return SLUICE_LOST;
    default:
      return SLUICE_FAILED;
  }
}

}  // namespace

sluice_status Fail(sluice_status status, const std::string& why) {
  last_error = why;
  return status;
}

sluice_status Told(const absl::Status& status) {
  if (status.ok()) return SLUICE_OK;
  return Fail(StatusOf(status.code()), std::string(status.message()));
}

sluice_status NullArgument() { return Fail(SLUICE_INVALID_ARGUMENT, "a null argument"); }

namespace {

std::string BytesOf(const sluice_capability& capability) {
  return std::string(reinterpret_cast<const char*>(capability.bytes), sizeof(capability.bytes));
}

absl::StatusOr<std::string> LocalPath(const char* endpoint) {
  const bool given = endpoint != nullptr && *endpoint != '\0';
  const std::string text =
      given ? endpoint : os::EnvironmentVariable("SLUICE_ENDPOINT").value_or("");
  std::vector<absl::Status> refused;  // A mistyped one takes nothing from the others.
  if (const auto addresses = ParseEndpoints(text, &refused); addresses.ok()) {
    for (const EndpointAddress& address : *addresses) {
      if (address.kind == EndpointAddress::Kind::kLocal) return address.target;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(given ? "" : "SLUICE_ENDPOINT: ", "\"", text, "\" is no endpoint of the form ",
                   os::LocalEndpointForm(), ": resources are shared on one machine"));
}

sluice_status GiveCapabilities(const absl::StatusOr<v1::CreateResourceReply>& reply,
                               sluice_capability* read, sluice_capability* write) {
  if (!reply.ok()) return Told(reply.status());
  if (reply->read_capability().size() != sizeof(read->bytes) ||
      reply->write_capability().size() != sizeof(write->bytes)) {
    return Fail(SLUICE_FAILED, "a broken capability from the daemon");
  }
  if (read != nullptr) std::memcpy(read->bytes, reply->read_capability().data(), 24);
  if (write != nullptr) std::memcpy(write->bytes, reply->write_capability().data(), 24);
  return SLUICE_OK;
}

}  // namespace
}  // namespace sluice::client

using sluice::client::BytesOf;
using sluice::client::Fail;
using sluice::client::NullArgument;
using sluice::client::Told;

const char* sluice_status_string(sluice_status status) {
  switch (status) {
    case SLUICE_OK:
      return "ok";
    case SLUICE_INVALID_ARGUMENT:
      return "invalid argument";
    case SLUICE_PERMISSION_DENIED:
      return "not permitted";
    case SLUICE_NOT_FOUND:
      return "not found";
    case SLUICE_LIMIT:
      return "a limit is reached";
    case SLUICE_TIMED_OUT:
      return "timed out";
    case SLUICE_DESTROYED:
      return "the resource was destroyed";
    case SLUICE_UNSUPPORTED:
      return "not supported here";
    case SLUICE_LOST:
      return "the connection to the daemon is lost";
    case SLUICE_NO_DAEMON:
      return "no daemon answers";
    case SLUICE_FAILED:
      return "failed";
  }
  return "unknown status";
}

const char* sluice_error_text(void) { return sluice::client::last_error.c_str(); }

sluice_status sluice_connect(const char* endpoint, sluice_connection** connection) {
  const sluice::os::ScopedNoCancellation put_off;
  if (connection == nullptr) return NullArgument();
  *connection = nullptr;
  sluice::os::KeepLibraryOf(
      reinterpret_cast<const void*>(&sluice_connect));  // gRPC's threads run on.
  const absl::StatusOr<std::string> path = sluice::client::LocalPath(endpoint);
  if (!path.ok()) return Told(path.status());
  auto to = sluice::client::ResourceConnection::Connect(*path);
  if (!to.ok()) {
    const absl::StatusCode code = to.status().code();
    const bool told = code == absl::StatusCode::kPermissionDenied ||
                      code == absl::StatusCode::kResourceExhausted ||
                      code == absl::StatusCode::kUnimplemented;
    std::string why(to.status().message());
    const bool connected = !absl::StrContains(why, *path);
    if (connected) why = absl::StrCat(*path, ": ", why);
    const bool none = code == absl::StatusCode::kNotFound || code == absl::StatusCode::kUnavailable;
    if (!connected && none) absl::StrAppend(&why, "; ", sluice::os::StartDaemonAdvice());
    return Fail(told ? sluice::client::StatusOf(code) : SLUICE_NO_DAEMON, why);
  }
  *connection = new sluice_connection{*std::move(to)};
  return SLUICE_OK;
}

void sluice_disconnect(sluice_connection* connection) {
  const sluice::os::ScopedNoCancellation put_off;
  delete connection;
}

void sluice_capability_to_text(const sluice_capability* capability,
                               char text[SLUICE_CAPABILITY_TEXT_SIZE]) {
  const std::string hex = absl::BytesToHexString(BytesOf(*capability));
  std::memcpy(text, hex.c_str(), SLUICE_CAPABILITY_TEXT_SIZE);
}

sluice_status sluice_capability_from_text(const char* text, sluice_capability* capability) {
  if (text == nullptr || capability == nullptr) return NullArgument();
  const std::string hex = text;
  const bool digits = hex.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (hex.size() != SLUICE_CAPABILITY_TEXT_SIZE - 1 || !digits) {
    return Fail(SLUICE_INVALID_ARGUMENT, "a capability is 48 hexadecimal digits");
  }
  for (size_t i = 0; i < sizeof(capability->bytes); ++i) {
    const char* const digit_pair = hex.data() + 2 * i;
    std::from_chars(digit_pair, digit_pair + 2, capability->bytes[i], 16);
  }
  return SLUICE_OK;
}

sluice_status sluice_create(sluice_connection* connection, const sluice_create_info* info,
                            sluice_capability* read, sluice_capability* write) {
  const sluice::os::ScopedNoCancellation put_off;
  if (connection == nullptr || info == nullptr) return NullArgument();
  if (read == nullptr && write == nullptr) return NullArgument();  // Nobody could use it.
  const auto request = sluice::client::ToCreateRequest(*info);
  if (!request.ok()) return Told(request.status());
  return sluice::client::GiveCapabilities(connection->to->Create(*request), read, write);
}

sluice_status sluice_import(sluice_connection* connection, const sluice_create_info* info,
                            sluice_native_handle memory, sluice_capability* read,
                            sluice_capability* write) {
  const sluice::os::ScopedNoCancellation put_off;
  if (connection == nullptr || info == nullptr) return NullArgument();
  if (read == nullptr && write == nullptr) return NullArgument();
  const auto request = sluice::client::ToImportRequest(*info);
  if (!request.ok()) return Told(request.status());
  const sluice::os::UniqueFd fd = sluice::os::FromNative(memory);
  if (!fd.valid() && errno == EMFILE) {
    return Fail(SLUICE_LIMIT, "this process has no descriptor left: raise its limit (ulimit -n)");
  }
  if (!fd.valid()) {
    return Fail(SLUICE_INVALID_ARGUMENT,
                absl::StrCat("the handle to import ", sluice::os::WhyNotFromNative()));
  }
  return sluice::client::GiveCapabilities(connection->to->Import(*request, fd.get()), read, write);
}

sluice_status sluice_destroy(sluice_connection* connection, const sluice_capability* write) {
  const sluice::os::ScopedNoCancellation put_off;
  if (connection == nullptr || write == nullptr) return NullArgument();
  return Told(connection->to->Destroy(BytesOf(*write)));
}

sluice_status sluice_describe(sluice_connection* connection, const sluice_capability* capability,
                              sluice_description* description) {
  const sluice::os::ScopedNoCancellation put_off;
  if (connection == nullptr || capability == nullptr || description == nullptr) {
    return NullArgument();
  }
  const auto reply = connection->to->Describe(BytesOf(*capability));
  if (!reply.ok()) return Told(reply.status());
  return Told(sluice::client::FromDescription(*reply, description));
}

sluice_status sluice_export(sluice_connection* connection, const sluice_capability* capability,
                            sluice_access access, sluice_handle* handle) {
  const sluice::os::ScopedNoCancellation put_off;
  if (connection == nullptr || capability == nullptr || handle == nullptr) return NullArgument();
  if (const absl::Status sized = sluice::client::ClearHandle(handle); !sized.ok())
    return Told(sized);
  auto exported = connection->to->Export(BytesOf(*capability), sluice::client::ToAccess(access));
  if (!exported.ok()) return Told(exported.status());
  sluice::client::GiveHandle(*std::move(exported), handle);
  return SLUICE_OK;
}

void sluice_handle_close(sluice_handle* handle) {
  const sluice::os::ScopedNoCancellation put_off;
  if (handle == nullptr) return;
  const uint32_t count = std::min<uint32_t>(handle->fd_count, SLUICE_MAX_DESCRIPTORS);
  for (uint32_t i = 0; i < count; ++i) {
    sluice::os::CloseNative(std::exchange(handle->fds[i], sluice::os::kNoNativeHandle));
  }
  handle->fd_count = 0;
}

sluice_status sluice_map(const sluice_handle* handle, void** address) {
  const sluice::os::ScopedNoCancellation put_off;
  if (handle == nullptr || address == nullptr) return NullArgument();
  if (handle->fd_count == 0) {
    return Fail(SLUICE_INVALID_ARGUMENT, "the handle is empty: sluice_export fills it");
  }
  uint64_t offset = 0;
  if (handle->backing == SLUICE_BACKING_VULKAN) {
    const auto found = sluice::wire::VulkanMapOffset(handle->ints, handle->int_count);
    if (!found.has_value()) {
      return Fail(SLUICE_UNSUPPORTED,
                  "this memory of Vulkan's is reached through Vulkan, not mapped: its device does "
                  "not work in the host's memory");
    }
    offset = *found;
  }
  if (handle->backing == SLUICE_BACKING_D3D11) {
    return Fail(SLUICE_UNSUPPORTED, "Direct3D's resources are opened (sluice_d3d11.h), not mapped");
  }
  const absl::StatusOr<void*> mapped =
      sluice::os::MapNative(handle->fds[0], offset, handle->size_bytes, handle->writable != 0);
  if (!mapped.ok()) {
    return Fail(absl::IsResourceExhausted(mapped.status()) ? SLUICE_LIMIT : SLUICE_FAILED,
                std::string(mapped.status().message()));
  }
  *address = *mapped;
  return SLUICE_OK;
}

void sluice_unmap(void* address, uint64_t size_bytes) {
  if (address != nullptr) sluice::os::UnmapNative(address, size_bytes);
}

sluice_status sluice_acquire(sluice_connection* connection, const sluice_capability* capability,
                             sluice_access access, uint32_t timeout_ms, sluice_hold* hold) {
  const sluice::os::ScopedNoCancellation put_off;
  if (connection == nullptr || capability == nullptr || hold == nullptr) return NullArgument();
  sluice::v1::AcquireResourceRequest request;
  request.set_capability(BytesOf(*capability));
  request.set_access(sluice::client::ToAccess(access));
  request.set_timeout_ms(timeout_ms);
  uint64_t id = 0;
  const auto reply = connection->to->Acquire(std::move(request), &id);
  if (!reply.ok()) return Told(reply.status());
  *hold = {id, reply->generation(), reply->indeterminate() ? 1u : 0u, 0};
  return SLUICE_OK;
}

sluice_status sluice_release(sluice_connection* connection, const sluice_hold* hold,
                             uint32_t flags) {
  const sluice::os::ScopedNoCancellation put_off;
  if (connection == nullptr || hold == nullptr) return NullArgument();
  if (!sluice::client::AreReleaseFlags(flags)) {
    return Fail(SLUICE_INVALID_ARGUMENT, "unknown flags of a release, or both of them");
  }
  sluice::v1::ReleaseResourceRequest request;
  request.set_hold_id(hold->id);
  request.set_contents_indeterminate((flags & SLUICE_CONTENTS_INDETERMINATE) != 0);
  request.set_contents_untouched((flags & SLUICE_CONTENTS_UNTOUCHED) != 0);
  return Told(connection->to->Release(request));
}

sluice_status sluice_watch_open(sluice_connection* connection, const sluice_capability* capability,
                                sluice_watch** watch) {
  const sluice::os::ScopedNoCancellation put_off;
  if (watch != nullptr) *watch = nullptr;
  if (connection == nullptr || capability == nullptr || watch == nullptr) return NullArgument();
  auto of = connection->to->Watch(BytesOf(*capability));
  if (!of.ok()) return Told(of.status());
  *watch = new sluice_watch{*std::move(of)};
  return SLUICE_OK;
}

sluice_status sluice_watch_next(sluice_watch* watch, uint32_t timeout_ms, sluice_state* state) {
  const sluice::os::ScopedNoCancellation put_off;
  if (watch == nullptr || state == nullptr) return NullArgument();
  if (watch->pid != sluice::os::ProcessId()) {
    return Fail(SLUICE_LOST, "this watch belongs to the process that forked this one");
  }
  const auto next = watch->of->Next(timeout_ms);
  if (!next.ok()) return Told(next.status());
  *state = sluice::client::FromState(*next);
  return SLUICE_OK;
}

void sluice_watch_close(sluice_watch* watch) {
  const sluice::os::ScopedNoCancellation put_off;
  if (watch == nullptr) return;
  // gRPC, which would have to let go of it, is not in a child.
  if (watch->pid != sluice::os::ProcessId())
    watch->of.release();  // NOLINT(bugprone-unused-return-value)
  delete watch;
}
