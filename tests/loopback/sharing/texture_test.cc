// SPDX-License-Identifier: Apache-2.0
// Textures of the client's through the worker (proto/commands/sharing/imported.proto): the driver
// that imports them is the fake one, and so is the keyed mutex; a descriptor stands for the handle.
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "broker/os/texture_sharing.h"
#include "daemon/worker/memory/external_memory_names.h"
#include "tests/loopback/harness.h"
#include "tests/unit/platform_linux/open_descriptors.h"

namespace sluice::worker {
namespace {

constexpr os::AdapterId kAdapter = {1, 2, 3, 4, 5, 6, 7, 8};

// A keyed mutex with a log, which both ends of it and the driver write into.
struct Texture {
  std::mutex mu;
  std::condition_variable noted;
  std::string log;
  uint64_t key = os::kTextureMakersKey;  // With which it is free.
  bool held = false;
  absl::Status open_status;
  absl::Status acquire_status;

  void Note(const std::string& what) {
    const std::lock_guard<std::mutex> lock(mu);
    log += what + " ";
    noted.notify_all();
  }
  std::string TakeLog() {
    const std::lock_guard<std::mutex> lock(mu);
    return std::exchange(log, "");
  }
};

class FakeMutex final : public os::KeyedMutex {
 public:
  explicit FakeMutex(std::shared_ptr<Texture> texture) : texture_(std::move(texture)) {}
  absl::Status Acquire(uint64_t key, absl::Duration timeout) override {
    EXPECT_GT(timeout, absl::ZeroDuration());
    EXPECT_LT(timeout, absl::Minutes(1));
    texture_->Note("take" + std::to_string(key));
    if (!texture_->acquire_status.ok()) return texture_->acquire_status;
    if (texture_->held || texture_->key != key) return absl::DeadlineExceededError("not free");
    texture_->held = true;
    return absl::OkStatus();
  }
  absl::Status Release(uint64_t key) override {
    const bool held = std::exchange(texture_->held, false);
    if (held) texture_->key = key;
    texture_->Note("give" + std::to_string(key));  // Last: tests wait for it.
    return held ? absl::OkStatus() : absl::FailedPreconditionError("not held");
  }

 private:
  const std::shared_ptr<Texture> texture_;
};

class TextureLoopbackTest : public LoopbackTest {
 protected:
  void SetUp() override {
    SessionOptions options;
    options.open_keyed_mutex = [texture = texture_](int fd, const os::AdapterId& adapter)
        -> absl::StatusOr<std::shared_ptr<os::KeyedMutex>> {
      EXPECT_GE(fd, 0);
      EXPECT_EQ(adapter, kAdapter);
      if (!texture->open_status.ok()) return texture->open_status;
      return std::make_shared<FakeMutex>(texture);
    };
    Start(options);
    fake_->set_gpu_luid(kAdapter);
    fake_->set_on_ownership_change([this](bool acquire) {
      texture_->Note(acquire ? "acquire" : "release");
      return driver_status_.load();
    });
    handle_ = os::UniqueFd(::dup(0));
    context_ = MakeContext(kGpu);
    queue_ = MakeQueue(context_, kGpu);
  }

