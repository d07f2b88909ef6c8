// SPDX-License-Identifier: Apache-2.0
#include "broker/os/doorbell.h"

#include <windows.h>

#include <algorithm>
#include <chrono>
#include <climits>

#include "platform_win/handles/mappings.h"

namespace sluice::os {
namespace {

constexpr size_t kLineBytes = 64;
constexpr uint32_t kFirstBit = 1;

// The bells of a word: one for those that wait with the first bit, one for the others.
size_t BellOf(size_t offset, bool first_bit) {
  return (offset / kLineBytes % 2) * 2 + (first_bit ? 0 : 1);
}

DWORD Milliseconds(int64_t timeout_ns) {
  if (timeout_ns < 0) return INFINITE;
  return static_cast<DWORD>(std::min<int64_t>((timeout_ns + 999'999) / 1'000'000, INT_MAX));
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

bool FutexWait(std::atomic<uint32_t>* word, uint32_t expected, uint32_t bitset,
               int64_t timeout_ns) {
  const MappedWord mapped = FindMappedWord(word);
  if (mapped.section == nullptr || !mapped.section->bells()[0].valid()) {
    // The word is in this process's own memory.
    return ::WaitOnAddress(word, &expected, sizeof(expected), Milliseconds(timeout_ns)) ||
           ::GetLastError() != ERROR_TIMEOUT;
  }
  HANDLE bell = mapped.section->bells()[BellOf(mapped.offset, (bitset & kFirstBit) != 0)].get();
  const int64_t deadline = NowNs() + std::max<int64_t>(timeout_ns, 0);
  while (word->load(std::memory_order_seq_cst) == expected) {
    const int64_t left = timeout_ns < 0 ? -1 : std::max<int64_t>(deadline - NowNs(), 0);
    if (::WaitForSingleObject(bell, Milliseconds(left)) != WAIT_OBJECT_0) return false;
    // The bell keeps a ring for which nobody slept: look again.
  }
  // The ring woke only one sleeper, and another one may sleep on the same word: ring again. After
  // the last one the bell stays rung, which costs one look.
  ::SetEvent(bell);
  return true;
}

int FutexWake(std::atomic<uint32_t>* word, int count, uint32_t bitset) {
  const MappedWord mapped = FindMappedWord(word);
  if (mapped.section == nullptr || !mapped.section->bells()[0].valid()) {
    ::WakeByAddressAll(word);  // Sleepers with other bits look again and sleep on.
    return count;
  }
  const auto& bells = mapped.section->bells();
  if ((bitset & kFirstBit) != 0) ::SetEvent(bells[BellOf(mapped.offset, true)].get());
  if ((bitset & ~kFirstBit) != 0) ::SetEvent(bells[BellOf(mapped.offset, false)].get());
  return count;
}

}  // namespace sluice::os
