// SPDX-License-Identifier: Apache-2.0
//
// sluice_d3d11.h over a Direct3D that is made up: what is opened on the program's device, and what
// that device is asked around a turn. A daemon is made up as well: it exports two handles, and has
// turns.
#include <gtest/gtest.h>

#include <string>

#include "client_icd/libsluice/entry.h"
#include "sluice/sluice_d3d11.h"
#include "tests/unit/client_icd/d3d/fake_direct3d.h"

namespace {

struct FakeDaemon {
  sluice_status exports = SLUICE_OK;
  uint32_t backing = SLUICE_BACKING_D3D11;
  uint32_t handles = 2;
  sluice_status turn = SLUICE_OK;
  sluice_hold hold = {};
  std::string text;  // The words of the newest failure.
  HANDLE given[2] = {};
  int open_handles = 0;
  std::string log;
};
FakeDaemon* g_daemon = nullptr;

}  // namespace

// Stand-ins for the functions of sluice.cc that the entry points under test call.
namespace sluice::client {

sluice_status Fail(sluice_status status, const std::string& why) {
  g_daemon->text = why;
  return status;
}
sluice_status Told(const absl::Status& status) {
  return Fail(absl::IsUnimplemented(status) ? SLUICE_UNSUPPORTED : SLUICE_FAILED,
              std::string(status.message()));
}
sluice_status NullArgument() { return Fail(SLUICE_INVALID_ARGUMENT, "a null argument"); }

}  // namespace sluice::client

sluice_status sluice_export(sluice_connection*, const sluice_capability*, sluice_access,
                            sluice_handle* handle) {
  EXPECT_EQ(handle->struct_size, sizeof(*handle));
  if (g_daemon->exports != SLUICE_OK) return g_daemon->exports;
  handle->backing = g_daemon->backing;
  handle->fd_count = g_daemon->handles;
  for (uint32_t i = 0; i < g_daemon->handles; ++i) {
    handle->fds[i] = g_daemon->given[i] = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
    ++g_daemon->open_handles;
  }
  return SLUICE_OK;
}
void sluice_handle_close(sluice_handle* handle) {
  for (uint32_t i = 0; i < handle->fd_count; ++i) {
    ::CloseHandle(handle->fds[i]);
    --g_daemon->open_handles;
  }
  handle->fd_count = 0;
}
sluice_status sluice_acquire(sluice_connection*, const sluice_capability*, sluice_access access,
                             uint32_t, sluice_hold* hold) {
  g_daemon->log += access == SLUICE_WRITE ? "write " : "read ";
  if (g_daemon->turn == SLUICE_OK) *hold = g_daemon->hold;
  return g_daemon->turn;
}
sluice_status sluice_release(sluice_connection*, const sluice_hold* hold, uint32_t flags) {
  EXPECT_EQ(hold->id, g_daemon->hold.id);
  g_daemon->log += "release" + std::to_string(flags) + " ";
  return g_daemon->turn;
}

namespace sluice::client {
namespace {

using sharing::FakeDirect3d;

class D3d11TextureTest : public testing::Test {
 protected:
  D3d11TextureTest() {
    g_daemon = &daemon_;
    daemon_.hold.id = 7;
    daemon_.hold.generation = 4;
    direct3d_.has_fences = true;
    direct3d_.NewTexture(FakeDirect3d::Desc(D3D11_RESOURCE_MISC_SHARED_NTHANDLE));
  }
  ~D3d11TextureTest() override {
    // Nothing is left of what was opened, and nothing of what the daemon gave.
    EXPECT_EQ(daemon_.open_handles, 0);
    EXPECT_EQ(direct3d_.device_references, 1);
    EXPECT_EQ(direct3d_.textures.back().references, 1);
    g_daemon = nullptr;
  }

  // `connection` is only handed on.
  sluice_status Open(sluice_access access, sluice_d3d11** opened) {
    const sluice_capability capability = {};
    return sluice_d3d11_open(connection(), &capability, access, direct3d_.device(), opened);
  }
  sluice_connection* connection() { return reinterpret_cast<sluice_connection*>(this); }

