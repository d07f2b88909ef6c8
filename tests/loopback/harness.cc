// SPDX-License-Identifier: Apache-2.0
#include "tests/loopback/harness.h"

#include <cstring>

#include "proto/heap_span.h"
#include "proto/spin.h"

namespace sluice::worker {
namespace {

constexpr int64_t kPatienceNs = 50'000'000'000;  // Of a busy machine under a sanitizer, too.

os::SharedMapping MapRing() {
  auto file = os::CreateSharedMemory("test-ring", wire::kRingFileBytes);
  return std::move(*os::SharedMapping::Map(file->get(), wire::kRingFileBytes, /*writable=*/true));
}

// Sessions are never taken down, as in a worker; kept here, they are no leak.
std::vector<std::unique_ptr<Session>>& Sessions() {
  static auto& sessions = *new std::vector<std::unique_ptr<Session>>;
  return sessions;
}
std::vector<os::SharedMapping>& OldMemory() {
  static auto& memory = *new std::vector<os::SharedMapping>;
  return memory;
}

}  // namespace

LoopbackClient::LoopbackClient(const SessionOptions& options)
    : command_memory_(MapRing()), reply_memory_(MapRing()) {
  auto ends = os::CreateSocketPair();
  worker_end_ = std::move(ends->first);
  client_end_ = std::move(ends->second);
  Sessions().push_back(std::make_unique<Session>(options, worker_end_.get(), reply_memory_.data()));
  session_ = Sessions().back().get();
  EXPECT_TRUE(session_->AddDevices().ok());
  loop_ = std::make_unique<CommandLoop>(session_, command_memory_.data());
  writer_ = std::make_unique<wire::RingWriter>(command_memory_.data());
  reader_ = std::make_unique<wire::RingReader>(reply_memory_.data());
  thread_ = std::thread([this] {
    violation_ = std::string(loop_->Run().message());
    ended_ = true;
    reader_->Interrupt(wire::kBitWaiter);
  });
}

LoopbackClient::~LoopbackClient() {
  if (!ended_) SendRaw({}, {}, {});  // Sequence 0: a violation.
  thread_.join();
  session_->replies().set_on_violated(nullptr);
  OldMemory().push_back(std::move(reply_memory_));  // Late callbacks still write there,
  (void)worker_end_.release();                      // and announce segments here.
}

void LoopbackClient::SendRaw(const wire::FrameHeader& header, std::string_view message,
                             std::string_view payload) {
  wire::CutFrame(header, message, payload, wire::kMaxPieceBody,
                 [&](const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                     std::string_view c) {
                   while (!writer_->TryWritePiece(piece, a, b, c) && !ended_) {
                     writer_->Notify(wire::Wake::kUrgent, 0);
                     writer_->WaitForRoom(piece.body_bytes, 100'000'000);
                   }
                   return true;
                 });
  writer_->Notify(wire::Wake::kUrgent, 0);
}

uint64_t LoopbackClient::Send(const pb::Command& command, std::string_view payload,
                              uint64_t sequence, const wire::BulkSpan& bulk) {
  NoteSentCommand(command.body_case());
  const std::string message = command.SerializeAsString();
  wire::FrameHeader header = {};
  header.sequence = sequence != 0 ? sequence : ++sequence_;
  header.message_bytes = static_cast<uint32_t>(message.size());
  header.payload_bytes = payload.size();
  header.bulk_segment = bulk.segment;
  header.bulk_offset = bulk.offset;
  header.bulk_bytes = bulk.size;
  SendRaw(header, message, payload);
  return header.sequence;
}

void LoopbackClient::SendHandle(uint64_t token, int fd) {
  wire::HandleMessage message = {};
  message.magic = wire::kHandleMagic;
  message.type = wire::HandleMessageType::kImportHandle;
  message.address = token;
  EXPECT_TRUE(os::SendMessage(client_end_.get(), &message, sizeof(message), &fd, 1).ok());
}

void LoopbackClient::Poll() {
  wire::Frame frame;
  while (true) {
    const absl::StatusOr<bool> got = reader_->Next(&frame);
    ASSERT_TRUE(got.ok()) << got.status();
    if (!*got) return;
    ReceivedReply received;
    const std::string_view message = frame.message();
    ASSERT_TRUE(received.reply.ParseFromArray(message.data(), static_cast<int>(message.size())));
    received.payload = frame.payload();
    received.bulk = frame.bulk();
    received.flags = frame.header().flags;
    received_.push_back(std::move(received));
  }
}

ReceivedReply LoopbackClient::WaitFor(const std::function<bool(const ReceivedReply&)>& wanted) {
  const int64_t end = wire::MonotonicNs() + kPatienceNs;
  size_t seen = 0;
  while (true) {
    Poll();
    for (; seen < received_.size(); ++seen) {
      if (!wanted(received_[seen])) continue;
      ReceivedReply found = std::move(received_[seen]);
      received_.erase(received_.begin() + static_cast<ptrdiff_t>(seen));
      return found;
    }
    if (ended_ || wire::MonotonicNs() > end) {
      ADD_FAILURE() << "the reply never came; session ended: " << ended_ << " " << violation_;
      return {};
    }
    reader_->Sleep(wire::kSleepsForAny, 0, wire::kBitWaiter, 1'000'000'000);
    reader_->Arm(wire::kAwake);
  }
}

void LoopbackClient::WaitUntil(const std::function<bool()>& happened) {
  const int64_t end = wire::MonotonicNs() + kPatienceNs;
  while (!happened() && wire::MonotonicNs() < end) std::this_thread::yield();
  EXPECT_TRUE(happened());
}

std::vector<ReceivedReply> LoopbackClient::TakeAll() {
  Poll();
  std::vector<ReceivedReply> all(std::make_move_iterator(received_.begin()),
                                 std::make_move_iterator(received_.end()));
  received_.clear();
  return all;
}

pb::Answer LoopbackClient::WaitForAnswer(uint64_t sequence) {
  return WaitFor([=](const ReceivedReply& received) {
           return received.reply.has_answer() && received.reply.answer().sequence() == sequence;
         })
      .reply.answer();
}

pb::Answer LoopbackClient::Call(const pb::Command& command, std::string_view payload) {
  return WaitForAnswer(Send(command, payload));
}

pb::Completion LoopbackClient::WaitForCompletion(uint64_t event_id, std::string* payload) {
  ReceivedReply received = WaitFor([=](const ReceivedReply& candidate) {
    return candidate.reply.has_completion() && candidate.reply.completion().event_id() == event_id;
  });
  if (payload != nullptr) *payload = std::move(received.payload);
  return received.reply.completion();
}

void LoopbackClient::Sync() {
  pb::Command command;
  command.mutable_get_host_timer()->set_device_id(kCpu);
  Call(command);
}

void LoopbackClient::BreakReplyRing() {
  reinterpret_cast<wire::RingShared*>(reply_memory_.data())->consumed.store(uint64_t{1} << 50);
}

std::string LoopbackClient::WaitForViolation(bool poll) {
  const int64_t end = wire::MonotonicNs() + kPatienceNs;
  while (!ended_ && wire::MonotonicNs() < end) {
    reader_->Sleep(wire::kSleepsForAny, 0, wire::kBitWaiter, 100'000'000);
    reader_->Arm(wire::kAwake);
    if (poll) Poll();
  }
  EXPECT_TRUE(ended_) << "the session goes on";
  return ended_ ? violation_ : "";
}

wire::HandleMessage LoopbackClient::TakeHandle(os::UniqueFd* descriptor) {
  std::vector<os::UniqueFd> fds;
  const wire::HandleMessage message = TakeHandles(1, &fds);
  if (fds.size() == 1) *descriptor = std::move(fds[0]);
  return message;
}

wire::HandleMessage LoopbackClient::TakeHandles(size_t count,
                                                std::vector<os::UniqueFd>* descriptors) {
  wire::HandleMessage message = {};
  absl::Status status = os::WaitReadable(client_end_.get(), 5000);
  if (status.ok()) {
    status =
        os::ReceiveMessage(client_end_.get(), &message, sizeof(message), descriptors, 4).status();
  }
  EXPECT_TRUE(status.ok() && message.magic == wire::kHandleMagic && descriptors->size() == count)
      << "the wrong number of descriptors came: " << descriptors->size() << " " << status;
  return message;
}

uint8_t* LoopbackClient::Map(const wire::BulkSpan& span) {
  while (segments_.find(span.segment) == segments_.end()) {
    os::UniqueFd file;
    const wire::HandleMessage message = TakeHandle(&file);
    if (message.type != wire::HandleMessageType::kHeapSegment ||
        !os::VerifySharedMemory(file.get(), message.size).ok()) {
      ADD_FAILURE() << "no heap segment came";
      return nullptr;
    }
    segments_[message.segment] =
        std::move(*os::SharedMapping::Map(file.get(), message.size, /*writable=*/true));
  }
  os::SharedMapping& segment = segments_[span.segment];
  return wire::SpanPointer(segment.data(), segment.size(), span.offset, span.size);
}

void LoopbackTest::Start(const SessionOptions& options, cl_uint gpu_vendor_id,
                         const std::string& gpu_version) {
  client_.reset();
  fake_ = &fake::FakeCl::Install();
  fake_->set_gpu_vendor_id(gpu_vendor_id);
  fake_->set_gpu_version(gpu_version);
  client_ = std::make_unique<LoopbackClient>(options);
}

uint64_t LoopbackTest::MakeContext(uint64_t device) {
  pb::Command command;
  const uint64_t id = client_->NewId();
  command.mutable_create_context()->set_context_id(id);
  command.mutable_create_context()->add_device_ids(device);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  return id;
}

uint64_t LoopbackTest::MakeQueue(uint64_t context, uint64_t device,
                                 cl_command_queue_properties flags) {
  pb::Command command;
  pb::CreateCommandQueue& body = *command.mutable_create_command_queue();
  body.set_queue_id(client_->NewId());
  body.set_context_id(context);
  body.set_device_id(device);
  if (flags != 0) {
    body.add_properties(CL_QUEUE_PROPERTIES);
    body.add_properties(flags);
  }
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  return body.queue_id();
}

uint64_t LoopbackTest::MakeBuffer(uint64_t context, uint64_t size, std::string_view contents) {
  pb::Command command;
  pb::CreateBuffer& body = *command.mutable_create_buffer();
  body.set_mem_id(client_->NewId());
  body.set_context_id(context);
  body.set_flags(CL_MEM_READ_WRITE);
  body.set_size(size);
  EXPECT_EQ(client_->Call(command, contents).status(), CL_SUCCESS);
  return body.mem_id();
}

uint64_t LoopbackTest::MakeImage(uint64_t context, const pb::ImageDesc& desc,
                                 std::string_view contents) {
  pb::Command command;
  pb::CreateImage& body = *command.mutable_create_image();
  body.set_mem_id(client_->NewId());
  body.set_context_id(context);
  body.set_flags(CL_MEM_READ_WRITE);
  body.mutable_format()->set_channel_order(CL_RGBA);
  body.mutable_format()->set_channel_data_type(CL_UNORM_INT8);
  *body.mutable_desc() = desc;
  EXPECT_EQ(client_->Call(command, contents).status(), CL_SUCCESS);
  return body.mem_id();
}

uint64_t LoopbackTest::MakeProgram(uint64_t context, std::string_view source,
                                   const std::string& options) {
  pb::Command command;
  const uint64_t id = client_->NewId();
  command.mutable_create_program_with_source()->set_program_id(id);
  command.mutable_create_program_with_source()->set_context_id(context);
  EXPECT_EQ(client_->Call(command, source).status(), CL_SUCCESS);
  pb::Command build;
  build.mutable_build_program()->set_program_id(id);
  build.mutable_build_program()->set_options(options);
  client_->Call(build);
  return id;
}

uint64_t LoopbackTest::MakeKernel(uint64_t program, const std::string& name) {
  pb::Command command;
  const uint64_t id = client_->NewId();
  command.mutable_create_kernel()->set_kernel_id(id);
  command.mutable_create_kernel()->set_program_id(program);
  command.mutable_create_kernel()->set_name(name);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  return id;
}

uint64_t LoopbackTest::MakeUserEvent(uint64_t context) {
  pb::Command command;
  const uint64_t id = client_->NewId();
  command.mutable_create_user_event()->set_event_id(id);
  command.mutable_create_user_event()->set_context_id(context);
  client_->Send(command);
  return id;
}

void LoopbackTest::SetUserEvent(uint64_t event, cl_int status) {
  pb::Command command;
  command.mutable_set_user_event_status()->set_event_id(event);
  command.mutable_set_user_event_status()->set_status(status);
  client_->Send(command);
}

uint64_t LoopbackTest::On(pb::Enqueue* on, uint64_t queue, const std::vector<uint64_t>& waits) {
  on->set_queue_id(queue);
  on->set_event_id(client_->NewId());
  for (const uint64_t wait : waits) on->add_wait_event_ids(wait);
  return on->event_id();
}

pb::Completion LoopbackTest::Feed(uint64_t event, std::string_view bytes) {
  while (true) {
    const ReceivedReply received = client_->WaitFor([&](const ReceivedReply& candidate) {
      return candidate.reply.grant().event_id() == event ||
             candidate.reply.completion().event_id() == event;
    });
    if (!received.reply.has_grant()) return received.reply.completion();
    const pb::Grant& grant = received.reply.grant();
    EXPECT_TRUE((received.flags & wire::kFrameGrant) != 0);
    uint8_t* const to = client_->Map(received.bulk);
    if (to == nullptr || !wire::SpanFits(grant.offset(), grant.size(), bytes.size())) {
      ADD_FAILURE() << "a grant of what there is not";
      return {};
    }
    std::memcpy(to, bytes.data() + grant.offset(), grant.size());
    pb::Command command;
    pb::TransferChunk& chunk = *command.mutable_transfer_chunk();
    chunk.set_event_id(event);
    chunk.set_offset(grant.offset());
    chunk.set_size(grant.size());
    client_->Send(command);
  }
}

std::string LoopbackTest::Take(uint64_t event, uint64_t size) {
  std::string bytes(size, '\0');
  while (true) {
    const ReceivedReply received = client_->WaitFor([&](const ReceivedReply& candidate) {
      return candidate.reply.read_data().event_id() == event ||
             candidate.reply.completion().event_id() == event;
    });
    if (!received.reply.has_read_data()) {
      EXPECT_EQ(received.reply.completion().status(), CL_COMPLETE);
      return bytes;
    }
    const pb::ReadData& data = received.reply.read_data();
    const uint8_t* const from = client_->Map(received.bulk);
    if (from == nullptr || !wire::SpanFits(data.offset(), data.size(), size)) {
      ADD_FAILURE() << "data that nobody asked for";
      return {};
    }
    std::memcpy(bytes.data() + data.offset(), from, data.size());
    pb::Command command;
    pb::TransferAck& ack = *command.mutable_transfer_ack();
    ack.set_event_id(event);
    ack.set_offset(data.offset());
    ack.set_size(data.size());
    client_->Send(command);
  }
}

}  // namespace sluice::worker
