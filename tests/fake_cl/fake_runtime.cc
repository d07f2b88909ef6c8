// SPDX-License-Identifier: Apache-2.0
// The scheduler: what may run, runs; what has ended, calls back.
#include <algorithm>
#include <cstring>

#include "tests/fake_cl/fake_objects.h"

namespace sluice::fake {

Runtime::Runtime(Execution how) : execution(how) {
  if (execution == Execution::kInline) return;
  thread = std::thread([this] {
    std::unique_lock lock(mu);
    while (!stop) {
      if (!Step(lock)) changed.wait(lock);
    }
  });
}

Runtime::~Runtime() {
  {
    const std::lock_guard lock(mu);
    stop = true;
  }
  changed.notify_all();
  if (thread.joinable()) thread.join();
  // Commands that never ran keep their objects: sessions that have ended still point to it.
  static auto& graveyard = *new std::vector<std::deque<Callback>>;
  graveyard.push_back(std::move(callbacks));
}

bool Runtime::Step(std::unique_lock<std::recursive_mutex>& lock) {
  if (!callbacks.empty() && !hold_callbacks) {
    const Callback callback = std::move(callbacks.front());
    callbacks.pop_front();
    lock.unlock();
    callback();
    lock.lock();
    return true;
  }
  if (ready.empty() || hold_commands) return false;
  const cl_event event = ready.front();
  ready.pop_front();
  event->status = CL_RUNNING;
  std::function<cl_int()> action = std::move(event->action);
  lock.unlock();
  const cl_int status = action ? action() : CL_COMPLETE;
  action = nullptr;
  lock.lock();
  End(event, status, /*by_dependency=*/false);
  return true;
}

void Runtime::Kick() {
  changed.notify_all();
  if (execution == Execution::kThreaded) return;
  std::unique_lock lock(mu);
  while (Step(lock)) {
  }
}

void Runtime::End(cl_event event, cl_int status, bool by_dependency) {
  if (event->status <= CL_COMPLETE) return;
  event->status = status;
  if (event->queue != nullptr) {
    std::erase(event->queue->pending, event);
    --event->context->pending;
    if (event->queue->barrier == event) event->queue->barrier = nullptr;
  }
  if (!(by_dependency && mute_failures)) {
    for (const auto& [function, data] : event->callbacks) {
      callbacks.push_back([event, status, function = function, data = data] {
        function(event, status, data);
        const std::lock_guard lock(g_runtime->mu);
        Drop(event);
      });
      Ref(event);
    }
  }
  event->callbacks.clear();
  const std::vector<cl_event> dependents = std::move(event->dependents);
  for (const cl_event dependent : dependents) {
    if (status < 0) {
      if (dependent->status > CL_COMPLETE) std::erase(ready, dependent);
      End(dependent, DependencyFailure(), /*by_dependency=*/true);
    } else if (--dependent->waits_for == 0 && dependent->status == CL_QUEUED) {
      ready.push_back(dependent);
    }
    Drop(dependent);
  }
  changed.notify_all();
  if (event->type != CL_COMMAND_USER) Drop(event);  // The scheduler's reference.
}

cl_int Submit(cl_command_queue queue, cl_command_type type, cl_uint waits, const cl_event* list,
              cl_event* event, std::function<cl_int()> action, bool waits_for_all,
              bool is_barrier) {
  if ((waits == 0) != (list == nullptr)) return CL_INVALID_EVENT_WAIT_LIST;
  {
    const std::lock_guard lock(g_runtime->mu);
    auto* const made = new _cl_event;
    made->context = Ref(queue->context);
    made->queue = Ref(queue);
    made->type = type;
    made->action = std::move(action);
    bool failed = false;
    const auto wait_for = [&](cl_event other) {
      if (other->status < 0) failed = true;
      if (other->status <= CL_COMPLETE) return;
      ++made->waits_for;
      other->dependents.push_back(Ref(made));
    };
    for (cl_uint i = 0; i < waits; ++i) wait_for(list[i]);
    if (failed) ++g_runtime->behind_failed;
    const bool in_order = (queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
    if (in_order || (waits_for_all && waits == 0)) {
      for (const cl_event other : queue->pending) wait_for(other);
    } else if (queue->barrier != nullptr) {
      wait_for(queue->barrier);
    }
    queue->pending.push_back(made);
    ++made->context->pending;
    if (is_barrier) queue->barrier = made;
    if (event != nullptr) *event = Ref(made);
    if (failed) {
      g_runtime->End(made, g_runtime->DependencyFailure(), /*by_dependency=*/true);
    } else if (made->waits_for == 0) {
      g_runtime->ready.push_back(made);
    }
  }
  g_runtime->Kick();
  return CL_SUCCESS;
}

}  // namespace sluice::fake
