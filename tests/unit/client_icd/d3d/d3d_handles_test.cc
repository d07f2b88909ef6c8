// SPDX-License-Identifier: Apache-2.0
// Direct3D textures by handle: what is chosen and why not, what is handed over, and how the
// shadow's keyed mutex and the end of Direct3D's work are waited for. Direct3D is made up, since
// Wine's shares nothing by handle; what Wine's own says is at the end.
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "broker/os/graphics_handle.h"
#include "broker/os/threads.h"
#include "client_icd/session/pending_releases.h"
#include "client_icd/sharing/d3d/d3d_memory.h"
#include "client_icd/sharing/d3d/d3d_object.h"
#include "tests/unit/client_icd/d3d/fake_direct3d.h"

namespace sluice::client::sharing {
namespace {

constexpr UINT kShared = D3D11_RESOURCE_MISC_SHARED;
constexpr UINT kNtHandle = D3D11_RESOURCE_MISC_SHARED_NTHANDLE;
constexpr UINT kKeyedMutex = D3D11_RESOURCE_MISC_SHARED_KEYEDMUTEX;

absl::Time Soon() { return absl::Now() + absl::Seconds(10); }

// As DescribeResource makes it, for one that is on the OpenCL device's adapter.
template <typename T, typename Typed>
D3dSubresource<T> Describe(Typed* texture, UINT index = 0, bool same_adapter = true) {
  D3dSubresource<T> from;
  from.shape = ShapeOf<T>(texture);
  from.resource = os::ComPtr<typename T::Resource>::Share(texture);
  from.given = texture;
  from.index = index;
  from.extent = *ExtentOf(from.shape, index);
  from.element_bytes = 4;
  from.same_adapter = same_adapter;
  return from;
}

class D3dHandlesTest : public testing::Test {
 protected:
  void TearDown() override {
    // Nothing of the application's, and nothing of ours, is held by anybody.
    EXPECT_EQ(direct3d_.device_references, 1);
    for (const FakeDirect3d::Texture& one : direct3d_.textures)
      EXPECT_EQ(one.references, one.name == "app" ? 1 : 0) << one.name;
    for (const FakeDirect3d::Buffer& one : direct3d_.buffers)
      EXPECT_EQ(one.references, one.name == "app" ? 1 : 0) << one.name;
  }
  std::unique_ptr<D3dObject<Direct3d11>> Make(const D3D11_TEXTURE2D_DESC& desc, UINT index = 0,
                                              bool same_adapter = true) {
    FakeDirect3d::Texture* const texture = direct3d_.NewTexture(desc);
    return std::make_unique<D3dObject<Direct3d11>>(
        nullptr, os::ComPtr<ID3D11Device>::Share(direct3d_.device()),
        Describe<Direct3d11>(texture->get(), index, same_adapter));
  }
  std::unique_ptr<D3dObject<Direct3d11>> MakeBuffer(UINT misc) {
    D3D11_BUFFER_DESC desc = {};
    desc.ByteWidth = 256;
    desc.BindFlags = D3D11_BIND_VERTEX_BUFFER;
    desc.MiscFlags = misc;
    D3dSubresource<Direct3d11> from;
    ID3D11Buffer* const buffer = direct3d_.NewBuffer(desc)->get();
    from.shape = ShapeOf<Direct3d11>(buffer);
    from.resource = os::ComPtr<ID3D11Resource>::Share(buffer);
    from.extent = *ExtentOf(from.shape, 0);
    from.same_adapter = true;
    return std::make_unique<D3dObject<Direct3d11>>(
        nullptr, os::ComPtr<ID3D11Device>::Share(direct3d_.device()), std::move(from));
  }
  // With a shadow that the worker has opened.
  std::unique_ptr<D3dObject<Direct3d11>> MakeShadowed(UINT index = 0) {
    D3D11_TEXTURE2D_DESC desc = FakeDirect3d::Desc(0);
    desc.MipLevels = 3;
    auto object = Make(desc, index);
    const auto exported = object->MakeShadow();
    EXPECT_TRUE(exported.ok()) << exported.status();
    direct3d_.TakeLog();
    return object;
  }
  // The work of a worker that has it, between an acquire and a release.
  void WorkerTakesAndGives() {
    EXPECT_FALSE(direct3d_.mutex_held);
    EXPECT_EQ(direct3d_.mutex_key, os::kTextureUsersKey);
    direct3d_.mutex_key = os::kTextureMakersKey;
  }

