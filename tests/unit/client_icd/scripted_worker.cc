// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/client_icd/scripted_worker.h"

#include <CL/cl.h>

#include <utility>

namespace sluice::client {

std::string ScriptedWorker::Memory(uint64_t id) {
  const std::lock_guard<std::mutex> lock(mu_);
  return memory_[id];
}

void ScriptedWorker::SetMemory(uint64_t id, const std::string& bytes) {
  const std::lock_guard<std::mutex> lock(mu_);
  memory_[id] = bytes;
}

size_t ScriptedWorker::Count(pb::Command::BodyCase body) {
  const std::lock_guard<std::mutex> lock(mu_);
  return counts_[body];
}

void ScriptedWorker::TakeImports(const std::string& refusal) {
  const std::lock_guard<std::mutex> lock(mu_);
  takes_imports_ = true;
  refusal_ = refusal;
}

std::vector<uint64_t> ScriptedWorker::Handles() {
  const std::lock_guard<std::mutex> lock(mu_);
  return handles_;
}

pb::Command ScriptedWorker::LastImport() {
  const std::lock_guard<std::mutex> lock(mu_);
  return last_import_;
}

void ScriptedWorker::OnChangeOfHands(std::function<cl_int(bool acquire)> change) {
  const std::lock_guard<std::mutex> lock(mu_);
  on_change_of_hands_ = std::move(change);
}

void ScriptedWorker::BeforeSend(std::function<void(const pb::Command&)> look) {
  const std::lock_guard<std::mutex> lock(mu_);
  before_send_ = std::move(look);
}

void ScriptedWorker::MakeShadows(bool semaphores) {
  const std::lock_guard<std::mutex> lock(mu_);
  makes_shadows_ = true;
  has_semaphores_ = semaphores;
}

std::string ScriptedWorker::ShadowLog() {
  const std::lock_guard<std::mutex> lock(mu_);
  return shadow_log_;
}

void ScriptedWorker::FailNextAcquire(cl_int status) {
  const std::lock_guard<std::mutex> lock(mu_);
  fail_acquire_ = status;
}

bool ScriptedWorker::shares_memory() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return takes_imports_ || makes_shadows_;
}

bool ScriptedWorker::SendHandle(uint64_t token, int) {
  const std::lock_guard<std::mutex> lock(mu_);
  if (takes_imports_) handles_.push_back(token);
  return takes_imports_;
}

std::vector<os::UniqueFd> ScriptedWorker::TakeDescriptors(uint64_t) {
  const std::lock_guard<std::mutex> lock(mu_);
  std::vector<os::UniqueFd> fds;
  for (int i = 0; i < (gave_semaphores_ ? 3 : 1); ++i) fds.push_back(os::DuplicateFd(0));
  return fds;
}

bool ScriptedWorker::Send(const wire::FrameHeader& header, std::string_view message,
                          std::string_view payload, bool) {
  pb::Command command;
  if (!command.ParseFromArray(message.data(), static_cast<int>(message.size()))) return false;
  std::unique_lock<std::mutex> lock(mu_);
  if (lost_) return false;
  if (const auto look = before_send_; look != nullptr) {
    lock.unlock();  // It may ask for what is here.
    look(command);
    lock.lock();
  }
  ++counts_[command.body_case()];
  Take(header, command, payload);
  Pump();
  return true;
}

