// SPDX-License-Identifier: Apache-2.0
// proto/commands/sharing/imported.proto through the worker: memory that the client hands over.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/loopback/harness.h"
#include "tests/unit/platform_linux/open_descriptors.h"

namespace sluice::worker {
namespace {

using fake::RecordedCall;

constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;

class ImportedLoopbackTest : public LoopbackTest {
 protected:
  // A memfd with bytes 0, 1, 2, ... and these seals.
  static os::UniqueFd Memory(size_t bytes, int seals = kSealed) {
    os::UniqueFd fd(::memfd_create("imported", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    const std::string contents = Contents(bytes);
    EXPECT_EQ(::pwrite(fd.get(), contents.data(), bytes, 0), static_cast<ssize_t>(bytes));
    if (seals != 0) {
      EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    }
    return fd;
  }
  static std::string Contents(size_t bytes) {
    std::string contents(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) contents[i] = static_cast<char>(i * 3);
    return contents;
  }
  static std::string Read(int fd, size_t offset, size_t bytes) {
    std::string contents(bytes, '\0');
    EXPECT_EQ(::pread(fd, contents.data(), bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes));
    return contents;
  }
  pb::Command CreateBuffer(uint64_t context, uint64_t size, uint64_t offset = 0) {
    pb::Command command;
    pb::CreateImportedBuffer& body = *command.mutable_create_imported_buffer();
    body.set_mem_id(client_->NewId());
    body.set_context_id(context);
    body.set_flags(CL_MEM_READ_WRITE);
    body.set_size(size);
    body.mutable_memory()->set_offset(offset);
    body.mutable_memory()->set_writable(true);
    return command;
  }
  pb::Answer Import(const pb::Command& command, int fd) {
    const uint64_t token = command.has_create_imported_buffer()
                               ? command.create_imported_buffer().mem_id()
                               : command.create_imported_image().mem_id();
    client_->SendHandle(token, fd);
    return client_->Call(command);
  }
};

// Operators see a session's memory objects of native objects, by the way that their bytes travel,
// for as long as they live. One that is refused, or shares nothing, does not count.
TEST_F(ImportedLoopbackTest, WaysAreCounted) {
  const uint64_t context = MakeContext(kCpu);
  const os::UniqueFd fd = Memory(8192);
  const os::UniqueFd unsealed = Memory(8192, 0);
  const pb::Command import = CreateBuffer(context, 4096);
  ASSERT_EQ(Import(import, fd.get()).status(), CL_SUCCESS);
  EXPECT_NE(Import(CreateBuffer(context, 4096), unsealed.get()).status(), CL_SUCCESS);
  pb::Command stage;
  stage.mutable_create_buffer()->set_mem_id(client_->NewId());
  stage.mutable_create_buffer()->set_context_id(context);
  stage.mutable_create_buffer()->set_flags(CL_MEM_READ_WRITE);
  stage.mutable_create_buffer()->set_size(4096);
  stage.mutable_create_buffer()->set_staged(true);
  ASSERT_EQ(client_->Call(stage).status(), CL_SUCCESS);
  MakeBuffer(context, 4096);
  EXPECT_EQ(client_->session().counts.imported, 1u);
  EXPECT_EQ(client_->session().counts.staged, 1u);
  EXPECT_EQ(client_->session().counts.shadowed, 0u);
  for (const uint64_t id :
       {import.create_imported_buffer().mem_id(), stage.create_buffer().mem_id()}) {
    pb::Command release;
    release.mutable_release_object()->set_id(id);
    client_->Send(release);
  }
  client_->Sync();
  EXPECT_EQ(client_->session().counts.imported, 0u);
  EXPECT_EQ(client_->session().counts.staged, 0u);
}

// The driver works in the client's memory itself: it reads what is there, and what it writes is
// there.
TEST_F(ImportedLoopbackTest, BufferIsTheClientsMemory) {
  const uint64_t context = MakeContext(kCpu), queue = MakeQueue(context, kCpu);
  const os::UniqueFd fd = Memory(8192);
  const pb::Command command = CreateBuffer(context, 4096, 4096);
  ASSERT_EQ(Import(command, fd.get()).status(), CL_SUCCESS);
  const RecordedCall call = fake_->Last("clCreateBuffer");
  EXPECT_EQ(call.values[1], cl_mem_flags{CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR});
  EXPECT_EQ(call.values[2], 4096u);

  pb::Command read;
  const uint64_t read_event = On(read.mutable_enqueue_read_buffer()->mutable_on(), queue);
  read.mutable_enqueue_read_buffer()->set_mem_id(command.create_imported_buffer().mem_id());
  read.mutable_enqueue_read_buffer()->set_size(100);
  client_->Send(read);
  std::string payload;
  EXPECT_EQ(client_->WaitForCompletion(read_event, &payload).status(), CL_COMPLETE);
  EXPECT_EQ(payload, Contents(8192).substr(4096, 100));

  pb::Command fill;
  pb::EnqueueFillBuffer& body = *fill.mutable_enqueue_fill_buffer();
  const uint64_t fill_event = On(body.mutable_on(), queue);
  body.set_mem_id(command.create_imported_buffer().mem_id());
  body.set_pattern("\x7f");
  body.set_offset(10);
  body.set_size(5);
  client_->Send(fill);
  EXPECT_EQ(Completed(fill_event).status(), CL_COMPLETE);
  EXPECT_EQ(Read(fd.get(), 4096 + 10, 5), std::string(5, '\x7f'));
}

// An image lies in the client's memory with the client's row pitch.
TEST_F(ImportedLoopbackTest, ImageIsTheClientsMemory) {
  const uint64_t context = MakeContext(kCpu), queue = MakeQueue(context, kCpu);
  const os::UniqueFd fd = Memory(64 * 16);
  pb::Command command;
  pb::CreateImportedImage& body = *command.mutable_create_imported_image();
  body.set_mem_id(client_->NewId());
  body.set_context_id(context);
  body.set_flags(CL_MEM_READ_WRITE);
  body.mutable_format()->set_channel_order(CL_RGBA);
  body.mutable_format()->set_channel_data_type(CL_UNORM_INT8);
  body.mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE2D);
  body.mutable_desc()->set_width(8);
  body.mutable_desc()->set_height(16);
  body.mutable_memory()->set_row_pitch(64);
  body.mutable_memory()->set_writable(true);
  const pb::Answer answer = Import(command, fd.get());
  ASSERT_EQ(answer.status(), CL_SUCCESS) << answer.refusal();
  pb::Command read;
  pb::EnqueueReadImage& read_body = *read.mutable_enqueue_read_image();
  const uint64_t event = On(read_body.mutable_on(), queue);
  read_body.set_mem_id(body.mem_id());
  read_body.mutable_origin()->set_y(3);
  read_body.mutable_region()->set_x(8);
  read_body.mutable_region()->set_y(1);
  read_body.mutable_region()->set_z(1);
  client_->Send(read);
  std::string payload;
  EXPECT_EQ(client_->WaitForCompletion(event, &payload).status(), CL_COMPLETE);
  EXPECT_EQ(payload, Contents(1024).substr(3 * 64, 32));
}

// As of other images, levels and samples are refused (section 5.3.1.2).
TEST_F(ImportedLoopbackTest, MipLevelsAndSamplesAreRefused) {
  const uint64_t context = MakeContext(kCpu);
  const os::UniqueFd fd = Memory(64 * 16);
  for (const bool samples : {false, true}) {
    for (const pb::ImportedHandle handle :
         {pb::IMPORTED_HANDLE_MEMORY, pb::IMPORTED_HANDLE_D3D11_TEXTURE}) {
      pb::Command command;
      pb::CreateImportedImage& body = *command.mutable_create_imported_image();
      body.set_mem_id(client_->NewId());
      body.set_context_id(context);
      body.set_flags(CL_MEM_READ_WRITE);
      body.mutable_format()->set_channel_order(CL_RGBA);
      body.mutable_format()->set_channel_data_type(CL_UNORM_INT8);
      body.mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE2D);
      body.mutable_desc()->set_width(8);
      body.mutable_desc()->set_height(16);
      samples ? body.mutable_desc()->set_num_samples(4)
              : body.mutable_desc()->set_num_mip_levels(4);
      body.mutable_memory()->set_handle(handle);
      EXPECT_EQ(Import(command, fd.get()).status(), CL_INVALID_IMAGE_DESCRIPTOR);
    }
  }
}

// Memory that cannot be imported is refused with a reason, leaves no descriptor behind, and the id
// free for another way.
TEST_F(ImportedLoopbackTest, RefusalsLeaveNothing) {
  const uint64_t cpu = MakeContext(kCpu), gpu = MakeContext(kGpu);
  const os::UniqueFd sealed = Memory(4096), unsealed = Memory(4096, 0);
  const os::UniqueFd half_sealed = Memory(4096, F_SEAL_GROW);
  const os::UniqueFd read_only = Memory(4096, kSealed | F_SEAL_FUTURE_WRITE);
  const os::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  struct Row {
    const char* what;
    uint64_t context, size, offset;
    int fd;
  };
  const Row rows[] = {
      {"a device with memory of its own", gpu, 4096, 0, sealed.get()},
      {"not sealed", cpu, 4096, 0, unsealed.get()},
      {"may shrink", cpu, 4096, 0, half_sealed.get()},
      {"not writable", cpu, 4096, 0, read_only.get()},
      {"no memory", cpu, 4096, 0, null.get()},
      {"too small", cpu, 4097, 0, sealed.get()},
      {"too small from there", cpu, 4096 - 127, 128, sealed.get()},
      {"wraps", cpu, 4096, UINT64_MAX - 127, sealed.get()},
      {"wraps in size", cpu, UINT64_MAX, 128, sealed.get()},
      {"nothing", cpu, 0, 0, sealed.get()},
  };
  client_->Sync();
  const int before = os::CountOpenDescriptors();
  const int objects = fake_->live_objects();
  for (const Row& row : rows) {
    const pb::Command command = CreateBuffer(row.context, row.size, row.offset);
    const pb::Answer answer = Import(command, row.fd);
    EXPECT_EQ(answer.status(), CL_INVALID_OPERATION) << row.what;
    EXPECT_FALSE(answer.refusal().empty()) << row.what;
    EXPECT_EQ(os::CountOpenDescriptors(), before) << row.what;
  }
  EXPECT_EQ(fake_->live_objects(), objects);
  // A driver that refuses, too.
  fake_->FailNext("clCreateBuffer", CL_OUT_OF_RESOURCES);
  const pb::Command command = CreateBuffer(cpu, 4096);
  EXPECT_EQ(Import(command, sealed.get()).status(), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(os::CountOpenDescriptors(), before);
  pb::Command staged;
  staged.mutable_create_buffer()->set_mem_id(command.create_imported_buffer().mem_id());
  staged.mutable_create_buffer()->set_context_id(cpu);
  staged.mutable_create_buffer()->set_size(4096);
  EXPECT_EQ(client_->Call(staged).status(), CL_SUCCESS);
}

// The descriptor is closed once the memory is mapped, and the memory stays with the driver's
// object, which commands in flight keep.
TEST_F(ImportedLoopbackTest, MemoryLivesAsLongAsTheDriversObject) {
  const uint64_t context = MakeContext(kCpu), queue = MakeQueue(context, kCpu);
  const os::UniqueFd fd = Memory(1 << 20);
  client_->Sync();
  const int before = os::CountOpenDescriptors();
  const pb::Command command = CreateBuffer(context, 1 << 20);
  ASSERT_EQ(Import(command, fd.get()).status(), CL_SUCCESS);
  EXPECT_EQ(os::CountOpenDescriptors(), before);
  const uint64_t id = command.create_imported_buffer().mem_id();
  fake_->HoldCommands();
  pb::Command fill;
  pb::EnqueueFillBuffer& body = *fill.mutable_enqueue_fill_buffer();
  const uint64_t event = On(body.mutable_on(), queue);
  body.set_mem_id(id);
  body.set_pattern("x");
  body.set_size(1 << 20);
  client_->Send(fill);
  pb::Command release;
  release.mutable_release_object()->set_id(id);
  client_->Send(release);
  client_->Sync();
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  EXPECT_EQ(Read(fd.get(), (1 << 20) - 3, 3), "xxx");
}

// A command whose descriptor never came ends the session; so does one that comes twice.
TEST_F(ImportedLoopbackTest, MissingDescriptorIsAViolation) {
  client_->Send(CreateBuffer(MakeContext(kCpu), 64));
  EXPECT_NE(client_->WaitForViolation().find("no descriptor"), std::string::npos);
}
TEST_F(ImportedLoopbackTest, SecondDescriptorIsAViolation) {
  const uint64_t context = MakeContext(kCpu);
  const os::UniqueFd fd = Memory(4096);
  client_->SendHandle(77, fd.get());
  client_->SendHandle(77, fd.get());
  client_->Send(CreateBuffer(context, 64));
  EXPECT_NE(client_->WaitForViolation().find("second descriptor"), std::string::npos);
}

}  // namespace
}  // namespace sluice::worker
