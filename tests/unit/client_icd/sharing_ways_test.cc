// SPDX-License-Identifier: Apache-2.0
// Ways that need the worker to open this side's memory (client_icd/sharing/README.md), with native
// objects that tests make up and a scripted worker. The tests look at which is chosen, what is
// handed over, and in what order the memory changes hands.
#include <mutex>
#include <string>

#include "tests/unit/client_icd/sharing_fixture.h"

namespace sluice::client::sharing {
namespace {

using Kind = ExportedMemory::Kind;

// Shared by all objects of a test: the events, one letter for each. They are Begin and End of an
// import, copies To and From the shadow, ReleaseUnchanged, Drop, X for a release that breaks off.
// The worker Acquires and Releases.
struct World {
  std::mutex mu;
  std::string log;
  absl::Status export_status = absl::UnimplementedError("not shareable");
  absl::Status shadow_status = absl::UnimplementedError("no shadow");
  absl::Status stage_status;
  Kind kind = Kind::kD3d11Texture;
  cl_int native_status = CL_SUCCESS;
  cl_int worker_status = CL_SUCCESS;

  void Note(char letter) {
    const std::lock_guard<std::mutex> lock(mu);
    log += letter;
  }
  std::string TakeLog() {
    const std::lock_guard<std::mutex> lock(mu);
    return std::exchange(log, "");
  }
};

class FakeTexture : public NativeObject {
 public:
  FakeTexture(std::shared_ptr<World> world, std::shared_ptr<NativeThread> thread)
      : world_(std::move(world)), thread_(std::move(thread)) {}
  NativeKey key() const override { return {reinterpret_cast<uintptr_t>(this), 0, 0}; }
  NativeThread& thread() override { return *thread_; }
  cl_int Fetch(uint8_t*, absl::Time) override { return CL_SUCCESS; }
  cl_int Store(const uint8_t*, absl::Time) override { return CL_SUCCESS; }
  absl::Status CanStage() const override { return world_->stage_status; }
  cl_int ReleaseUnchanged(absl::Time) override { return Note('L'); }
  cl_int BreakOff(bool, absl::Time) override { return Note('X'); }
  absl::StatusOr<ExportedMemory> Export() override {
    return Exported(world_->export_status, /*keyed_mutex=*/false);
  }
  cl_int BeginImported(absl::Time) override { return Note('B'); }
  cl_int EndImported(bool, absl::Time) override { return Note('E'); }
  bool MakesShadow() const override { return true; }
  absl::StatusOr<ExportedMemory> MakeShadow() override {
    return Exported(world_->shadow_status, /*keyed_mutex=*/true);
  }
  void DropShadow() override { world_->Note('D'); }
  cl_int CopyToShadow(ShadowSync, absl::Time) override { return Note('T'); }
  cl_int CopyFromShadow(ShadowSync, absl::Time) override { return Note('F'); }

 private:
  absl::StatusOr<ExportedMemory> Exported(const absl::Status& status, bool keyed_mutex) {
    if (!status.ok()) return status;
    ExportedMemory exported;
    exported.kind = world_->kind;
    exported.device_uuid[0] = 'd';
    exported.driver_uuid[15] = 'v';
    exported.allocation_bytes = 4096;
    exported.keyed_mutex = keyed_mutex;
    return exported;
  }
  cl_int Note(char letter) {
    world_->Note(letter);
    return world_->native_status;
  }

