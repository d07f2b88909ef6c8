// SPDX-License-Identifier: Apache-2.0
// proto/commands/kernel.proto through the worker.
#include <cstring>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class KernelLoopbackTest : public LoopbackTest {
 protected:
  void SetUp() override {
    LoopbackTest::SetUp();
    context_ = MakeContext();
    queue_ = MakeQueue(context_);
    program_ = MakeProgram(context_);
    kernel_ = MakeKernel(program_);
    fake_->ClearCalls();
  }
  pb::EnqueueNdRangeKernel* Launch(pb::Command* command) {
    pb::EnqueueNdRangeKernel& body = *command->mutable_enqueue_nd_range_kernel();
    On(body.mutable_on(), queue_);
    body.set_kernel_id(kernel_);
    body.mutable_range()->add_global(16);
    return &body;
  }
  pb::Answer Create(uint64_t program, const std::string& name) {
    pb::Command command;
    pb::CreateKernel& body = *command.mutable_create_kernel();
    body.set_kernel_id(client_->NewId());
    body.set_program_id(program);
    body.set_name(name);
    return client_->Call(command);
  }
  cl_int CheckArg(const pb::KernelArg& arg) {
    pb::Command command;
    command.mutable_check_kernel_arg()->set_kernel_id(kernel_);
    *command.mutable_check_kernel_arg()->mutable_arg() = arg;
    return client_->Call(command).status();
  }

  uint64_t context_ = 0, queue_ = 0, program_ = 0, kernel_ = 0;
};

// The driver sees the sizes the application passed, and no offset stays no offset.
TEST_F(KernelLoopbackTest, LaunchForwardsSizes) {
  pb::Command command;
  pb::EnqueueNdRangeKernel& body = *Launch(&command);
  body.mutable_range()->add_global(8);
  body.mutable_range()->add_local(4);
  body.mutable_range()->add_local(2);
  client_->Send(command);
  EXPECT_EQ(Completed(body.on().event_id()).status(), CL_COMPLETE);
  fake::RecordedCall call = fake_->Last("clEnqueueNDRangeKernel");
  EXPECT_EQ(call.values[2], 2u);
  EXPECT_EQ(call.arrays["global"], (std::vector<uint64_t>{16, 8}));
  EXPECT_EQ(call.arrays["local"], (std::vector<uint64_t>{4, 2}));
  EXPECT_EQ(call.arrays.count("offset"), 0u);
}

// Arguments ride with the launch and are set before it, each as what it is.
TEST_F(KernelLoopbackTest, LaunchAppliesArguments) {
  const uint64_t mem = MakeBuffer(context_, 64);
  pb::Command command;
  pb::EnqueueNdRangeKernel& body = *Launch(&command);
  pb::KernelArg* arg = body.add_changed_args();
  arg->set_index(0);
  arg->set_mem_id(mem);
  arg = body.add_changed_args();
  arg->set_index(1);
  arg->set_data(std::string("\x2a\0\0\0", 4));
  arg = body.add_changed_args();
  arg->set_index(2);
  arg->set_local_bytes(256);
  client_->Send(command);
  EXPECT_EQ(Completed(body.on().event_id()).status(), CL_COMPLETE);
  const auto calls = fake_->Calls("clSetKernelArg");
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].values[2], sizeof(cl_mem));
  EXPECT_EQ(calls[1].bytes, std::string("\x2a\0\0\0", 4));
  EXPECT_EQ(calls[2].values[2], 256u);
  EXPECT_EQ(calls[2].values[3], 0u);
}

