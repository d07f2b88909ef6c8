// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/program.h"

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "client_icd/base/api.h"
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

// Notify function of a call, and whether it was called.
struct Told {
  static void CL_CALLBACK Notify(cl_program program, void* told) {
    static_cast<Told*>(told)->by.set_value(program);
  }
  bool yet() { return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

  std::promise<cl_program> by;
  std::future<cl_program> future = by.get_future();
};

// The calls of an application while the scripted worker builds.
class BuildTest : public ProgramTest {
 protected:
  using Step = Program::Step;
  static constexpr Step kSteps[] = {Step::kBuild, Step::kCompile};

  cl_int Start(Step step, Told* told, const char* options = "", cl_uint devices = 0,
               const cl_device_id* list = nullptr) {
    const auto notify = told != nullptr ? &Told::Notify : nullptr;
    if (step == Step::kBuild)
      return api::clBuildProgram(program_->handle(), devices, list, options, notify, told);
    return api::clCompileProgram(program_->handle(), devices, list, options, 0, nullptr, nullptr,
                                 notify, told);
  }
  std::string Options() {
    char text[64] = "";
    EXPECT_EQ(api::clGetProgramBuildInfo(program_->handle(), device_->handle(),
                                         CL_PROGRAM_BUILD_OPTIONS, sizeof(text), text, nullptr),
              CL_SUCCESS);
    return text;
  }
};

// Sections 5.8.2 and 5.8.3: CL_INVALID_OPERATION while a build or compilation has not completed,
// whichever of the two it is, and with a notify function or without. Nothing of the program changes
// by that, and nobody is notified.
TEST_F(BuildTest, NoOtherBuildBeginsMeanwhile) {
  for (const Step first : kSteps) {
    for (const Step second : kSteps) {
      Told told, never;
      ASSERT_EQ(Start(first, &told, "-DFIRST"), CL_SUCCESS);
      EXPECT_EQ(StatusOf(*device_), CL_BUILD_IN_PROGRESS);
      EXPECT_EQ(Start(second, nullptr, "-DSECOND"), CL_INVALID_OPERATION);
      EXPECT_EQ(Start(second, &never, "-DSECOND"), CL_INVALID_OPERATION);
      EXPECT_EQ(StatusOf(*device_), CL_BUILD_IN_PROGRESS);
      EXPECT_EQ(Options(), "-DFIRST");
      EXPECT_FALSE(told.yet());
      worker_->EndBuild(CL_SUCCESS);
      EXPECT_EQ(told.future.get(), program_->handle());
      EXPECT_EQ(StatusOf(*device_), CL_BUILD_SUCCESS);
      EXPECT_FALSE(never.yet());
    }
  }
}

// The same where the first call waits for its build, on another thread.
TEST_F(BuildTest, NoOtherBuildBeginsWhileACallWaits) {
  for (const Step second : kSteps) {
    cl_int ended = 77;
    std::thread other([&] { ended = Start(Step::kBuild, nullptr); });
    while (!program_->IsBuilding()) std::this_thread::yield();
    EXPECT_EQ(Start(second, nullptr), CL_INVALID_OPERATION);
    worker_->EndBuild(CL_BUILD_PROGRAM_FAILURE);
    other.join();
    EXPECT_EQ(ended, CL_BUILD_PROGRAM_FAILURE);
    EXPECT_EQ(StatusOf(*device_), CL_BUILD_ERROR);
  }
}

// Builds for different devices are no obstacle to each other, but for one that names both.
TEST_F(BuildTest, OtherDevicesMayBeBuiltForMeanwhile) {
  const cl_device_id first = device_->handle(), second = second_->handle();
  Told told, other;
  ASSERT_EQ(Start(Step::kBuild, &told, "", 1, &first), CL_SUCCESS);
  EXPECT_EQ(Start(Step::kBuild, nullptr), CL_INVALID_OPERATION);
  EXPECT_EQ(StatusOf(*second_), CL_BUILD_NONE);
  EXPECT_EQ(Start(Step::kCompile, &other, "", 1, &second), CL_SUCCESS);
  worker_->EndBuild(CL_SUCCESS);
  worker_->EndBuild(CL_SUCCESS);
  told.future.get();
  other.future.get();
}

// What is being built can neither be linked (section 5.8.4: CL_INVALID_OPERATION) nor make kernels
// (5.9.1: "no successfully built executable"), and afterwards it can.
TEST_F(BuildTest, WhatIsBeingBuiltIsOfNoUseYet) {
  const cl_program input = program_->handle();
  const auto link = [&](cl_int* error) {
    return api::clLinkProgram(context_->handle(), 0, nullptr, "", 1, &input, nullptr, nullptr,
                              error);
  };
  Told told;
  ASSERT_EQ(Start(Step::kCompile, &told), CL_SUCCESS);
  cl_int status = CL_SUCCESS;
  EXPECT_EQ(link(&status), nullptr);
  EXPECT_EQ(status, CL_INVALID_OPERATION);
  EXPECT_EQ(api::clCreateKernel(input, "k", &status), nullptr);
  EXPECT_EQ(status, CL_INVALID_PROGRAM_EXECUTABLE);
  EXPECT_EQ(api::clCreateKernelsInProgram(input, 0, nullptr, nullptr),
            CL_INVALID_PROGRAM_EXECUTABLE);
  worker_->EndBuild(CL_SUCCESS);
  told.future.get();
  cl_program linked = nullptr;
  std::thread other([&] { linked = link(&status); });
  worker_->EndBuild(CL_SUCCESS);
  other.join();
  EXPECT_EQ(status, CL_SUCCESS);
  EXPECT_EQ(api::clReleaseProgram(linked), CL_SUCCESS);
}

// Options that Sluice refuses by itself are told of as a build that failed.
TEST_F(BuildTest, RefusedOptionsAreABuildThatFailed) {
  Told told;
  ASSERT_EQ(Start(Step::kBuild, &told, "-DLAST"), CL_SUCCESS);
  worker_->EndBuild(CL_SUCCESS);
  told.future.get();
  EXPECT_EQ(Start(Step::kBuild, nullptr, "-w -I"), CL_INVALID_BUILD_OPTIONS);
  EXPECT_EQ(Start(Step::kCompile, nullptr, "-w -D"), CL_INVALID_COMPILER_OPTIONS);
  EXPECT_EQ(Options(), "-w -D");
  EXPECT_EQ(StatusOf(*device_), CL_BUILD_ERROR);
}

}  // namespace
}  // namespace sluice::client