  const std::shared_ptr<World> world_;  // Jobs may outlive a test.
  const std::shared_ptr<NativeThread> thread_;
};

class SharingWaysTest : public SharingTest {
 protected:
  void SetUp() override {
    SharingTest::SetUp();
    context_->AddInterop(Api::kD3d11, std::make_shared<int>(0));
    worker_->TakeImports();
    worker_->OnChangeOfHands([world = world_](bool acquire) {
      world->Note(acquire ? 'A' : 'R');
      return world->worker_status;
    });
  }
  Ref<MemObject> MakeImage(cl_int expected = CL_SUCCESS) {
    cl_image_desc desc = {};
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = 4;
    desc.image_height = 2;
    auto about = std::make_unique<MemObject::Description>();
    about->type = CL_MEM_OBJECT_IMAGE2D;
    about->image = MakeImageShape({CL_RGBA, CL_UNORM_INT8}, desc);
    return Make(std::move(about), expected);
  }
  Ref<MemObject> MakeBuffer() {
    return Make(std::make_unique<MemObject::Description>(), CL_SUCCESS);
  }
  Ref<MemObject> Make(std::unique_ptr<MemObject::Description> about, cl_int expected) {
    about->flags = CL_MEM_READ_WRITE;
    about->bytes = 32;
    Ref<MemObject> memory;
    EXPECT_EQ(CreateShared(context_.get(), std::move(*about), Api::kD3d11,
                           std::make_unique<FakeTexture>(
                               world_, sharing::SharedRegistry::Of(*context_)->thread()),
                           &memory),
              expected);
    return memory;
  }
  // Acquires and releases; the statuses of both events.
  std::pair<cl_int, cl_int> Round(MemObject* memory, bool write) {
    cl_event acquired = nullptr, released = nullptr;
    EXPECT_EQ(Sync(true, Api::kD3d11, {memory}, &acquired), CL_SUCCESS);
    EXPECT_EQ(memory->Use(write), CL_SUCCESS);
    EXPECT_EQ(Sync(false, Api::kD3d11, {memory}, &released), CL_SUCCESS);
    const cl_int first = End(acquired);
    return {first, End(released)};
  }