  FakeDaemon daemon_;
  FakeDirect3d direct3d_;
};

struct Closes {
  ~Closes() { sluice_d3d11_close(opened); }
  sluice_d3d11* opened = nullptr;
};

// The first handle is opened as the resource, the second as the fence, both on the program's
// device; the handles are closed, and what they opened stays until sluice_d3d11_close.
TEST_F(D3d11TextureTest, OpensBoth) {
  Closes texture;
  ASSERT_EQ(Open(SLUICE_WRITE, &texture.opened), SLUICE_OK) << daemon_.text;
  EXPECT_EQ(direct3d_.opened_resource, daemon_.given[0]);
  EXPECT_EQ(direct3d_.opened_fence, daemon_.given[1]);
  EXPECT_EQ(daemon_.open_handles, 0);
  EXPECT_EQ(static_cast<void*>(sluice_d3d11_resource(texture.opened)),
            static_cast<void*>(direct3d_.textures.back().get()));
  EXPECT_EQ(direct3d_.textures.back().references, 2);
}

// Each thing that a Direct3D may lack is told by its name and its answer, with what to do instead,
// and leaves nothing open.
TEST_F(D3d11TextureTest, SaysWhatIsLacking) {
  const auto refused = [this](const char* reason) {
    sluice_d3d11* opened = nullptr;
    EXPECT_EQ(Open(SLUICE_READ, &opened), SLUICE_UNSUPPORTED) << reason;
    EXPECT_EQ(opened, nullptr);
    EXPECT_NE(daemon_.text.find(reason), std::string::npos) << daemon_.text;
    EXPECT_NE(daemon_.text.find("SLUICE_BACKING_MEMFD"), std::string::npos) << daemon_.text;
    EXPECT_EQ(daemon_.open_handles, 0) << reason;
    EXPECT_EQ(direct3d_.device_references, 1) << reason;
    EXPECT_EQ(direct3d_.textures.back().references, 1) << reason;
  };
  direct3d_.has_device1 = false;
  refused("ID3D11Device1: 0x80004002");
  direct3d_.has_device1 = true;
  direct3d_.open_shared = E_NOTIMPL;
  refused("OpenSharedResource1: 0x80004001");
  direct3d_.open_shared = S_OK;
  direct3d_.has_fences = false;
  refused("ID3D11Device5: 0x80004002");
  direct3d_.has_fences = true;
  direct3d_.open_fence = E_INVALIDARG;
  refused("OpenSharedFence: 0x80070057");
  direct3d_.open_fence = S_OK;
  direct3d_.create_fence = E_FAIL;
  refused("CreateFence: 0x80004005");
}

// A refusal of the daemon's is passed on as it is. An object that is no Direct3D resource is
// refused, and its handles are closed; so are null arguments.
TEST_F(D3d11TextureTest, Refusals) {
  sluice_d3d11* opened = nullptr;
  daemon_.exports = SLUICE_PERMISSION_DENIED;
  EXPECT_EQ(Open(SLUICE_WRITE, &opened), SLUICE_PERMISSION_DENIED);
  daemon_.exports = SLUICE_OK;
  daemon_.backing = SLUICE_BACKING_MEMFD;
  EXPECT_EQ(Open(SLUICE_WRITE, &opened), SLUICE_INVALID_ARGUMENT);
  EXPECT_NE(daemon_.text.find("sluice_map"), std::string::npos) << daemon_.text;
  daemon_.backing = SLUICE_BACKING_D3D11;
  daemon_.handles = 1;
  EXPECT_EQ(Open(SLUICE_WRITE, &opened), SLUICE_INVALID_ARGUMENT);
  EXPECT_EQ(direct3d_.opened_resource, nullptr);
  const sluice_capability capability = {};
  sluice_hold hold = {};
  EXPECT_EQ(sluice_d3d11_open(nullptr, &capability, SLUICE_WRITE, direct3d_.device(), &opened),
            SLUICE_INVALID_ARGUMENT);
  EXPECT_EQ(sluice_d3d11_open(connection(), nullptr, SLUICE_WRITE, direct3d_.device(), &opened),
            SLUICE_INVALID_ARGUMENT);
  EXPECT_EQ(sluice_d3d11_open(connection(), &capability, SLUICE_WRITE, nullptr, &opened),
            SLUICE_INVALID_ARGUMENT);
  EXPECT_EQ(Open(SLUICE_WRITE, nullptr), SLUICE_INVALID_ARGUMENT);
  EXPECT_EQ(sluice_d3d11_acquire(nullptr, 0, &hold), SLUICE_INVALID_ARGUMENT);
  EXPECT_EQ(sluice_d3d11_release(nullptr, &hold, 0), SLUICE_INVALID_ARGUMENT);
  EXPECT_EQ(sluice_d3d11_resource(nullptr), nullptr);
  sluice_d3d11_close(nullptr);
  EXPECT_EQ(opened, nullptr);
}

// A writer waits for the generation that the daemon names, and signals the next one behind its
// work, before the release.
TEST_F(D3d11TextureTest, WritersTurn) {
  Closes texture;
  ASSERT_EQ(Open(SLUICE_WRITE, &texture.opened), SLUICE_OK) << daemon_.text;
  sluice_hold hold = {};
  ASSERT_EQ(sluice_d3d11_acquire(texture.opened, 100, &hold), SLUICE_OK);
  EXPECT_EQ(hold.generation, 4u);
  EXPECT_EQ(hold.indeterminate, 0u);
  EXPECT_EQ(direct3d_.TakeLog(), "sharedsleep4 ");
  EXPECT_EQ(sluice_d3d11_release(texture.opened, &hold, 0), SLUICE_OK);
  EXPECT_EQ(direct3d_.TakeLog(), "sharedsignal5 flush ");
  EXPECT_EQ(daemon_.log, "write release0 ");
  // The device has been there already: nothing to wait for.
  ASSERT_EQ(sluice_d3d11_acquire(texture.opened, 100, &hold), SLUICE_OK);
  EXPECT_EQ(direct3d_.TakeLog(), "");
  EXPECT_EQ(sluice_d3d11_release(texture.opened, &hold, SLUICE_CONTENTS_UNTOUCHED), SLUICE_OK);
  EXPECT_EQ(direct3d_.TakeLog(), "signal1 flush sleep1 ") << "nothing new for others";
}

// A reader signals nothing to others: its release waits until its own device is done.
TEST_F(D3d11TextureTest, ReadersTurn) {
  Closes texture;
  ASSERT_EQ(Open(SLUICE_READ, &texture.opened), SLUICE_OK) << daemon_.text;
  sluice_hold hold = {};
  for (int turn = 1; turn < 3; ++turn) {
    ASSERT_EQ(sluice_d3d11_acquire(texture.opened, 100, &hold), SLUICE_OK);
    direct3d_.TakeLog();
    EXPECT_EQ(sluice_d3d11_release(texture.opened, &hold, 0), SLUICE_OK);
    const std::string value = std::to_string(turn);
    EXPECT_EQ(direct3d_.TakeLog(), "signal" + value + " flush sleep" + value + " ");
  }
  EXPECT_EQ(daemon_.log, "read release0 read release0 ");
}

// A turn that is refused asks nothing of the device, and a release that the daemon refuses is told.
TEST_F(D3d11TextureTest, RefusedTurn) {
  Closes texture;
  ASSERT_EQ(Open(SLUICE_WRITE, &texture.opened), SLUICE_OK) << daemon_.text;
  daemon_.turn = SLUICE_TIMED_OUT;
  sluice_hold hold = {};
  EXPECT_EQ(sluice_d3d11_acquire(texture.opened, 0, &hold), SLUICE_TIMED_OUT);
  EXPECT_EQ(direct3d_.TakeLog(), "");
  daemon_.turn = SLUICE_LOST;
  EXPECT_EQ(sluice_d3d11_release(texture.opened, &daemon_.hold, 0), SLUICE_LOST);
}

// A writer whose device does not take the signal, or was removed, leaves contents that nobody
// knows: nobody would wait for them.
TEST_F(D3d11TextureTest, WriterWhoseDeviceFails) {
  Closes texture;
  ASSERT_EQ(Open(SLUICE_WRITE, &texture.opened), SLUICE_OK) << daemon_.text;
  sluice_hold hold = {};
  ASSERT_EQ(sluice_d3d11_acquire(texture.opened, 100, &hold), SLUICE_OK);
  direct3d_.signal = E_FAIL;
  EXPECT_EQ(sluice_d3d11_release(texture.opened, &hold, 0), SLUICE_OK);
  direct3d_.signal = S_OK;
  direct3d_.removed_reason = DXGI_ERROR_DEVICE_REMOVED;
  EXPECT_EQ(sluice_d3d11_release(texture.opened, &hold, 0), SLUICE_OK);
  EXPECT_EQ(daemon_.log, "write release1 release1 ");
}

// A removed device's fences have all values at once: that says nothing of the turn before.
TEST_F(D3d11TextureTest, RemovedDeviceKnowsNothing) {
  Closes texture;
  ASSERT_EQ(Open(SLUICE_READ, &texture.opened), SLUICE_OK) << daemon_.text;
  direct3d_.removed_reason = DXGI_ERROR_DEVICE_REMOVED;
  sluice_hold hold = {};
  ASSERT_EQ(sluice_d3d11_acquire(texture.opened, 100, &hold), SLUICE_OK);
  EXPECT_EQ(hold.indeterminate, 1u);
}

// A device that gets done with an earlier generation wakes who waits for a later one, and the wait
// goes on.
TEST_F(D3d11TextureTest, EarlierGenerationIsNoEnd) {
  Closes texture;
  ASSERT_EQ(Open(SLUICE_READ, &texture.opened), SLUICE_OK) << daemon_.text;
  direct3d_.early_wakes = 2;
  sluice_hold hold = {};
  ASSERT_EQ(sluice_d3d11_acquire(texture.opened, 100, &hold), SLUICE_OK);
  EXPECT_EQ(hold.indeterminate, 0u);
}

}  // namespace
}  // namespace sluice::client
