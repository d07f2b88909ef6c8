// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/gateway/gateway_process.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "broker/os/local_socket.h"
#include "proto/broker_messages.h"
#include "proto/handle_messages.h"
#include "tests/unit/gateway/certificates.h"

namespace sluice::gateway {
namespace {

constexpr int kFirstFile = 5;
constexpr int64_t kSleepNs = 50'000'000;  // Waits look again this often; nothing depends on it.

// A port that was free a moment ago.
int FreePort() {
  const os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  socklen_t length = sizeof(address);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  return ntohs(address.sin_port);
}

bool Accepts(int port) {
  const os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

os::UniqueFd FileWith(const std::string& content) {
  os::UniqueFd file(::memfd_create("file", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.get(), content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  return file;
}

}  // namespace

void PlayedWorker::OfferRings() {
  wire::HandleMessage offer = {};
  offer.magic = wire::kHandleMagic;
  offer.type = wire::HandleMessageType::kRingOffer;
  offer.size = wire::kRingFileBytes;
  const int fds[] = {commands_.file.get(), replies_.file.get()};
  ASSERT_TRUE(os::SendMessage(channel_.get(), &offer, sizeof(offer), fds, 2).ok());
}

void PlayedWorker::OfferSegment(uint32_t number, const TestMemory& memory, size_t size) {
  wire::HandleMessage offer = {};
  offer.magic = wire::kHandleMagic;
  offer.type = wire::HandleMessageType::kHeapSegment;
  offer.size = size;
  offer.segment = number;
  const int fd = memory.file.get();
  ASSERT_TRUE(os::SendMessage(channel_.get(), &offer, sizeof(offer), &fd, 1).ok());
}

wire::Frame PlayedWorker::TakeCommand() {
  wire::Frame frame;
  while (true) {
    const absl::StatusOr<bool> got = reader_.Next(&frame);
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok() || *got) return frame;
    if (os::WaitReadable(channel_.get(), 0).ok()) {
      ADD_FAILURE() << "the session ended instead of a command";
      return frame;
    }
    reader_.Sleep(wire::kSleepsForAny, 0, wire::kBitWaiter, kSleepNs);
  }
}

void PlayedWorker::Send(const v1::Reply& reply, uint32_t flags, const wire::BulkSpan& bulk,
                        std::string_view payload) {
  const std::string message = reply.SerializeAsString();
  wire::FrameHeader header = {};
  header.message_bytes = static_cast<uint32_t>(message.size());
  header.payload_bytes = payload.size();
  header.flags = flags;
  header.bulk_segment = bulk.segment;
  header.bulk_offset = bulk.offset;
  header.bulk_bytes = bulk.size;
  wire::CutFrame(header, message, payload, wire::kMaxPieceBody,
                 [this](const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                        std::string_view c) {
                   while (!writer_.TryWritePiece(piece, a, b, c)) {
                     was_full_.store(true);
                     if (writer_.violated() || !channel_.valid()) return false;
                     writer_.Notify(wire::Wake::kUrgent, 0);
                     writer_.WaitForRoom(piece.body_bytes, kSleepNs);
                   }
                   return true;
                 });
  writer_.Notify(wire::Wake::kUrgent, 0);
}

void PlayedWorker::AwaitClientsEnd() {
  ASSERT_TRUE(os::WaitReadable(channel_.get(), 60'000).ok());
  char byte;
  EXPECT_EQ(::recv(channel_.get(), &byte, 1, 0), 0);
}

GatewayProcess::GatewayProcess(const Options& options) : options_(options) {
  ::signal(SIGPIPE, SIG_IGN);
  const int port = FreePort();
  endpoint_ = absl::StrCat("127.0.0.1:", port);
  auto control = os::CreateSocketPair();
  EXPECT_TRUE(control.ok());
  os::SpawnOptions spawn;
  spawn.path = SLUICE_TEST_GATEWAY;
  spawn.arguments = {absl::StrCat("--listen=", endpoint_), "--log-level=error"};
  if (!options.via.empty()) spawn.arguments.push_back(absl::StrCat("--via=", options.via));
  spawn.sandbox.parent_death_signal = SIGKILL;
  spawn.descriptors.emplace_back(control->second.get(), 3);
  for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name))
      spawn.environment.push_back(absl::StrCat(name, "=", value));
  }
  std::vector<os::UniqueFd> files;
  const std::pair<const char*, const std::string*> contents[] = {
      {"--cert-fd=", &options.certificate},
      {"--key-fd=", &options.key},
      {"--client-ca-fd=", &options.client_ca},
      {"--token-fd=", &options.tokens}};
  for (const auto& [flag, content] : contents) {
    if (content->empty()) continue;
    files.push_back(FileWith(*content));
    const int number = kFirstFile + static_cast<int>(files.size());
    spawn.descriptors.emplace_back(files.back().get(), number);
    spawn.arguments.push_back(absl::StrCat(flag, number));
  }
  absl::StatusOr<os::ChildProcess> process = os::Spawn(spawn);
  EXPECT_TRUE(process.ok()) << process.status();
  process_ = *std::move(process);
  broker_ = std::move(control->first);
  control->second.reset();
  broker_thread_ = std::thread([this] { PlayBroker(); });
  while (!Accepts(port)) {
    if (process_.WaitAndReap(10).has_value()) {
      ADD_FAILURE() << "the gateway ended at its start";
      return;
    }
  }
}

GatewayProcess::~GatewayProcess() {
  ::shutdown(broker_.get(), SHUT_RDWR);
  broker_thread_.join();
  if (!process_.valid()) return;
  process_.KillGroup();
  process_.WaitAndReap(-1);
}

void GatewayProcess::LoseBroker() { ::shutdown(broker_.get(), SHUT_RDWR); }

void GatewayProcess::TellToEnd() {
  const auto terminate = wire::MakeMessage<wire::Terminate>();
  ASSERT_TRUE(os::SendMessage(broker_.get(), &terminate, sizeof(terminate)).ok());
}

void GatewayProcess::PlayBroker() {
  while (true) {
    char packet[wire::kMaxBrokerMessageBytes];
    const absl::StatusOr<size_t> size =
        os::ReceiveMessage(broker_.get(), packet, sizeof(packet), nullptr, 0);
    if (!size.ok() || *size == 0) return;
    Answer(packet, *size);
  }
}

void GatewayProcess::Answer(const void* packet, size_t size) {
  wire::GatewayHello hello;
  if (wire::ParseMessage(packet, size, &hello)) {
    const os::UniqueFd snapshot =
        *os::CreateSealedCopy("snapshot", kSnapshot, sizeof(kSnapshot) - 1);
    auto welcome = wire::MakeMessage<wire::Welcome>();
    welcome.snapshot_size = sizeof(kSnapshot) - 1;
    const int fd = snapshot.get();
    ASSERT_TRUE(os::SendMessage(broker_.get(), &welcome, sizeof(welcome), &fd, 1).ok());
    return;
  }
  wire::CloseSession close;
  if (wire::ParseMessage(packet, size, &close)) return;  // Its worker is the test's own.
  wire::GatewayOpen open;
  ASSERT_TRUE(wire::ParseMessage(packet, size, &open));
  auto opened = wire::MakeMessage<wire::SessionOpened>();
  opened.request_id = open.request_id;
  if (options_.refuse_status != 0) {
    opened.status = options_.refuse_status;
    wire::SetString(opened.message, kRefusal);
    ASSERT_TRUE(os::SendMessage(broker_.get(), &opened, sizeof(opened)).ok());
    return;
  }
  auto channel = os::CreateSocketPair();
  ASSERT_TRUE(channel.ok());
  auto worker = std::make_unique<PlayedWorker>(std::move(channel->second), open.peer);
  if (options_.offer_rings) worker->OfferRings();
  absl::MutexLock lock(&mu_);
  opened.session_id = next_session_++;
  workers_.push_back(std::move(worker));
  const int fd = channel->first.get();
  ASSERT_TRUE(os::SendMessage(broker_.get(), &opened, sizeof(opened), &fd, 1).ok());
}

std::unique_ptr<PlayedWorker> GatewayProcess::TakeWorker() {
  absl::MutexLock lock(&mu_);
  const auto there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !workers_.empty(); };
  mu_.Await(absl::Condition(&there));
  std::unique_ptr<PlayedWorker> worker = std::move(workers_.front());
  workers_.pop_front();
  return worker;
}

std::pair<std::unique_ptr<client::RemoteTransport>, std::unique_ptr<PlayedWorker>>
GatewayProcess::OpenSession() {
  auto transport = client::RemoteTransport::Connect(endpoint_, std::chrono::seconds(30));
  EXPECT_TRUE(transport.ok()) << transport.status();
  if (!transport.ok()) return {};
  return {*std::move(transport), TakeWorker()};
}

uint64_t GatewayProcess::PeakMemoryBytes() const {
  const std::string status = ReadWholeFile(absl::StrCat("/proc/", process_.pid(), "/status"));
  uint64_t kilobytes = 0;
  for (const absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::StartsWith(line, "VmHWM:")) continue;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    EXPECT_TRUE(absl::SimpleAtoi(words.at(1), &kilobytes));
  }
  EXPECT_NE(kilobytes, 0u) << status;
  return kilobytes * 1024;
}

