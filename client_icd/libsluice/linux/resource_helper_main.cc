// SPDX-License-Identifier: Apache-2.0
// sluice-resource-helper: gRPC in a process of its own (../resource_helper.h says for whom).
//
// Threads: main reads calls; gRPC's answer them; two for each Watch, *states* passes them on and
// *end* waits for the client's end of its socket. Trusts the process that started it, which it
// serves with that one's rights.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "broker/os/daemon_process.h"
#include "broker/os/local_socket.h"
#include "client_icd/libsluice/resource_channel.h"
#include "client_icd/libsluice/resource_helper.h"
#include "client_icd/libsluice/resource_watch.h"
#include "proto/resources.grpc.pb.h"

namespace sluice::client {
namespace {

constexpr uint32_t kLongMs = 600'000;

// Whatever else runs: gRPC is never shut down.
[[noreturn]] void End(int code) { ::_exit(code); }

// False: the client has gone.
bool Answer(int socket, bool last, const absl::Status& status, std::string_view bytes) {
  HelperReply reply = {};
  reply.magic = kResourceHelperMagic;
  reply.last = last ? 1 : 0;
  reply.code = static_cast<uint32_t>(status.code());
  std::string packet(reinterpret_cast<const char*>(&reply), sizeof(reply));
  packet.append(status.ok() ? bytes
                            : std::string_view(status.message().data(), status.message().size()));
  return os::SendMessage(socket, packet.data(), packet.size()).ok();
}

struct Unary {
  os::UniqueFd answer;
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer reply;
};

grpc::ByteBuffer ToBuffer(std::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToBytes(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.Valid() || !buffer.DumpToSingleSlice(&slice).ok()) return "";
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

void Begin(grpc::GenericStub* stub, const HelperCall& header, std::string_view request,
           os::UniqueFd answer) {
  auto* call = new Unary;  // Until it is answered.
  call->answer = std::move(answer);
  call->request = ToBuffer(request);
  call->context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::milliseconds(header.timeout_ms));
  stub->UnaryCall(&call->context, header.method, {}, &call->request, &call->reply,
                  [call](const grpc::Status& status) {
                    Answer(call->answer.get(), /*last=*/true, FromGrpc(status),
                           ToBytes(call->reply));
                    delete call;
                  });
}

void PassStates(const std::shared_ptr<GrpcWatch>& watch, int socket) {
  absl::Status end;
  while (true) {
    const absl::StatusOr<v1::ResourceState> state = watch->Next(kLongMs);
    if (absl::IsDeadlineExceeded(state.status())) continue;
    end = state.status();
    if (!end.ok() || !Answer(socket, /*last=*/false, end, state->SerializeAsString())) break;
  }
  // That it was destroyed is the stream's good end.
  Answer(socket, /*last=*/true, absl::IsAborted(end) ? absl::OkStatus() : end, "");
  os::HangUp(socket);  // Ends the other thread's wait.
}

void BeginWatch(v1::Resources::Stub* stub, const std::shared_ptr<const ResourceChannel>& channel,
                std::string_view bytes, os::UniqueFd answer) {
  v1::WatchResourceRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const auto watch = std::make_shared<GrpcWatch>(stub, channel, request);
  std::thread([watch, socket = std::move(answer)]() mutable {
    const int number = socket.get();
    std::thread states([&] { PassStates(watch, number); });
    static_cast<void>(os::WaitReadable(number, -1));  // Nothing comes but the end.
    os::HangUp(number);                               // States that nobody takes.
    watch->Cancel();
    states.join();
  }).detach();
}

int Main() {
  os::EnsureStandardDescriptors();
  auto opened = OpenResourceChannel(os::UniqueFd(kTransportSocket));
  if (!opened.ok()) return 1;
  const auto channel = std::make_shared<const ResourceChannel>(*std::move(opened));
  grpc::GenericStub unary(channel->channel);
  const std::unique_ptr<v1::Resources::Stub> stub = v1::Resources::NewStub(channel->channel);
  std::string packet(kMaxHelperMessage, '\0');
  while (true) {
    std::vector<os::UniqueFd> fds;
    const auto size = os::ReceiveMessage(kCallsSocket, packet.data(), packet.size(), &fds, 1);
    if (!size.ok() || *size == 0) End(0);
    HelperCall header = {};
    if (*size >= sizeof(header)) std::memcpy(&header, packet.data(), sizeof(header));
    if (header.magic != kResourceHelperMagic || fds.size() != 1) End(1);
    header.method[sizeof(header.method) - 1] = '\0';
    const auto request = std::string_view(packet).substr(sizeof(header), *size - sizeof(header));
    if (header.watches != 0) {
      BeginWatch(stub.get(), channel, request, std::move(fds[0]));
    } else {
      Begin(&unary, header, request, std::move(fds[0]));
    }
  }
}

}  // namespace
}  // namespace sluice::client

int main(int argc, char**) {
  if (argc != 1) {
    constexpr char kUsage[] = "sluice-resource-helper is started by libsluice, not by hand\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kUsage, sizeof(kUsage) - 1);
    return 2;
  }
  sluice::client::End(sluice::client::Main());
}