  pb::Command Describe(bool keyed_mutex) {
    pb::Command command;
    pb::CreateImportedImage& body = *command.mutable_create_imported_image();
    body.set_mem_id(client_->NewId());
    body.set_context_id(context_);
    body.set_flags(CL_MEM_READ_WRITE);
    body.mutable_format()->set_channel_order(CL_RGBA);
    body.mutable_format()->set_channel_data_type(CL_UNORM_INT8);
    body.mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE2D);
    body.mutable_desc()->set_width(8);
    body.mutable_desc()->set_height(16);
    body.mutable_memory()->set_writable(true);
    body.mutable_memory()->set_handle(pb::IMPORTED_HANDLE_D3D11_TEXTURE);
    body.mutable_memory()->set_keyed_mutex(keyed_mutex);
    return command;
  }
  pb::Answer Import(const pb::Command& command) {
    const uint64_t token = command.has_create_imported_buffer()
                               ? command.create_imported_buffer().mem_id()
                               : command.create_imported_image().mem_id();
    client_->SendHandle(token, handle_.get());
    return client_->Call(command);
  }
  uint64_t Import(bool keyed_mutex) {
    const pb::Command command = Describe(keyed_mutex);
    const pb::Answer answer = Import(command);
    EXPECT_EQ(answer.status(), CL_SUCCESS) << answer.refusal();
    return command.create_imported_image().mem_id();
  }
  uint64_t Acquire(uint64_t mem, const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    command.mutable_enqueue_acquire_shadow()->set_mem_id(mem);
    const uint64_t event =
        On(command.mutable_enqueue_acquire_shadow()->mutable_on(), queue_, waits);
    client_->Send(command);
    return event;
  }
  uint64_t Release(uint64_t mem, const std::vector<uint64_t>& waits = {}) {
    pb::Command command;
    command.mutable_enqueue_release_shadow()->set_mem_id(mem);
    const uint64_t event =
        On(command.mutable_enqueue_release_shadow()->mutable_on(), queue_, waits);
    client_->Send(command);
    return event;
  }
  // All of the log, once it ends like that: what is given back after a failure is so on the
  // driver's time. Empty if that does not come.
  std::string WaitForLog(const std::string& end) {
    std::unique_lock<std::mutex> lock(texture_->mu);
    const auto ends = [&] { return texture_->log.ends_with(end); };
    texture_->noted.wait_for(lock, std::chrono::seconds(10), ends);
    EXPECT_TRUE(ends()) << texture_->log;
    return std::exchange(texture_->log, "");
  }
  // The client's use of the mutex before an acquire.
  void GiveToWorker() { texture_->key = os::kTextureUsersKey; }

  const std::shared_ptr<Texture> texture_ = std::make_shared<Texture>();
  std::atomic<cl_int> driver_status_{CL_SUCCESS};
  os::UniqueFd handle_;
  uint64_t context_ = 0;
  uint64_t queue_ = 0;
};

// The driver is given the handle for its one device, keeps it itself, and is told of each change of
// hands.
TEST_F(TextureLoopbackTest, DriverImportsTheTexture) {
  client_->Sync();
  const int before = os::CountOpenDescriptors();
  const uint64_t mem = Import(/*keyed_mutex=*/false);
  EXPECT_EQ(os::CountOpenDescriptors(), before) << "closed once the driver has opened it";
  const std::vector<uint64_t> properties =
      fake_->Last("clCreateImageWithProperties").arrays["properties"];
  ASSERT_GE(properties.size(), 4u);
  EXPECT_EQ(properties[0], CL_EXTERNAL_MEMORY_HANDLE_D3D11_TEXTURE_KHR);
  EXPECT_EQ(properties[2], CL_MEM_DEVICE_HANDLE_LIST_KHR);
  EXPECT_EQ(properties[3], reinterpret_cast<uint64_t>(fake::FakeCl::gpu()));
  EXPECT_EQ(client_->session().counts.imported, 1u);
  EXPECT_EQ(client_->session().counts.shadowed, 0u);
  EXPECT_EQ(Completed(Acquire(mem)).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(Release(mem)).status(), CL_COMPLETE);
  EXPECT_EQ(texture_->TakeLog(), "acquire release ");
}

// A texture with a keyed mutex: taken with key 1 before the driver is told of an acquire, given
// back with key 0 after its release, round after round.
TEST_F(TextureLoopbackTest, KeyedMutexIsTakenAroundTheDriver) {
  const uint64_t mem = Import(/*keyed_mutex=*/true);
  EXPECT_EQ(client_->session().counts.shadowed, 1u);
  EXPECT_EQ(client_->session().counts.mutexed, 1u);
  for (int round = 0; round < 3; ++round) {
    GiveToWorker();
    EXPECT_EQ(Completed(Acquire(mem)).status(), CL_COMPLETE);
    EXPECT_TRUE(texture_->held);
    EXPECT_EQ(Completed(Release(mem)).status(), CL_COMPLETE);
    EXPECT_EQ(texture_->TakeLog(), "take1 acquire release give0 ");
    EXPECT_EQ(texture_->key, os::kTextureMakersKey);
  }
}

// Nothing is taken before the command may run.
TEST_F(TextureLoopbackTest, MutexIsTakenWhenTheCommandMayRun) {
  const uint64_t mem = Import(/*keyed_mutex=*/true);
  const uint64_t gate = MakeUserEvent(context_);
  const uint64_t acquired = Acquire(mem, {gate});
  const uint64_t released = Release(mem, {acquired});
  client_->Sync();
  EXPECT_EQ(texture_->TakeLog(), "");
  GiveToWorker();
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(acquired).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(released).status(), CL_COMPLETE);
  EXPECT_EQ(texture_->TakeLog(), "take1 acquire release give0 ");
}

