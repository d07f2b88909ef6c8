// SPDX-License-Identifier: Apache-2.0
// proto/commands/sharing/imported.proto of memory that is a device's own: the driver is the fake
// one, and so is the memory; /dev/null, a device's file, stands for it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/worker/memory/external_memory_names.h"
#include "tests/loopback/harness.h"
#include "tests/unit/platform_linux/open_descriptors.h"

namespace sluice::worker {
namespace {

using Uuid = std::array<uint8_t, 16>;
constexpr Uuid kDevice = {0xde, 0xf1, 0xce};
constexpr uint64_t kAllocated = 65'536;

std::string Bytes(const Uuid& uuid) { return std::string(uuid.begin(), uuid.end()); }

class OpaqueLoopbackTest : public LoopbackTest {
 protected:
  void SetUp() override { Begin({}); }
  void Begin(const SessionOptions& options, cl_uint gpu_vendor_id = 0) {
    Start(options, gpu_vendor_id);
    fake_->set_gpu_uuid(kDevice);
    context_ = MakeContext(kGpu);
    queue_ = MakeQueue(context_, kGpu);
  }
  pb::Command Describe(uint64_t size = 4096) {
    pb::Command command;
    pb::CreateImportedBuffer& body = *command.mutable_create_imported_buffer();
    body.set_mem_id(client_->NewId());
    body.set_context_id(context_);
    body.set_flags(CL_MEM_READ_WRITE);
    body.set_size(size);
    pb::ImportedMemory& memory = *body.mutable_memory();
    memory.set_handle(pb::IMPORTED_HANDLE_OPAQUE_FD);
    memory.set_writable(true);
    memory.set_device_uuid(Bytes(kDevice));
    memory.set_driver_uuid(Bytes(fake::FakeCl::kDriverUuid));
    memory.set_allocation_bytes(kAllocated);
    return command;
  }
  pb::Answer Import(const pb::Command& command, int fd) {
    client_->SendHandle(command.create_imported_buffer().mem_id(), fd);
    return client_->Call(command);
  }
  uint64_t Import(const pb::Command& command) {
    const pb::Answer answer = Import(command, memory_.get());
    EXPECT_EQ(answer.status(), CL_SUCCESS) << answer.refusal();
    return command.create_imported_buffer().mem_id();
  }
  // Acquires or releases, with a copy to or from the image if there is one.
  cl_int ChangeHands(bool acquire, uint64_t mem, uint64_t image = 0) {
    pb::Command command;
    const auto fill = [&](auto* body) {
      body->set_mem_id(mem);
      body->set_image_id(image);
      if (image != 0) {
        body->mutable_region()->set_x(4);
        body->mutable_region()->set_y(2);
        body->mutable_region()->set_z(1);
      }
      return On(body->mutable_on(), queue_);
    };
    const uint64_t event = acquire ? fill(command.mutable_enqueue_acquire_shadow())
                                   : fill(command.mutable_enqueue_release_shadow());
    client_->Send(command);
    return Completed(event).status();
  }

