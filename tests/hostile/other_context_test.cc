// SPDX-License-Identifier: Apache-2.0
// A client that names objects of one context to another: it gets the error that OpenCL has for
// that, and the driver never sees them together.
#include <CL/cl.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/hostile/worker_process.h"

namespace sluice::worker {
namespace {

// Two contexts of the one device, each with the same objects; ids of the other's are 100 more.
class OtherContextTest : public ::testing::Test {
 protected:
  enum Id : uint64_t {
    kContext = 100,
    kQueue,
    kBuffer,
    kSampler,
    kProgram,
    kEvent,
    kKernel,
    kNew,
    kOther = 100,  // To be added.
    kSubDevices = 1000,
  };

  void SetUp() override {
    std::string why;
    worker_ = WorkerProcess::Start(&why);
    if (worker_ == nullptr) GTEST_SKIP() << "no worker runs here: " << why;
    Make(0);
    Make(kOther);
  }
  void TearDown() override { EXPECT_TRUE(worker_ == nullptr || worker_->Ping()); }

  cl_int Status(const pb::Command& command, std::string_view payload = {}) {
    const std::optional<pb::Answer> answer = worker_->Call(command, payload);
    EXPECT_TRUE(answer.has_value()) << "no answer";
    return answer.has_value() ? answer->status() : 1;
  }
  void Make(uint64_t more) {
    pb::Command command;
    command.mutable_create_context()->set_context_id(kContext + more);
    command.mutable_create_context()->add_device_ids(1);
    ASSERT_EQ(Status(command), CL_SUCCESS);
    ASSERT_EQ(Status(Queue(kQueue + more, kContext + more, 1)), CL_SUCCESS);
    command.mutable_create_buffer()->set_mem_id(kBuffer + more);
    command.mutable_create_buffer()->set_context_id(kContext + more);
    command.mutable_create_buffer()->set_size(1024);
    ASSERT_EQ(Status(command), CL_SUCCESS);
    command.mutable_create_sampler()->set_sampler_id(kSampler + more);
    command.mutable_create_sampler()->set_context_id(kContext + more);
    ASSERT_EQ(Status(command), CL_SUCCESS);
    command.mutable_create_program_with_source()->set_program_id(kProgram + more);
    command.mutable_create_program_with_source()->set_context_id(kContext + more);
    ASSERT_EQ(Status(command, "kernel void k(global int* a, sampler_t s) {}"), CL_SUCCESS);
    command.mutable_create_user_event()->set_event_id(kEvent + more);
    command.mutable_create_user_event()->set_context_id(kContext + more);
    worker_->Send(command);
  }
  void Build(uint64_t program) {
    pb::Command command;
    command.mutable_build_program()->set_program_id(program);
    ASSERT_EQ(Status(command), CL_SUCCESS);
  }
  static pb::Command Queue(uint64_t id, uint64_t context, uint64_t device) {
    pb::Command command;
    command.mutable_create_command_queue()->set_queue_id(id);
    command.mutable_create_command_queue()->set_context_id(context);
    command.mutable_create_command_queue()->set_device_id(device);
    return command;
  }

