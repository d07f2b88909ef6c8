// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/native_thread.h"

#include "broker/os/this_process.h"

namespace sluice::client::sharing {

NativeThread::NativeThread(const char* name) : owner_pid_(os::ProcessId()), thread_(name) {}

NativeThread::~NativeThread() {
  if (InForkedChild()) LeaveRunning();
}

bool NativeThread::InForkedChild() const { return os::ProcessId() != owner_pid_; }

bool NativeThread::Post(JobThread::Job job) {
  return !InForkedChild() && thread_.Add(std::move(job));
}

}  // namespace sluice::client::sharing
