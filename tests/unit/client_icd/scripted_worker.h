// SPDX-License-Identifier: Apache-2.0
// A worker for tests of the client alone. It is a transport whose other end is a few lines of
// script. It has buffers that are strings, in-order and out-of-order queues, markers, reads, writes
// fed on grants (as over the network), and user events. Thread-safe.
#pragma once

#include <CL/cl.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "client_icd/session/transport.h"
#include "proto/command.pb.h"

namespace sluice::client {

namespace pb = v1;

class ScriptedWorker : public Transport {
 public:
  // --- What tests see.
  std::string Memory(uint64_t id);
  void SetMemory(uint64_t id, const std::string& bytes);
  size_t Count(pb::Command::BodyCase body);  // Commands of that kind that came.
  // From now on the session passes descriptors; of imports the worker says no with `refusal`, if
  // that is not empty.
  void TakeImports(const std::string& refusal = "");
  // The tokens of the descriptors that came, and the newest command that named one.
  std::vector<uint64_t> Handles();
  pb::Command LastImport();
  // Called when the worker takes or gives back what changes hands; what it returns is the command's
  // status. No command comes meanwhile.
  void OnChangeOfHands(std::function<cl_int(bool acquire)> change);
  // Called with each command before the worker has it, on the thread that sends it.
  void BeforeSend(std::function<void(const pb::Command&)> look);
  // Called with no lock held when a reply has been taken and nobody has looked at it yet.
  void AfterReceive(std::function<void()> look);
  // It shares memory and makes shadows, with semaphores or without.
  void MakeShadows(bool semaphores);
  // The commands for shadows that ran: an acquire is a, a release r, large with a semaphore; c is a
  // copy from buffer to buffer.
  std::string ShadowLog();
  // The next acquire of a shadow fails with this.
  void FailNextAcquire(cl_int status);

  // --- Transport.
  bool Send(const wire::FrameHeader& header, std::string_view message, std::string_view payload,
            bool wake) override;
  bool Receive(wire::Frame* frame) override;
  bool HasFrame() const override;
  uint32_t Arm(wire::RingSleep, uint64_t) override;
  void Wait(uint32_t ticket, uint32_t) override;
  void Interrupt(uint32_t) override;
  bool lost() const override;
  std::string lost_reason() const override { return "scripted"; }
  void Lose(std::string_view) override;
  void LoseInForkedChild() override {}
  uint8_t* Map(const wire::BulkSpan&) override { return nullptr; }
  bool shares_memory() const override;
  bool SendHandle(uint64_t token, int fd) override;
  std::vector<os::UniqueFd> TakeDescriptors(uint64_t id) override;
  uint64_t max_in_flight() const override { return 0; }

 private:
  struct Pending {
    pb::Command command;
    const pb::Enqueue* on;
    bool granted = false;
    bool fed = false;
  };

  void Reply(const pb::Reply& reply, const std::string& payload = "");
  void Complete(uint64_t event, cl_int status, const std::string& payload = "");
  void Take(const wire::FrameHeader& header, const pb::Command& command, std::string_view payload);
  void Enqueue(const pb::Command& command);
  void Pump();
  bool Step(Pending* pending);  // True once it has ended.

  mutable std::mutex mu_;
  std::condition_variable changed_;
  uint32_t bell_ = 0;
  bool lost_ = false;
  std::deque<wire::Frame> frames_;
  std::map<uint64_t, std::string> memory_;
  std::map<uint64_t, bool> in_order_;  // By queue.
  std::map<uint64_t, cl_int> ended_;   // By event.
  std::list<Pending> pending_;
  std::map<int, size_t> counts_;
  bool takes_imports_ = false;
  std::string refusal_;
  std::vector<uint64_t> handles_;
  pb::Command last_import_;
  std::function<cl_int(bool)> on_change_of_hands_;
  std::function<void(const pb::Command&)> before_send_;
  std::function<void()> after_receive_;
  bool makes_shadows_ = false;
  bool has_semaphores_ = false;
  bool gave_semaphores_ = false;  // With the newest.
  std::string shadow_log_;
  cl_int fail_acquire_ = CL_SUCCESS;
};

}  // namespace sluice::client
