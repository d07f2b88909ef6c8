// SPDX-License-Identifier: Apache-2.0
// A real sluice-worker, started as the broker starts it, and the client's end of its session with
// everything within reach that a hostile client has: the raw rings, the handle channel. Also the
// broker's end of the control socket, to see what the worker reports.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/os/local_socket.h"
#include "broker/os/process.h"
#include "broker/os/shared_memory.h"
#include "proto/command.pb.h"
#include "proto/ring_reader.h"
#include "proto/ring_writer.h"

namespace sluice::worker {

namespace pb = v1;

class WorkerProcess {
 public:
  // Null if no worker could be started; `*why` says why. `limits`: more arguments of its command
  // line.
  static std::unique_ptr<WorkerProcess> Start(std::string* why,
                                              const std::vector<std::string>& limits = {});

  // The honest way.
  uint64_t Send(const pb::Command& command, std::string_view payload = {});
  std::optional<pb::Answer> Call(const pb::Command& command, std::string_view payload = {});
  std::optional<pb::Reply> Receive(const std::function<bool(const pb::Reply&)>& wanted,
                                   wire::BulkSpan* bulk = nullptr);
  bool Ping();

  // The other ways.
  void SendFrame(wire::FrameHeader header, std::string_view message, std::string_view payload = {});
  uint64_t next_sequence() { return ++sequence_; }
  wire::RingShared& command_ring() {
    return *reinterpret_cast<wire::RingShared*>(commands_.data());
  }
  wire::RingShared& reply_ring() { return *reinterpret_cast<wire::RingShared*>(replies_.data()); }
  uint8_t* command_data() { return commands_.data() + wire::kRingDataOffset; }
  int command_file() const { return command_file_.get(); }
  void RingTheBell() { writer_->Notify(wire::Wake::kUrgent, 0); }
  int handle_channel() const { return channel_.get(); }
  void CloseHandleChannel() { channel_.reset(); }
  // Open descriptors of the worker; -1 if they cannot be seen.
  int CountDescriptors() const;

  // The most memory that the worker ever had resident; 0 if that cannot be seen.
  uint64_t PeakMemoryBytes() const;

  // How it ended, within ten seconds; nothing if it runs on.
  std::optional<os::ExitStatus> WaitForEnd();
  // Its notice to the broker about a violation; empty if there is none.
  std::string ViolationNotice();

  ~WorkerProcess();

 private:
  bool Attach(std::string* why);

  os::ChildProcess process_;
  std::optional<os::ExitStatus> ended_;  // Whoever sees it first reaps it.
  os::UniqueFd channel_;
  os::UniqueFd control_;
  os::UniqueFd command_file_;
  os::SharedMapping commands_;
  os::SharedMapping replies_;
  std::unique_ptr<wire::RingWriter> writer_;
  std::unique_ptr<wire::RingReader> reader_;
  uint64_t sequence_ = 0;
};

}  // namespace sluice::worker