  const os::UniqueFd memory_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  uint64_t context_ = 0;
  uint64_t queue_ = 0;
};

// The driver is given the descriptor for its one device, keeps it, and is told of each change of
// hands; the contents are left alone.
TEST_F(OpaqueLoopbackTest, DriverImportsTheMemory) {
  client_->Sync();
  const int before = os::CountOpenDescriptors();
  const size_t fills = fake_->Count("clEnqueueFillBuffer");
  const uint64_t mem = Import(Describe(1001));
  EXPECT_EQ(os::CountOpenDescriptors(), before) << "the driver has it";
  fake::RecordedCall call = fake_->Last("clCreateBufferWithProperties");
  EXPECT_EQ(call.values[2], cl_mem_flags{CL_MEM_READ_WRITE});
  EXPECT_EQ(call.values[3], 1001u);
  const std::vector<uint64_t> properties = call.arrays["properties"];
  ASSERT_GE(properties.size(), 4u);
  EXPECT_EQ(properties[0], CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR);
  EXPECT_EQ(properties[2], CL_MEM_DEVICE_HANDLE_LIST_KHR);
  EXPECT_EQ(properties[3], reinterpret_cast<uint64_t>(fake::FakeCl::gpu()));
  EXPECT_EQ(client_->session().counts.imported, 1u);
  EXPECT_EQ(ChangeHands(true, mem), CL_COMPLETE);
  EXPECT_EQ(ChangeHands(false, mem), CL_COMPLETE);
  EXPECT_EQ(fake_->ownership_changes(), (std::vector<bool>{true, false}));
  EXPECT_EQ(fake_->Count("clEnqueueFillBuffer"), fills);
}

// Memory that goes while OpenCL has it is taken from the driver first, once; the driver is told of
// nothing that it does not have.
TEST_F(OpaqueLoopbackTest, DriverIsToldBeforeTheMemoryGoes) {
  const uint64_t acquired = Import(Describe());
  const uint64_t released = Import(Describe());
  const uint64_t untouched = Import(Describe());
  EXPECT_EQ(ChangeHands(true, released), CL_COMPLETE);
  EXPECT_EQ(ChangeHands(false, released), CL_COMPLETE);
  EXPECT_EQ(ChangeHands(true, acquired), CL_COMPLETE);
  for (const uint64_t mem : {untouched, released, acquired}) {
    EXPECT_EQ(fake_->ownership_changes(), (std::vector<bool>{true, false, true}));
    pb::Command release;
    release.mutable_release_object()->set_id(mem);
    client_->Send(release);
    client_->Sync();
  }
  // The thread that has told the acquire's end may hold the memory a moment longer.
  client_->WaitUntil([&] { return fake_->ownership_changes().size() == 4u; });
  EXPECT_EQ(fake_->ownership_changes(), (std::vector<bool>{true, false, true, false}));
}

// An image's shadow lies where it is said to, and is copied from there and back on the way.
TEST_F(OpaqueLoopbackTest, ImagesAreCopiedOnTheWay) {
  pb::Command command = Describe(32);
  command.mutable_create_imported_buffer()->mutable_memory()->set_offset(1500);
  command.mutable_create_imported_buffer()->mutable_memory()->set_shadow(true);
  const uint64_t mem = Import(command);
  EXPECT_EQ(fake_->Last("clCreateBufferWithProperties").values[3], 1532u);
  EXPECT_EQ(client_->session().counts.imported, 0u);
  EXPECT_EQ(client_->session().counts.shadowed, 1u);
  pb::ImageDesc desc;
  desc.set_image_type(CL_MEM_OBJECT_IMAGE2D);
  desc.set_width(4);
  desc.set_height(2);
  const uint64_t image = MakeImage(context_, desc);
  pb::Command fill;
  const uint64_t event = On(fill.mutable_enqueue_fill_buffer()->mutable_on(), queue_);
  fill.mutable_enqueue_fill_buffer()->set_mem_id(mem);
  fill.mutable_enqueue_fill_buffer()->set_pattern("pixl");
  fill.mutable_enqueue_fill_buffer()->set_offset(1500);
  fill.mutable_enqueue_fill_buffer()->set_size(32);
  client_->Send(fill);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  EXPECT_EQ(ChangeHands(true, mem, image), CL_COMPLETE);
  pb::Command read;
  pb::EnqueueReadImage& body = *read.mutable_enqueue_read_image();
  const uint64_t read_event = On(body.mutable_on(), queue_);
  body.set_mem_id(image);
  body.mutable_region()->set_x(4);
  body.mutable_region()->set_y(2);
  body.mutable_region()->set_z(1);
  client_->Send(read);
  std::string seen;
  EXPECT_EQ(client_->WaitForCompletion(read_event, &seen).status(), CL_COMPLETE);
  EXPECT_EQ(seen, "pixlpixlpixlpixlpixlpixlpixlpixl");
  EXPECT_EQ(ChangeHands(false, mem, image), CL_COMPLETE);
  EXPECT_EQ(fake_->Count("clEnqueueCopyImageToBuffer"), 1u);
}

// Descriptors of other memory than the device's do not get to the driver: memory of another device
// or driver, sizes that cannot be, descriptors of another kind. Each is refused with a reason, and
// leaves neither an object, nor a descriptor, nor quota; the id is free for another way.
TEST_F(OpaqueLoopbackTest, RefusalsLeaveNothing) {
  const uint64_t cpu = MakeContext(kCpu);
  client_->Sync();
  const os::UniqueFd memfd(::memfd_create("memory", MFD_CLOEXEC));
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const os::UniqueFd ends[2] = {os::UniqueFd(pipe[0]), os::UniqueFd(pipe[1])};
  const os::UniqueFd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int before = os::CountOpenDescriptors();
  const int objects = fake_->live_objects();
  const uint64_t used = client_->session().quota().memory_bytes();
  const size_t asked = fake_->Count("clCreateBufferWithProperties");
  const auto refused = [&](const pb::Command& command, int fd, const std::string& reason) {
    const pb::Answer answer = Import(command, fd);
    EXPECT_EQ(answer.status(), CL_INVALID_OPERATION) << reason;
    EXPECT_NE(answer.refusal().find(reason), std::string::npos) << answer.refusal();
    EXPECT_EQ(os::CountOpenDescriptors(), before) << reason;
    EXPECT_EQ(fake_->live_objects(), objects) << reason;
    EXPECT_EQ(client_->session().quota().memory_bytes(), used) << reason;
  };
  const int good = memory_.get();
  pb::Command command;
  pb::CreateImportedBuffer* body = nullptr;
  pb::ImportedMemory* memory = nullptr;
  const auto anew = [&] {
    command = Describe();
    body = command.mutable_create_imported_buffer();
    memory = body->mutable_memory();
  };
  for (const std::string& uuid :
       {Bytes({1, 2}), Bytes(kDevice).substr(1), Bytes(kDevice) + "x", std::string()}) {
    anew();
    memory->set_device_uuid(uuid);
    refused(command, good, "the memory's device is");
    anew();
    memory->set_driver_uuid(uuid);
    refused(command, good, "the memory's driver is");
  }
  anew();
  memory->set_device_uuid(Bytes({1, 2}));
  refused(command, good, "the context's is def1ce");
  for (const uint64_t size : {kAllocated + 1, ~uint64_t{0}}) {
    anew();
    body->set_size(size);
    refused(command, good, "");
  }
  anew();
  body->set_size(0);
  refused(command, good, "no bytes");
  anew();
  memory->set_allocation_bytes(0);
  refused(command, good, "");
  anew();
  memory->set_offset(64);
  refused(command, good, "begins where the memory does");
  for (const uint64_t offset : {kAllocated - 4095, ~uint64_t{0} - 4000, ~uint64_t{0}}) {
    anew();
    memory->set_shadow(true);
    memory->set_offset(offset);
    refused(command, good, "");
  }
  for (const int fd : {memfd.get(), ends[0].get(), ends[1].get(), folder.get()}) {
    anew();
    refused(command, fd, "no device's");
  }
  anew();
  body->set_context_id(cpu);
  refused(command, good, "cl_khr_external_memory_opaque_fd");
  EXPECT_EQ(fake_->Count("clCreateBufferWithProperties"), asked) << "the driver was asked";

  anew();
  fake_->FailNext("clCreateBufferWithProperties", CL_INVALID_VALUE);
  refused(command, good, "does not import");
  fake_->set_gpu_uuid(std::nullopt);
  anew();
  refused(command, good, "cl_khr_external_memory_opaque_fd");

  pb::Command staged;
  staged.mutable_create_buffer()->set_mem_id(body->mem_id());
  staged.mutable_create_buffer()->set_context_id(context_);
  staged.mutable_create_buffer()->set_size(4096);
  EXPECT_EQ(client_->Call(staged).status(), CL_SUCCESS);
}

// Memory that somebody else has made counts against the session's quota all the same, and an image
// is not made of it.
TEST_F(OpaqueLoopbackTest, QuotaAndImages) {
  SessionOptions options;
  options.limits.memory_bytes = 10'000;
  Begin(options);
  EXPECT_EQ(Import(Describe(10'001), memory_.get()).status(), CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(Import(Describe(10'000), memory_.get()).status(), CL_SUCCESS);
  pb::Command image;
  pb::CreateImportedImage& body = *image.mutable_create_imported_image();
  body.set_mem_id(client_->NewId());
  body.set_context_id(context_);
  body.mutable_format()->set_channel_order(CL_RGBA);
  body.mutable_format()->set_channel_data_type(CL_UNORM_INT8);
  body.mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE2D);
  body.mutable_desc()->set_width(4);
  body.mutable_desc()->set_height(2);
  body.mutable_memory()->set_handle(pb::IMPORTED_HANDLE_OPAQUE_FD);
  client_->SendHandle(body.mem_id(), memory_.get());
  const pb::Answer answer = client_->Call(image);
  EXPECT_NE(answer.status(), CL_SUCCESS);
}

// A driver may have a UUID of its own: the device's alone says then whose the memory is.
TEST_F(OpaqueLoopbackTest, DriversWithUuidsOfTheirOwn) {
  Begin({}, kNvidia);
  pb::Command command = Describe();
  pb::ImportedMemory& memory = *command.mutable_create_imported_buffer()->mutable_memory();
  memory.set_driver_uuid(Bytes({1, 2}));
  Import(command);
  command = Describe();
  command.mutable_create_imported_buffer()->mutable_memory()->set_device_uuid(Bytes({1, 2}));
  EXPECT_NE(Import(command, memory_.get()).status(), CL_SUCCESS);
}

}  // namespace
}  // namespace sluice::worker