  std::unique_ptr<WorkerProcess> worker_;
};

// A kernel takes memory and samplers of its own context only.
TEST_F(OtherContextTest, KernelArguments) {
  Build(kProgram);
  pb::Command kernel;
  kernel.mutable_create_kernel()->set_kernel_id(kKernel);
  kernel.mutable_create_kernel()->set_program_id(kProgram);
  kernel.mutable_create_kernel()->set_name("k");
  ASSERT_EQ(Status(kernel), CL_SUCCESS);
  pb::Command argument;
  argument.mutable_check_kernel_arg()->set_kernel_id(kKernel);
  pb::KernelArg& value = *argument.mutable_check_kernel_arg()->mutable_arg();
  value.set_mem_id(kBuffer + kOther);
  EXPECT_EQ(Status(argument), CL_INVALID_MEM_OBJECT);
  value.set_mem_id(kBuffer);
  EXPECT_EQ(Status(argument), CL_SUCCESS);
  value.set_index(1);
  value.set_sampler_id(kSampler + kOther);
  EXPECT_EQ(Status(argument), CL_INVALID_SAMPLER);
  value.set_sampler_id(kSampler);
  EXPECT_EQ(Status(argument), CL_SUCCESS);
}

// A command waits for no event of another context, of an application's or a command's.
TEST_F(OtherContextTest, WaitLists) {
  constexpr uint64_t kOfACommand = kNew + 1;
  const auto marker = [this](uint64_t queue, uint64_t event, uint64_t waits_for) {
    pb::Command command;
    pb::Enqueue& on = *command.mutable_enqueue_marker()->mutable_on();
    on.set_queue_id(queue);
    on.set_event_id(event);
    on.add_wait_event_ids(waits_for);
    worker_->Send(command);
  };
  const auto ended = [this](uint64_t event) {
    const auto reply =
        worker_->Receive([=](const pb::Reply& r) { return r.completion().event_id() == event; });
    return reply.has_value() ? reply->completion().status() : 1;
  };
  marker(kQueue + kOther, kOfACommand, kEvent + kOther);  // Pending.
  marker(kQueue, kNew + 2, kOfACommand);
  EXPECT_EQ(ended(kNew + 2), CL_INVALID_CONTEXT);
  marker(kQueue, kNew + 3, kEvent + kOther);
  EXPECT_EQ(ended(kNew + 3), CL_INVALID_CONTEXT);
  for (const uint64_t event : {uint64_t{kEvent}, uint64_t{kEvent + kOther}}) {
    pb::Command command;
    command.mutable_set_user_event_status()->set_event_id(event);
    command.mutable_set_user_event_status()->set_status(CL_COMPLETE);
    worker_->Send(command);
  }
  EXPECT_EQ(ended(kOfACommand), CL_COMPLETE);
  marker(kQueue, kNew + 4, kEvent);
  EXPECT_EQ(ended(kNew + 4), CL_COMPLETE);
}

// An image is made from its own context's memory only.
TEST_F(OtherContextTest, ImagesParents) {
  pb::Command command;
  pb::CreateImage& image = *command.mutable_create_image();
  image.set_mem_id(kNew);
  image.set_context_id(kContext);
  image.mutable_format()->set_channel_order(CL_RGBA);
  image.mutable_format()->set_channel_data_type(CL_UNORM_INT8);
  image.mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE1D_BUFFER);
  image.mutable_desc()->set_width(16);
  image.mutable_desc()->set_parent_id(kBuffer + kOther);
  EXPECT_EQ(Status(command), CL_INVALID_IMAGE_DESCRIPTOR);
  image.mutable_desc()->set_parent_id(kBuffer);
  EXPECT_EQ(Status(command), CL_SUCCESS);
}

// A compilation takes headers, and a link programs, of its own context only.
TEST_F(OtherContextTest, CompilationsAndLinks) {
  pb::Command compile;
  compile.mutable_compile_program()->set_program_id(kProgram);
  compile.mutable_compile_program()->add_header_names("h.h");
  compile.mutable_compile_program()->add_header_ids(kProgram + kOther);
  EXPECT_EQ(Status(compile), CL_INVALID_PROGRAM);
  Build(kProgram + kOther);
  pb::Command link;
  link.mutable_link_program()->set_program_id(kNew);
  link.mutable_link_program()->set_context_id(kContext);
  link.mutable_link_program()->add_input_ids(kProgram + kOther);
  EXPECT_EQ(Status(link), CL_INVALID_PROGRAM);
}

// A queue, a build and a question about a program get no device that the context has not.
TEST_F(OtherContextTest, Devices) {
  pb::Command divide;
  pb::CreateSubDevices& parts = *divide.mutable_create_sub_devices();
  parts.set_device_id(1);
  for (const uint64_t property : {CL_DEVICE_PARTITION_EQUALLY, 1, 0})
    parts.add_properties(property);
  parts.set_first_id(kSubDevices);
  parts.set_max_devices(256);
  if (Status(divide) != CL_SUCCESS) GTEST_SKIP() << "the device has no parts";
  EXPECT_EQ(Status(Queue(kNew, kContext, kSubDevices)), CL_INVALID_DEVICE);
  pb::Command build;
  build.mutable_build_program()->set_program_id(kProgram);
  build.mutable_build_program()->add_device_ids(kSubDevices);
  EXPECT_EQ(Status(build), CL_INVALID_DEVICE);
  Build(kProgram);
  pb::Command question;
  question.mutable_get_info()->set_kind(pb::GetInfo::PROGRAM_BUILD);
  question.mutable_get_info()->set_id(kProgram);
  question.mutable_get_info()->set_device_id(kSubDevices);
  question.mutable_get_info()->set_param_name(CL_PROGRAM_BUILD_STATUS);
  EXPECT_EQ(Status(question), CL_INVALID_DEVICE);
}

}  // namespace
}  // namespace sluice::worker