  const std::shared_ptr<World> world_ = std::make_shared<World>();
};

// An object that can be exported is imported: the handle goes ahead under the object's id, and the
// command says its kind.
TEST_F(SharingWaysTest, ExportedTextureIsImported) {
  world_->export_status = absl::OkStatus();
  const Ref<MemObject> memory = MakeImage();
  EXPECT_EQ(SharedOf(*memory)->way(), Way::kImport);
  EXPECT_EQ(worker_->Handles(), std::vector<uint64_t>{memory->id()});
  const pb::ImportedMemory sent = worker_->LastImport().create_imported_image().memory();
  EXPECT_EQ(worker_->LastImport().create_imported_image().mem_id(), memory->id());
  EXPECT_EQ(sent.handle(), pb::IMPORTED_HANDLE_D3D11_TEXTURE);
  EXPECT_FALSE(sent.keyed_mutex());
}

// An object for which that cannot be done goes by a shadow of the native side's, which the worker
// is told has a keyed mutex.
TEST_F(SharingWaysTest, ElseByTheNativeSidesShadow) {
  world_->shadow_status = absl::OkStatus();
  const Ref<MemObject> memory = MakeImage();
  EXPECT_EQ(SharedOf(*memory)->way(), Way::kShadow);
  EXPECT_EQ(worker_->Handles(), std::vector<uint64_t>{memory->id()});
  EXPECT_TRUE(worker_->LastImport().create_imported_image().memory().keyed_mutex());
  EXPECT_EQ(world_->TakeLog(), "");
}

// A worker that cannot open either leaves staging, and no shadow behind; without a local session
// nothing is asked.
TEST_F(SharingWaysTest, ElseByStaging) {
  world_->export_status = absl::OkStatus();
  world_->shadow_status = absl::OkStatus();
  worker_->TakeImports("the driver has no such extension");
  const Ref<MemObject> refused = MakeImage();
  EXPECT_EQ(SharedOf(*refused)->way(), Way::kStaging);
  EXPECT_EQ(worker_->Handles().size(), 2u);
  EXPECT_EQ(world_->TakeLog(), "D");
  EXPECT_FALSE(SharedOf(*refused)->changes_hands());
}
TEST_F(SharingWaysTest, NothingToShareIsStaged) {
  const Ref<MemObject> memory = MakeImage();
  EXPECT_EQ(SharedOf(*memory)->way(), Way::kStaging);
  EXPECT_TRUE(worker_->Handles().empty());
}

// A device's own memory becomes a buffer beside the image, which is told whose memory it is, and
// changes hands as any shadow does.
TEST_F(SharingWaysTest, DeviceMemoryIsAnImagesShadow) {
  world_->kind = Kind::kOpaqueFd;
  world_->shadow_status = absl::OkStatus();
  world_->stage_status = absl::FailedPreconditionError("cannot be mapped");
  const Ref<MemObject> memory = MakeImage();
  EXPECT_EQ(SharedOf(*memory)->way(), Way::kShadow);
  const pb::CreateImportedBuffer sent = worker_->LastImport().create_imported_buffer();
  EXPECT_EQ(sent.size(), 32u);
  EXPECT_EQ(sent.memory().handle(), pb::IMPORTED_HANDLE_OPAQUE_FD);
  EXPECT_EQ(sent.memory().device_uuid(), "d" + std::string(15, '\0'));
  EXPECT_EQ(sent.memory().driver_uuid(), std::string(15, '\0') + "v");
  EXPECT_EQ(sent.memory().allocation_bytes(), 4096u);
  EXPECT_TRUE(sent.memory().shadow());
  EXPECT_EQ(worker_->Handles(), std::vector<uint64_t>{sent.mem_id()});
  EXPECT_EQ(SharedOf(*memory)->shadow()->id(), sent.mem_id());
  EXPECT_EQ(worker_->Count(pb::Command::kCreateImage), 1u);
  EXPECT_EQ(Round(memory.get(), true), (std::pair<cl_int, cl_int>(CL_COMPLETE, CL_COMPLETE)));
  EXPECT_EQ(world_->TakeLog(), "TARF");
}

// So is it beside a buffer, whose bytes are copied where the memory changes hands: to the shadow
// only what a command wrote.
TEST_F(SharingWaysTest, DeviceMemoryIsABuffersShadow) {
  world_->kind = Kind::kOpaqueFd;
  world_->shadow_status = absl::OkStatus();
  const Ref<MemObject> memory = MakeBuffer();
  EXPECT_EQ(SharedOf(*memory)->way(), Way::kShadow);
  const pb::CreateImportedBuffer sent = worker_->LastImport().create_imported_buffer();
  EXPECT_EQ(sent.size(), 32u);
  EXPECT_TRUE(sent.memory().shadow());
  const Ref<MemObject> shadow = SharedOf(*memory)->shadow();
  ASSERT_NE(shadow.get(), nullptr);
  EXPECT_EQ(shadow->id(), sent.mem_id());
  EXPECT_EQ(worker_->Count(pb::Command::kCreateBuffer), 1u);
  worker_->SetMemory(shadow->id(), "theirs");
  EXPECT_EQ(Round(memory.get(), false), (std::pair<cl_int, cl_int>(CL_COMPLETE, CL_COMPLETE)));
  EXPECT_EQ(world_->TakeLog(), "TARL");
  EXPECT_EQ(worker_->Memory(memory->id()), "theirs");
  worker_->SetMemory(shadow->id(), "again");
  EXPECT_EQ(Round(memory.get(), true), (std::pair<cl_int, cl_int>(CL_COMPLETE, CL_COMPLETE)));
  EXPECT_EQ(world_->TakeLog(), "TARF");
  EXPECT_EQ(worker_->Count(pb::Command::kEnqueueCopyBuffer), 3u);
}

// An object for which no way is left is refused, with the API's code, and no memory is made for it.
// Also where the device works in the host's memory, every other way has been tried before.
TEST_F(SharingWaysTest, WhatCannotBeStagedIsRefused) {
  world_->kind = Kind::kOpaqueFd;
  world_->shadow_status = absl::OkStatus();
  world_->stage_status = absl::FailedPreconditionError("cannot be mapped");
  worker_->TakeImports("the memory's device is another");
  for (const bool in_heap : {false, true}) {
    pb::ContextPlacement placement;
    placement.set_buffers_in_heap(in_heap);
    placement.set_images_of_imports(true);
    context_->SetPlacement(placement, /*is_local=*/true);
    const size_t tried = worker_->Handles().size();
    MakeImage(RulesOf(Api::kD3d11).invalid_object);
    EXPECT_EQ(worker_->Handles().size(), tried + 1) << in_heap;
  }
  EXPECT_EQ(worker_->Count(pb::Command::kCreateImage), 0u);
  EXPECT_NE(RulesOf(Api::kD3d11).invalid_object, CL_SUCCESS);
}

// Native work ends before the driver is told, and the driver has let go before the native side
// begins again; nothing is copied.
TEST_F(SharingWaysTest, ImportChangesHandsInOrder) {
  world_->export_status = absl::OkStatus();
  const Ref<MemObject> memory = MakeImage();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Round(memory.get(), true), (std::pair<cl_int, cl_int>(CL_COMPLETE, CL_COMPLETE)));
    EXPECT_EQ(world_->TakeLog(), "BARE");
  }
}

