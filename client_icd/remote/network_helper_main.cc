// SPDX-License-Identifier: Apache-2.0
// sluice-network-helper: the network transport in a process of its own
// (client_icd/connect/network_helper.h says for whom). Frames pass between the client's rings and
// the session's stream as they are.
//
// Threads: main passes replies on, *commands* passes commands on, *watch* ends the process when the
// client has gone. Trusts the process that started it, which it serves with that one's rights.
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "broker/os/daemon_process.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "broker/os/this_process.h"
#include "client_icd/connect/network_helper.h"
#include "client_icd/remote/remote_channel.h"
#include "client_icd/remote/remote_transport.h"
#include "client_icd/session/transport.h"
#include "proto/handle_messages.h"
#include "proto/network/message_reader.h"
#include "proto/ring_reader.h"
#include "proto/ring_writer.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

// Reply.session_ended.reason (proto/command.proto).
constexpr uint32_t kSessionEndedField = 9;
constexpr uint32_t kReasonField = 1;
constexpr int64_t kRoomTimeoutNs = 100'000'000;

// Whatever else runs: gRPC is never shut down.
[[noreturn]] void End() { ::_exit(0); }

void Answer(const absl::Status& status, uint64_t max_in_flight, int fd,
            absl::string_view version = "") {
  HelperAnswer answer = {};
  answer.magic = kHelperMagic;
  answer.max_in_flight = max_in_flight;
  if (!status.ok()) {
    answer.status =
        absl::IsResourceExhausted(status) ? HelperStatus::kRefused : HelperStatus::kFailed;
  }
  const absl::string_view text = status.ok() ? version : status.message();
  std::memcpy(answer.message, text.data(), std::min(text.size(), sizeof(answer.message) - 1));
  os::SendMessage(kHelperSocket, &answer, sizeof(answer), &fd, fd < 0 ? 0 : 1).IgnoreError();
}

// Nothing comes from the client on the socket but its end.
void Watch() {
  pollfd entry = {kHelperSocket, POLLIN, 0};
  while (::poll(&entry, 1, -1) < 0) {
  }
  End();
}

void PassCommands(wire::RingReader* commands, Transport* transport) {
  wire::Frame frame;
  while (true) {
    const absl::StatusOr<bool> got = commands->Next(&frame);
    if (!got.ok()) End();
    if (!*got) {
      commands->Sleep(wire::kSleepsForAny, 0, wire::kBitWaiter, /*timeout_ns=*/-1);
      continue;
    }
    const bool last = !commands->HasPiece();
    if (!transport->Send(frame.header(), frame.message(), frame.payload(), last)) return;
  }
}

// False: the ring cannot be right, or nobody takes what is in it.
bool Pass(const wire::FrameHeader& header, std::string_view message, std::string_view payload,
          bool may_wait, wire::RingWriter* replies) {
  const auto write = [&](const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                         std::string_view c) {
    while (!replies->TryWritePiece(piece, a, b, c)) {
      if (replies->violated() || !may_wait) return false;
      replies->Notify(wire::Wake::kUrgent, 0);
      replies->WaitForRoom(piece.body_bytes, kRoomTimeoutNs);
    }
    return true;
  };
  const bool passed = wire::CutFrame(header, message, payload, wire::kMaxPieceBody, write);
  replies->Notify(wire::Wake::kUrgent, 0);
  return passed;
}

void PassReplies(Transport* transport, wire::RingWriter* replies) {
  wire::Frame frame;
  while (!transport->lost()) {
    const uint32_t ticket = transport->Arm(wire::kSleepsForAny, 0);
    bool any = false;
    while (transport->Receive(&frame)) {
      any = true;
      if (!Pass(frame.header(), frame.message(), frame.payload(), /*may_wait=*/true, replies))
        End();
    }
    if (!any) transport->Wait(ticket, wire::kBitWaiter);
  }
  std::string ended;
  wire::AppendStringField(kReasonField, transport->lost_reason(), &ended);
  std::string reply;
  wire::AppendStringField(kSessionEndedField, ended, &reply);
  wire::FrameHeader header = {};
  header.message_bytes = static_cast<uint32_t>(reply.size());
  Pass(header, reply, {}, /*may_wait=*/false, replies);
}

absl::StatusOr<std::pair<os::UniqueFd, os::SharedMapping>> MakeRing(const char* name) {
  ASSIGN_OR_RETURN(os::UniqueFd fd, os::CreateSharedMemory(name, wire::kRingFileBytes));
  ASSIGN_OR_RETURN(os::SharedMapping mapping,
                   os::SharedMapping::Map(fd.get(), wire::kRingFileBytes, /*writable=*/true));
  return std::pair(std::move(fd), std::move(mapping));
}

absl::Status Serve(const char* endpoint) {
  ASSIGN_OR_RETURN(const auto transport, RemoteTransport::Connect(endpoint, ConnectTimeout()));
  ASSIGN_OR_RETURN(const auto commands, MakeRing("sluice-commands"));
  ASSIGN_OR_RETURN(const auto replies, MakeRing("sluice-replies"));
  wire::RingReader reader(commands.second.data());
  wire::RingWriter writer(replies.second.data());
  Answer(absl::OkStatus(), transport->max_in_flight(), -1);
  wire::HandleMessage offer = {};
  offer.magic = wire::kHandleMagic;
  offer.type = wire::HandleMessageType::kRingOffer;
  offer.size = wire::kRingFileBytes;
  const int fds[] = {commands.first.get(), replies.first.get()};
  RETURN_IF_ERROR(os::SendMessage(kHelperSocket, &offer, sizeof(offer), fds, 2));
  std::thread([&] { PassCommands(&reader, transport.get()); }).detach();
  PassReplies(transport.get(), &writer);
  End();
}

absl::Status Describe(const char* endpoint, const char* timeout_text) {
  uint32_t timeout_ms = 0;
  if (!absl::SimpleAtoi(timeout_text, &timeout_ms)) {
    return absl::InvalidArgumentError(absl::StrCat("'", timeout_text, "' is no time"));
  }
  std::string version;
  ASSIGN_OR_RETURN(const std::string snapshot,
                   DescribePlatforms(endpoint, std::chrono::milliseconds(timeout_ms), &version));
  ASSIGN_OR_RETURN(const os::UniqueFd copy,
                   os::CreateSealedCopy("sluice-snapshot", snapshot.data(), snapshot.size()));
  Answer(absl::OkStatus(), 0, copy.get(), version);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool connects = mode == "connect" && argc == 3;
  if (!connects && !(mode == "describe" && argc == 4)) {
    constexpr char kUsage[] =
        "sluice-network-helper is started by Sluice's OpenCL driver, not by hand\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kUsage, sizeof(kUsage) - 1);
    return 2;
  }
  os::EnsureStandardDescriptors();
  std::thread(Watch).detach();
  const absl::Status status = connects ? Serve(argv[2]) : Describe(argv[2], argv[3]);
  if (!status.ok()) Answer(status, 0, -1);
  End();
}

}  // namespace
}  // namespace sluice::client

int main(int argc, char** argv) { return sluice::client::Main(argc, argv); }
