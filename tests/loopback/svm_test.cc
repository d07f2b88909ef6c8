// SPDX-License-Identifier: Apache-2.0
// proto/commands/svm.proto through the worker.
#include <cstring>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class SvmLoopbackTest : public LoopbackTest {
 protected:
  // One session for all of them: it lies at the one address that there is for SVM.
  void SetUp() override {
    static LoopbackClient* shared = nullptr;
    if (shared == nullptr) {
      LoopbackTest::SetUp();
      shared = client_.get();
    } else {
      fake_ = &fake::FakeCl::Get();
      client_.reset(shared);
    }
    context_ = MakeContext(kCpu);
    queue_ = MakeQueue(context_, kCpu);
    fake_->ClearCalls();
  }
  void TearDown() override { (void)client_.release(); }

  // The address that client and worker share: here they are one process.
  uint64_t Alloc(uint64_t size, uint64_t* id = nullptr) {
    pb::Command command;
    pb::SvmAlloc& body = *command.mutable_svm_alloc();
    body.set_svm_id(client_->NewId());
    body.set_context_id(context_);
    body.set_size(size);
    const pb::Answer answer = client_->Call(command);
    EXPECT_EQ(answer.status(), CL_SUCCESS);
    EXPECT_TRUE(answer.memory().in_heap());
    if (id != nullptr) *id = body.svm_id();
    const auto object = client_->session().ObjectsForTesting().Find<SvmObject>(body.svm_id());
    return reinterpret_cast<uint64_t>(object->span->data);
  }
  cl_int Run(pb::Command& command, pb::Enqueue* on) {
    const uint64_t event = On(on, queue_);
    client_->Send(command);
    return Completed(event).status();
  }
  // A buffer over a part of an allocation.
  cl_int MakePart(uint64_t svm, uint64_t origin, uint64_t size, uint64_t* mem,
                  cl_mem_flags flags = CL_MEM_READ_WRITE) {
    pb::Command command;
    pb::CreateSubBuffer& body = *command.mutable_create_sub_buffer();
    body.set_mem_id(*mem = client_->NewId());
    body.set_parent_id(svm);
    body.set_flags(flags);
    body.set_origin(origin);
    body.set_size(size);
    placement_ = {};
    const pb::Answer answer = client_->Call(command);
    placement_ = answer.memory();
    return answer.status();
  }
  void Release(uint64_t id) {
    pb::Command command;
    command.mutable_release_object()->set_id(id);
    client_->Send(command);
    client_->Sync();
  }
  void Free(uint64_t svm) {
    pb::Command command;
    command.mutable_svm_free()->set_svm_id(svm);
    client_->Send(command);
    client_->Sync();
  }
  const MemoryObject& Object(uint64_t mem) {
    return *client_->session().ObjectsForTesting().Find<MemoryObject>(mem);
  }
  uint64_t context_ = 0, queue_ = 0;
  pb::MemoryPlacement placement_;
};

// Copies, fills, maps and migrations reach the driver with the addresses the application has.
TEST_F(SvmLoopbackTest, CommandsForwardAddresses) {
  const uint64_t a = Alloc(4096);
  const uint64_t b = Alloc(4096);
  pb::Command fill;
  fill.mutable_enqueue_svm_mem_fill()->set_destination(a + 8);
  fill.mutable_enqueue_svm_mem_fill()->set_pattern("ab");
  fill.mutable_enqueue_svm_mem_fill()->set_size(6);
  EXPECT_EQ(Run(fill, fill.mutable_enqueue_svm_mem_fill()->mutable_on()), CL_COMPLETE);
  pb::Command copy;
  copy.mutable_enqueue_svm_memcpy()->set_destination(b);
  copy.mutable_enqueue_svm_memcpy()->set_source(a + 8);
  copy.mutable_enqueue_svm_memcpy()->set_size(6);
  EXPECT_EQ(Run(copy, copy.mutable_enqueue_svm_memcpy()->mutable_on()), CL_COMPLETE);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(b), "ababab", 6), 0);
  pb::Command map;
  map.mutable_enqueue_svm_map()->set_pointer(a);
  map.mutable_enqueue_svm_map()->set_size(100);
  map.mutable_enqueue_svm_map()->set_map_flags(CL_MAP_READ);
  EXPECT_EQ(Run(map, map.mutable_enqueue_svm_map()->mutable_on()), CL_COMPLETE);
  pb::Command unmap;
  unmap.mutable_enqueue_svm_unmap()->set_pointer(a);
  EXPECT_EQ(Run(unmap, unmap.mutable_enqueue_svm_unmap()->mutable_on()), CL_COMPLETE);
  pb::Command migrate;
  migrate.mutable_enqueue_svm_migrate_mem()->add_pointers(a);
  migrate.mutable_enqueue_svm_migrate_mem()->add_sizes(16);
  EXPECT_EQ(Run(migrate, migrate.mutable_enqueue_svm_migrate_mem()->mutable_on()), CL_COMPLETE);
  EXPECT_EQ(fake_->Last("clEnqueueSVMMigrateMem").arrays["sizes"], std::vector<uint64_t>{16});
}

