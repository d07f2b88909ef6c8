// SPDX-License-Identifier: Apache-2.0
// proto/commands/info.proto through the worker.
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class InfoLoopbackTest : public LoopbackTest {
 protected:
  pb::Answer Get(pb::GetInfo::Kind kind, uint64_t id, uint32_t param, uint64_t device = 0,
                 std::string_view input = "") {
    pb::Command command;
    pb::GetInfo& body = *command.mutable_get_info();
    body.set_kind(kind);
    body.set_id(id);
    body.set_param_name(param);
    body.set_device_id(device);
    body.set_input(std::string(input));
    return client_->Call(command);
  }
};

// Every kind of query asks the driver's function of its kind, about the object it names.
TEST_F(InfoLoopbackTest, EveryKindAsksItsFunction) {
  const uint64_t context = MakeContext();
  const uint64_t queue = MakeQueue(context);
  const uint64_t buffer = MakeBuffer(context, 4096);
  pb::ImageDesc desc;
  desc.set_image_type(CL_MEM_OBJECT_IMAGE1D);
  desc.set_width(10);
  const uint64_t image = MakeImage(context, desc);
  const uint64_t program = MakeProgram(context);
  const uint64_t kernel = MakeKernel(program);
  const uint64_t event = MakeUserEvent(context);
  pb::Command make_sampler;
  make_sampler.mutable_create_sampler()->set_sampler_id(client_->NewId());
  make_sampler.mutable_create_sampler()->set_context_id(context);
  client_->Call(make_sampler);
  pb::Command make_pipe;
  make_pipe.mutable_create_pipe()->set_mem_id(client_->NewId());
  make_pipe.mutable_create_pipe()->set_context_id(context);
  make_pipe.mutable_create_pipe()->set_packet_size(16);
  make_pipe.mutable_create_pipe()->set_max_packets(1);
  client_->Call(make_pipe);
  struct Case {
    pb::GetInfo::Kind kind;
    uint64_t id;
    uint32_t param;
    size_t bytes;
    const char* function;
  };
  for (const Case& c : {
           Case{pb::GetInfo::DEVICE, kGpu, CL_DEVICE_NAME, 9, "clGetDeviceInfo"},
           Case{pb::GetInfo::CONTEXT, context, CL_CONTEXT_NUM_DEVICES, 4, "clGetContextInfo"},
           Case{pb::GetInfo::QUEUE, queue, CL_QUEUE_PROPERTIES, 8, "clGetCommandQueueInfo"},
           Case{pb::GetInfo::MEMORY, buffer, CL_MEM_SIZE, 8, "clGetMemObjectInfo"},
           Case{pb::GetInfo::IMAGE, image, CL_IMAGE_WIDTH, 8, "clGetImageInfo"},
           Case{pb::GetInfo::PIPE, make_pipe.create_pipe().mem_id(), CL_PIPE_PACKET_SIZE, 4,
                "clGetPipeInfo"},
           Case{pb::GetInfo::SAMPLER, make_sampler.create_sampler().sampler_id(),
                CL_SAMPLER_FILTER_MODE, 4, "clGetSamplerInfo"},
           Case{pb::GetInfo::PROGRAM, program, CL_PROGRAM_NUM_KERNELS, 8, "clGetProgramInfo"},
           Case{pb::GetInfo::PROGRAM_BUILD, program, CL_PROGRAM_BUILD_LOG, 8,
                "clGetProgramBuildInfo"},
           Case{pb::GetInfo::KERNEL, kernel, CL_KERNEL_NUM_ARGS, 4, "clGetKernelInfo"},
           Case{pb::GetInfo::KERNEL_ARG, kernel, CL_KERNEL_ARG_NAME, 5, "clGetKernelArgInfo"},
           Case{pb::GetInfo::KERNEL_WORK_GROUP, kernel, CL_KERNEL_WORK_GROUP_SIZE, 8,
                "clGetKernelWorkGroupInfo"},
           Case{pb::GetInfo::KERNEL_SUB_GROUP, kernel, CL_KERNEL_MAX_NUM_SUB_GROUPS, 8,
                "clGetKernelSubGroupInfo"},
           Case{pb::GetInfo::EVENT, event, CL_EVENT_COMMAND_TYPE, 4, "clGetEventInfo"},
       }) {
    fake_->ClearCalls();
    const pb::Answer answer = Get(c.kind, c.id, c.param, kGpu, "in");
    EXPECT_EQ(answer.status(), CL_SUCCESS) << c.function;
    EXPECT_EQ(answer.data().size(), c.bytes) << c.function;
    EXPECT_GE(fake_->Count(c.function), 1u) << c.function;
    EXPECT_LT(Get(c.kind, 31337, c.param, kGpu).status(), 0) << c.function;
    EXPECT_LT(Get(c.kind, c.id, 0xffff, 0).status(), 1) << c.function;
  }
  EXPECT_EQ(Get(pb::GetInfo::EVENT_PROFILING, event, CL_PROFILING_COMMAND_END).status(),
            CL_PROFILING_INFO_NOT_AVAILABLE);
}

