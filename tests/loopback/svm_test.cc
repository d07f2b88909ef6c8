// SPDX-License-Identifier: Apache-2.0
// proto/commands/svm.proto through the worker.
#include <cstring>

#include "tests/loopback/harness.h"

namespace sluice {
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
    const auto object = client_->session().objects().Find<SvmObject>(body.svm_id());
    return reinterpret_cast<uint64_t>(object->span.data);
  }
  cl_int Run(pb::Command& command, pb::Enqueue* on) {
    const uint64_t event = On(on, queue_);
    client_->Send(command);
    return Completed(event).status();
  }
  uint64_t context_ = 0, queue_ = 0;
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

// On a device whose memory the host does not share there is no SVM.
TEST_F(SvmLoopbackTest, NoneOnAGpu) {
  pb::Command command;
  command.mutable_svm_alloc()->set_svm_id(client_->NewId());
  command.mutable_svm_alloc()->set_context_id(MakeContext(kGpu));
  command.mutable_svm_alloc()->set_size(16);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_OPERATION);
}

}  // namespace
}  // namespace sluice
