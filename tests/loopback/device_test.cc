// SPDX-License-Identifier: Apache-2.0
// proto/commands/device.proto through the worker.
#include <cstring>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

using DeviceLoopbackTest = LoopbackTest;

// After SetDevices an id is the device that has its key, wherever the worker lists it; a device
// without a key there is none, and a key that no device has makes none.
TEST_F(DeviceLoopbackTest, DevicesAreKnownByTheirKeys) {
  const uint64_t cpu_key = client_->session().ObjectsForTesting().Find<DeviceObject>(kCpu)->key;
  const uint64_t gpu_key = client_->session().ObjectsForTesting().Find<DeviceObject>(kGpu)->key;
  EXPECT_NE(cpu_key, gpu_key);
  pb::Command command;
  pb::SetDevices& body = *command.mutable_set_devices();
  const auto add = [&body](uint64_t id, uint64_t key) {
    body.add_devices()->set_id(id);
    body.mutable_devices(body.devices_size() - 1)->set_key(key);
  };
  add(kCpu, gpu_key);
  add(7, cpu_key ^ gpu_key);
  client_->Send(command);
  client_->Sync();
  const auto device = client_->session().ObjectsForTesting().Find<DeviceObject>(kCpu);
  ASSERT_NE(device, nullptr);
  EXPECT_FALSE(device->is_cpu);
  MakeContext(kCpu);
  for (const uint64_t gone : {kGpu, uint64_t{7}}) {
    pb::Command create;
    create.mutable_create_context()->set_context_id(client_->NewId());
    create.mutable_create_context()->add_device_ids(gone);
    EXPECT_EQ(client_->Call(create).status(), CL_INVALID_DEVICE);
  }
}

// An object whose id is claimed for a device stays what it is.
TEST_F(DeviceLoopbackTest, OtherObjectsKeepTheirIds) {
  const uint64_t context = MakeContext();
  const uint64_t key = client_->session().ObjectsForTesting().Find<DeviceObject>(kCpu)->key;
  pb::Command command;
  command.mutable_set_devices()->add_devices()->set_id(context);
  command.mutable_set_devices()->mutable_devices(0)->set_key(key);
  client_->Send(command);
  client_->Send(command);
  client_->Sync();
  EXPECT_NE(client_->session().ObjectsForTesting().Find<ContextObject>(context), nullptr);
}

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

// A device says no more of its memory than the session may have.
TEST_F(DeviceLoopbackTest, SizesAreBoundedByTheQuota) {
  constexpr cl_ulong kLimit = 12'345;
  for (const bool limited : {false, true}) {
    SessionOptions options;
    if (limited) options.limits.memory_bytes = kLimit;
    Start(options);
    pb::Command command;
    pb::CreateSubDevices& body = *command.mutable_create_sub_devices();
    body.set_device_id(kCpu);
    body.add_properties(CL_DEVICE_PARTITION_EQUALLY);
    body.add_properties(2);
    body.set_first_id(client_->NewId());
    body.set_max_devices(2);
    client_->NewId();
    const pb::Answer answer = client_->Call(command);
    ASSERT_EQ(answer.devices_size(), 2);
    int found = 0;
    for (const pb::InfoValue& info : answer.devices(0).info()) {
      if (info.param_name() != CL_DEVICE_GLOBAL_MEM_SIZE &&
          info.param_name() != CL_DEVICE_MAX_MEM_ALLOC_SIZE)
        continue;
      cl_ulong size = 0;
      ASSERT_EQ(info.value().size(), sizeof(size));
      std::memcpy(&size, info.value().data(), sizeof(size));
      EXPECT_EQ(size == kLimit, limited) << size;
      ++found;
    }
    EXPECT_EQ(found, 2);
  }
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
}  // namespace sluice::worker