// An argument that cannot be applied fails the launch, and the others are applied all the same.
TEST_F(KernelLoopbackTest, BadArgumentFailsTheLaunch) {
  pb::Command command;
  pb::EnqueueNdRangeKernel& body = *Launch(&command);
  body.add_changed_args()->set_mem_id(31337);
  pb::KernelArg* const good = body.add_changed_args();
  good->set_index(1);
  good->set_data("abcd");
  client_->Send(command);
  EXPECT_EQ(Completed(body.on().event_id()).status(), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(fake_->Count("clSetKernelArg"), 1u);
  EXPECT_EQ(fake_->Count("clEnqueueNDRangeKernel"), 0u);
}

// Bytes are never taken for a handle, nor a handle given where bytes belong: the driver would
// follow a pointer of the client's, or the kernel would see one of ours.
TEST_F(KernelLoopbackTest, ArgumentsKeepTheirKind) {
  pb::KernelArg forged;
  forged.set_index(0);
  forged.set_data("AAAAAAAA");
  EXPECT_EQ(CheckArg(forged), CL_INVALID_ARG_VALUE);
  pb::KernelArg leak;
  leak.set_index(1);
  leak.set_mem_id(MakeBuffer(context_, 64));
  EXPECT_EQ(CheckArg(leak), CL_INVALID_ARG_VALUE);
  pb::KernelArg svm;
  svm.set_index(0);
  svm.set_svm_pointer(0xdeadbeef);
  EXPECT_EQ(CheckArg(svm), CL_INVALID_ARG_VALUE);
  pb::KernelArg beyond;
  beyond.set_index(5);
  beyond.set_data("abcd");
  EXPECT_EQ(CheckArg(beyond), CL_INVALID_ARG_INDEX);
  EXPECT_EQ(CheckArg(pb::KernelArg()), CL_INVALID_ARG_VALUE);
  EXPECT_EQ(fake_->Count("clSetKernelArg"), 0u);
}

// The driver judges the size of a value, and a null buffer is a null buffer.
TEST_F(KernelLoopbackTest, DriverJudgesValues) {
  pb::KernelArg value;
  value.set_index(1);
  value.set_data("abcde");
  EXPECT_EQ(CheckArg(value), CL_INVALID_ARG_SIZE);
  value.set_data("abcd");
  EXPECT_EQ(CheckArg(value), CL_SUCCESS);
  pb::KernelArg null;
  null.set_index(0);
  null.set_mem_id(0);
  EXPECT_EQ(CheckArg(null), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clSetKernelArg").values[3], 0u);
}

// A kernel is made by its name and described with its arguments and each device's limits.
TEST_F(KernelLoopbackTest, CreateDescribesTheKernel) {
  const pb::Answer answer = Create(program_, "k_other");
  ASSERT_EQ(answer.kernels_size(), 1);
  const pb::KernelDescription& kernel = answer.kernels(0);
  EXPECT_EQ(kernel.name(), "k_other");
  ASSERT_EQ(kernel.args_size(), 5);
  EXPECT_EQ(kernel.args(0).kind(), pb::KernelArgDescription::MEMORY);
  EXPECT_EQ(kernel.args(1).kind(), pb::KernelArgDescription::VALUE);
  EXPECT_EQ(kernel.args(2).kind(), pb::KernelArgDescription::LOCAL);
  EXPECT_EQ(kernel.args(3).kind(), pb::KernelArgDescription::IMAGE);
  EXPECT_EQ(kernel.args(4).kind(), pb::KernelArgDescription::SAMPLER);
  ASSERT_EQ(kernel.devices_size(), 1);
  EXPECT_EQ(kernel.devices(0).work_group_size(), 256u);
}

// An image is told by its access qualifier, whatever its type is called, and by the name of an
// image type where the driver tells no qualifier. A structure whose name only looks like one is a
// value. A sampler of another name is told by the driver's refusal of a null one, which the driver
// tells the context of, and nobody else hears of.
TEST_F(KernelLoopbackTest, NamesOfTypesDoNotMislead) {
  const auto kinds = [&] {
    const pb::Answer answer = Create(program_, "k");
    std::vector<int> list;
    for (const auto& arg : answer.kernels(0).args()) list.push_back(arg.kind());
    return list;
  };
  using Kind = pb::KernelArgDescription;
  fake_->set_argument_info(
      0, {"image_desc_t*", CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ACCESS_NONE});
  fake_->set_argument_info(
      1, {"image_desc_t", CL_KERNEL_ARG_ADDRESS_PRIVATE, CL_KERNEL_ARG_ACCESS_NONE});
  fake_->set_argument_info(
      3, {"texture", CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ACCESS_READ_ONLY});
  fake_->set_argument_info(4, {"filter", CL_KERNEL_ARG_ADDRESS_PRIVATE, CL_KERNEL_ARG_ACCESS_NONE});
  const std::vector<int> kExpected = {Kind::MEMORY, Kind::VALUE, Kind::LOCAL, Kind::IMAGE,
                                      Kind::SAMPLER};
  EXPECT_EQ(kinds(), kExpected);
  for (const char* const name : {"image1d_buffer_t", "image2d_array_msaa_depth_t", "image3d_t"}) {
    fake_->set_argument_info(3, {name, CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ACCESS_NONE});
    EXPECT_EQ(kinds(), kExpected) << name;
  }
  const std::vector<ReceivedReply> rest = client_->TakeAll();
  EXPECT_TRUE(std::none_of(rest.begin(), rest.end(), [](const ReceivedReply& one) {
    return one.reply.has_context_notify();
  }));
}

// A driver's answer about the range of a built-in kernel arrives; about others it has none.
TEST_F(KernelLoopbackTest, BuiltInKernelsTellTheirRange) {
  pb::Command program;
  pb::CreateProgramWithBuiltInKernels& body =
      *program.mutable_create_program_with_built_in_kernels();
  body.set_program_id(client_->NewId());
  body.set_context_id(context_);
  body.add_device_ids(kGpu);
  body.set_names("k");
  ASSERT_EQ(client_->Call(program).status(), CL_SUCCESS);
  for (const uint64_t one : {body.program_id(), program_}) {
    const pb::Answer answer = Create(one, "k");
    ASSERT_EQ(answer.kernels_size(), 1);
    const auto& told = answer.kernels(0).devices(0).global_work_size();
    EXPECT_EQ(std::vector<uint64_t>(told.begin(), told.end()),
              one == program_ ? std::vector<uint64_t>() : std::vector<uint64_t>({1024, 512, 64}));
  }
}

// A name that is no kernel, with bytes that are no text either, is the driver's to refuse.
TEST_F(KernelLoopbackTest, UnknownNamesAreAnswered) {
  for (const char* name : {"nothing", "\xff\xfe latin \xe9"}) {
    EXPECT_EQ(Create(program_, name).status(), CL_INVALID_KERNEL_NAME);
    EXPECT_EQ(fake_->Last("clCreateKernel").bytes, name);
  }
}

// All kernels of a program get consecutive ids; room for fewer is an error; a count costs nothing.
TEST_F(KernelLoopbackTest, KernelsInProgram) {
  pb::Command command;
  pb::CreateKernelsInProgram& body = *command.mutable_create_kernels_in_program();
  body.set_program_id(program_);
  body.set_first_id(client_->NewId());
  client_->NewId();
  EXPECT_EQ(client_->Call(command).count(), 2u);
  body.set_max_kernels(1);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_VALUE);
  body.set_max_kernels(2);
  EXPECT_EQ(client_->Call(command).kernels_size(), 2);
  kernel_ = body.first_id() + 1;
  pb::Command launch;
  const uint64_t event = Launch(&launch)->on().event_id();
  client_->Send(launch);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
}

// Arguments that travel with a question are applied though the question is refused: the client does
// not send them again.
TEST_F(KernelLoopbackTest, RefusedQuestionsApplyArguments) {
  pb::Command suggest;
  pb::GetKernelSuggestedLocalWorkSize& body =
      *suggest.mutable_get_kernel_suggested_local_work_size();
  body.set_queue_id(client_->NewId());
  body.set_kernel_id(kernel_);
  body.mutable_range()->add_global(64);
  pb::KernelArg& arg = *body.add_changed_args();
  arg.set_index(1);
  arg.set_data("abcd");
  EXPECT_EQ(client_->Call(suggest).status(), CL_INVALID_COMMAND_QUEUE);
  EXPECT_EQ(fake_->Count("clSetKernelArg"), 1u);
}

// A clone is the driver's clone; execution info and the suggested size are the driver's.
TEST_F(KernelLoopbackTest, CloneInfoAndSuggestedSize) {
  pb::Command clone;
  clone.mutable_clone_kernel()->set_kernel_id(client_->NewId());
  clone.mutable_clone_kernel()->set_source_id(kernel_);
  EXPECT_EQ(client_->Call(clone).kernels_size(), 1);
  pb::Command info;
  info.mutable_set_kernel_exec_info()->set_kernel_id(kernel_);
  info.mutable_set_kernel_exec_info()->set_param_name(CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM);
  info.mutable_set_kernel_exec_info()->set_value(std::string(4, '\0'));
  EXPECT_EQ(client_->Call(info).status(), CL_SUCCESS);
  info.mutable_set_kernel_exec_info()->set_param_name(CL_KERNEL_EXEC_INFO_SVM_PTRS);
  info.mutable_set_kernel_exec_info()->set_value("AAAAAAAA");
  EXPECT_EQ(client_->Call(info).status(), CL_INVALID_VALUE);
  pb::Command suggest;
  pb::GetKernelSuggestedLocalWorkSize& body =
      *suggest.mutable_get_kernel_suggested_local_work_size();
  body.set_queue_id(queue_);
  body.set_kernel_id(kernel_);
  body.mutable_range()->add_global(64);
  body.mutable_range()->add_global(10);
  const std::string data = client_->Call(suggest).data();
  uint64_t sizes[2] = {};
  ASSERT_EQ(data.size(), sizeof(sizes));
  std::memcpy(sizes, data.data(), sizeof(sizes));
  EXPECT_EQ(sizes[0], 32u);
  EXPECT_EQ(sizes[1], 5u);
}

}  // namespace
}  // namespace sluice::worker
