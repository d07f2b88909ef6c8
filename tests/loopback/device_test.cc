// SPDX-License-Identifier: Apache-2.0
// proto/commands/device.proto through the worker.
#include <cstring>

#include "tests/loopback/harness.h"

namespace sluice {
namespace {

using DeviceLoopbackTest = LoopbackTest;

// A partition forwards its properties, and its sub-devices are devices of the session, described.
TEST_F(DeviceLoopbackTest, SubDevices) {
  pb::Command command;
  pb::CreateSubDevices& body = *command.mutable_create_sub_devices();
  body.set_device_id(kCpu);
  body.add_properties(CL_DEVICE_PARTITION_EQUALLY);
  body.add_properties(2);
  body.add_properties(0);
  body.set_first_id(client_->NewId());
  client_->NewId();
  EXPECT_EQ(client_->Call(command).count(), 2u);
  body.set_max_devices(1);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_VALUE);
  body.set_max_devices(2);
  const pb::Answer answer = client_->Call(command);
  EXPECT_EQ(answer.status(), CL_SUCCESS);
  ASSERT_EQ(answer.devices_size(), 2);
  EXPECT_GT(answer.devices(0).info_size(), 2);
  EXPECT_EQ(fake_->Last("clCreateSubDevices").arrays["properties"],
            (std::vector<uint64_t>{CL_DEVICE_PARTITION_EQUALLY, 2}));
  MakeQueue(MakeContext(body.first_id() + 1), body.first_id() + 1);
}

// A property list that the client does not terminate is terminated for it, also when it ends inside
// a list of counts.
TEST_F(DeviceLoopbackTest, PartitionPropertiesAreTerminated) {
  pb::Command command;
  pb::CreateSubDevices& body = *command.mutable_create_sub_devices();
  body.set_device_id(kCpu);
  body.set_first_id(client_->NewId());
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_VALUE);
  body.add_properties(CL_DEVICE_PARTITION_BY_COUNTS);
  body.add_properties(3);
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
}

// The timers' values come back as the driver gave them.
TEST_F(DeviceLoopbackTest, Timers) {
  pb::Command both;
  both.mutable_get_device_and_host_timer()->set_device_id(kGpu);
  const std::string data = client_->Call(both).data();
  cl_ulong times[2] = {};
  ASSERT_EQ(data.size(), sizeof(times));
  std::memcpy(times, data.data(), sizeof(times));
  EXPECT_EQ(times[0], 1234u);
  EXPECT_EQ(times[1], 5678u);
  pb::Command host;
  host.mutable_get_host_timer()->set_device_id(kGpu);
  EXPECT_EQ(client_->Call(host).data().size(), sizeof(cl_ulong));
  host.mutable_get_host_timer()->set_device_id(3);
  EXPECT_EQ(client_->Call(host).status(), CL_INVALID_DEVICE);
}

// Functions that an older loader does not have are answered, not called.
TEST_F(DeviceLoopbackTest, MissingFunctionsAreAnswered) {
  fake_->RemoveFunctions({"clGetHostTimer", "clGetDeviceAndHostTimer", "clCreatePipe"});
  pb::Command command;
  command.mutable_get_host_timer()->set_device_id(kGpu);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_OPERATION);
}

}  // namespace
}  // namespace sluice