// With a shadow the copies stand where they must; what no command wrote is not copied back, but
// changes hands all the same.
TEST_F(SharingWaysTest, ShadowChangesHandsInOrder) {
  world_->shadow_status = absl::OkStatus();
  const Ref<MemObject> memory = MakeImage();
  EXPECT_EQ(Round(memory.get(), true), (std::pair<cl_int, cl_int>(CL_COMPLETE, CL_COMPLETE)));
  EXPECT_EQ(world_->TakeLog(), "TARF");
  EXPECT_EQ(Round(memory.get(), false), (std::pair<cl_int, cl_int>(CL_COMPLETE, CL_COMPLETE)));
  EXPECT_EQ(world_->TakeLog(), "TARL");
}

// A native side that fails is an error of both events; the driver is not told, and nothing is
// copied back.
TEST_F(SharingWaysTest, NativeFailureIsNotHidden) {
  world_->shadow_status = absl::OkStatus();
  world_->native_status = CL_OUT_OF_RESOURCES;
  const Ref<MemObject> memory = MakeImage();
  const auto [acquired, released] = Round(memory.get(), true);
  EXPECT_LT(acquired, 0);
  EXPECT_LT(released, 0);
  EXPECT_EQ(world_->TakeLog(), "TX");
}

// A worker that cannot take it fails the acquire; its release gives back whatever it may have, and
// copies nothing.
TEST_F(SharingWaysTest, WorkerFailureIsNotHidden) {
  world_->shadow_status = absl::OkStatus();
  world_->worker_status = CL_OUT_OF_RESOURCES;
  const Ref<MemObject> memory = MakeImage();
  cl_event acquired = nullptr, released = nullptr;
  ASSERT_EQ(Sync(true, Api::kD3d11, {memory.get()}, &acquired), CL_SUCCESS);
  EXPECT_LT(End(acquired), 0);
  ASSERT_EQ(memory->Use(true), CL_SUCCESS);
  ASSERT_EQ(Sync(false, Api::kD3d11, {memory.get()}, &released), CL_SUCCESS);
  EXPECT_LT(End(released), 0);
  EXPECT_EQ(world_->TakeLog(), "TAX");
  EXPECT_EQ(worker_->Count(pb::Command::kEnqueueReleaseShadow), 1u);
  world_->worker_status = CL_SUCCESS;
  EXPECT_EQ(Round(memory.get(), true), (std::pair<cl_int, cl_int>(CL_COMPLETE, CL_COMPLETE)));
  EXPECT_EQ(world_->TakeLog(), "TARF");
}

}  // namespace
}  // namespace sluice::client::sharing
