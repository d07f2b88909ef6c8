// SPDX-License-Identifier: Apache-2.0
//
// Windows programs that share resources through sluice.dll and a real sluiced.exe: turns, frames
// between processes, deaths, deadlines, watches, what handles may do.
#include <windows.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "sluice/sluice_d3d11.h"
#include "tests/windows/resource_daemon.h"

namespace sluice::tests {
namespace {

constexpr size_t kSize = 64 * 1024;
constexpr int kFrames = 50;

// Every byte of a frame is another in the next one.
uint8_t ByteOf(uint64_t frame, size_t at) { return static_cast<uint8_t>(frame * 37 + at * 11); }

std::string OwnPath() {
  char path[32768];
  return std::string(path, ::GetModuleFileNameA(nullptr, path, sizeof(path)));
}

std::vector<std::string> Child(const std::string& part, const ResourceDaemon& daemon,
                               const sluice_capability& capability) {
  return {OwnPath(), "--child=" + part, daemon.endpoint(), TextOf(capability)};
}

// A connection and a capability in another process, which says nothing but its exit code.
struct Guest {
  Guest(char** argv) {
    good = sluice_connect(argv[2], &connection) == SLUICE_OK &&
           sluice_capability_from_text(argv[3], &capability) == SLUICE_OK;
  }
  void* Map(sluice_access access) {
    sluice_handle handle = {};
    handle.struct_size = sizeof(handle);
    void* mapped = nullptr;
    if (sluice_export(connection, &capability, access, &handle) == SLUICE_OK) {
      sluice_map(&handle, &mapped);
    }
    sluice_handle_close(&handle);
    return mapped;
  }

  bool good = false;
  sluice_connection* connection = nullptr;
  sluice_capability capability;
};

void Say(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

// Takes the writer's turn, says so, and keeps it.
int HoldWriting(Guest* guest) {
  void* memory = guest->Map(SLUICE_WRITE);
  sluice_hold hold;
  if (memory == nullptr || sluice_acquire(guest->connection, &guest->capability, SLUICE_WRITE, 1000,
                                          &hold) != SLUICE_OK) {
    return 11;
  }
  std::memset(memory, 0xff, kSize / 2);
  Say("holding");
  std::getchar();
  return 0;
}

// Looks at each frame in its own turn; the exit code says which one was not what it must be.
int LookAtFrames(Guest* guest) {
  const auto* memory = static_cast<const uint8_t*>(guest->Map(SLUICE_READ));
  sluice_watch* watch = nullptr;
  if (memory == nullptr ||
      sluice_watch_open(guest->connection, &guest->capability, &watch) != SLUICE_OK) {
    return 11;
  }
  Say("ready");
  for (uint64_t frame = 1; frame <= kFrames; ++frame) {
    sluice_state state = {};
    while (state.generation < frame) {
      if (sluice_watch_next(watch, kTestTimeoutMs, &state) != SLUICE_OK) return 12;
    }
    sluice_hold hold;
    if (sluice_acquire(guest->connection, &guest->capability, SLUICE_READ, kTestTimeoutMs, &hold) !=
        SLUICE_OK) {
      return 13;
    }
    if (hold.generation != frame || hold.indeterminate != 0) return 14;
    for (size_t i = 0; i < kSize; ++i) {
      if (memory[i] != ByteOf(frame, i)) return 15;
    }
    if (sluice_release(guest->connection, &hold, 0) != SLUICE_OK) return 16;
    Say("seen");
  }
  sluice_watch_close(watch);
  sluice_disconnect(guest->connection);
  return 0;
}

}  // namespace

int RunChildPart(const std::string& part, int argc, char** argv) {
  if (argc != 4) return 100;
  Guest guest(argv);
  if (!guest.good) return 10;
  if (part == "hold") return HoldWriting(&guest);
  if (part == "look") return LookAtFrames(&guest);
  return 100;
}

namespace {

// Another process reads in its turn what one writes in its own, frame after frame, each byte.
TEST(LibsluiceTest, FramesBetweenProcesses) {
  broker::Client client;
  sluice_capability read, write;
  client.MakeBuffer(kSize, &read, &write);
  uint8_t* memory = client.Map(write, SLUICE_WRITE);
  Process reader(Child("look", SharedDaemon(), read));
  ASSERT_EQ(reader.ReadLine(), "ready");
  for (uint64_t frame = 1; frame <= kFrames; ++frame) {
    sluice_hold hold;
    ASSERT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 5000, &hold), SLUICE_OK);
    for (size_t i = 0; i < kSize; ++i) memory[i] = ByteOf(frame, i);
    ASSERT_EQ(sluice_release(client.get(), &hold, 0), SLUICE_OK);
    ASSERT_EQ(reader.ReadLine(), "seen") << reader.Wait();
  }
  EXPECT_EQ(reader.Wait(), 0);
  sluice_unmap(memory, kSize);
}

// A writer that is killed while it writes releases its hold, and the next holders are told.
TEST(LibsluiceTest, KilledWriterLeavesIndeterminateContents) {
  broker::Client client;
  sluice_capability read, write;
  client.MakeBuffer(kSize, &read, &write);
  Process writer(Child("hold", SharedDaemon(), write));
  ASSERT_EQ(writer.ReadLine(), "holding");
  sluice_hold hold;
  EXPECT_EQ(sluice_acquire(client.get(), &read, SLUICE_READ, 50, &hold), SLUICE_TIMED_OUT);
  writer.Kill();
  ASSERT_EQ(sluice_acquire(client.get(), &read, SLUICE_READ, 5000, &hold), SLUICE_OK)
      << sluice_error_text();
  EXPECT_EQ(hold.indeterminate, 1u);
  EXPECT_EQ(sluice_release(client.get(), &hold, 0), SLUICE_OK);
  ASSERT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 1000, &hold), SLUICE_OK);
  EXPECT_EQ(sluice_release(client.get(), &hold, 0), SLUICE_OK);
  ASSERT_EQ(sluice_acquire(client.get(), &read, SLUICE_READ, 1000, &hold), SLUICE_OK);
  EXPECT_EQ(hold.indeterminate, 0u);
}

