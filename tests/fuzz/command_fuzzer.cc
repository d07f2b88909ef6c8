// SPDX-License-Identifier: Apache-2.0
// Whole sessions: frames as a hostile client may write them, through the assembler and
// CommandLoop::HandleFrame into every handler, over the fake driver. An input is a list of records
//
//   kind (1 byte) | message bytes (2) | payload bytes (2) | message | payload
//
// kind 0: a frame with the right sequence number; 1: with a wrong one; 2: TransferChunk or
// TransferAck for what the worker has granted or sent, as the message's first bytes choose; others:
// as 0. The session begins with objects of every kind under the ids 3 to 12.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "broker/os/local_socket.h"
#include "daemon/worker/command_loop.h"
#include "daemon/worker/session.h"
#include "proto/ring_reader.h"
#include "tests/fake_cl/fake_cl.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/grammar.h"

// Commands in flight when a session is torn down stay behind, as in a worker, where nothing is torn
// down at all.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace sluice::fuzz {

namespace pb = v1;
namespace {

constexpr size_t kMostCommands = 400;

class FuzzedSession {
 public:
  FuzzedSession() : command_ring_(Ring()), reply_ring_(Ring()), sockets_(*os::CreateSocketPair()) {
    fake::FakeCl::Install(fake::Execution::kInline);
    worker::SessionOptions options;
    options.limits.memory_bytes = 256 << 20;
    options.limits.objects = 500;
    options.limits.program_bytes = 1 << 20;
    session_ = std::make_unique<worker::Session>(options, sockets_.first.get(), reply_ring_.data());
    if (!session_->AddDevices().ok()) std::abort();
    loop_ = std::make_unique<worker::CommandLoop>(session_.get(), command_ring_.data());
    reader_ = std::make_unique<wire::RingReader>(reply_ring_.data());
    MakeObjects();
  }

  bool Send(std::string_view message, std::string_view payload, uint64_t skip = 0) {
    wire::FrameHeader header = {};
    header.sequence = ++sequence_ + skip;
    header.message_bytes = static_cast<uint32_t>(message.size());
    header.payload_bytes = payload.size();
    std::string pieces;
    wire::AppendFrame(header, message, payload, &pieces);
    wire::FrameAssembler assembler;
    bool alive = true;
    const absl::Status fed = assembler.Feed(
        pieces, [&](wire::Frame& frame) { alive = loop_->HandleFrame(frame).ok() && alive; });
    Drain();
    return fed.ok() && alive;
  }

  // The client's half of a transfer, honest or nearly so.
  bool SendStep(std::string_view how) {
    if (steps_.empty()) return true;
    const size_t pick = how.empty() ? 0 : static_cast<uint8_t>(how[0]) % steps_.size();
    pb::Command command = steps_[pick];
    if (how.size() < 2 || how[1] % 4 != 0)
      steps_.erase(steps_.begin() + static_cast<ptrdiff_t>(pick));
    if (how.size() > 2 && how[2] % 4 == 0 && command.has_transfer_chunk()) {
      command.mutable_transfer_chunk()->set_size(command.transfer_chunk().size() / 2);
    }
    return Send(command.SerializeAsString(), {});
  }

 private:
  static os::SharedMapping Ring() {
    const auto file = os::CreateSharedMemory("fuzz-ring", wire::kRingFileBytes);
    return std::move(*os::SharedMapping::Map(file->get(), wire::kRingFileBytes, /*writable=*/true));
  }

  void Must(const pb::Command& command) {
    if (!Send(command.SerializeAsString(), "kernel void k() {}")) std::abort();
  }

