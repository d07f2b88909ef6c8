// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/queue.h"

#include <thread>

#include "client_icd/base/api.h"
#include "tests/unit/client_icd/sharing_fixture.h"

namespace sluice::client {
namespace {

// A context of a device that has queues of its own.
class DeviceQueueTest : public sharing::SharingTest {
 protected:
  void SetUp() override {
    SharingTest::SetUp();
    const cl_command_queue_properties supported = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    google::protobuf::RepeatedPtrField<pb::InfoValue> values;
    values.Add()->set_param_name(CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES);
    values.rbegin()->set_value(&supported, sizeof(supported));
    values.Add()->set_param_name(CL_DEVICE_QUEUE_ON_HOST_PROPERTIES);
    values.rbegin()->set_value(&supported, sizeof(supported));
    device_ = Ref<Device>::Adopt(new Device(nullptr, 1, /*key=*/0, InfoTable(values)));
    context_ = MakeContext();
  }
  cl_command_queue Create(cl_command_queue_properties more) {
    const cl_queue_properties list[] = {
        CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | more, 0};
    cl_int status = 77;
    const cl_command_queue queue = api::clCreateCommandQueueWithProperties(
        context_->handle(), device_->handle(), list, &status);
    EXPECT_EQ(status, CL_SUCCESS);
    return queue;
  }
  cl_command_queue Default(cl_command_queue queue) {
    cl_command_queue told = nullptr;
    EXPECT_EQ(
        api::clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE_DEFAULT, sizeof(told), &told, nullptr),
        CL_SUCCESS);
    return told;
  }
  static cl_int Release(cl_command_queue queue) { return api::clReleaseCommandQueue(queue); }
};

// A device has one default queue in a context: whoever makes it again gets it, with a reference of
// his own; when all are gone it is made anew.
TEST_F(DeviceQueueTest, ThereIsOneDefaultQueue) {
  const cl_command_queue other = Create(0);
  EXPECT_EQ(Default(other), nullptr);
  const size_t before = worker_->Count(pb::Command::kCreateCommandQueue);
  const cl_command_queue first = Create(CL_QUEUE_ON_DEVICE_DEFAULT);
  ASSERT_NE(first, other);
  EXPECT_EQ(Create(CL_QUEUE_ON_DEVICE_DEFAULT), first);
  EXPECT_EQ(worker_->Count(pb::Command::kCreateCommandQueue), before + 1);
  EXPECT_EQ(Default(other), first);
  EXPECT_EQ(Release(first), CL_SUCCESS);
  EXPECT_EQ(Default(first), first);
  EXPECT_EQ(Release(first), CL_SUCCESS);
  EXPECT_EQ(Default(other), nullptr);
  const cl_command_queue again = Create(CL_QUEUE_ON_DEVICE_DEFAULT);
  EXPECT_EQ(worker_->Count(pb::Command::kCreateCommandQueue), before + 2);
  EXPECT_EQ(Default(other), again);
  EXPECT_EQ(Release(again), CL_SUCCESS);
  EXPECT_EQ(Release(other), CL_SUCCESS);
}

class ReplyTest : public sharing::SharingTest {};

// A command whose end is being taken while its context is terminated ends with the code of that.
TEST_F(ReplyTest, TerminatedAsAnEndIsTaken) {
  std::thread terminates;
  worker_->AfterReceive([&] {
    worker_->AfterReceive(nullptr);
    terminates = std::thread([this] { session_->Terminate(); });
    while (!session_->lost()) std::this_thread::yield();
  });
  cl_event event = nullptr;
  ASSERT_EQ(api::clEnqueueMarkerWithWaitList(queue_->handle(), 0, nullptr, &event), CL_SUCCESS);
  EXPECT_EQ(End(event), CL_CONTEXT_TERMINATED_KHR);
  terminates.join();
}

}  // namespace
}  // namespace sluice::client
