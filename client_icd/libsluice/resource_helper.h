// SPDX-License-Identifier: Apache-2.0
//
// A connection's calls made by a process of their own, sluice-resource-helper, for processes in
// which gRPC cannot be (grpc_process.h). The conversation with the broker and the handle channel
// stay here. The helper runs with this process's rights, has nothing but the two descriptors, is
// nobody's child, and ends with this end of its socket.
//
//   descriptor 3: a socket of local_socket.h; 4: gRPC's way to the daemon
//
//   here                                       helper
//     HelperCall, request; a new socket ------->
//       <------------- on that socket: HelperReply, reply; of a Watch one for every state that is
//                      taken in time, and one `last`
//
// A message is a header and the bytes of a protobuf message, or of an error's text. Owned by a
// ResourceConnection. Thread-safe. Linux only.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"
#include "client_icd/libsluice/resource_watch.h"

namespace sluice::client {

inline constexpr char kResourceHelper[] = "sluice-resource-helper";
inline constexpr int kCallsSocket = 3;
inline constexpr int kTransportSocket = 4;
inline constexpr uint32_t kResourceHelperMagic = 0x48525553;  // "SURH"
inline constexpr size_t kMaxHelperMessage = size_t{64} << 10;

struct HelperCall {
  uint32_t magic;
  uint32_t watches;  // 1: a Watch; `method` is ignored.
  uint64_t timeout_ms;
  char method[64];  // As gRPC names it, terminated.
};
static_assert(sizeof(HelperCall) == 80);

struct HelperReply {
  uint32_t magic;
  uint32_t last;
  uint32_t code;  // absl::StatusCode. Unless it is OK, a text follows.
  uint32_t reserved;
};
static_assert(sizeof(HelperReply) == 16);

class ResourceHelper {
 public:
  virtual ~ResourceHelper() = default;

  // `why` gRPC cannot be here. kUnimplemented says that, and why there is no helper.
  static absl::StatusOr<std::unique_ptr<ResourceHelper>> Start(os::UniqueFd transport,
                                                               const absl::Status& why);

  virtual absl::Status Call(const char* method, const google::protobuf::MessageLite& request,
                            uint64_t timeout_ms, google::protobuf::MessageLite* reply) = 0;
  virtual absl::StatusOr<std::unique_ptr<ResourceWatch>> Watch(
      const google::protobuf::MessageLite& request) = 0;
};

}  // namespace sluice::client
