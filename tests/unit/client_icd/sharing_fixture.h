// SPDX-License-Identifier: Apache-2.0
// The state that tests of the sharing core start from: a session with a scripted worker, a context
// of one device, and a queue. Owner: each test has its own. Thread: the test's.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "client_icd/objects/event.h"
#include "client_icd/objects/queue.h"
#include "client_icd/sharing/core/core.h"
#include "tests/unit/client_icd/scripted_worker.h"

namespace sluice::client::sharing {

class SharingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto worker = std::make_unique<ScriptedWorker>();
    worker_ = worker.get();
    session_ = MakeSession(std::move(worker));
    device_ = Ref<Device>::Adopt(new Device(nullptr, 1, /*key=*/0, Description()));
    context_ = MakeContext();
    queue_ = MakeQueue(0);
  }
  void TearDown() override { session_->Lose("the test is over"); }

  // With images of any size.
  static InfoTable Description() {
    const cl_bool yes = CL_TRUE;
    google::protobuf::RepeatedPtrField<pb::InfoValue> values;
    pb::InfoValue& support = *values.Add();
    support.set_param_name(CL_DEVICE_IMAGE_SUPPORT);
    support.set_value(&yes, sizeof(yes));
    return InfoTable(values);
  }
  static std::shared_ptr<Session> MakeSession(std::unique_ptr<ScriptedWorker> worker) {
    return Session::Start({std::move(worker)});
  }
  // Its driver runs queues out of order (Queue::RunsInOrder).
  Ref<Context> MakeContext(bool images_of_imports = true) {
    pb::ContextPlacement placement;
    placement.set_overtakes(true);
    placement.set_images_of_imports(images_of_imports);
    auto context = Ref<Context>::Adopt(
        new Context(session_, nullptr, {device_}, PropertyList(), nullptr, nullptr));
    context->SetPlacement(placement, /*is_local=*/true);
    return context;
  }
  Ref<Queue> MakeQueue(cl_command_queue_properties flags) {
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, flags, 0};
    PropertyList properties;
    EXPECT_TRUE(ReadProperties(list, &properties));
    auto queue = Ref<Queue>::Adopt(new Queue(context_, device_, properties, true));
    ScopedCommand command;
    command->mutable_create_command_queue()->set_queue_id(queue->id());
    properties.CopyTo(command->mutable_create_command_queue()->mutable_properties());
    EXPECT_EQ(session_->stream().Call(*command, {}, nullptr), CL_SUCCESS);
    queue->SetMade();
    return queue;
  }
  cl_int Sync(bool acquire, Api api, const std::vector<MemObject*>& objects,
              cl_event* event = nullptr, const std::vector<cl_event>& waits = {},
              SyncSteps steps = {}) {
    std::vector<cl_mem> handles;
    for (MemObject* one : objects) handles.push_back(one->handle());
    const SyncArguments arguments = {queue_->handle(),
                                     static_cast<cl_uint>(handles.size()),
                                     handles.data(),
                                     static_cast<cl_uint>(waits.size()),
                                     waits.empty() ? nullptr : waits.data(),
                                     event};
    return acquire ? EnqueueAcquire(api, arguments, std::move(steps))
                   : EnqueueRelease(api, arguments, std::move(steps));
  }
  // Waits for the event and releases it.
  cl_int End(cl_event event) {
    const Ref<Event> own = Ref<Event>::Adopt(Event::From(event));
    return session_->stream().WaitFor(&own->pending());
  }

  ScriptedWorker* worker_ = nullptr;  // The session's.
  std::shared_ptr<Session> session_;
  Ref<Device> device_;
  Ref<Context> context_;
  Ref<Queue> queue_;
};

}  // namespace sluice::client::sharing