// A reader's handle is one for reading, whatever is made of it, and a guessed capability none.
TEST(LibsluiceTest, ReadersCannotWrite) {
  broker::Client client;
  sluice_capability read, write;
  client.MakeBuffer(kSize, &read, &write);
  sluice_handle handle = client.Export(read, SLUICE_READ);
  EXPECT_EQ(handle.writable, 0u);
  EXPECT_EQ(handle.fd_count, 1u);
  EXPECT_EQ(handle.fds[1], nullptr);
  EXPECT_EQ(::MapViewOfFile(handle.fds[0], FILE_MAP_WRITE, 0, 0, kSize), nullptr);
  HANDLE more = nullptr;
  EXPECT_FALSE(::DuplicateHandle(::GetCurrentProcess(), handle.fds[0], ::GetCurrentProcess(), &more,
                                 SECTION_MAP_WRITE, FALSE, 0));
  sluice_handle_close(&handle);
  EXPECT_EQ(handle.fds[0], nullptr);
  sluice_handle none = {};
  none.struct_size = sizeof(none);
  EXPECT_EQ(sluice_export(client.get(), &read, SLUICE_WRITE, &none), SLUICE_PERMISSION_DENIED);
  sluice_capability guessed = write;
  guessed.bytes[23] ^= 1;
  EXPECT_EQ(sluice_export(client.get(), &guessed, SLUICE_WRITE, &none), SLUICE_PERMISSION_DENIED);
}

// New memory is zero; what this system does not have is said, with what it has.
TEST(LibsluiceTest, BackingsAreWhatTheySay) {
  broker::Client client;
  sluice_capability read, write;
  client.MakeBuffer(kSize, &read, &write);
  uint8_t* memory = client.Map(write, SLUICE_WRITE);
  EXPECT_EQ(std::count(memory, memory + kSize, 0), static_cast<ptrdiff_t>(kSize));
  sluice_unmap(memory, kSize);
  for (const uint32_t backing :
       {SLUICE_BACKING_DMABUF, SLUICE_BACKING_VULKAN, SLUICE_BACKING_GRALLOC}) {
    sluice_create_info info = broker::BufferInfo(4096);
    info.backing = backing;
    EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_UNSUPPORTED) << backing;
    EXPECT_NE(std::strstr(sluice_error_text(), "SLUICE_BACKING_MEMFD"), nullptr)
        << sluice_error_text();
  }
}

