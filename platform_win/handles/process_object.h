// SPDX-License-Identifier: Apache-2.0
//
// A process: a child with the job that it and its offspring run in, or a client. Immutable.
#pragma once

#include <utility>

#include "platform_win/handles/handle_table.h"

namespace sluice::os {

class ProcessObject final : public HandleObject {
 public:
  ProcessObject(OwnedHandle process, OwnedHandle job)
      : HandleObject(HandleKind::kProcess, std::move(process)), job_(std::move(job)) {}

  HANDLE job() const { return job_.get(); }  // Null if there is none.

 private:
  const OwnedHandle job_;
};

}  // namespace sluice::os
