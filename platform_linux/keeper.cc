// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/keeper.h"

#include <link.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "platform_linux/system_call_numbers.h"

// Only where code can make system calls without a library, and no sanitizer looks at the memory.
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SLUICE_KEEPER_DROPS_MEMORY 1
#else
#define SLUICE_KEEPER_DROPS_MEMORY 0
#endif

namespace sluice::os {
namespace {

// On either side of the frame and of the thread's control block: the kernel writes to the latter
// (rseq), and the other thread-local variables of the process lie before it.
constexpr uintptr_t kKeptBytes = 64 << 10;

// No function call, no errno: the memory that libraries need is gone.
[[gnu::always_inline]] inline long SystemCall(long number, uintptr_t a, uintptr_t b = 0,
                                              uintptr_t c = 0, uintptr_t d = 0) {
#if defined(__x86_64__)
  long result = number;
  register uintptr_t fourth asm("r10") = d;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(fourth)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long which asm("x8") = number;
  register uintptr_t first asm("x0") = a;
  register uintptr_t second asm("x1") = b;
  register uintptr_t third asm("x2") = c;
  register uintptr_t fourth asm("x3") = d;
  asm volatile("svc 0" : "+r"(first) : "r"(which), "r"(second), "r"(third), "r"(fourth) : "memory");
  return static_cast<long>(first);
#else
  const long result = ::syscall(number, a, b, c, d);
  return result < 0 ? -errno : result;
#endif
}

struct Range {
  uintptr_t begin;
  uintptr_t end;
};

[[gnu::always_inline]] inline Range Around(uintptr_t address, uintptr_t page_bytes) {
  const uintptr_t begin = (address - kKeptBytes) & ~(page_bytes - 1);
  return {begin, begin + 2 * kKeptBytes + page_bytes};
}

#if SLUICE_KEEPER_DROPS_MEMORY
[[gnu::always_inline]] inline void DropMemory(const KeeperPlan& plan, uintptr_t frame) {
  Range kept[] = {{plan.code_begin, plan.code_end},
                  Around(frame, plan.page_bytes),
                  Around(plan.thread, plan.page_bytes)};
  // By hand: three, in order of their addresses.
  const auto sort = [&kept](int a, int b) __attribute__((always_inline)) {
    if (kept[b].begin >= kept[a].begin) return;
    const Range other = kept[a];
    kept[a] = kept[b];
    kept[b] = other;
  };
  sort(0, 1);
  sort(1, 2);
  sort(0, 1);
  uintptr_t from = 0;
  for (int i = 0; i < 3; ++i) {
    if (kept[i].begin > from) SystemCall(SYS_munmap, from, kept[i].begin - from);
    if (kept[i].end > from) from = kept[i].end;
  }
  // The highest address is not known: the kernel refuses a range that goes beyond it.
  for (int bits = 56; bits >= 38; --bits) {
    const uintptr_t end = (uintptr_t{1} << bits) - plan.page_bytes;
    if (end > from && SystemCall(SYS_munmap, from, end - from) == 0) return;
  }
}
#endif

}  // namespace

KeeperPlan PlanKeeper() {
  KeeperPlan plan;
  plan.page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  plan.thread = static_cast<uintptr_t>(::pthread_self());
  const auto find = [](dl_phdr_info* object, size_t, void* out) {
    auto& found = *static_cast<KeeperPlan*>(out);
    const auto wanted = reinterpret_cast<uintptr_t>(&Keep);
    uintptr_t begin = UINTPTR_MAX;
    uintptr_t end = 0;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& segment = object->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      begin = std::min<uintptr_t>(begin, object->dlpi_addr + segment.p_vaddr);
      end = std::max<uintptr_t>(end, object->dlpi_addr + segment.p_vaddr + segment.p_memsz);
    }
    if (wanted < begin || wanted >= end) return 0;
    found.code_begin = begin & ~(found.page_bytes - 1);
    found.code_end = (end + found.page_bytes - 1) & ~(found.page_bytes - 1);
    return 1;
  };
  ::dl_iterate_phdr(find, &plan);
  return plan;
}

void Keep(const KeeperPlan& plan_there, pid_t child) {
  [[maybe_unused]] const KeeperPlan plan = plan_there;  // On this frame, which is kept.
  static constexpr char kName[] = "sluice-keeper";
  SystemCall(SYS_prctl, PR_SET_NAME, reinterpret_cast<uintptr_t>(kName));
#if SLUICE_KEEPER_DROPS_MEMORY
  if (plan.code_begin != 0) {
    DropMemory(plan, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
  }
#endif
  // Last, since the parent goes on when it has read the report to its end, and the keeper must be
  // complete then. The child's end of its socket must be the only one, too.
  SystemCall(SYS_close_range, 0, ~0U);
  const auto number = static_cast<uintptr_t>(child);
  long ended = 0;
  do {
    ended = SystemCall(SYS_wait4, number, 0, __WALL, 0);
  } while (ended != child && ended != -ECHILD);
  while (true) SystemCall(SYS_exit_group, 0);
}

}  // namespace sluice::os