void ScriptedWorker::Take(const wire::FrameHeader& header, const pb::Command& command,
                          std::string_view payload) {
  pb::Reply reply;
  pb::Answer& answer = *reply.mutable_answer();
  answer.set_sequence(header.sequence);
  switch (command.body_case()) {
    case pb::Command::kCreateBuffer:
      memory_[command.create_buffer().mem_id()] = std::string(command.create_buffer().size(), '\0');
      return Reply(reply);
    case pb::Command::kCreateImage:
    case pb::Command::kCreateSubBuffer:
    case pb::Command::kCreateSampler:
      return Reply(reply);
    case pb::Command::kCreateImportedBuffer:
    case pb::Command::kCreateImportedImage:
      last_import_ = command;
      if (!refusal_.empty()) {
        answer.set_status(CL_INVALID_OPERATION);
        answer.set_refusal(refusal_);
      }
      return Reply(reply);
    case pb::Command::kCreateShadowBuffer: {
      const pb::CreateShadowBuffer& body = command.create_shadow_buffer();
      memory_[body.mem_id()] = std::string(body.size(), '\0');
      pb::ShadowPlacement& placement = *answer.mutable_shadow();
      placement.set_allocation_bytes(body.size() + 1);
      placement.set_device_uuid(std::string(16, 'd'));
      placement.set_driver_uuid(std::string(16, 'v'));
      gave_semaphores_ = has_semaphores_ && body.semaphores();
      placement.set_semaphores(gave_semaphores_);
      return Reply(reply);
    }
    case pb::Command::kCreateCommandQueue: {
      const pb::CreateCommandQueue& queue = command.create_command_queue();
      bool in_order = true;
      for (int i = 0; i + 1 < queue.properties_size(); i += 2) {
        if (queue.properties(i) == CL_QUEUE_PROPERTIES)
          in_order = (queue.properties(i + 1) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
      }
      in_order_[queue.queue_id()] = in_order;
      return Reply(reply);
    }
    case pb::Command::kSetUserEventStatus:
      ended_[command.set_user_event_status().event_id()] = command.set_user_event_status().status();
      return;
    case pb::Command::kTransferChunk:
      for (Pending& pending : pending_) {
        if (pending.on->event_id() != command.transfer_chunk().event_id()) continue;
        memory_[pending.command.enqueue_write_buffer().mem_id()] = std::string(payload);
        pending.fed = true;
      }
      return;
    case pb::Command::kEnqueueAcquireShadow:
    case pb::Command::kEnqueueReleaseShadow:
    case pb::Command::kEnqueueMarker:
    case pb::Command::kEnqueueCopyBuffer:
    case pb::Command::kEnqueueReadBuffer:
    case pb::Command::kEnqueueWriteBuffer:
      Enqueue(command);
      if (payload.empty()) return;
      memory_[command.enqueue_write_buffer().mem_id()] = std::string(payload);
      pending_.back().fed = true;  // Its bytes came with it.
      return;
    default:
      return;  // Nothing that needs an answer here.
  }
}

void ScriptedWorker::Enqueue(const pb::Command& command) {
  pending_.push_back({command, nullptr});
  pb::Command& own = pending_.back().command;
  switch (own.body_case()) {
    case pb::Command::kEnqueueMarker:
      pending_.back().on = &own.enqueue_marker().on();
      return;
    case pb::Command::kEnqueueCopyBuffer:
      pending_.back().on = &own.enqueue_copy_buffer().on();
      return;
    case pb::Command::kEnqueueReadBuffer:
      pending_.back().on = &own.enqueue_read_buffer().on();
      return;
    case pb::Command::kEnqueueAcquireShadow:
      pending_.back().on = &own.enqueue_acquire_shadow().on();
      return;
    case pb::Command::kEnqueueReleaseShadow:
      pending_.back().on = &own.enqueue_release_shadow().on();
      return;
    default:
      pending_.back().on = &own.enqueue_write_buffer().on();
  }
}

void ScriptedWorker::Pump() {
  for (bool moved = true; moved;) {
    moved = false;
    std::map<uint64_t, bool> blocked;  // In-order queues whose first command has not ended.
    for (auto it = pending_.begin(); it != pending_.end(); ++it) {
      const uint64_t queue = it->on->queue_id();
      if (in_order_[queue] && blocked[queue]) continue;
      if (!Step(&*it)) {
        blocked[queue] = true;
        continue;
      }
      pending_.erase(it);
      moved = true;
      break;
    }
  }
}

bool ScriptedWorker::Step(Pending* pending) {
  const uint64_t event = pending->on->event_id();
  for (const uint64_t id : pending->on->wait_event_ids()) {
    const auto it = ended_.find(id);
    if (it == ended_.end()) return false;
    if (it->second >= 0) continue;
    Complete(event, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    return true;
  }
  if (pending->command.has_enqueue_write_buffer() && !pending->fed) {
    if (!std::exchange(pending->granted, true)) {
      pb::Reply reply;
      reply.mutable_grant()->set_event_id(event);
      reply.mutable_grant()->set_size(pending->command.enqueue_write_buffer().size());
      Reply(reply);
    }
    return false;
  }
  const bool acquires = pending->command.has_enqueue_acquire_shadow();
  if (acquires) {
    shadow_log_ += pending->command.enqueue_acquire_shadow().wait_semaphore() ? 'A' : 'a';
    if (fail_acquire_ != CL_SUCCESS) {
      Complete(event, std::exchange(fail_acquire_, CL_SUCCESS));
      return true;
    }
  }
  if (pending->command.has_enqueue_release_shadow())
    shadow_log_ += pending->command.enqueue_release_shadow().signal_semaphore() ? 'R' : 'r';
  if (on_change_of_hands_ && (acquires || pending->command.has_enqueue_release_shadow())) {
    Complete(event, on_change_of_hands_(acquires));
    return true;
  }
  if (pending->command.has_enqueue_copy_buffer()) {
    const pb::EnqueueCopyBuffer& copy = pending->command.enqueue_copy_buffer();
    shadow_log_ += 'c';
    memory_[copy.destination_id()] = memory_[copy.source_id()];
  }
  std::string payload;
  if (pending->command.has_enqueue_read_buffer())
    payload = memory_[pending->command.enqueue_read_buffer().mem_id()];
  Complete(event, CL_COMPLETE, payload);
  return true;
}

void ScriptedWorker::Complete(uint64_t event, cl_int status, const std::string& payload) {
  if (event == 0) return;
  ended_[event] = status;
  pb::Reply reply;
  reply.mutable_completion()->set_event_id(event);
  reply.mutable_completion()->set_status(status);
  Reply(reply, status == CL_COMPLETE ? payload : "");
}

void ScriptedWorker::Reply(const pb::Reply& reply, const std::string& payload) {
  const std::string message = reply.SerializeAsString();
  wire::FrameHeader header = {};
  header.message_bytes = static_cast<uint32_t>(message.size());
  header.payload_bytes = payload.size();
  std::string pieces;
  wire::AppendFrame(header, message, payload, &pieces);
  wire::FrameAssembler assembler;
  assembler.Feed(pieces, [this](wire::Frame& frame) { frames_.push_back(std::move(frame)); })
      .IgnoreError();
  ++bell_;
  changed_.notify_all();
}

void ScriptedWorker::AfterReceive(std::function<void()> look) {
  const std::lock_guard<std::mutex> lock(mu_);
  after_receive_ = std::move(look);
}

bool ScriptedWorker::Receive(wire::Frame* frame) {
  std::function<void()> look;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (frames_.empty()) return false;
    *frame = std::move(frames_.front());
    frames_.pop_front();
    look = after_receive_;
  }
  if (look) look();
  return true;
}

bool ScriptedWorker::HasFrame() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return !frames_.empty();
}

uint32_t ScriptedWorker::Arm(wire::RingSleep, uint64_t) {
  const std::lock_guard<std::mutex> lock(mu_);
  return bell_;
}

void ScriptedWorker::Wait(uint32_t ticket, uint32_t) {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [&] { return lost_ || !frames_.empty() || bell_ != ticket; });
}

void ScriptedWorker::Interrupt(uint32_t) {
  const std::lock_guard<std::mutex> lock(mu_);
  ++bell_;
  changed_.notify_all();
}

bool ScriptedWorker::lost() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return lost_;
}

void ScriptedWorker::Lose(std::string_view) {
  const std::lock_guard<std::mutex> lock(mu_);
  lost_ = true;
  ++bell_;
  changed_.notify_all();
}

}  // namespace sluice::client
