// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/program.h"

#include "client_icd/objects/kernel_metadata.h"
#include "tests/unit/client_icd/sharing_fixture.h"

namespace sluice::client {
namespace {

// A program for two devices, in a session with a scripted worker.
class ProgramTest : public sharing::SharingTest {
 protected:
  void SetUp() override {
    SharingTest::SetUp();
    second_ = Ref<Device>::Adopt(new Device(nullptr, 2, /*key=*/1, Description()));
    Device* const devices[] = {device_.get(), second_.get()};
    program_ =
        Ref<Program>::Adopt(new Program(context_, Program::Origin::kSource, devices, "kernel"));
  }
  static Uint64List Listed(const Device& device) {
    Uint64List ids;
    ids.Add(device.id());
    return ids;
  }
  cl_int Begin(const Device& device) {
    return program_->BeginBuild(Program::Step::kBuild, Listed(device), "");
  }
  // The worker's answer to that device's build tells of both devices.
  void End(const Device& device, cl_int status, cl_build_status first, cl_build_status second) {
    pb::ProgramState state;
    for (const auto& [id, told] : {std::pair(device_->id(), first), {second_->id(), second}}) {
      state.add_devices()->set_device_id(id);
      state.mutable_devices()->rbegin()->set_build_status(told);
    }
    program_->EndBuild(Listed(device), status, state);
  }
  cl_build_status StatusOf(const Device& device) {
    cl_build_status status = 77;
    EXPECT_EQ(program_->GetBuildInfo(device, CL_PROGRAM_BUILD_STATUS,
                                     InfoSink(sizeof(status), &status, nullptr)),
              CL_SUCCESS);
    return status;
  }

  Ref<Device> second_;
  Ref<Program> program_;
};

// The answer to a build for one device leaves the others' builds, running or ended, as they are.
TEST_F(ProgramTest, AnswersTellOfTheirOwnDevices) {
  ASSERT_EQ(Begin(*device_), CL_SUCCESS);
  ASSERT_EQ(Begin(*second_), CL_SUCCESS);
  End(*device_, CL_SUCCESS, CL_BUILD_SUCCESS, CL_BUILD_NONE);
  EXPECT_EQ(StatusOf(*device_), CL_BUILD_SUCCESS);
  EXPECT_EQ(StatusOf(*second_), CL_BUILD_IN_PROGRESS);
  EXPECT_EQ(Begin(*second_), CL_INVALID_OPERATION);
  End(*second_, CL_BUILD_PROGRAM_FAILURE, CL_BUILD_ERROR, CL_BUILD_ERROR);
  EXPECT_TRUE(program_->HasExecutableFor(*device_));
  EXPECT_EQ(StatusOf(*second_), CL_BUILD_ERROR);
}

// A sub-device has what was built for its parent, and that for its own, until something is built
// for it: also while that build goes on, and if it failed.
TEST_F(ProgramTest, SubDevicesHaveTheirParentsProgram) {
  const auto part_of = [this](const Ref<Device>& parent, uint64_t id) {
    return Ref<Device>::Adopt(new Device(parent, session_, id, Description(), {}));
  };
  const Ref<Device> part = part_of(device_, 11);
  const Ref<Device> smaller = part_of(part, 12);
  Device* const devices[] = {device_.get(), part.get(), second_.get()};
  program_ =
      Ref<Program>::Adopt(new Program(context_, Program::Origin::kSource, devices, "kernel"));
  EXPECT_FALSE(program_->HasExecutableFor(*part));
  ASSERT_EQ(program_->BeginBuild(Program::Step::kBuild, Listed(*device_), "-w"), CL_SUCCESS);
  EXPECT_EQ(StatusOf(*part), CL_BUILD_IN_PROGRESS);
  EXPECT_EQ(StatusOf(*second_), CL_BUILD_NONE);
  End(*device_, CL_SUCCESS, CL_BUILD_SUCCESS, CL_BUILD_NONE);
  for (const Device* device : {part.get(), smaller.get()}) {
    EXPECT_EQ(StatusOf(*device), CL_BUILD_SUCCESS);
    EXPECT_TRUE(program_->HasExecutableFor(*device));
    EXPECT_EQ(program_->OptionsFor(*device), "-w");
  }
  EXPECT_FALSE(program_->HasExecutableFor(*second_));
  ASSERT_EQ(Begin(*part), CL_SUCCESS);
  EXPECT_EQ(StatusOf(*device_), CL_BUILD_SUCCESS);
  EXPECT_EQ(StatusOf(*smaller), CL_BUILD_IN_PROGRESS);
  program_->EndBuild(Listed(*part), CL_BUILD_PROGRAM_FAILURE, pb::ProgramState());
  EXPECT_EQ(StatusOf(*part), CL_BUILD_ERROR);
  EXPECT_FALSE(program_->HasExecutableFor(*smaller));
  EXPECT_TRUE(program_->HasExecutableFor(*device_));
}

// So it is with what the driver tells of a kernel on a device; what it tells of the sub-device
// comes first.
TEST_F(ProgramTest, SubDevicesHaveTheirParentsKernels) {
  const auto part = Ref<Device>::Adopt(new Device(device_, session_, 11, Description(), {}));
  pb::KernelDescription described;
  described.add_devices()->set_device_id(device_->id());
  described.mutable_devices(0)->set_work_group_size(64);
  EXPECT_EQ(KernelMetadata(described).ForDevice(*part)->work_group_size(), 64u);
  EXPECT_EQ(KernelMetadata(described).ForDevice(*second_), nullptr);
  described.add_devices()->set_device_id(part->id());  // Asked, and refused.
  EXPECT_EQ(KernelMetadata(described).ForDevice(*part)->work_group_size(), 64u);
  described.mutable_devices(1)->set_work_group_size(16);
  EXPECT_EQ(KernelMetadata(described).ForDevice(*part)->work_group_size(), 16u);
}

}  // namespace
}  // namespace sluice::client
