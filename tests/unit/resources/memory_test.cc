// SPDX-License-Identifier: Apache-2.0
//
// The memory behind resources: what a reader's handle can be made into, what may be imported, which
// backings there are, and an allocator that dies.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "proto/resource_messages.h"
#include "tests/unit/resources/raw_client.h"

namespace sluice::broker {
namespace {

class MemoryTest : public ResourceTest {};

// The ways in which a holder of `fd` can write to its memory. 0: nothing worked; else which did.
int TryToWrite(int fd) {
  if (::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED) return 1;
  void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return 2;
  if (::mprotect(mapped, 4096, PROT_READ | PROT_WRITE) == 0) return 3;
  ::munmap(mapped, 4096);
  if (::write(fd, "x", 1) == 1) return 4;
  if (::ftruncate(fd, 0) == 0) return 5;
  ::fchmod(fd, 0666);  // May work, for the owner; must not help.
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const os::UniqueFd again(::open(link.c_str(), O_RDWR | O_CLOEXEC));
  if (!again.valid()) return 0;
  if (::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0) != MAP_FAILED) {
    return 6;
  }
  if (::pwrite(again.get(), "x", 1, 0) == 1) return 7;
  if (::ftruncate(again.get(), 0) == 0) return 8;
  if (::fallocate(again.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0) return 9;
  return 0;
}

// A reader of the daemon's own user, who may reopen descriptors, still cannot write: not by
// mapping, not by opening again, not by seals. The writer, who mapped before, still can.
TEST_F(MemoryTest, ReadExportCannotBeWrittenBySameUser) {
  BrokerProcess broker(directory_, {});
  Client writer(broker.endpoint());
  Client reader(broker.endpoint());
  sluice_capability read, write;
  writer.MakeBuffer(4096, &read, &write);
  sluice_handle out = writer.Export(write, SLUICE_WRITE);
  EXPECT_EQ(out.writable, 1u);
  void* memory = nullptr;
  ASSERT_EQ(sluice_map(&out, &memory), SLUICE_OK);
  sluice_handle in = reader.Export(read, SLUICE_READ);
  EXPECT_EQ(in.writable, 0u);
  EXPECT_EQ(TryToWrite(in.fds[0]), 0);
  static_cast<char*>(memory)[0] = 'w';
  void* seen = nullptr;
  ASSERT_EQ(sluice_map(&in, &seen), SLUICE_OK);
  EXPECT_EQ(static_cast<char*>(seen)[0], 'w');
  // The price: no new writers, told in words.
  sluice_handle late = {};
  late.struct_size = sizeof(late);
  EXPECT_EQ(sluice_export(writer.get(), &write, SLUICE_WRITE, &late), SLUICE_UNSUPPORTED);
  EXPECT_NE(std::string(sluice_error_text()).find("trusted"), std::string::npos);
  sluice_unmap(memory, 4096);
  sluice_unmap(seen, 4096);
  sluice_handle_close(&in);
  sluice_handle_close(&out);
}

// A reader of another user is stopped by the inode's owner and mode, and writers may come later.
TEST_F(MemoryTest, ReadExportCannotBeWrittenByOtherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  os::UserIdentity other;
  other.uid = other.gid = 54321;
  if (!CanRunDaemon(other)) GTEST_SKIP() << kUnreachable;  // Nor the helper beside it.
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  BrokerProcess broker(directory_, {});
  Client writer(broker.endpoint());
  sluice_capability read, write;
  writer.MakeBuffer(4096, &read, &write);
  Forked reader([&] {
    if (::setgid(other.gid) != 0 || ::setuid(other.uid) != 0) return 100;
    sluice_connection* own = nullptr;
    const std::string endpoint = broker.endpoint();
    if (sluice_connect(endpoint.c_str(), &own) != SLUICE_OK) return 101;
    sluice_handle in = {};
    in.struct_size = sizeof(in);
    if (sluice_export(own, &read, SLUICE_READ, &in) != SLUICE_OK) return 102;
    return TryToWrite(in.fds[0]);
  });
  EXPECT_EQ(reader.Wait(), 0);
  sluice_handle late = writer.Export(write, SLUICE_WRITE);
  void* memory = nullptr;
  EXPECT_EQ(sluice_map(&late, &memory), SLUICE_OK);
  sluice_unmap(memory, 4096);
  sluice_handle_close(&late);
}

// Nobody who writes can shrink, grow or freeze the memory under the others.
TEST_F(MemoryTest, WritersCannotResize) {
  BrokerProcess broker(directory_, {});
  Client writer(broker.endpoint());
  sluice_capability read, write;
  writer.MakeBuffer(8192, &read, &write, SLUICE_TRUST_READERS);
  sluice_handle out = writer.Export(write, SLUICE_WRITE);
  EXPECT_NE(::ftruncate(out.fds[0], 0), 0);
  EXPECT_NE(::ftruncate(out.fds[0], 1 << 20), 0);
  EXPECT_NE(::fcntl(out.fds[0], F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  sluice_handle in = writer.Export(read, SLUICE_READ);  // Trusted: later writers stay possible.
  sluice_handle late = writer.Export(write, SLUICE_WRITE);
  sluice_handle_close(&out);
  sluice_handle_close(&in);
  sluice_handle_close(&late);
}

// Only sealed memfds of sufficient size are taken; whatever else is offered is closed again.
TEST_F(MemoryTest, ImportTakesOnlySealedMemory) {
  BrokerProcess broker(directory_, {});
  Baseline(broker);
  Client client(broker.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(1, &read, &write);
  const sluice_create_info info = BufferInfo(4096);
  for (const int closed : {-1, 987'654}) {
    EXPECT_EQ(sluice_import(client.get(), &info, closed, &read, &write), SLUICE_INVALID_ARGUMENT);
    EXPECT_STREQ(sluice_error_text(), "the handle to import is no open descriptor");
  }
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const os::UniqueFd pipe_read(pipe_ends[0]);
  const os::UniqueFd pipe_write(pipe_ends[1]);
  const os::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const os::UniqueFd folder(::open("/", O_RDONLY | O_CLOEXEC));
  const os::UniqueFd file(::open(directory_.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  const os::UniqueFd unsealed = MakeMemfd(4096, 0);
  const os::UniqueFd half = MakeMemfd(4096, F_SEAL_SHRINK);
  const os::UniqueFd small = MakeMemfd(4095, F_SEAL_SHRINK | F_SEAL_GROW);
  const int before = broker.CountOpenDescriptors();
  for (const int fd : {pipe_read.get(), pipe_write.get(), null.get(), folder.get(), file.get(),
                       unsealed.get(), half.get(), small.get()}) {
    EXPECT_EQ(sluice_import(client.get(), &info, fd, &read, &write), SLUICE_INVALID_ARGUMENT) << fd;
  }
  EXPECT_TRUE(SettlesAt(broker, before));
  const os::UniqueFd good = MakeMemfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
  ASSERT_EQ(sluice_import(client.get(), &info, good.get(), &read, &write), SLUICE_OK)
      << sluice_error_text();
  sluice_handle in = client.Export(read, SLUICE_READ);
  EXPECT_EQ(TryToWrite(in.fds[0]), 0);
  sluice_handle_close(&in);
  EXPECT_EQ(sluice_destroy(client.get(), &write), SLUICE_OK);
  EXPECT_TRUE(SettlesAt(broker, before));
}

// An import counts in whole, however little of it the shape is: the daemon's descriptor keeps all
// of it.
TEST_F(MemoryTest, ImportsCountInWhole) {
  BrokerProcess broker(directory_, {.config = "[resources]\nmax_bytes_per_user = \"1MiB\"\n"});
  Client client(broker.endpoint());
  sluice_capability read, write;
  const sluice_create_info info = BufferInfo(1);
  const os::UniqueFd large = MakeMemfd((1 << 20) + 1, F_SEAL_SHRINK | F_SEAL_GROW);
  EXPECT_EQ(sluice_import(client.get(), &info, large.get(), &read, &write), SLUICE_LIMIT);
  EXPECT_NE(std::string(sluice_error_text()).find("max_bytes_per_user"), std::string::npos);
  const os::UniqueFd exact = MakeMemfd((1 << 20) - 1, F_SEAL_SHRINK | F_SEAL_GROW);
  for (int i = 0; i < 3; ++i) {  // All that was counted is given back.
    ASSERT_EQ(sluice_import(client.get(), &info, exact.get(), &read, &write), SLUICE_OK)
        << sluice_error_text();
    sluice_capability other_read, other_write;
    EXPECT_EQ(sluice_create(client.get(), &info, &other_read, &other_write), SLUICE_LIMIT);
    ASSERT_EQ(sluice_destroy(client.get(), &write), SLUICE_OK);
  }
}

// Create, export, destroy, and so on: what is exported counts until nobody has it open or mapped,
// whether it came for writing or for reading, and whatever is behind it.
TEST_F(MemoryTest, ExportedMemoryCountsUntilItIsClosed) {
  BrokerProcess broker(directory_, {.config = "[resources]\nmax_bytes_per_user = \"1MiB\"\n"});
  Client client(broker.endpoint());
  const int before = Baseline(broker);
  for (const uint32_t backing : {SLUICE_BACKING_MEMFD, SLUICE_BACKING_VULKAN}) {
    sluice_create_info info = BufferInfo(256 << 10, SLUICE_TRUST_READERS);
    info.backing = backing;
    std::vector<sluice_handle> hoard;
    sluice_capability read, write;
    int result = SLUICE_OK;
    for (int i = 0; i < 8; ++i) {
      result = sluice_create(client.get(), &info, &read, &write);
      if (result != SLUICE_OK) break;
      hoard.push_back(i % 2 == 0 ? client.Export(write, SLUICE_WRITE)
                                 : client.Export(read, SLUICE_READ));
      ASSERT_EQ(sluice_destroy(client.get(), &write), SLUICE_OK);
    }
    if (backing == SLUICE_BACKING_VULKAN && result == SLUICE_UNSUPPORTED) continue;
    EXPECT_EQ(result, SLUICE_LIMIT) << sluice_error_text();
    EXPECT_NE(std::string(sluice_error_text()).find("destroyed"), std::string::npos)
        << sluice_error_text();
    EXPECT_EQ(hoard.size(), 4u);
    void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, hoard[0].fds[0], 0);
    for (sluice_handle& handle : hoard) sluice_handle_close(&handle);
    info.shape.size_bytes = 1 << 20;
    if (mapped != MAP_FAILED) {
      EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_LIMIT);
      ::munmap(mapped, 4096);
    }
    EXPECT_TRUE(Becomes([&] {
      return sluice_create(client.get(), &info, &read, &write) == SLUICE_OK;
    })) << sluice_error_text();
    EXPECT_EQ(sluice_destroy(client.get(), &write), SLUICE_OK);
  }
  EXPECT_TRUE(SettlesAt(broker, before));
}

// Memory imported for reading only is never exported for writing, and memory that cannot be sealed
// is not lent to a reader who could reopen it.
TEST_F(MemoryTest, ImportsKeepTheirLimits) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  const os::UniqueFd sealed = MakeMemfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  const os::UniqueFd read_only(
      ::open(("/proc/self/fd/" + std::to_string(sealed.get())).c_str(), O_RDONLY | O_CLOEXEC));
  const sluice_create_info info = BufferInfo(4096);
  sluice_capability read, write;
  sluice_handle handle = {};
  handle.struct_size = sizeof(handle);
  ASSERT_EQ(sluice_import(client.get(), &info, read_only.get(), &read, &write), SLUICE_OK);
  EXPECT_EQ(sluice_export(client.get(), &write, SLUICE_WRITE, &handle), SLUICE_UNSUPPORTED);
  ASSERT_EQ(sluice_import(client.get(), &info, sealed.get(), &read, &write), SLUICE_OK);
  EXPECT_EQ(sluice_export(client.get(), &read, SLUICE_READ, &handle), SLUICE_UNSUPPORTED);
}

// A descriptor for reading only cannot seal, and gives no memory over: that stays as its owner has
// it. Without a seal against writing what it brings is for trusted readers alone, or for those who
// could not open it for writing anyway.
TEST_F(MemoryTest, ReadOnlyImportsAreNotSealed) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  struct Row {
    int seal;
    uint32_t flags;
    sluice_status read;
  };
  for (const Row& row : {Row{0, 0, SLUICE_UNSUPPORTED}, Row{0, SLUICE_TRUST_READERS, SLUICE_OK},
                         Row{F_SEAL_FUTURE_WRITE, 0, SLUICE_OK}}) {
    const os::UniqueFd memory = MakeMemfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | row.seal);
    const os::UniqueFd read_only(
        ::open(("/proc/self/fd/" + std::to_string(memory.get())).c_str(), O_RDONLY | O_CLOEXEC));
    sluice_create_info info = BufferInfo(4096);
    info.flags = row.flags;
    sluice_capability read, write;
    ASSERT_EQ(::fchmod(memory.get(), 0640), 0);
    ASSERT_EQ(sluice_import(client.get(), &info, read_only.get(), &read, &write), SLUICE_OK);
    struct stat inode = {};
    ASSERT_EQ(::fstat(memory.get(), &inode), 0);
    EXPECT_EQ(inode.st_mode & 07777, 0640u);
    sluice_handle handle = {};
    handle.struct_size = sizeof(handle);
    EXPECT_EQ(sluice_export(client.get(), &write, SLUICE_WRITE, &handle), SLUICE_UNSUPPORTED);
    EXPECT_EQ(sluice_export(client.get(), &read, SLUICE_READ, &handle), row.read);
    sluice_handle_close(&handle);
    if (row.read == SLUICE_OK) continue;
    EXPECT_NE(std::string(sluice_error_text()).find("by a descriptor for writing"),
              std::string::npos)
        << sluice_error_text();
  }
}

// Memory that came sealed against writing is refused to writers for that reason, not for a reader's
// sake, and given to readers.
TEST_F(MemoryTest, WriteSealedImportsSaySo) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  const sluice_create_info info = BufferInfo(4096);
  for (const int seal : {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, F_SEAL_WRITE | F_SEAL_SEAL}) {
    const os::UniqueFd memory = MakeMemfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | seal);
    sluice_capability read, write;
    ASSERT_EQ(sluice_import(client.get(), &info, memory.get(), &read, &write), SLUICE_OK);
    sluice_handle handle = {};
    handle.struct_size = sizeof(handle);
    EXPECT_EQ(sluice_export(client.get(), &write, SLUICE_WRITE, &handle), SLUICE_UNSUPPORTED);
    EXPECT_NE(std::string(sluice_error_text()).find("when it was imported"), std::string::npos)
        << sluice_error_text();
    sluice_handle in = client.Export(read, SLUICE_READ);
    EXPECT_EQ(TryToWrite(in.fds[0]), 0);
    sluice_handle_close(&in);
  }
}

// New memory is zero, and a gralloc handle says what it is.
TEST_F(MemoryTest, BackingsAreWhatTheySay) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  sluice_create_info info = BufferInfo(0);
  info.shape.drm_fourcc = 0x34325241;  // 'AR24'
  info.shape.width = 64;
  info.shape.height = 32;
  info.backing = SLUICE_BACKING_GRALLOC;
  sluice_capability read, write;
  ASSERT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_OK) << sluice_error_text();
  sluice_handle handle = client.Export(read, SLUICE_READ);
  EXPECT_EQ(handle.size_bytes, 64u * 32 * 4);
  ASSERT_EQ(handle.int_count, static_cast<uint32_t>(wire::kGrallocIntCount));
  EXPECT_EQ(handle.ints[0], wire::kGrallocMagic);
  EXPECT_EQ(handle.ints[2], 64);
  EXPECT_EQ(handle.ints[4], 256);
  void* memory = nullptr;
  ASSERT_EQ(sluice_map(&handle, &memory), SLUICE_OK);
  for (size_t i = 0; i < handle.size_bytes; ++i) ASSERT_EQ(static_cast<char*>(memory)[i], 0);
  sluice_unmap(memory, handle.size_bytes);
  sluice_handle_close(&handle);
}

