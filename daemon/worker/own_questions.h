// SPDX-License-Identifier: Apache-2.0
// A driver may answer with an error what the worker asks it for its own sake, and drivers tell such
// errors to the context's callback (section 4.4). No application asked: none is told.
#pragma once

namespace sluice::worker {

// The calling thread's questions are the worker's own while one of these lives.
class ScopedOwnQuestions {
 public:
  ScopedOwnQuestions() { ++depth_; }
  ~ScopedOwnQuestions() { --depth_; }
  ScopedOwnQuestions(const ScopedOwnQuestions&) = delete;
  ScopedOwnQuestions& operator=(const ScopedOwnQuestions&) = delete;

  static bool Here() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace sluice::worker
