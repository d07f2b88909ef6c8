// SPDX-License-Identifier: Apache-2.0
// A worker's session in this process, over the fake driver, and the client's end of its rings:
// tests send the frames that the ICD would send and look at what the driver was asked. The command
// loop runs on a thread of its own, exactly as in a worker.
//
// A session lives until the process ends, as in a worker, where only the kernel takes it back.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "daemon/worker/command_loop.h"
#include "daemon/worker/session.h"
#include "proto/command.pb.h"
#include "proto/handle_messages.h"
#include "proto/ring_reader.h"
#include "proto/ring_writer.h"
#include "tests/fake_cl/fake_cl.h"

namespace sluice::worker {

// A reply with what came beside it.
struct ReceivedReply {
  pb::Reply reply;
  std::string payload;
  wire::BulkSpan bulk;
  uint32_t flags = 0;
};

class LoopbackClient {
 public:
  explicit LoopbackClient(const SessionOptions& options = {});
  ~LoopbackClient();  // Ends the loop.

  Session& session() { return *session_; }

  // Sends one command. Its sequence number is the next, or `sequence` if that is not 0.
  uint64_t Send(const pb::Command& command, std::string_view payload = {}, uint64_t sequence = 0,
                const wire::BulkSpan& bulk = {});
  void SendRaw(const wire::FrameHeader& header, std::string_view message, std::string_view payload);

  // Hands a descriptor over, as RingTransport does.
  void SendHandle(uint64_t token, int fd);

  // Sends and waits for the answer.
  pb::Answer Call(const pb::Command& command, std::string_view payload = {});
  pb::Answer WaitForAnswer(uint64_t sequence);
  // The completion of an event, with the payload that came with it.
  pb::Completion WaitForCompletion(uint64_t event_id, std::string* payload = nullptr);
  // The next reply that `wanted` likes; the others stay for later. Fails the test after 20 s.
  ReceivedReply WaitFor(const std::function<bool(const ReceivedReply&)>& wanted);
  // Until something that no reply tells has happened.
  void WaitUntil(const std::function<bool()>& happened);
  // The replies that have come so far and nobody has asked for, in order.
  std::vector<ReceivedReply> TakeAll();

  // A command through and back, so that everything sent before has been handled.
  void Sync();
  // The violation that ended the session; waits for it.
  std::string WaitForViolation(bool poll = true);
  // Puts a cursor into the reply ring that no consumer can have.
  void BreakReplyRing();
  bool ended() const { return ended_; }

  // The next message of the handle channel, with its descriptor. Fails the test after 5 s.
  wire::HandleMessage TakeHandle(os::UniqueFd* descriptor);
  wire::HandleMessage TakeHandles(size_t count, std::vector<os::UniqueFd>* descriptors);
  // The bytes of a span, in segments announced over the handle channel.
  uint8_t* Map(const wire::BulkSpan& span);

  // Ids that were not used before.
  uint64_t NewId() { return next_id_++; }

 private:
  void Poll();

  os::SharedMapping command_memory_;
  os::SharedMapping reply_memory_;
  os::UniqueFd worker_end_;
  os::UniqueFd client_end_;
  Session* session_ = nullptr;
  std::unique_ptr<CommandLoop> loop_;
  std::unique_ptr<wire::RingWriter> writer_;
  std::unique_ptr<wire::RingReader> reader_;
  std::deque<ReceivedReply> received_;
  std::map<uint32_t, os::SharedMapping> segments_;
  uint64_t sequence_ = 0;
  uint64_t next_id_ = 1000;
  std::string violation_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

// Device ids of the fake driver, as AddDevices numbers them.
inline constexpr uint64_t kCpu = 1;
inline constexpr uint64_t kGpu = 2;

// The vendor whose driver calls back late: the worker looks after its events itself.
inline constexpr cl_uint kNvidia = 0x10DE;

// CL_DEVICE_VERSION of the driver whose code for what fails by what it waits for is -1.
inline constexpr char kPoclVersion[] = "OpenCL 3.0 PoCL HSTR: fake";

// Helpers that make what nearly every test needs. `on_cpu` decides whether buffers lie in the heap.
class LoopbackTest : public ::testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void Start(const SessionOptions& options, cl_uint gpu_vendor_id = 0,
             const std::string& gpu_version = "OpenCL 3.0 fake");

  uint64_t MakeContext(uint64_t device = kGpu);
  uint64_t MakeQueue(uint64_t context, uint64_t device = kGpu,
                     cl_command_queue_properties flags = 0);
  uint64_t MakeBuffer(uint64_t context, uint64_t size, std::string_view contents = {});
  uint64_t MakeImage(uint64_t context, const pb::ImageDesc& desc, std::string_view contents = {});
  uint64_t MakeProgram(uint64_t context, std::string_view source = "kernel void k() {}",
                       const std::string& options = "");
  uint64_t MakeKernel(uint64_t program, const std::string& name = "k");
  uint64_t MakeUserEvent(uint64_t context);
  void SetUserEvent(uint64_t event, cl_int status);
  // A new event id, in `on`, with the queue and wait list filled in.
  uint64_t On(pb::Enqueue* on, uint64_t queue, const std::vector<uint64_t>& waits = {});

  pb::Completion Completed(uint64_t event) { return client_->WaitForCompletion(event); }
  // Feeds a large write's grants from `bytes` until its completion.
  pb::Completion Feed(uint64_t event, std::string_view bytes);
  // Takes a large read's data until its completion.
  std::string Take(uint64_t event, uint64_t size);

  fake::FakeCl* fake_ = nullptr;
  std::unique_ptr<LoopbackClient> client_;
};

// Notes what was sent through any LoopbackClient, for every_command_is_tested.
void NoteSentCommand(int body_case);

}  // namespace sluice::worker