// A texture of Direct3D's, where it can share: two handles, for trusted readers. Elsewhere the
// daemon says what is lacking, and what can be had.
TEST(LibsluiceTest, Direct3dSharesOrSaysWhy) {
  broker::Client client;
  sluice_capability read, write;
  sluice_create_info info = broker::BufferInfo(0, SLUICE_TRUST_READERS);
  info.backing = SLUICE_BACKING_D3D11;
  info.shape.drm_fourcc = 0x34324241;  // 'AB24'
  info.shape.width = 64;
  info.shape.height = 32;
  if (sluice_create(client.get(), &info, &read, &write) != SLUICE_OK) {
    std::printf("%s\n", sluice_error_text());
    EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_UNSUPPORTED);
    EXPECT_NE(std::strstr(sluice_error_text(), "Direct3D"), nullptr) << sluice_error_text();
    EXPECT_NE(std::strstr(sluice_error_text(), "SLUICE_BACKING_MEMFD"), nullptr)
        << sluice_error_text();
  } else {
    sluice_handle handle = client.Export(read, SLUICE_READ);
    EXPECT_EQ(handle.fd_count, 2u);
    EXPECT_EQ(handle.backing, uint32_t{SLUICE_BACKING_D3D11});
    void* mapped = nullptr;
    EXPECT_EQ(sluice_map(&handle, &mapped), SLUICE_UNSUPPORTED);
    sluice_handle_close(&handle);
  }
  // Memory that is none of Direct3D's is not opened as if it were, whatever the device.
  client.MakeBuffer(4096, &read, &write, SLUICE_TRUST_READERS);
  sluice_d3d11* opened = nullptr;
  auto* no_device = reinterpret_cast<ID3D11Device*>(&client);  // It is not touched.
  EXPECT_EQ(sluice_d3d11_open(client.get(), &read, SLUICE_READ, no_device, &opened),
            SLUICE_INVALID_ARGUMENT);
  EXPECT_EQ(sluice_d3d11_open(client.get(), &read, SLUICE_READ, nullptr, &opened),
            SLUICE_INVALID_ARGUMENT);
}

// A program's own section becomes a resource; what is no such memory does not.
TEST(LibsluiceTest, ImportTakesSections) {
  broker::Client client;
  broker::Client other;
  sluice_capability read, write;
  HANDLE section =
      ::CreateFileMappingA(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, kSize, nullptr);
  HANDLE event = ::CreateEventA(nullptr, FALSE, FALSE, nullptr);
  HANDLE reserved = ::CreateFileMappingA(INVALID_HANDLE_VALUE, nullptr,
                                         PAGE_READWRITE | SEC_RESERVE, 0, kSize, nullptr);
  sluice_create_info info = broker::BufferInfo(kSize);
  for (HANDLE wrong : {event, reserved, HANDLE{nullptr}, INVALID_HANDLE_VALUE}) {
    EXPECT_EQ(sluice_import(client.get(), &info, wrong, &read, &write), SLUICE_INVALID_ARGUMENT);
  }
  info.shape.size_bytes = kSize + 4096;
  EXPECT_EQ(sluice_import(client.get(), &info, section, &read, &write), SLUICE_INVALID_ARGUMENT);
  info.shape.size_bytes = kSize;
  // Any program of this user could make more of a handle: readers must be trusted not to.
  ASSERT_EQ(sluice_import(client.get(), &info, section, &read, &write), SLUICE_OK)
      << sluice_error_text();
  sluice_handle handle = {};
  handle.struct_size = sizeof(handle);
  EXPECT_EQ(sluice_export(other.get(), &read, SLUICE_READ, &handle), SLUICE_UNSUPPORTED);
  info.flags = SLUICE_TRUST_READERS;
  ASSERT_EQ(sluice_import(client.get(), &info, section, &read, &write), SLUICE_OK);
  const uint8_t* seen = other.Map(read, SLUICE_READ);
  auto* own = static_cast<uint8_t*>(::MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, kSize));
  own[kSize - 1] = 7;
  EXPECT_EQ(seen[kSize - 1], 7);
  sluice_unmap(const_cast<uint8_t*>(seen), kSize);
  ::UnmapViewOfFile(own);
  for (HANDLE handle_to_close : {section, event, reserved}) ::CloseHandle(handle_to_close);
}

