// SPDX-License-Identifier: Apache-2.0
#include "tests/hostile/worker_process.h"

#include <dirent.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/broker_messages.h"
#include "proto/handle_messages.h"
#include "proto/spin.h"

namespace sluice::worker {
namespace {

constexpr int kPatienceMs = 60'000;  // A driver may take its time to load, most of all sanitized.

}  // namespace

std::unique_ptr<WorkerProcess> WorkerProcess::Start(std::string* why,
                                                    const std::vector<std::string>& limits) {
  auto worker = std::make_unique<WorkerProcess>();
  auto channel = os::CreateSocketPair();
  auto control = os::CreateSocketPair();
  os::SpawnOptions options;
  options.path = SLUICE_WORKER_PATH;
  options.arguments = {"--session-id=00000000000000aa", "--limit-objects=5000"};
  options.arguments.insert(options.arguments.end(), limits.begin(), limits.end());
  for (const char* name : {"PATH", "HOME", "TMPDIR", "OCL_ICD_VENDORS", "POCL_CACHE_DIR",
                           "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) {
      options.environment.push_back(absl::StrCat(name, "=", value));
    }
  }
  options.descriptors = {{channel->first.get(), 3}, {control->first.get(), 4}};
  absl::StatusOr<os::ChildProcess> process = os::Spawn(options);
  if (!process.ok()) {
    *why = std::string(process.status().message());
    return nullptr;
  }
  worker->process_ = std::move(*process);
  worker->channel_ = std::move(channel->second);
  worker->control_ = std::move(control->second);
  channel->first.reset();
  control->first.reset();
  return worker->Attach(why) ? std::move(worker) : nullptr;
}

uint64_t WorkerProcess::PeakMemoryBytes() const {
  std::ifstream status(absl::StrCat("/proc/", process_.pid(), "/status"));
  uint64_t kilobytes = 0;
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") status >> kilobytes;
  }
  return kilobytes << 10;
}

int WorkerProcess::CountDescriptors() const {
  DIR* folder = ::opendir(absl::StrCat("/proc/", process_.pid(), "/fd").c_str());
  if (folder == nullptr) return -1;
  int count = 0;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.') ++count;
  }
  ::closedir(folder);
  return count;
}

bool WorkerProcess::Attach(std::string* why) {
  wire::HandleMessage offer;
  std::vector<os::UniqueFd> fds;
  *why = "the worker offers no rings: ";
  if (!os::WaitReadable(channel_.get(), kPatienceMs).ok()) return false;
  const auto size = os::ReceiveMessage(channel_.get(), &offer, sizeof(offer), &fds, 2);
  if (!size.ok() || *size != sizeof(offer) || fds.size() != 2) {
    absl::StrAppend(why, ViolationNotice());
    return false;
  }
  for (const os::UniqueFd& fd : fds) {
    if (!os::VerifySharedMemory(fd.get(), wire::kRingFileBytes).ok()) return false;
  }
  commands_ = std::move(*os::SharedMapping::Map(fds[0].get(), wire::kRingFileBytes, true));
  replies_ = std::move(*os::SharedMapping::Map(fds[1].get(), wire::kRingFileBytes, true));
  command_file_ = std::move(fds[0]);
  writer_ = std::make_unique<wire::RingWriter>(commands_.data());
  reader_ = std::make_unique<wire::RingReader>(replies_.data());
  return true;
}

WorkerProcess::~WorkerProcess() {
  if (!process_.valid()) return;
  channel_.reset();
  if (!process_.WaitAndReap(10'000).has_value()) {
    (void)process_.Signal(SIGKILL);
    (void)process_.WaitAndReap(-1);
  }
}

void WorkerProcess::SendFrame(wire::FrameHeader header, std::string_view message,
                              std::string_view payload) {
  header.message_bytes = static_cast<uint32_t>(message.size());
  header.payload_bytes = payload.size();
  wire::CutFrame(header, message, payload, wire::kMaxPieceBody,
                 [&](const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                     std::string_view c) {
                   for (int i = 0; i < 100 && !writer_->TryWritePiece(piece, a, b, c); ++i) {
                     writer_->Notify(wire::Wake::kUrgent, 0);
                     writer_->WaitForRoom(piece.body_bytes, 100'000'000);
                   }
                   return true;
                 });
  writer_->Notify(wire::Wake::kUrgent, 0);
}

uint64_t WorkerProcess::Send(const pb::Command& command, std::string_view payload) {
  wire::FrameHeader header = {};
  header.sequence = next_sequence();
  SendFrame(header, command.SerializeAsString(), payload);
  return header.sequence;
}

std::optional<pb::Reply> WorkerProcess::Receive(const std::function<bool(const pb::Reply&)>& wanted,
                                                wire::BulkSpan* bulk) {
  const int64_t end = wire::MonotonicNs() + int64_t{kPatienceMs} * 1'000'000;
  wire::Frame frame;
  while (wire::MonotonicNs() < end) {
    const absl::StatusOr<bool> got = reader_->Next(&frame);
    if (!got.ok()) return std::nullopt;
    if (*got) {
      pb::Reply reply;
      const std::string_view message = frame.message();
      if (!reply.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
        return std::nullopt;
      }
      if (!wanted(reply)) continue;
      if (bulk != nullptr) *bulk = frame.bulk();
      return reply;
    }
    if (!ended_.has_value()) ended_ = process_.TryReap();
    if (ended_.has_value() || !process_.valid()) return std::nullopt;
    reader_->Sleep(wire::kSleepsForAny, 0, wire::kBitWaiter, 50'000'000);
    reader_->Arm(wire::kAwake);
  }
  return std::nullopt;
}

std::optional<pb::Answer> WorkerProcess::Call(const pb::Command& command,
                                              std::string_view payload) {
  const uint64_t sequence = Send(command, payload);
  const std::optional<pb::Reply> reply = Receive(
      [=](const pb::Reply& r) { return r.has_answer() && r.answer().sequence() == sequence; });
  if (!reply.has_value()) return std::nullopt;
  return reply->answer();
}

bool WorkerProcess::Ping() {
  pb::Command command;
  command.mutable_get_info()->set_kind(pb::GetInfo::DEVICE);
  command.mutable_get_info()->set_id(1);
  command.mutable_get_info()->set_param_name(0x102B);  // CL_DEVICE_NAME
  const std::optional<pb::Answer> answer = Call(command);
  return answer.has_value() && answer->status() == 0 && !answer->data().empty();
}

std::optional<os::ExitStatus> WorkerProcess::WaitForEnd() {
  if (!ended_.has_value()) ended_ = process_.WaitAndReap(10'000);
  return ended_;
}

std::string WorkerProcess::ViolationNotice() {
  char buffer[wire::kMaxBrokerMessageBytes];
  while (os::WaitReadable(control_.get(), 5000).ok()) {
    const auto size = os::ReceiveMessage(control_.get(), buffer, sizeof(buffer), nullptr, 0);
    if (!size.ok() || *size == 0) return "";
    wire::WorkerNotice notice;
    if (wire::ParseMessage(buffer, *size, &notice) && wire::IsTerminated(notice.text))
      return notice.text;
  }
  return "";
}

}  // namespace sluice::worker
