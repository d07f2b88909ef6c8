// SPDX-License-Identifier: Apache-2.0
//
// The first messages two processes of Sluice exchange: client and broker, worker and broker,
// gateway and broker. Fixed size, host byte order (both ends are on one machine), one message per
// packet of a SOCK_SEQPACKET socket. The broker parses nothing else: commands never reach it.
//
// Every message begins with MessageHeader. A receiver checks magic, type and size against the
// packet it got (ParseMessage) and that every string has its NUL (IsTerminated) before it looks at
// a field: a message that fails ends the connection. Fields are only ever added at the end of a new
// message type, never to an old one; what a peer can do is told by name in `features`.
//
//   client                      broker                          worker
//     |                           |                               | fd 3: handle channel
//     |                           |                               | fd 4: control
//     | -- Hello ---------------> |
//     | <- Welcome [snapshot] --- |
//     | -- OpenSession ---------> | -- spawn, argv = limits ----> |
//     | <- SessionOpened [chan] - |                               |
//     |                           | -- StatsRequest, Terminate -> |
//     |                           | <- WorkerStats, WorkerNotice- |
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace sluice::wire {

inline constexpr uint32_t kBrokerMagic =
    0x45434c53;  // "SLCE" in memory on a little-endian machine.

enum class MessageType : uint16_t {
  kHello = 1,
  kWelcome = 2,
  kOpenSession = 3,
  kSessionOpened = 4,
  kCloseSession = 5,
  kAskQuotas = 6,  // quota_messages.h, this and the next.
  kQuotas = 7,
  kStatsRequest = 16,
  kTerminate = 17,
  kWorkerStats = 18,
  kWorkerNotice = 19,
  kShadowStatsRequest = 20,
  kShadowStats = 21,
  kWantMemory = 22,  // memory_messages.h, this and the next four.
  kGrantMemory = 23,
  kSpareMemory = 24,
  kMemoryReturned = 25,
  kWorkerReady = 26,
  kAddSession = 27,  // pool_messages.h.
  kGatewayHello = 32,
  kGatewayOpen = 33,
  kGatewayFiles = 34,  // gateway_messages.h, this and the next.
  kGatewayOpenTenant = 35,
  kOpenResources = 48,  // This and on: resource_messages.h.
  kResourcesOpened = 49,
  kResourceHandle = 50,
  kOfferHandle = 51,
  kResourceTicket = 52,
  kAllocateMemory = 56,
  kMemoryAllocated = 57,
  kAllocateTexture = 58,
  kVulkanAllocated = 59,
  kAdminTicket = 64,
};

struct MessageHeader {
  uint32_t magic;
  uint16_t type;
  uint16_t size;  // Of the whole message, this header included.
};
static_assert(sizeof(MessageHeader) == 8);

// client -> broker, first on the connection.
struct Hello {
  static constexpr MessageType kType = MessageType::kHello;
  MessageHeader header;
  char features[256];     // Names, comma separated.
  char process_name[64];  // For logs and `sluicectl sessions`; decides nothing.
};
static_assert(sizeof(Hello) == 328);

// broker -> client or gateway, with one descriptor: the platform snapshot (a sealed memfd, opaque
// to the broker). No descriptor when `status` is not 0.
struct Welcome {
  static constexpr MessageType kType = MessageType::kWelcome;
  MessageHeader header;
  int32_t status;          // 0, or an errno value: EACCES, EBUSY, ...
  uint32_t session_limit;  // Sessions one user may have at once.
  uint64_t
      snapshot_size;   // Bytes in the descriptor; 0 = the daemon found no device, see `message`.
  char message[256];   // For a person; empty if all is well.
  char features[256];  // Those that both ends have.
};
static_assert(sizeof(Welcome) == 536 && offsetof(Welcome, snapshot_size) == 16);

// broker -> operator, first and only one on the admin pipe (Windows): where the admin service
// listens and what it wants to be shown. Good while the pipe is open, for one connection.
struct AdminTicket {
  static constexpr MessageType kType = MessageType::kAdminTicket;
  MessageHeader header;
  uint32_t port;   // Of 127.0.0.1.
  uint32_t flags;  // kTicketProves (loopback_tokens.h).
  uint8_t token[32];
};
static_assert(sizeof(AdminTicket) == 48);

// Bits of OpenSession::flags and GatewayOpen::flags. Unknown bits are refused.
inline constexpr uint32_t kOpenSessionSync = 1;  // Debug mode: every command waits for its reply.
inline constexpr uint32_t kOpenSessionKnownFlags = kOpenSessionSync | 2 | 4 | 8;  // pool_messages.h

// client -> broker: starts a worker. Several may be open on one connection.
struct OpenSession {
  static constexpr MessageType kType = MessageType::kOpenSession;
  MessageHeader header;
  uint32_t flags;
  uint32_t reserved;  // 0.
  uint64_t nonce;     // Echoed in SessionOpened::request_id.
};
static_assert(sizeof(OpenSession) == 24);

// broker -> client or gateway, with one descriptor when `status` is 0: the client's end of the
// session's handle channel, whose other end is fd 3 of the worker.
struct SessionOpened {
  static constexpr MessageType kType = MessageType::kSessionOpened;
  MessageHeader header;
  int32_t status;  // 0, or an errno value: EMFILE (limit reached), ESHUTDOWN (draining), ...
  uint32_t reserved;
  uint64_t request_id;
  uint64_t session_id;  // Random, not 0. Names the session in logs; gives no right to anything.
  uint64_t max_memory_bytes;
  uint64_t max_objects;
  uint64_t max_in_flight_commands;
  uint64_t max_program_bytes;
  char message[256];  // Why not, for a person.
};
static_assert(sizeof(SessionOpened) == 320 && offsetof(SessionOpened, request_id) == 16);

// client or gateway -> broker: one of this connection's sessions is over, and its worker must end
// soon, whatever it is doing. A client says it only to a broker that has the feature; no answer. An
// id that is none of the connection's is ignored: the session may have ended by itself.
inline constexpr char kFeatureCloseSession[] = "close-session";
struct CloseSession {
  static constexpr MessageType kType = MessageType::kCloseSession;
  MessageHeader header;
  uint64_t session_id;
};
static_assert(sizeof(CloseSession) == 16);

// A client asks whether it may have resources (resource_messages.h); a Welcome names it where the
// configuration shares them.
inline constexpr char kFeatureSharesResources[] = "shares-resources";

// broker -> worker, on fd 4: answer with WorkerStats.
struct StatsRequest {
  static constexpr MessageType kType = MessageType::kStatsRequest;
  MessageHeader header;
};
static_assert(sizeof(StatsRequest) == 8);

// broker -> worker: end the session now, and say why to the client if there is a way. To a gateway
// that has the feature: end, once what sessions have said last is on its way.
inline constexpr char kFeatureTerminate[] = "terminate";
struct Terminate {
  static constexpr MessageType kType = MessageType::kTerminate;
  MessageHeader header;
  char reason[128];
};
static_assert(sizeof(Terminate) == 136);

// worker -> broker. A worker is as hostile as its client: the numbers are shown, never relied on.
struct WorkerStats {
  static constexpr MessageType kType = MessageType::kWorkerStats;
  MessageHeader header;
  uint64_t memory_bytes;
  uint64_t object_count;
  uint64_t commands_executed;
  uint64_t context_count;
  uint64_t imported_objects;  // Memory objects of native objects, by the way their bytes travel.
  uint64_t shadowed_objects;
  uint64_t staged_objects;
  char device_name[128];  // Of the session's first context; empty before it has one.
};
static_assert(sizeof(WorkerStats) == 192);

// broker -> worker, before a StatsRequest: answer with ShadowStats.
struct ShadowStatsRequest {
  static constexpr MessageType kType = MessageType::kShadowStatsRequest;
  MessageHeader header;
};
static_assert(sizeof(ShadowStatsRequest) == 8);

// worker -> broker, as WorkerStats: how the two sides of shadows wait for each other. Of
// `shadowed_objects` the rest is ordered by the host.
struct ShadowStats {
  static constexpr MessageType kType = MessageType::kShadowStats;
  MessageHeader header;
  uint64_t by_semaphores;  // Those that were used.
  uint64_t by_keyed_mutex;
};
static_assert(sizeof(ShadowStats) == 24);

enum class WorkerNoticeKind : uint32_t {
  kInfo = 1,
  kViolation = 2,  // The client broke the protocol; the session ends.
  kDriverError = 3,
};

// worker -> broker: a line for the broker's log. Rate limited there.
struct WorkerNotice {
  static constexpr MessageType kType = MessageType::kWorkerNotice;
  MessageHeader header;
  uint32_t kind;  // WorkerNoticeKind.
  uint32_t reserved;
  char text[200];
};
static_assert(sizeof(WorkerNotice) == 216);

// gateway -> broker, on the gateway's fd 3, first: the broker answers with Welcome.
struct GatewayHello {
  static constexpr MessageType kType = MessageType::kGatewayHello;
  MessageHeader header;
  char features[256];
};
static_assert(sizeof(GatewayHello) == 264);

// gateway -> broker: a session for a network client, which the gateway has authenticated. The
// broker answers with SessionOpened, in any order; `request_id` pairs them.
struct GatewayOpen {
  static constexpr MessageType kType = MessageType::kGatewayOpen;
  MessageHeader header;
  uint64_t request_id;
  uint32_t flags;  // As OpenSession::flags.
  uint32_t reserved;
  char peer[128];  // Certificate subject or address; for logs and the list of sessions.
  char process_name[64];
};
static_assert(sizeof(GatewayOpen) == 216);

// No message is larger than this: receivers use one buffer of this size.
inline constexpr size_t kMaxBrokerMessageBytes = 1024;
static_assert(sizeof(Welcome) <= kMaxBrokerMessageBytes);

// A message with every byte zero but its header.
template <typename T>
T MakeMessage() {
  static_assert(std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T>);
  T message;
  std::memset(&message, 0, sizeof(message));
  message.header = {kBrokerMagic, static_cast<uint16_t>(T::kType), sizeof(T)};
  return message;
}

// True, and `*out` filled, if the packet is exactly one well-formed T by its header.
template <typename T>
bool ParseMessage(const void* packet, size_t packet_size, T* out) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T>);
  if (packet_size != sizeof(T)) return false;
  std::memcpy(out, packet, sizeof(T));
  return out->header.magic == kBrokerMagic && out->header.size == sizeof(T) &&
         out->header.type == static_cast<uint16_t>(T::kType);
}

// The type of a packet that begins with a sound header; 0 otherwise.
inline uint16_t PeekMessageType(const void* packet, size_t packet_size) {
  MessageHeader header;
  if (packet_size < sizeof(header)) return 0;
  std::memcpy(&header, packet, sizeof(header));
  if (header.magic != kBrokerMagic || header.size != packet_size) return 0;
  return header.type;
}

// True if the array holds a NUL: asked of every string of a message before it is read.
template <size_t N>
bool IsTerminated(const char (&text)[N]) {
  return std::memchr(text, '\0', N) != nullptr;
}

// True if `name` is one of a comma-separated list of features.
inline bool HasFeature(std::string_view features, std::string_view name) {
  while (!features.empty()) {
    const size_t end = features.find(',') < features.size() ? features.find(',') : features.size();
    if (features.substr(0, end) == name) return true;
    features.remove_prefix(end < features.size() ? end + 1 : end);
  }
  return false;
}

// Copies what fits and terminates it.
template <size_t N>
void SetString(char (&out)[N], std::string_view text) {
  const size_t length = text.size() < N - 1 ? text.size() : N - 1;
  std::memset(out, 0, N);
  std::memcpy(out, text.data(), length);
}

}  // namespace sluice::wire
