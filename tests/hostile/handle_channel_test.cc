// SPDX-License-Identifier: Apache-2.0
// A client that lies on the handle channel: its session ends, or the memory is refused; the worker
// survives memory that is taken away, and keeps no descriptor of what it refused.
#include <CL/cl.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/handle_messages.h"
#include "tests/hostile/worker_process.h"

namespace sluice::worker {
namespace {

os::UniqueFd Memfd(size_t bytes, int seals) {
  os::UniqueFd fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  if (seals != 0) {
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}

class HandleChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    worker_ = WorkerProcess::Start(&why);
    if (worker_ == nullptr) GTEST_SKIP() << "no OpenCL driver for a worker on this host: " << why;
  }

  static wire::HandleMessage Import(uint64_t token) {
    wire::HandleMessage message = {};
    message.magic = wire::kHandleMagic;
    message.type = wire::HandleMessageType::kImportHandle;
    message.address = token;
    return message;
  }
  void Send(const wire::HandleMessage& message, std::initializer_list<int> fds,
            size_t bytes = sizeof(wire::HandleMessage)) {
    EXPECT_TRUE(os::SendMessage(worker_->handle_channel(), &message, bytes, fds.begin(),
                                static_cast<int>(fds.size()))
                    .ok());
  }
  void ExpectViolation(const std::string& reason) {
    const std::optional<os::ExitStatus> end = worker_->WaitForEnd();
    ASSERT_TRUE(end.has_value()) << "the worker runs on";
    EXPECT_EQ(end->Describe(), "exit code 3");
    EXPECT_NE(worker_->ViolationNotice().find(reason), std::string::npos) << reason;
  }
  void MakeContext() {
    pb::Command command;
    command.mutable_create_context()->set_context_id(100);
    command.mutable_create_context()->add_device_ids(1);
    const auto answer = worker_->Call(command);
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->status(), CL_SUCCESS);
  }
  std::optional<pb::Answer> CreateBuffer(uint64_t id, uint64_t size, uint64_t offset = 0) {
    pb::Command command;
    pb::CreateImportedBuffer& body = *command.mutable_create_imported_buffer();
    body.set_mem_id(id);
    body.set_context_id(100);
    body.set_size(size);
    body.mutable_memory()->set_offset(offset);
    body.mutable_memory()->set_writable(true);
    return worker_->Call(command);
  }

  std::unique_ptr<WorkerProcess> worker_;
};

// Messages of another form end the session: none of them is taken for anything.
TEST_F(HandleChannelTest, WrongMagic) {
  const os::UniqueFd fd = Memfd(4096, 0);
  wire::HandleMessage message = Import(1);
  message.magic ^= 1;
  Send(message, {fd.get()});
  ExpectViolation("handle channel");
}
TEST_F(HandleChannelTest, WrongType) {
  const os::UniqueFd fd = Memfd(4096, 0);
  wire::HandleMessage message = Import(1);
  message.type = wire::HandleMessageType::kRingOffer;
  Send(message, {fd.get()});
  ExpectViolation("handle channel");
}
TEST_F(HandleChannelTest, ShortMessage) {
  const os::UniqueFd fd = Memfd(4096, 0);
  Send(Import(1), {fd.get()}, sizeof(wire::HandleMessage) - 1);
  ExpectViolation("handle channel");
}
TEST_F(HandleChannelTest, NoDescriptor) {
  Send(Import(1), {});
  ExpectViolation("handle channel");
}

// More descriptors than a message has are closed, and the session ends.
TEST_F(HandleChannelTest, TooManyDescriptors) {
  const os::UniqueFd fd = Memfd(4096, 0);
  Send(Import(1), {fd.get(), fd.get(), fd.get()});
  const std::optional<os::ExitStatus> end = worker_->WaitForEnd();
  ASSERT_TRUE(end.has_value()) << "the worker runs on";
  EXPECT_EQ(end->Describe(), "exit code 3");
}

