// SPDX-License-Identifier: Apache-2.0
#include "client_icd/program.h"

#include "tests/unit/client_icd/sharing_fixture.h"

namespace sluice {
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

}  // namespace
}  // namespace sluice