// A pitch for which a gralloc handle has no room is refused, not cut.
TEST_F(MemoryTest, GrallocPitchesFit) {
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  sluice_create_info info = BufferInfo(0);
  info.shape.drm_fourcc = 0x34325241;  // 'AR24'
  info.shape.width = 1;
  info.shape.height = 1;
  info.shape.plane_count = 1;
  info.shape.planes[0].row_pitch = (uint64_t{1} << 32) + 4;
  info.shape.planes[0].slice_pitch = 4;  // One row is as short as its pixels.
  sluice_capability read, write;
  EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_OK) << sluice_error_text();
  info.backing = SLUICE_BACKING_GRALLOC;
  EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sluice_error_text()).find("planes[0].row_pitch"), std::string::npos);
}

// A backing that the host does not have is refused by name, and the daemon goes on.
TEST_F(MemoryTest, MissingBackingsAreTold) {
  if (::access("/dev/udmabuf", F_OK) == 0 || ::access("/dev/dma_heap/system", F_OK) == 0) {
    GTEST_SKIP() << "this host has dma-bufs";
  }
  BrokerProcess broker(directory_, {});
  Client client(broker.endpoint());
  sluice_create_info info = BufferInfo(4096);
  info.backing = SLUICE_BACKING_DMABUF;
  sluice_capability read, write;
  EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_UNSUPPORTED);
  EXPECT_NE(std::string(sluice_error_text()).find("/dev/udmabuf"), std::string::npos);
  info.backing = SLUICE_BACKING_IMPORTED;
  EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_UNSUPPORTED);
  EXPECT_NE(std::string(sluice_error_text()).find("sluice_import"), std::string::npos);
  for (const uint32_t backing : {77u, ~0u}) {
    info.backing = backing;
    EXPECT_EQ(sluice_create(client.get(), &info, &read, &write), SLUICE_UNSUPPORTED) << backing;
  }
  ExpectServing(broker);
}

pid_t AllocatorPid(const std::string& log) {
  const size_t line = log.rfind("allocator started");
  const size_t pid = log.find("pid=", line);
  return line == std::string::npos ? -1 : std::atoi(log.c_str() + pid + 4);
}

// An allocator that is killed is replaced at the next need; memory that it made lives on.
TEST_F(MemoryTest, AllocatorIsReplaced) {
  BrokerProcess broker(directory_, {});
  EXPECT_EQ(AllocatorPid(broker.Log()), -1) << "it starts with the first need";
  Client client(broker.endpoint());
  sluice_capability read, write;
  client.MakeBuffer(4096, &read, &write);
  const pid_t first = AllocatorPid(broker.Log());
  ASSERT_GT(first, 0);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  const sluice_create_info info = BufferInfo(4096);
  sluice_capability other;
  EXPECT_TRUE(Becomes([&] {
    return AllocatorPid(broker.Log()) != first ||
           (sluice_create(client.get(), &info, nullptr, &other), false);
  }));
  sluice_handle handle = client.Export(write, SLUICE_WRITE);
  sluice_handle_close(&handle);
  ExpectServing(broker);
}

}  // namespace
}  // namespace sluice::broker