// A connection survives the threads that use it, and the watches of others that are closed.
TEST(LibsluiceTest, ConnectionOutlivesItsThreads) {
  broker::Client one;
  sluice_capability read, write;
  one.MakeBuffer(4096, &read, &write);
  sluice_description description = {};
  description.struct_size = sizeof(description);
  for (int round = 0; round < 50; ++round) {
    std::thread user([&] {
      ASSERT_EQ(sluice_describe(one.get(), &read, &description), SLUICE_OK);
      broker::Client other;
      sluice_watch* watch = nullptr;
      sluice_state state = {};
      ASSERT_EQ(sluice_watch_open(other.get(), &read, &watch), SLUICE_OK);
      EXPECT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);
      sluice_watch_close(watch);
    });
    user.join();
    ASSERT_EQ(sluice_describe(one.get(), &read, &description), SLUICE_OK) << sluice_error_text();
  }
}

// An allocator that dies costs nobody anything: what it made stays, and the next request starts
// another.
TEST(LibsluiceTest, AllocatorIsReplaced) {
  ResourceDaemon daemon;
  broker::Client client(daemon.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(kSize, &read, &write);
  HANDLE allocator = daemon.OpenChild("sluice-allocator.exe");
  ASSERT_NE(allocator, nullptr);
  ::TerminateProcess(allocator, 1);
  ::WaitForSingleObject(allocator, kTestTimeoutMs);
  ::CloseHandle(allocator);
  EXPECT_TRUE(broker::Becomes([&] {
    sluice_capability more_read, more_write;
    const sluice_create_info info = broker::BufferInfo(4096);
    return sluice_create(client.get(), &info, &more_read, &more_write) == SLUICE_OK;
  })) << sluice_error_text();
  uint8_t* memory = client.Map(write, SLUICE_WRITE);
  memory[kSize - 1] = 1;
  sluice_unmap(memory, kSize);
}

// Kills a daemon: mappings stay. True if all that waits, and later calls, report it.
bool TellsOfDeath() {
  ResourceDaemon daemon;
  broker::Client client(daemon.endpoint());
  broker::Client waiter(daemon.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  uint8_t* memory = client.Map(write, SLUICE_WRITE);
  sluice_hold hold;
  EXPECT_EQ(sluice_acquire(client.get(), &write, SLUICE_WRITE, 0, &hold), SLUICE_OK);
  sluice_watch* watch = nullptr;
  EXPECT_EQ(sluice_watch_open(waiter.get(), &read, &watch), SLUICE_OK);
  sluice_state state;
  EXPECT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);
  sluice_status told = SLUICE_OK;
  std::thread waits([&] {
    sluice_hold none;
    told = sluice_acquire(waiter.get(), &read, SLUICE_READ, 10'000, &none);
  });
  EXPECT_EQ(sluice_watch_next(watch, 5000, &state), SLUICE_OK);  // The acquire has come to wait.
  daemon.Kill();
  waits.join();
  while (sluice_watch_next(watch, 5000, &state) == SLUICE_OK) {
  }
  // A call that does not hear of it ends with SLUICE_TIMED_OUT.
  const bool tells =
      told == SLUICE_LOST && sluice_watch_next(watch, 5000, &state) == SLUICE_LOST &&
      sluice_release(client.get(), &hold, 0) == SLUICE_LOST &&
      sluice_acquire(client.get(), &write, SLUICE_WRITE, 10'000, &hold) == SLUICE_LOST;
  memory[4095] = 7;
  sluice_unmap(memory, 4096);
  sluice_watch_close(watch);
  sluice_connection* none = nullptr;
  EXPECT_EQ(sluice_connect(daemon.endpoint().c_str(), &none), SLUICE_NO_DAEMON);
  const std::string why = sluice_error_text();
  EXPECT_NE(why.find("no daemon has this pipe; start it: `sc.exe start Sluice`"), std::string::npos)
      << why;
  return tells;
}

// When the daemon is killed, whatever waits returns, and later calls say so. Wine's server may keep
// a socket of a process that is killed with I/O under way (1 of 10 on a busy machine: established,
// and wineserver alone has it). Then nobody can hear of the end, so this tries once more.
TEST(LibsluiceTest, DaemonsDeathIsAnError) {
  bool tells = false;
  for (int attempt = 0; attempt < 4 && !tells; ++attempt) {
    if (attempt > 0) Say("the killed daemon's end was not heard of: once more");
    tells = TellsOfDeath();
  }
  EXPECT_TRUE(tells);
}

}  // namespace
}  // namespace sluice::tests