// A driver that migrates what its own clSVMAlloc gave and nothing else: the hint is lost, the
// command is not, nor what it waits for.
TEST_F(SvmLoopbackTest, MigrationIsAHint) {
  uint64_t id = 0;
  const uint64_t a = Alloc(4096, &id);
  for (const cl_command_queue_properties properties :
       {cl_command_queue_properties{0},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    const uint64_t queue = MakeQueue(context_, kCpu, properties);
    const uint64_t gate = MakeUserEvent(context_);
    const auto migrate = [&](const std::vector<uint64_t>& waits) {
      fake_->FailNext("clEnqueueSVMMigrateMem", CL_INVALID_VALUE);
      pb::Command command;
      command.mutable_enqueue_svm_migrate_mem()->add_pointers(a);
      command.mutable_enqueue_svm_migrate_mem()->add_sizes(16);
      const uint64_t event =
          On(command.mutable_enqueue_svm_migrate_mem()->mutable_on(), queue, waits);
      client_->Send(command);
      return event;
    };
    EXPECT_EQ(Completed(migrate({})).status(), CL_COMPLETE);
    const uint64_t held = migrate({gate});
    client_->Sync();
    for (const ReceivedReply& received : client_->TakeAll())
      EXPECT_NE(received.reply.completion().event_id(), held);
    SetUserEvent(gate, CL_COMPLETE);
    EXPECT_EQ(Completed(held).status(), CL_COMPLETE);
    const uint64_t failing = MakeUserEvent(context_);
    const uint64_t failed = migrate({failing});
    SetUserEvent(failing, -5);
    EXPECT_LT(Completed(failed).status(), 0);
  }
}

// Addresses that are not of the session's SVM, or reach out of it, never reach the driver; freed
// memory is no SVM any more.
TEST_F(SvmLoopbackTest, OtherAddressesAreRefused) {
  uint64_t id = 0;
  const uint64_t a = Alloc(4096, &id);
  for (const uint64_t bad : {uint64_t{0}, uint64_t{0xdeadbeef}, a - 1, a + 4090, UINT64_MAX}) {
    pb::Command copy;
    copy.mutable_enqueue_svm_memcpy()->set_destination(a);
    copy.mutable_enqueue_svm_memcpy()->set_source(bad);
    copy.mutable_enqueue_svm_memcpy()->set_size(16);
    EXPECT_EQ(Run(copy, copy.mutable_enqueue_svm_memcpy()->mutable_on()), CL_INVALID_VALUE);
    pb::Command fill;
    fill.mutable_enqueue_svm_mem_fill()->set_destination(bad);
    fill.mutable_enqueue_svm_mem_fill()->set_pattern("a");
    fill.mutable_enqueue_svm_mem_fill()->set_size(UINT64_MAX);
    EXPECT_EQ(Run(fill, fill.mutable_enqueue_svm_mem_fill()->mutable_on()), CL_INVALID_VALUE);
  }
  pb::Command free;
  free.mutable_svm_free()->set_svm_id(id);
  client_->Send(free);
  pb::Command map;
  map.mutable_enqueue_svm_map()->set_pointer(a);
  map.mutable_enqueue_svm_map()->set_size(1);
  EXPECT_EQ(Run(map, map.mutable_enqueue_svm_map()->mutable_on()), CL_INVALID_VALUE);
  EXPECT_EQ(fake_->Count("clEnqueueSVMMemcpy"), 0u);
}

// A buffer over shared memory lies there, whatever flags the client gives, and tells the client so.
TEST_F(SvmLoopbackTest, BuffersLieInIt) {
  uint64_t svm = 0, mem = 0;
  const uint64_t address = Alloc(10000, &svm);
  ASSERT_EQ(MakePart(svm, 100, 9900, &mem,
                     CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR),
            CL_SUCCESS);
  const HeapSpan whole = *client_->session().ObjectsForTesting().Find<SvmObject>(svm)->span;
  EXPECT_EQ(fake_->Last("clCreateBuffer").values[1],
            uint64_t{CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR});
  // By the driver: what it writes is there.
  pb::Command fill;
  pb::EnqueueFillBuffer& body = *fill.mutable_enqueue_fill_buffer();
  body.set_mem_id(mem);
  body.set_pattern("ab");
  body.set_offset(4);
  body.set_size(6);
  EXPECT_EQ(Run(fill, body.mutable_on()), CL_COMPLETE);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(address + 103), "\0ababab", 8), 0);
  EXPECT_TRUE(placement_.in_heap());
  EXPECT_EQ(placement_.segment(), whole.segment);
  EXPECT_EQ(placement_.offset(), whole.offset + 100);
  // Part of a part.
  uint64_t part = 0;
  ASSERT_EQ(MakePart(mem, 28, 64, &part), CL_SUCCESS);
  EXPECT_EQ(reinterpret_cast<uint64_t>(Object(part).span()->data), address + 128);
  Release(part);
  Release(mem);
  Free(svm);
}