// A mutex that is not to be had, late or abandoned, fails the acquire, and the driver is told
// nothing; the release after it gives nothing back that was not taken.
TEST_F(TextureLoopbackTest, MutexThatIsNotToBeHad) {
  const uint64_t mem = Import(/*keyed_mutex=*/true);
  EXPECT_LT(Completed(Acquire(mem)).status(), 0) << "the client has not given it";
  EXPECT_EQ(texture_->TakeLog(), "take1 ");
  GiveToWorker();
  texture_->acquire_status = absl::DataLossError("abandoned");
  EXPECT_LT(Completed(Acquire(mem)).status(), 0);
  EXPECT_EQ(texture_->TakeLog(), "take1 ");
  texture_->acquire_status = absl::OkStatus();
  EXPECT_EQ(Completed(Acquire(mem)).status(), CL_COMPLETE);
  EXPECT_EQ(texture_->TakeLog(), "take1 acquire ");
}

// A driver that fails, and a wait list that does, leave the mutex to the client.
TEST_F(TextureLoopbackTest, MutexGoesBackWhateverFails) {
  const uint64_t mem = Import(/*keyed_mutex=*/true);
  GiveToWorker();
  driver_status_ = CL_OUT_OF_RESOURCES;
  EXPECT_LT(Completed(Acquire(mem)).status(), 0);
  EXPECT_EQ(texture_->TakeLog(), "take1 acquire give0 ");
  driver_status_ = CL_SUCCESS;
  GiveToWorker();
  EXPECT_EQ(Completed(Acquire(mem)).status(), CL_COMPLETE);
  const uint64_t gate = MakeUserEvent(context_);
  const uint64_t released = Release(mem, {gate});
  SetUserEvent(gate, -5);
  EXPECT_LT(Completed(released).status(), 0);
  EXPECT_EQ(WaitForLog("give0 "), "take1 acquire release give0 ");
  GiveToWorker();
  EXPECT_EQ(Completed(Acquire(mem)).status(), CL_COMPLETE);
  texture_->TakeLog();
  driver_status_ = CL_OUT_OF_RESOURCES;
  EXPECT_LT(Completed(Release(mem)).status(), 0);
  EXPECT_EQ(texture_->TakeLog(), "release give0 ");
}

// A release that is refused as it comes, since its wait list has failed already, gives the texture
// back: the driver's, then the mutex; what comes after it works.
TEST_F(TextureLoopbackTest, RefusedReleaseGivesBack) {
  const uint64_t mem = Import(/*keyed_mutex=*/true);
  const uint64_t failed = MakeUserEvent(context_);
  SetUserEvent(failed, -5);
  for (int round = 0; round < 3; ++round) {
    GiveToWorker();
    EXPECT_EQ(Completed(Acquire(mem)).status(), CL_COMPLETE);
    EXPECT_LT(Completed(Release(mem, {failed})).status(), 0);
    EXPECT_EQ(WaitForLog("give0 "), "take1 acquire release give0 ");
    EXPECT_EQ(texture_->key, os::kTextureMakersKey);
  }
  EXPECT_LT(Completed(Release(mem, {failed})).status(), 0);
  client_->Sync();
  EXPECT_EQ(texture_->TakeLog(), "") << "what is given back is not given back again";
}

