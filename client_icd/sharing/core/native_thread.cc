// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/native_thread.h"

#include "broker/os/this_process.h"

namespace sluice::sharing {

NativeThread::NativeThread(const char* name) : owner_pid_(ProcessId()), thread_(name) {}

NativeThread::~NativeThread() {
  if (InForkedChild()) LeaveRunning();
}

bool NativeThread::InForkedChild() const { return ProcessId() != owner_pid_; }

bool NativeThread::Post(JobThread::Job job) {
  return !InForkedChild() && thread_.Add(std::move(job));
}

}  // namespace sluice::sharing
