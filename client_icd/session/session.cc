// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/session.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/threads.h"
#include "client_icd/base/client_log.h"

namespace sluice::client {

cl_int ToClError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return CL_SUCCESS;
    case absl::StatusCode::kResourceExhausted:
      return CL_OUT_OF_RESOURCES;
    default:
      return CL_DEVICE_NOT_AVAILABLE;
  }
}

Session::Session(OpenedTransport opened)
    : transport_(std::move(opened.transport)),
      daemon_id_(opened.daemon_id),
      in_flight_(transport_->max_in_flight()),
      stream_(this, transport_.get()) {}

Session::~Session() = default;

std::shared_ptr<Session> Session::Start(OpenedTransport opened) {
  std::shared_ptr<Session> session(new Session(std::move(opened)));
  // The thread keeps the session until it is lost.
  if (!os::StartThread("sluice-replies", [session] { session->stream_.RunReplyThread(); })) {
    return nullptr;
  }
  return session;
}

void Session::HoldForFork(ForkLocks* locks, absl::Time deadline) {
  stream_.HoldForFork(locks, deadline);
  locks->Hold(&mu_, deadline);
}

void Session::LoseInForkedChild() {
  forked_.store(true, std::memory_order_relaxed);
  callbacks_.MakeInert();
  transport_->LoseInForkedChild();
}

bool Session::Terminate() {
  if (lost_code_.exchange(CL_CONTEXT_TERMINATED_KHR, std::memory_order_acq_rel) ==
      CL_CONTEXT_TERMINATED_KHR) {
    return false;
  }
  transport_->Lose("the context was terminated");
  stream_.Poll();  // Fails what is pending here and now.
  return true;
}

void Session::OnLost() {
  const std::string message = terminated() ? "the context was terminated"
                                           : absl::StrCat("the connection to the device was lost: ",
                                                          transport_->lost_reason());
  ClientLog(terminated() ? ClientLogLevel::kInfo : ClientLogLevel::kWarning, message);
  std::vector<Listener> listeners;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [id, registered] : objects_) {
      if (registered.object->kind() != ObjectKind::kContext) continue;
      if (Ref<Object> object = Ref<Object>::TryAcquire(registered.object))
        listeners.push_back({std::move(object), registered.listener});
    }
  }
  for (const Listener& one : listeners) one.listener->OnSessionLost(message);
  // Released objects whose end the worker would have told of have gone with it.
  std::vector<uint64_t> released;
  {
    absl::MutexLock lock(&mu_);
    released.assign(released_watched_.begin(), released_watched_.end());
  }
  for (const uint64_t id : released) RunDestructorCallbacks(id);
}

void Session::ReleaseObject(uint64_t id) {
  if (lost()) {
    if (!forked()) RunDestructorCallbacks(id);
    return;
  }
  {
    absl::MutexLock lock(&mu_);
    if (destructor_callbacks_.contains(id) || told_of_destruction_.contains(id))
      released_watched_.insert(id);
  }
  ScopedCommand command;
  command->mutable_release_object()->set_id(id);
  if (!stream_.Post(*command) && !forked()) RunDestructorCallbacks(id);
}

void Session::ReleaseEvent(uint64_t id) {
  ScopedCommand command;
  command->mutable_release_object()->set_id(id);
  stream_.PostQuietly(*command);
}

void Session::RegisterObject(Object* object, ReplyListener* listener) {
  absl::MutexLock lock(&mu_);
  objects_[object->id()] = {object, listener};
}

void Session::UnregisterObject(uint64_t id) {
  if (forked()) return;
  absl::MutexLock lock(&mu_);
  objects_.erase(id);
}

Session::Listener Session::FindListener(uint64_t id, ObjectKind kind) {
  absl::MutexLock lock(&mu_);
  const auto it = objects_.find(id);
  if (it == objects_.end() || it->second.object->kind() != kind) return {};
  return {Ref<Object>::TryAcquire(it->second.object), it->second.listener};
}

void Session::AddDestructorCallback(uint64_t id, Callbacks::Callback run) {
  bool first;
  {
    absl::MutexLock lock(&mu_);
    std::vector<Callbacks::Callback>& callbacks = destructor_callbacks_[id];
    first = callbacks.empty();
    callbacks.push_back(std::move(run));
  }
  if (first) PostWatch(id);
}

void Session::NotifyWhenDestroyed(uint64_t id, Callbacks::Callback told) {
  if (lost()) {
    if (!forked()) told();
    return;
  }
  stream_.AddEager();  // Until it has been told: nobody waits for anything.
  {
    absl::MutexLock lock(&mu_);
    told_of_destruction_.emplace(id, std::move(told));
  }
  PostWatch(id);
}

void Session::PostWatch(uint64_t id) {
  ScopedCommand command;
  command->mutable_watch_destruction()->set_id(id);
  stream_.Post(*command);
}

void Session::RunDestructorCallbacks(uint64_t id) {
  std::vector<Callbacks::Callback> callbacks;
  Callbacks::Callback told;
  {
    absl::MutexLock lock(&mu_);
    if (const auto it = destructor_callbacks_.find(id); it != destructor_callbacks_.end()) {
      callbacks = std::move(it->second);
      destructor_callbacks_.erase(it);
    }
    if (const auto it = told_of_destruction_.find(id); it != told_of_destruction_.end()) {
      told = std::move(it->second);
      told_of_destruction_.erase(it);
    }
    released_watched_.erase(id);
  }
  if (told != nullptr) {
    told();
    stream_.DropEager();
  }
  for (auto it = callbacks.rbegin(); it != callbacks.rend(); ++it) callbacks_.Add(std::move(*it));
}

}  // namespace sluice::client