// Where the room for the answer is a part of the question, the driver is asked with the caller's.
TEST_F(InfoLoopbackTest, TheRoomReachesTheDriver) {
  const uint64_t kernel = MakeKernel(MakeProgram(MakeContext()));
  pb::Command command;
  pb::GetInfo& body = *command.mutable_get_info();
  body.set_kind(pb::GetInfo::KERNEL_SUB_GROUP);
  body.set_id(kernel);
  body.set_device_id(kGpu);
  body.set_param_name(CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT);
  body.set_input(std::string(sizeof(size_t), '\1'));
  for (const uint32_t room : {8u, 16u, 24u}) {
    body.set_room(room);
    const pb::Answer answer = client_->Call(command);
    EXPECT_EQ(answer.status(), CL_SUCCESS);
    EXPECT_EQ(answer.data().size(), room);
  }
  for (const uint32_t room : {0u, 12u, 32u, ~0u}) {
    body.set_room(room);
    EXPECT_EQ(client_->Call(command).status(), CL_INVALID_VALUE) << room;
  }
  body.set_id(31337);
  body.set_room(8);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_KERNEL);
}

// Argument information that the application's build did not ask for is told where the driver would
// tell it all the same, and nowhere else.
TEST_F(InfoLoopbackTest, UnaskedArgumentInformation) {
  for (const bool on_request : {true, false}) {
    SCOPED_TRACE(on_request);
    Start({});
    fake_->set_arg_info_on_request(on_request);
    const uint64_t context = MakeContext();
    const uint64_t kernel = MakeKernel(MakeProgram(context, "src", "-w"));
    const uint64_t empty_kernel = MakeKernel(MakeProgram(context, "src", " "));
    const uint64_t none_kernel = MakeKernel(MakeProgram(context, "src", ""));
    const uint64_t asked_kernel = MakeKernel(MakeProgram(context, "src", "-cl-kernel-arg-info"));
    const size_t builds = fake_->Count("clBuildProgram");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Get(pb::GetInfo::KERNEL_ARG, kernel, CL_KERNEL_ARG_NAME).status(),
                on_request ? CL_KERNEL_ARG_INFO_NOT_AVAILABLE : CL_SUCCESS);
      EXPECT_EQ(Get(pb::GetInfo::KERNEL_ARG, empty_kernel, CL_KERNEL_ARG_NAME).status(),
                on_request ? CL_KERNEL_ARG_INFO_NOT_AVAILABLE : CL_SUCCESS);
      EXPECT_EQ(Get(pb::GetInfo::KERNEL_ARG, none_kernel, CL_KERNEL_ARG_NAME).status(),
                on_request ? CL_KERNEL_ARG_INFO_NOT_AVAILABLE : CL_SUCCESS);
      EXPECT_EQ(Get(pb::GetInfo::KERNEL_ARG, asked_kernel, CL_KERNEL_ARG_NAME).status(),
                CL_SUCCESS);
    }
    // Found out once for options that do not ask and once for none: drivers may differ in that.
    EXPECT_EQ(fake_->Count("clBuildProgram"), builds + 2);
  }
}

// No handle of the driver ever crosses the wire: such queries are refused unasked.
TEST_F(InfoLoopbackTest, HandlesAreNotTold) {
  const uint64_t context = MakeContext();
  const uint64_t event = MakeUserEvent(context);
  EXPECT_EQ(Get(pb::GetInfo::EVENT, event, CL_EVENT_CONTEXT).status(), CL_INVALID_VALUE);
  EXPECT_EQ(Get(pb::GetInfo::CONTEXT, context, CL_CONTEXT_DEVICES).status(), CL_INVALID_VALUE);
  EXPECT_EQ(Get(pb::GetInfo::MEMORY, MakeBuffer(context, 8), CL_MEM_HOST_PTR).status(),
            CL_INVALID_VALUE);
  EXPECT_EQ(fake_->Count("clGetContextInfo") + fake_->Count("clGetMemObjectInfo"), 0u);
}

// All binaries of a program come one after the other.
TEST_F(InfoLoopbackTest, Binaries) {
  const uint64_t program = MakeProgram(MakeContext(), "src");
  EXPECT_EQ(Get(pb::GetInfo::PROGRAM, program, CL_PROGRAM_BINARIES).data(), "binary of src");
}

// A query of a kind that this worker does not know ends the session: the client would have known.
TEST_F(InfoLoopbackTest, UnknownKindIsAViolation) {
  pb::Command command;
  command.mutable_get_info()->set_kind(static_cast<pb::GetInfo::Kind>(99));
  client_->Send(command);
  EXPECT_NE(client_->WaitForViolation().find("kind"), std::string::npos);
}

}  // namespace
}  // namespace sluice::worker