  void MakeObjects() {
    pb::Command command;
    for (const uint64_t device : {1, 2}) {  // Contexts 3 (CPU) and 4 (GPU), queues 5 and 6.
      command.mutable_create_context()->set_context_id(2 + device);
      command.mutable_create_context()->add_device_ids(device);
      Send(command.SerializeAsString(), {});
      command.Clear();
      command.mutable_create_command_queue()->set_queue_id(4 + device);
      command.mutable_create_command_queue()->set_context_id(2 + device);
      command.mutable_create_command_queue()->set_device_id(device);
      command.mutable_create_command_queue()->add_properties(CL_QUEUE_PROPERTIES);
      command.mutable_create_command_queue()->add_properties(device);  // 1: out of order.
      Send(command.SerializeAsString(), {});
      command.Clear();
      command.mutable_create_buffer()->set_mem_id(6 + device);  // Buffers 7 and 8.
      command.mutable_create_buffer()->set_context_id(2 + device);
      command.mutable_create_buffer()->set_size(100000);
      Send(command.SerializeAsString(), {});
      command.Clear();
    }
    command.mutable_create_image()->set_mem_id(9);
    command.mutable_create_image()->set_context_id(4);
    command.mutable_create_image()->mutable_format()->set_channel_order(CL_RGBA);
    command.mutable_create_image()->mutable_format()->set_channel_data_type(CL_UNORM_INT8);
    command.mutable_create_image()->mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE2D);
    command.mutable_create_image()->mutable_desc()->set_width(200);
    command.mutable_create_image()->mutable_desc()->set_height(100);
    Send(command.SerializeAsString(), {});
    command.Clear();
    command.mutable_create_user_event()->set_event_id(10);
    command.mutable_create_user_event()->set_context_id(4);
    Send(command.SerializeAsString(), {});
    command.Clear();
    command.mutable_create_program_with_source()->set_program_id(11);
    command.mutable_create_program_with_source()->set_context_id(4);
    Must(command);
    command.Clear();
    command.mutable_build_program()->set_program_id(11);
    Send(command.SerializeAsString(), {});
    // The build runs on its own thread: the kernel needs it to have ended.
    while (!built_) {
      reader_->Sleep(wire::kSleepsForAny, 0, wire::kBitWaiter, 1'000'000'000);
      Drain();
    }
    command.Clear();
    command.mutable_create_kernel()->set_kernel_id(12);
    command.mutable_create_kernel()->set_program_id(11);
    command.mutable_create_kernel()->set_name("k");
    Send(command.SerializeAsString(), {});
  }

  void Drain() {
    wire::Frame frame;
    while (true) {
      const absl::StatusOr<bool> got = reader_->Next(&frame);
      if (!got.ok()) std::abort();  // The worker's own frames are sound.
      if (!*got) return;
      pb::Reply reply;
      const std::string_view message = frame.message();
      if (!reply.ParseFromArray(message.data(), static_cast<int>(message.size()))) std::abort();
      if (reply.answer().has_program()) built_ = true;
      pb::Command step;
      if (reply.has_grant()) {
        step.mutable_transfer_chunk()->set_event_id(reply.grant().event_id());
        step.mutable_transfer_chunk()->set_offset(reply.grant().offset());
        step.mutable_transfer_chunk()->set_size(reply.grant().size());
      } else if (reply.has_read_data()) {
        step.mutable_transfer_ack()->set_event_id(reply.read_data().event_id());
        step.mutable_transfer_ack()->set_offset(reply.read_data().offset());
        step.mutable_transfer_ack()->set_size(reply.read_data().size());
      } else {
        continue;
      }
      if (steps_.size() < 1000) steps_.push_back(step);
    }
  }

  os::SharedMapping command_ring_;
  os::SharedMapping reply_ring_;
  std::pair<os::UniqueFd, os::UniqueFd> sockets_;
  std::unique_ptr<worker::Session> session_;
  std::unique_ptr<worker::CommandLoop> loop_;
  std::unique_ptr<wire::RingReader> reader_;
  std::vector<pb::Command> steps_;
  uint64_t sequence_ = 0;
  bool built_ = false;
};

}  // namespace
}  // namespace sluice::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::fuzz::FuzzedSession session;
  std::string_view in(reinterpret_cast<const char*>(data), size);
  for (size_t i = 0; in.size() >= 5 && i < sluice::fuzz::kMostCommands; ++i) {
    const auto kind = static_cast<uint8_t>(in[0]);
    uint16_t lengths[2];
    std::memcpy(lengths, in.data() + 1, sizeof(lengths));
    in.remove_prefix(5);
    const std::string_view message = in.substr(0, lengths[0]);
    in.remove_prefix(message.size());
    const std::string_view payload = in.substr(0, lengths[1]);
    in.remove_prefix(payload.size());
    const bool alive =
        kind == 2 ? session.SendStep(message) : session.Send(message, payload, kind == 1 ? 1 : 0);
    if (!alive) break;  // A violation: the session is over.
  }
  return 0;
}

std::string MakeFuzzInput(std::mt19937_64& random) {
  std::string input;
  const size_t commands = 1 + random() % 80;
  for (size_t i = 0; i < commands; ++i) {
    const uint8_t kind = random() % 4 == 0 ? 2 : random() % 500 == 0 ? 1 : 0;
    const std::string message = sluice::fuzz::RandomCommand(random, i);
    const std::string payload(random() % 12 == 0 ? random() % 64 : 0, 'p');
    const uint16_t lengths[2] = {static_cast<uint16_t>(message.size()),
                                 static_cast<uint16_t>(payload.size())};
    input += static_cast<char>(kind);
    input.append(reinterpret_cast<const char*>(lengths), sizeof(lengths));
    input.append(message, 0, lengths[0]).append(payload);
  }
  return input;
}