// Regions that reach out of an allocation, or are empty, and allocations that are none, never reach
// the driver.
TEST_F(SvmLoopbackTest, BuffersElsewhereAreRefused) {
  uint64_t svm = 0, mem = 0;
  Alloc(10000, &svm);
  for (const auto& [origin, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 0}, {0, 10001}, {10000, 1}, {1, UINT64_MAX}, {UINT64_MAX, 2}, {10001, 0}}) {
    EXPECT_EQ(MakePart(svm, origin, size, &mem), CL_INVALID_BUFFER_SIZE) << origin << " " << size;
  }
  EXPECT_EQ(MakePart(queue_, 0, 16, &mem), CL_INVALID_MEM_OBJECT);
  Free(svm);
  EXPECT_EQ(MakePart(svm, 0, 16, &mem), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(fake_->Count("clCreateBuffer"), 0u);
}

// Memory that is freed before its buffer, or before the buffer's last command, is not given out
// again until the driver has destroyed that; then it is zeroed.
TEST_F(SvmLoopbackTest, BuffersKeepFreedMemory) {
  const Heap& heap = client_->session().svm_heap();
  const uint64_t before = heap.used_bytes();
  uint64_t svm = 0, mem = 0;
  const uint64_t address = Alloc(4096, &svm);
  ASSERT_EQ(MakePart(svm, 64, 128, &mem), CL_SUCCESS);
  std::memset(reinterpret_cast<void*>(address), 7, 4096);
  Free(svm);
  EXPECT_EQ(heap.used_bytes(), before + 4096);
  const uint64_t gate = MakeUserEvent(context_);
  pb::Command fill;
  pb::EnqueueFillBuffer& body = *fill.mutable_enqueue_fill_buffer();
  body.set_mem_id(mem);
  body.set_pattern("x");
  body.set_size(16);
  const uint64_t filled = On(body.mutable_on(), queue_, {gate});
  client_->Send(fill);
  Release(mem);
  EXPECT_EQ(heap.used_bytes(), before + 4096);
  SetUserEvent(gate, CL_COMPLETE);
  EXPECT_EQ(Completed(filled).status(), CL_COMPLETE);
  client_->WaitUntil([&] { return heap.used_bytes() == before; });
  ASSERT_EQ(Alloc(4096, &svm), address);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(address + 64), 0u);
  Free(svm);
}

// An allocation counts as memory of the session's, as a buffer's does, until the last buffer over
// it has gone; over the limit there is none.
TEST_F(SvmLoopbackTest, AllocationsAreCharged) {
  Quota& quota = client_->session().quota();
  const uint64_t before = quota.memory_bytes();
  uint64_t svm = 0, mem = 0;
  Alloc(10000, &svm);
  EXPECT_EQ(quota.memory_bytes(), before + 10000);
  ASSERT_EQ(MakePart(svm, 0, 128, &mem), CL_SUCCESS);
  EXPECT_EQ(quota.memory_bytes(), before + 10000);
  Free(svm);
  EXPECT_EQ(quota.memory_bytes(), before + 10000);
  Release(mem);
  client_->WaitUntil([&] { return quota.memory_bytes() == before; });
  const uint64_t others = quota.limits().memory_bytes - before - 9999;
  ASSERT_TRUE(quota.ChargeMemory(others));
  pb::Command command;
  command.mutable_svm_alloc()->set_svm_id(client_->NewId());
  command.mutable_svm_alloc()->set_context_id(context_);
  command.mutable_svm_alloc()->set_size(10000);
  EXPECT_EQ(client_->Call(command).status(), CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(quota.memory_bytes(), before + others);
  Alloc(9999, &svm);
  Free(svm);
  quota.ReturnMemory(others);
  EXPECT_EQ(quota.memory_bytes(), before);
}

// On a device whose memory the host does not share there is no SVM.
TEST_F(SvmLoopbackTest, NoneOnAGpu) {
  pb::Command command;
  command.mutable_svm_alloc()->set_svm_id(client_->NewId());
  command.mutable_svm_alloc()->set_context_id(MakeContext(kGpu));
  command.mutable_svm_alloc()->set_size(16);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_OPERATION);
}

}  // namespace
}  // namespace sluice::worker