// The same while the acquire before it waits still: it is given back when that has it. A later
// acquire is not taken for it.
TEST_F(TextureLoopbackTest, RefusedReleaseOfAnAcquireUnderWay) {
  const uint64_t mem = Import(/*keyed_mutex=*/true);
  const uint64_t failed = MakeUserEvent(context_);
  SetUserEvent(failed, -5);
  const uint64_t gate = MakeUserEvent(context_);
  const uint64_t acquired = Acquire(mem, {gate});
  EXPECT_LT(Completed(Release(mem, {acquired, failed})).status(), 0);
  client_->Sync();
  EXPECT_EQ(texture_->TakeLog(), "");
  GiveToWorker();
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(acquired).status(), CL_COMPLETE);
  EXPECT_EQ(WaitForLog("give0 "), "take1 acquire release give0 ");
  GiveToWorker();
  EXPECT_EQ(Completed(Acquire(mem)).status(), CL_COMPLETE);
  EXPECT_EQ(Completed(Release(mem)).status(), CL_COMPLETE);
  EXPECT_EQ(texture_->TakeLog(), "take1 acquire release give0 ");
}

// An impossible texture is refused with a reason, and leaves neither an object, nor a descriptor,
// nor quota; the id is free for another way.
TEST_F(TextureLoopbackTest, RefusalsLeaveNothing) {
  const uint64_t cpu = MakeContext(kCpu);
  client_->Sync();
  const int before = os::CountOpenDescriptors();
  const int objects = fake_->live_objects();
  const uint64_t used = client_->session().quota().memory_bytes();
  const auto refused = [&](const pb::Command& command, const std::string& reason) {
    const pb::Answer answer = Import(command);
    EXPECT_EQ(answer.status(), CL_INVALID_OPERATION) << reason;
    EXPECT_NE(answer.refusal().find(reason), std::string::npos) << answer.refusal();
    EXPECT_EQ(os::CountOpenDescriptors(), before) << reason;
    EXPECT_EQ(fake_->live_objects(), objects) << reason;
    EXPECT_EQ(client_->session().quota().memory_bytes(), used) << reason;
  };
  pb::Command command = Describe(false);
  command.mutable_create_imported_image()->set_context_id(cpu);
  refused(command, "cl_khr_external_memory_d3d11_texture");
  command = Describe(false);
  command.mutable_create_imported_image()->mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE3D);
  command.mutable_create_imported_image()->mutable_desc()->set_depth(2);
  refused(command, "only 2D images");
  command = Describe(false);
  command.mutable_create_imported_image()->mutable_memory()->set_offset(128);
  refused(command, "only 2D images");
  command = Describe(false);
  command.mutable_create_imported_image()->mutable_memory()->set_handle(
      static_cast<pb::ImportedHandle>(77));
  refused(command, "does not know");
  command = Describe(true);
  texture_->open_status = absl::UnavailableError("no such texture here");
  refused(command, "no such texture here");
  texture_->open_status = absl::OkStatus();
  fake_->FailNext("clCreateImageWithProperties", CL_INVALID_VALUE);
  refused(command, "does not import the texture");
  fake_->set_gpu_luid(std::nullopt);
  refused(Describe(false), "cl_khr_external_memory_d3d11_texture");
  pb::Command buffer;
  buffer.mutable_create_imported_buffer()->set_mem_id(client_->NewId());
  buffer.mutable_create_imported_buffer()->set_context_id(cpu);
  buffer.mutable_create_imported_buffer()->set_size(64);
  buffer.mutable_create_imported_buffer()->mutable_memory()->set_handle(
      pb::IMPORTED_HANDLE_D3D11_TEXTURE);
  refused(buffer, "from memory only");

  pb::Command staged;
  pb::CreateImage& image = *staged.mutable_create_image();
  image.set_mem_id(command.create_imported_image().mem_id());
  image.set_context_id(context_);
  image.set_flags(CL_MEM_READ_WRITE);
  *image.mutable_format() = command.create_imported_image().format();
  *image.mutable_desc() = command.create_imported_image().desc();
  EXPECT_EQ(client_->Call(staged).status(), CL_SUCCESS);
}

}  // namespace
}  // namespace sluice::worker
