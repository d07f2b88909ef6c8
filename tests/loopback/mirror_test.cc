// SPDX-License-Identifier: Apache-2.0
// Mirrors of GPU buffers (MemoryPlacement in proto/command.proto) through the worker.
#include <algorithm>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class MirrorLoopbackTest : public LoopbackTest {
 protected:
  static constexpr uint64_t kBytes = 70000;

  pb::Answer Create(uint64_t id, uint64_t context) {
    pb::Command command;
    pb::CreateBuffer& body = *command.mutable_create_buffer();
    body.set_mem_id(id);
    body.set_context_id(context);
    body.set_flags(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
    body.set_size(kBytes);
    body.set_mirror(true);
    return client_->Call(command);
  }

  // A read into, or a write from, byte `at` of the mirror of `mirrored`.
  uint64_t Read(uint64_t mem, uint64_t offset, uint64_t size, uint64_t mirrored, uint64_t at) {
    pb::Command command;
    return Move(command.mutable_enqueue_read_buffer(), mem, offset, size, mirrored, at, command);
  }
  uint64_t Write(uint64_t mem, uint64_t offset, uint64_t size, uint64_t mirrored, uint64_t at) {
    pb::Command command;
    return Move(command.mutable_enqueue_write_buffer(), mem, offset, size, mirrored, at, command);
  }

  void Release(uint64_t id) {
    pb::Command command;
    command.mutable_release_object()->set_id(id);
    client_->Send(command);
  }

  uint64_t context_ = 0;
  uint64_t queue_ = 0;

 private:
  template <typename Body>
  uint64_t Move(Body* body, uint64_t mem, uint64_t offset, uint64_t size, uint64_t mirrored,
                uint64_t at, const pb::Command& command) {
    const uint64_t event = On(body->mutable_on(), queue_);
    body->mutable_on()->set_mirror_mem_id(mirrored);
    body->mutable_on()->set_mirror_offset(at);
    body->set_mem_id(mem);
    body->set_offset(offset);
    body->set_size(size);
    client_->Send(command);
    return event;
  }
};

// A command that names a mirror moves its bytes there or from there, of whatever size, and nothing
// travels. The mirror outlives its buffer for as long as such a command runs.
TEST_F(MirrorLoopbackTest, IsTheHostSideOfACommand) {
  context_ = MakeContext();
  queue_ = MakeQueue(context_);
  const uint64_t mem = client_->NewId();
  const pb::Answer answer = Create(mem, context_);
  ASSERT_TRUE(answer.memory().is_mirror());
  EXPECT_FALSE(answer.memory().in_heap());
  // The mirror is the host memory that was asked for.
  EXPECT_EQ(fake_->Last("clCreateBuffer").values[1], CL_MEM_READ_WRITE);
  uint8_t* const mirror =
      client_->Map({answer.memory().segment(), answer.memory().offset(), kBytes});
  ASSERT_NE(mirror, nullptr);
  std::string bytes(kBytes, '\0');
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<char>(i * 7 + i / 4096);
  std::copy(bytes.begin(), bytes.end(), mirror);
  const uint64_t other = MakeBuffer(context_, kBytes);
  EXPECT_EQ(Completed(Write(other, 0, kBytes, mem, 0)).status(), CL_COMPLETE);
  std::fill(mirror, mirror + kBytes, uint8_t{0});
  EXPECT_EQ(Completed(Read(other, 0, kBytes, mem, 0)).status(), CL_COMPLETE);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), reinterpret_cast<char*>(mirror)));
  EXPECT_EQ(Completed(Read(other, 10, 20, mem, 60000)).status(), CL_COMPLETE);
  EXPECT_EQ(std::string(mirror + 60000, mirror + 60020), bytes.substr(10, 20));

  fake_->HoldCommands();
  std::fill(mirror, mirror + kBytes, uint8_t{5});
  const uint64_t late = Write(other, 0, kBytes, mem, 0);
  Release(mem);
  client_->Sync();
  // Another mirror does not get the memory that the driver still reads.
  const uint64_t second_mem = client_->NewId();
  const pb::Answer second = Create(second_mem, context_);
  ASSERT_TRUE(second.memory().is_mirror());
  EXPECT_NE(second.memory().offset(), answer.memory().offset());
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(late).status(), CL_COMPLETE);
  uint8_t* const again =
      client_->Map({second.memory().segment(), second.memory().offset(), kBytes});
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(Completed(Read(other, 0, 4, second_mem, 0)).status(), CL_COMPLETE);
  EXPECT_EQ(std::string(again, again + 4), std::string(4, 5));
}

// A place that is in no mirror fails the command, and nothing else.
TEST_F(MirrorLoopbackTest, RefusesWhatIsNoMirror) {
  context_ = MakeContext();
  queue_ = MakeQueue(context_);
  const uint64_t mem = client_->NewId();
  ASSERT_TRUE(Create(mem, context_).memory().is_mirror());
  const uint64_t other = MakeBuffer(context_, kBytes);
  EXPECT_EQ(Completed(Write(other, 0, 11, mem, kBytes - 10)).status(), CL_INVALID_VALUE);
  EXPECT_EQ(Completed(Read(other, 0, 2, mem, ~uint64_t{0})).status(), CL_INVALID_VALUE);
  EXPECT_EQ(Completed(Write(other, 0, 8, other, 0)).status(), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(Completed(Write(other, 0, 8, context_, 0)).status(), CL_INVALID_MEM_OBJECT);
  Release(mem);
  EXPECT_EQ(Completed(Write(other, 0, 8, mem, 0)).status(), CL_INVALID_MEM_OBJECT);
}

// On a CPU there is nothing to mirror; over the memory limit there is a buffer without one.
TEST_F(MirrorLoopbackTest, OnlyWhereItHelpsAndFits) {
  SessionOptions options;
  options.limits.memory_bytes = 2 * kBytes;
  Start(options);
  const uint64_t on_cpu_mem = client_->NewId();
  const pb::Answer on_cpu = Create(on_cpu_mem, MakeContext(kCpu));
  EXPECT_EQ(on_cpu.status(), CL_SUCCESS);
  EXPECT_TRUE(on_cpu.memory().in_heap());
  EXPECT_FALSE(on_cpu.memory().is_mirror());
  const pb::Answer without = Create(client_->NewId(), MakeContext());
  EXPECT_EQ(without.status(), CL_SUCCESS);
  EXPECT_FALSE(without.memory().is_mirror());
  EXPECT_EQ(without.memory().segment(), 0u);
}

}  // namespace
}  // namespace sluice::worker