bool AwaitFrame(client::RemoteTransport* transport, wire::Frame* frame) {
  while (!transport->Receive(frame)) {
    if (transport->lost()) return false;
    const uint32_t ticket = transport->Arm(wire::kSleepsForAny, 0);
    transport->Wait(ticket, wire::kBitWaiter);
  }
  return true;
}

bool SendCommand(client::RemoteTransport* transport, uint64_t sequence, std::string_view message,
                 std::string_view payload, uint32_t flags) {
  wire::FrameHeader header = {};
  header.sequence = sequence;
  header.message_bytes = static_cast<uint32_t>(message.size());
  header.payload_bytes = payload.size();
  header.flags = flags;
  return transport->Send(header, message, payload, /*wake=*/true);
}

v1::Reply AnswerTo(uint64_t sequence, std::string data) {
  v1::Reply reply;
  reply.mutable_answer()->set_sequence(sequence);
  reply.mutable_answer()->set_data(std::move(data));
  return reply;
}

void ExpectWorks(client::RemoteTransport* transport, PlayedWorker* worker, uint64_t sequence) {
  const std::string text = absl::StrCat("command ", sequence);
  ASSERT_TRUE(SendCommand(transport, sequence, text));
  const wire::Frame command = worker->TakeCommand();
  EXPECT_EQ(command.message(), text);
  EXPECT_EQ(command.header().sequence, sequence);
  worker->Send(AnswerTo(sequence, "answer"));
  wire::Frame frame;
  ASSERT_TRUE(AwaitFrame(transport, &frame)) << transport->lost_reason();
  EXPECT_EQ(frame.message(), AnswerTo(sequence, "answer").SerializeAsString());
}

}  // namespace sluice::gateway