// Descriptors that nobody asks for are bounded.
TEST_F(HandleChannelTest, Flood) {
  const os::UniqueFd fd = Memfd(4096, 0);
  for (uint64_t token = 1; token <= 65; ++token) {
    const wire::HandleMessage message = Import(token);
    const int one = fd.get();
    // The worker may be gone before the last.
    if (!os::SendMessage(worker_->handle_channel(), &message, sizeof(message), &one, 1).ok()) break;
  }
  ExpectViolation("no command asked for");
}

// A token that comes twice, and a command whose token never came, end the session.
TEST_F(HandleChannelTest, TokenTwice) {
  const os::UniqueFd fd = Memfd(4096, 0);
  Send(Import(9), {fd.get()});
  Send(Import(9), {fd.get()});
  ExpectViolation("second descriptor");
}
TEST_F(HandleChannelTest, TokenThatNeverCame) {
  MakeContext();
  EXPECT_FALSE(CreateBuffer(102, 4096).has_value());
  ExpectViolation("no descriptor came");
}

// Memory that could be taken away under the device is refused, and taking it away then harms
// nobody; sealed memory is used, and cannot be taken away.
TEST_F(HandleChannelTest, TruncationHarmsNobody) {
  MakeContext();
  const os::UniqueFd unsealed = Memfd(1 << 20, 0);
  Send(Import(102), {unsealed.get()});
  const auto refused = CreateBuffer(102, 1 << 20);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status(), CL_INVALID_OPERATION);
  EXPECT_NE(refused->refusal().find("not sealed"), std::string::npos);
  EXPECT_EQ(::ftruncate(unsealed.get(), 0), 0);
  const os::UniqueFd sealed = Memfd(1 << 20, F_SEAL_SHRINK | F_SEAL_GROW);
  Send(Import(103), {sealed.get()});
  const auto taken = CreateBuffer(103, 1 << 20);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->status(), CL_SUCCESS);
  EXPECT_EQ(::ftruncate(sealed.get(), 0), -1);
  EXPECT_TRUE(worker_->Ping());
}

// Whatever is refused, the worker has as many descriptors afterwards as before.
TEST_F(HandleChannelTest, RefusalsKeepNoDescriptor) {
  MakeContext();
  const os::UniqueFd sealed = Memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW), unsealed = Memfd(4096, 0);
  const os::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const os::UniqueFd first(ends[0]), second(ends[1]);
  const int before = worker_->CountDescriptors();
  if (before < 0) GTEST_SKIP() << "only root may look at a worker's descriptors";
  // The driver's threads may have one open for a moment: what is kept, stays.
  const auto has_as_many_as_before = [&] {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (worker_->CountDescriptors() > before) {
      if (absl::Now() > deadline) return false;
      ::sched_yield();
    }
    return true;
  };
  struct Row {
    int fd;
    uint64_t size, offset;
  };
  uint64_t id = 200;
  for (const Row& row :
       {Row{unsealed.get(), 4096, 0}, Row{null.get(), 4096, 0}, Row{first.get(), 4096, 0},
        Row{sealed.get(), 4097, 0}, Row{sealed.get(), 4096, UINT64_MAX - 4095},
        Row{sealed.get(), UINT64_MAX, 0}, Row{sealed.get(), 0, 0}, Row{sealed.get(), 64, 1}}) {
    Send(Import(++id), {row.fd});
    const auto answer = CreateBuffer(id, row.size, row.offset);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status(), CL_INVALID_OPERATION) << id;
    EXPECT_TRUE(has_as_many_as_before()) << id;
  }
  // Nor of what was taken: the mapping is enough.
  Send(Import(++id), {sealed.get()});
  ASSERT_EQ(CreateBuffer(id, 4096)->status(), CL_SUCCESS);
  EXPECT_TRUE(has_as_many_as_before());
}

}  // namespace
}  // namespace sluice::worker