  FakeDirect3d direct3d_;
};

// --- What is handed over as it is.

// A texture that was made to be shared by an NT handle is: by one that nobody can name, for reading
// and writing, which is the descriptor's and closed with it.
TEST_F(D3dHandlesTest, SharedTextureIsExported) {
  const auto object = Make(FakeDirect3d::Desc(kShared | kNtHandle));
  {
    const auto exported = object->Export();
    ASSERT_TRUE(exported.ok()) << exported.status();
    EXPECT_EQ(exported->kind, ExportedMemory::Kind::kD3d11Texture);
    EXPECT_FALSE(exported->keyed_mutex);
    EXPECT_EQ(direct3d_.shared_access, DXGI_SHARED_RESOURCE_READ | DXGI_SHARED_RESOURCE_WRITE);
    const auto handle = os::GraphicsHandleOf(exported->fd.get());
    ASSERT_TRUE(handle.ok()) << handle.status();
    EXPECT_EQ(reinterpret_cast<HANDLE>(*handle), direct3d_.shared_handle);
    EXPECT_TRUE(::SetEvent(direct3d_.shared_handle));
  }
  EXPECT_FALSE(::SetEvent(direct3d_.shared_handle)) << "closed";
}

// An object that cannot be handed over says why, in words for a log; the application's keyed mutex
// is never asked for.
TEST_F(D3dHandlesTest, WhatIsNotExportedSaysWhy) {
  struct Row {
    UINT misc;
    UINT levels;
    UINT layers;
    bool same_adapter;
    const char* reason;
  };
  const Row rows[] = {
      {0, 1, 1, true, "not made to be shared"},
      {kShared, 1, 1, true, "not made to be shared by an NT handle"},
      {kKeyedMutex, 1, 1, true, "application's keyed mutex"},
      {kKeyedMutex | kNtHandle, 1, 1, true, "application's keyed mutex"},
      {kShared | kNtHandle, 2, 1, true, "one level or layer"},
      {kShared | kNtHandle, 1, 2, true, "one level or layer"},
      {kShared | kNtHandle, 1, 1, false, "adapter"},
  };
  for (const Row& row : rows) {
    D3D11_TEXTURE2D_DESC desc = FakeDirect3d::Desc(row.misc);
    desc.MipLevels = row.levels;
    desc.ArraySize = row.layers;
    const auto exported = Make(desc, 0, row.same_adapter)->Export();
    ASSERT_FALSE(exported.ok()) << row.reason;
    EXPECT_NE(exported.status().message().find(row.reason), absl::string_view::npos)
        << exported.status();
  }
  EXPECT_EQ(direct3d_.TakeLog(), "");
}

// A Direct3D that cannot share is told from one that can by its answers: each of the three ways in
// which Wine's says so.
TEST_F(D3dHandlesTest, Direct3dThatCannotShare) {
  const auto object = Make(FakeDirect3d::Desc(kShared | kNtHandle));
  const auto refused = [&](const char* reason) {
    const auto exported = object->Export();
    EXPECT_TRUE(absl::IsUnimplemented(exported.status())) << exported.status();
    EXPECT_NE(exported.status().message().find(reason), absl::string_view::npos)
        << exported.status();
  };
  direct3d_.resource1 = E_NOINTERFACE;
  refused("IDXGIResource1 answers 0x80004002");
  direct3d_.resource1 = S_OK;
  direct3d_.create_shared = E_NOTIMPL;
  refused("CreateSharedHandle answers 0x80004001");
  direct3d_.create_shared = S_OK;
  direct3d_.gives_handle = false;
  refused("no handle");
}

// --- An import's acquire and release.

// All that the device was given has ended before OpenCL has the texture; nothing is copied.
TEST_F(D3dHandlesTest, ImportWaitsForDirect3d) {
  const auto object = Make(FakeDirect3d::Desc(kShared | kNtHandle));
  direct3d_.query_answers_pending = 3;
  EXPECT_EQ(object->BeginImported(Soon()), CL_SUCCESS);
  EXPECT_EQ(direct3d_.query_answers_pending, 0);
  EXPECT_EQ(object->EndImported(true, Soon()), CL_SUCCESS);
  EXPECT_EQ(direct3d_.TakeLog(), "end flush ");
}

// With Direct3D 11.4 a fence is slept for instead.
TEST_F(D3dHandlesTest, ImportWaitsForFence) {
  direct3d_.has_fences = true;
  const auto object = Make(FakeDirect3d::Desc(kShared | kNtHandle));
  EXPECT_EQ(object->BeginImported(Soon()), CL_SUCCESS);
  EXPECT_EQ(object->BeginImported(Soon()), CL_SUCCESS);
  EXPECT_EQ(direct3d_.TakeLog(), "signal1 flush sleep1 signal2 flush sleep2 ");
}

// Work that does not end in time is an error, by fence and by query.
TEST_F(D3dHandlesTest, WaitsAreBounded) {
  for (const bool fences : {false, true}) {
    direct3d_.has_fences = fences;
    direct3d_.query_answers_pending = -1;
    direct3d_.fence_completes = false;
    const auto object = Make(FakeDirect3d::Desc(kShared | kNtHandle));
    const absl::Time begin = absl::Now();
    EXPECT_EQ(object->BeginImported(begin + absl::Milliseconds(50)), CL_OUT_OF_RESOURCES);
    EXPECT_GE(absl::Now() - begin, absl::Milliseconds(49));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  }
}

// A device that was removed fails both, though its fence says that all is done.
TEST_F(D3dHandlesTest, RemovedDevice) {
  for (const bool fences : {false, true}) {
    direct3d_.has_fences = fences;
    const auto object = Make(FakeDirect3d::Desc(kShared | kNtHandle));
    direct3d_.removed_reason = DXGI_ERROR_DEVICE_REMOVED;
    EXPECT_EQ(object->BeginImported(Soon()), CL_OUT_OF_RESOURCES);
    EXPECT_EQ(object->EndImported(true, Soon()), CL_OUT_OF_RESOURCES);
    direct3d_.removed_reason = S_OK;
  }
}

// Staging too: nothing is read from, and nothing counts as written to, a device that was removed.
TEST_F(D3dHandlesTest, RemovedDeviceIsNotStaged) {
  const auto object = Make(FakeDirect3d::Desc(0));
  uint8_t bytes[64 * 32 * 4] = {};
  direct3d_.removed_reason = DXGI_ERROR_DEVICE_RESET;
  EXPECT_EQ(object->Fetch(bytes, Soon()), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(direct3d_.TakeLog(), "app0>ours0 end flush ");
  EXPECT_EQ(object->Store(bytes, Soon()), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(direct3d_.TakeLog(), "") << "waits for the copy before, which the device lost";
}

// --- Staging.

// A buffer is staged by one of ours of its size that the processor may read and write, made with
// the first use and kept.
TEST_F(D3dHandlesTest, BufferIsStaged) {
  const auto object = MakeBuffer(0);
  uint8_t bytes[256] = {};
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(object->Fetch(bytes, Soon()), CL_SUCCESS);
    EXPECT_EQ(direct3d_.TakeLog(), "app0>ours0 end flush map:ours ");
    EXPECT_EQ(object->Store(bytes, Soon()), CL_SUCCESS);
    EXPECT_EQ(direct3d_.TakeLog(), "map:ours ours0>app0 end flush ");
  }
  ASSERT_EQ(direct3d_.buffers.size(), 2u);
  const D3D11_BUFFER_DESC& made = direct3d_.buffers.back().desc;
  EXPECT_EQ(made.ByteWidth, 256u);
  EXPECT_EQ(made.Usage, D3D11_USAGE_STAGING);
  EXPECT_EQ(made.CPUAccessFlags, UINT{D3D11_CPU_ACCESS_READ | D3D11_CPU_ACCESS_WRITE});
  EXPECT_EQ(made.BindFlags, 0u);
  EXPECT_EQ(made.MiscFlags, 0u);
}

// A staging resource is mapped only once its copy has ended, which is waited for with a bound, by
// query and by fence: mapping it earlier would wait without one.
TEST_F(D3dHandlesTest, StagingWaitsAreBounded) {
  uint8_t bytes[64 * 32 * 4] = {};
  for (const bool fences : {false, true}) {
    direct3d_.has_fences = fences;
    for (const bool buffer : {false, true}) {
      const auto object = buffer ? MakeBuffer(0) : Make(FakeDirect3d::Desc(0));
      direct3d_.query_answers_pending = -1;
      direct3d_.fence_completes = false;
      const absl::Time soon = absl::Now() + absl::Milliseconds(20);
      EXPECT_EQ(object->Fetch(bytes, soon), CL_OUT_OF_RESOURCES);
      EXPECT_EQ(object->Store(bytes, soon), CL_OUT_OF_RESOURCES) << "behind that copy";
      EXPECT_EQ(direct3d_.TakeLog().find("map:"), std::string::npos);
      direct3d_.query_answers_pending = 0;
      direct3d_.fence_completes = true;
      EXPECT_EQ(object->Store(bytes, Soon()), CL_SUCCESS);
      EXPECT_EQ(object->Fetch(bytes, Soon()), CL_SUCCESS);
      direct3d_.TakeLog();
    }
  }
}

// A staging buffer that cannot be made fails the acquire, and nothing is copied.
TEST_F(D3dHandlesTest, NoStagingBuffer) {
  const auto object = MakeBuffer(0);
  uint8_t bytes[256] = {};
  direct3d_.create_buffer = E_OUTOFMEMORY;
  EXPECT_EQ(object->Fetch(bytes, Soon()), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(object->Store(bytes, Soon()), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(direct3d_.TakeLog(), "");
}

// --- The shadow.

// It is a texture of ours of the subresource's size, with a keyed mutex, handed over with it.
TEST_F(D3dHandlesTest, ShadowIsATextureOfOurs) {
  for (const UINT misc : {UINT{0}, kShared, kKeyedMutex, kKeyedMutex | kNtHandle}) {
    D3D11_TEXTURE2D_DESC desc = FakeDirect3d::Desc(misc);
    desc.MipLevels = 3;
    desc.ArraySize = 2;
    const auto object = Make(desc, 4);  // Level 1 of layer 1.
    const auto exported = object->MakeShadow();
    ASSERT_TRUE(exported.ok()) << exported.status();
    EXPECT_TRUE(exported->keyed_mutex);
    const D3D11_TEXTURE2D_DESC& made = direct3d_.textures.back().desc;
    EXPECT_EQ(made.MiscFlags, kKeyedMutex | kNtHandle);
    EXPECT_EQ(made.Width, 32u);
    EXPECT_EQ(made.Height, 16u);
    EXPECT_EQ(made.MipLevels, 1u);
    EXPECT_EQ(made.ArraySize, 1u);
    EXPECT_EQ(made.Usage, D3D11_USAGE_DEFAULT);
    EXPECT_EQ(made.Format, desc.Format);
  }
}

// The application's keyed mutex is never taken: what is taken and given is the shadow's, with key 0
// before each copy, with key 1 for the worker, and only once Direct3D has finished.
TEST_F(D3dHandlesTest, MutexIsTakenAroundEachCopy) {
  const auto object = MakeShadowed(1);
  for (int round = 0; round < 3; ++round) {
    direct3d_.query_answers_pending = 2;
    EXPECT_EQ(object->CopyToShadow(ShadowSync::kHost, Soon()), CL_SUCCESS);
    EXPECT_EQ(direct3d_.TakeLog(), "take0 app1>ours0 end flush give1 ");
    EXPECT_EQ(direct3d_.query_answers_pending, 0);
    WorkerTakesAndGives();
    EXPECT_EQ(object->CopyFromShadow(ShadowSync::kHost, Soon()), CL_SUCCESS);
    EXPECT_EQ(direct3d_.TakeLog(), "take0 ours0>app1 end flush give0 ");
    EXPECT_EQ(direct3d_.mutex_key, os::kTextureMakersKey);
  }
}

// The wait for the mutex has the acquire's own bound; late is an error, and nothing is copied.
TEST_F(D3dHandlesTest, MutexThatComesLate) {
  const auto object = MakeShadowed();
  direct3d_.mutex_key = os::kTextureUsersKey;  // The worker has it.
  EXPECT_EQ(object->CopyToShadow(ShadowSync::kHost, absl::Now() + absl::Seconds(7)),
            CL_OUT_OF_RESOURCES);
  EXPECT_GT(direct3d_.acquire_bound, 6000u);
  EXPECT_LE(direct3d_.acquire_bound, 7000u);
  EXPECT_EQ(object->CopyFromShadow(ShadowSync::kHost, absl::Now() - absl::Seconds(1)),
            CL_OUT_OF_RESOURCES);
  EXPECT_EQ(direct3d_.acquire_bound, 0u) << "and never INFINITE";
  EXPECT_EQ(object->CopyToShadow(ShadowSync::kHost, absl::InfiniteFuture()), CL_OUT_OF_RESOURCES);
  EXPECT_LT(direct3d_.acquire_bound, INFINITE);
  EXPECT_EQ(direct3d_.TakeLog(), "take0 take0 take0 ");
}

// Only S_OK is success: not WAIT_TIMEOUT, not WAIT_ABANDONED, not S_FALSE, not an error. After one
// that was abandoned, the mutex is not asked again.
TEST_F(D3dHandlesTest, OnlySOkCounts) {
  const auto object = MakeShadowed();
  for (const HRESULT answer : {static_cast<HRESULT>(WAIT_TIMEOUT), S_FALSE, E_FAIL,
                               DXGI_ERROR_DEVICE_REMOVED, static_cast<HRESULT>(WAIT_ABANDONED)}) {
    direct3d_.acquire_sync = answer;
    EXPECT_EQ(object->CopyToShadow(ShadowSync::kHost, Soon()), CL_OUT_OF_RESOURCES) << answer;
    EXPECT_EQ(direct3d_.TakeLog(), "take0 ") << answer;
  }
  direct3d_.acquire_sync = S_OK;
  EXPECT_EQ(object->CopyToShadow(ShadowSync::kHost, Soon()), CL_OUT_OF_RESOURCES)
      << "lost for good";
  EXPECT_EQ(object->CopyFromShadow(ShadowSync::kHost, Soon()), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(object->ReleaseUnchanged(Soon()), CL_SUCCESS);
  EXPECT_EQ(direct3d_.TakeLog(), "");
}

// A copy that does not end in time, or whose device is lost, is not the worker's to see: the mutex
// stays with this side, and the next acquire may do better.
TEST_F(D3dHandlesTest, CopyThatDoesNotEnd) {
  const auto object = MakeShadowed();
  direct3d_.query_answers_pending = -1;
  EXPECT_EQ(object->CopyToShadow(ShadowSync::kHost, absl::Now() + absl::Milliseconds(20)),
            CL_OUT_OF_RESOURCES);
  EXPECT_EQ(direct3d_.TakeLog(), "take0 app0>ours0 end flush give0 ");
  direct3d_.query_answers_pending = 0;
  direct3d_.removed_reason = DXGI_ERROR_DEVICE_HUNG;
  EXPECT_EQ(object->CopyToShadow(ShadowSync::kHost, Soon()), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(direct3d_.TakeLog(), "take0 app0>ours0 end flush give0 ");
  EXPECT_EQ(object->CopyFromShadow(ShadowSync::kHost, Soon()), CL_OUT_OF_RESOURCES);
  direct3d_.TakeLog();
  direct3d_.removed_reason = S_OK;
  EXPECT_EQ(object->CopyToShadow(ShadowSync::kHost, Soon()), CL_SUCCESS);
  EXPECT_EQ(direct3d_.TakeLog(), "take0 app0>ours0 end flush give1 ");
  direct3d_.mutex_key = os::kTextureMakersKey;
}

// A mutex that the worker never took, since another object of the acquire failed, is taken back;
// one that it has given back is not waited for.
TEST_F(D3dHandlesTest, MutexIsTakenBack) {
  const auto object = MakeShadowed();
  ASSERT_EQ(object->CopyToShadow(ShadowSync::kHost, Soon()), CL_SUCCESS);
  direct3d_.TakeLog();
  EXPECT_EQ(object->ReleaseUnchanged(Soon()), CL_SUCCESS);
  EXPECT_EQ(direct3d_.TakeLog(), "take1 give0 ");
  EXPECT_EQ(direct3d_.acquire_bound, 0u);
  EXPECT_EQ(object->ReleaseUnchanged(Soon()), CL_SUCCESS);
  EXPECT_EQ(direct3d_.TakeLog(), "take1 ");
  EXPECT_EQ(object->CopyToShadow(ShadowSync::kHost, Soon()), CL_SUCCESS);
}

// A shadow that cannot be made, or shared, says why and leaves nothing; one that the worker does
// not open is let go.
TEST_F(D3dHandlesTest, NoShadow) {
  const auto object = Make(FakeDirect3d::Desc(0));
  const auto refused = [&](const char* reason) {
    const auto exported = object->MakeShadow();
    ASSERT_FALSE(exported.ok());
    EXPECT_NE(exported.status().message().find(reason), absl::string_view::npos)
        << exported.status();
  };
  direct3d_.create_texture = E_INVALIDARG;
  refused("0x80070057");
  direct3d_.create_texture = S_OK;
  direct3d_.resource1 = E_NOINTERFACE;
  refused("IDXGIResource1");
  direct3d_.resource1 = S_OK;
  direct3d_.create_shared = E_ACCESSDENIED;
  refused("CreateSharedHandle");
  direct3d_.create_shared = S_OK;
  for (const FakeDirect3d::Texture& one : direct3d_.textures)
    EXPECT_TRUE(one.name == "app" || one.references == 0);
  ASSERT_TRUE(object->MakeShadow().ok());
  EXPECT_GT(direct3d_.textures.back().references, 0);
  object->DropShadow();
  EXPECT_EQ(direct3d_.textures.back().references, 0);
  EXPECT_EQ(object->ReleaseUnchanged(Soon()), CL_SUCCESS);
  EXPECT_NE(Make(FakeDirect3d::Desc(0), 0, /*same_adapter=*/false)
                ->MakeShadow()
                .status()
                .message()
                .find("adapter"),
            absl::string_view::npos);
}

// --- The end.

// Where replies are handled nothing of Direct3D's is called, which may wait for a lock that the
// application has entered. Another thread lets go, whatever the context's waits for, and a call
// that waits finds that done. Anywhere else it is done at once.
TEST_F(D3dHandlesTest, GoesElsewhereWhereRepliesAreHandled) {
  FakeDirect3d::Texture* const texture = direct3d_.NewTexture(FakeDirect3d::Desc(0));
  const auto thread = std::make_shared<D3dThread>(/*callers_only=*/false);
  const int device_before = direct3d_.device_references;
  const auto make = [&] {
    return std::make_unique<D3dObject<Direct3d11>>(
        thread, os::ComPtr<ID3D11Device>::Share(direct3d_.device()),
        Describe<Direct3d11>(texture->get()));
  };
  make();
  EXPECT_EQ(texture->references, 1);
  EXPECT_EQ(direct3d_.device_references, device_before);
  absl::Notification go, gone;
  thread->Post([&go] { go.WaitForNotification(); });
  auto object = make();
  const int held = 1 + direct3d_.device_references - device_before;
  direct3d_.only_thread = os::ThisThreadNumber();
  {
    const CommandStream::Handling handling;
    object = nullptr;
  }
  PendingReleases::Await(absl::InfiniteDuration());
  EXPECT_EQ(texture->references, 1);
  EXPECT_EQ(direct3d_.device_references, device_before);
  EXPECT_EQ(direct3d_.strangers, held);  // Each was given back elsewhere.
  go.Notify();
  thread->Post([&gone] { gone.Notify(); });
  gone.WaitForNotification();
}

// A device of one thread is not touched where another thread handles replies. The thread that made
// the last call lets go, at the end of its next one. Nor does any other thread's call do it.
TEST_F(D3dHandlesTest, GoesAtHomeIfTheDeviceIsOfOneThread) {
  direct3d_.only_thread = os::ThisThreadNumber();
  FakeDirect3d::Texture* const texture = direct3d_.NewTexture(FakeDirect3d::Desc(0));
  const auto thread = std::make_shared<D3dThread>(/*callers_only=*/true);
  auto object = std::make_unique<D3dObject<Direct3d11>>(
      thread, os::ComPtr<ID3D11Device>::Share(direct3d_.device()),
      Describe<Direct3d11>(texture->get()));
  ASSERT_EQ(object->BeginImported(Soon()), CL_SUCCESS);
  auto share =
      std::make_unique<D3dShare<Direct3d11>>(os::ComPtr<ID3D11Device>::Share(direct3d_.device()),
                                             /*user_sync=*/false, /*callers_only=*/true);
  std::thread([&] {
    const CommandStream::Handling handling;
    EXPECT_NE(object->key().object, 0u);
    object = nullptr;
    share = nullptr;
  }).join();
  std::thread([] { const HomeThread::ErrandsAfter call; }).join();
  EXPECT_EQ(texture->references, 2);
  EXPECT_GT(direct3d_.device_references, 2);
  { const HomeThread::ErrandsAfter call; }
  EXPECT_EQ(texture->references, 1);
  EXPECT_EQ(direct3d_.device_references, 1);
  EXPECT_EQ(direct3d_.strangers, 0);
}

// --- What has no handles.

// OpenCL's external memory knows handles of Direct3D 11's textures, and of no buffers: they are
// staged, and say so, however they were made.
TEST_F(D3dHandlesTest, BuffersHaveNoHandle) {
  for (const UINT misc : {UINT{0}, kShared, kShared | kNtHandle, kKeyedMutex | kNtHandle}) {
    const auto object = MakeBuffer(misc);
    for (const auto& exported : {object->Export().status(), object->MakeShadow().status()}) {
      EXPECT_TRUE(absl::IsUnimplemented(exported)) << exported;
      EXPECT_NE(exported.message().find("buffers"), absl::string_view::npos) << exported;
    }
  }
  EXPECT_EQ(direct3d_.TakeLog(), "");
}

// Nor does Direct3D share volumes.
TEST_F(D3dHandlesTest, VolumesHaveNoHandle) {
  D3dSubresource<Direct3d11> from;
  from.shape.kind = D3dShape::Kind::kTexture3d;
  from.shape.nt_handle = true;
  from.same_adapter = true;
  D3dObject<Direct3d11> object(nullptr, os::ComPtr<ID3D11Device>::Share(direct3d_.device()),
                               std::move(from));
  for (const auto& exported : {object.Export().status(), object.MakeShadow().status()})
    EXPECT_NE(exported.message().find("volumes"), absl::string_view::npos) << exported;
}

// Direct3D 10 has only handles that any process may open by guessing: those are not used.
TEST(D3dWithoutNtHandles, Direct3d10) {
  D3dSubresource<Direct3d10> from;
  from.shape.kind = D3dShape::Kind::kTexture2d;
  from.shape.keyed_mutex = true;
  from.same_adapter = true;
  D3dObject<Direct3d10> object(nullptr, {}, std::move(from));
  for (const auto& exported : {object.Export().status(), object.MakeShadow().status()}) {
    EXPECT_TRUE(absl::IsUnimplemented(exported));
    EXPECT_NE(exported.message().find("Direct3D 10 has no NT handles"), absl::string_view::npos);
  }
}

// Wine's own Direct3D makes a texture with these flags or not; either way the answer is a reason,
// and never a handle that is none.
TEST(D3dOfThisSystem, SaysWhatItCannot) {
  os::ComPtr<ID3D11Device> device;
  if (FAILED(::D3D11CreateDevice(nullptr, D3D_DRIVER_TYPE_HARDWARE, nullptr, 0, nullptr, 0,
                                 D3D11_SDK_VERSION, device.out(), nullptr, nullptr)))
    GTEST_SKIP() << "no Direct3D 11 device (no display?)";
  for (const UINT misc : {kShared, kShared | kNtHandle, kKeyedMutex | kNtHandle}) {
    const D3D11_TEXTURE2D_DESC desc = FakeDirect3d::Desc(misc);
    os::ComPtr<ID3D11Texture2D> texture;
    if (FAILED(device->CreateTexture2D(&desc, nullptr, texture.out()))) continue;
    D3dObject<Direct3d11> object(nullptr, device, Describe<Direct3d11>(texture.get()));
    for (const bool shadow : {false, true}) {
      const auto exported = shadow ? object.MakeShadow() : object.Export();
      if (exported.ok()) {
        EXPECT_TRUE(os::GraphicsHandleOf(exported->fd.get()).ok());
      } else {
        EXPECT_FALSE(exported.status().message().empty());
      }
      std::printf("flags 0x%x: %s\n", misc, exported.status().ToString().c_str());
    }
  }
}

}  // namespace
}  // namespace sluice::client::sharing
