// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/worker_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/os/threads.h"
#include "platform_linux/errno_status.h"

namespace sluice::worker {
namespace {

// sched_setattr's argument and flags: the kernel's headers have them, and clash with glibc's.
struct SchedAttributes {
  uint32_t size = sizeof(SchedAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t deadline[3] = {};
  uint32_t util_min = 0;
  uint32_t util_max = 0;
};
static_assert(sizeof(SchedAttributes) == 56);
constexpr uint64_t kKeepPolicy = 0x08;
constexpr uint64_t kKeepParams = 0x10;
constexpr uint64_t kUtilClampMax = 0x40;

// Calls change(tid) for every thread; later ones inherit the result. True if it succeeded for all.
template <typename F>
bool ForEachThread(F&& change) {
  bool all = true;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    pid_t tid = 0;
    // A thread that has ended meanwhile needs nothing.
    if (absl::SimpleAtoi(entry.path().filename().string(), &tid)) {
      all = (change(tid) || errno == ESRCH) && all;
    }
  }
  return all && !error;
}

bool SetNice(pid_t tid, int nice) {
  return ::setpriority(PRIO_PROCESS, static_cast<id_t>(tid), nice) == 0;
}

// Tried on a thread that has nothing else to do.
bool MayReturnFromNice() {
  static const bool may = [] {
    bool returned = false;
    std::thread([&returned] {
      const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
      const int own = ::getpriority(PRIO_PROCESS, static_cast<id_t>(self));
      returned = SetNice(self, own + 1) && SetNice(self, own);
    }).join();
    return returned;
  }();
  return may;
}

// sched(7): the pause between changes of autogroups by users other than root, on the whole machine.
constexpr absl::Duration kBetweenChanges = absl::Milliseconds(100);

// The autogroup of a session: Linux schedules by it between sessions that no control group
// separates.
struct Autogroup {
  os::UniqueFd file;  // Constant once there are other threads.
  absl::Mutex mu;
  int wanted ABSL_GUARDED_BY(mu) = 0;
  bool waits ABSL_GUARDED_BY(mu) = false;  // A thread waits to write it.

  // False: it is too early.
  bool Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const std::string text = absl::StrCat(wanted);
    return ::write(file.get(), text.data(), text.size()) >= 0 || errno != EAGAIN;
  }
};

Autogroup& OwnAutogroup() {
  static Autogroup& own = *new Autogroup;
  return own;
}

void SetAutogroupNice(int nice) {
  Autogroup& own = OwnAutogroup();
  if (!own.file.valid()) return;
  absl::MutexLock lock(&own.mu);
  own.wanted = nice;
  if (own.waits || own.Write()) return;
  own.waits = true;
  os::StartDetached([&own] {
    for (bool waits = true; waits;) {
      absl::SleepFor(kBetweenChanges);
      absl::MutexLock again(&own.mu);
      waits = own.waits = !own.Write();
    }
  });
}

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// Of nested folders, each of which takes two descriptors.
constexpr int kMostDepth = 64;

// None if it is no folder, or another user's.
os::UniqueFd OpenOwn(const std::string& folder) {
  os::UniqueFd fd(::open(folder.c_str(), kOpenFolder));
  struct stat info = {};
  if (fd.valid() && (::fstat(fd.get(), &info) != 0 || info.st_uid != ::geteuid())) fd.reset();
  return fd;
}

// Works by the folders' own descriptors, so that nobody can put links in their places. Moves
// folders deeper than `depth` up into `top`, and counts them.
void RemoveAllIn(int folder, int depth, int top, int* moved) {
  const int opened = ::openat(folder, ".", kOpenFolder);
  if (opened < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(opened), &::closedir);
  if (entries == nullptr) {
    ::close(opened);
    return;
  }
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || ::unlinkat(folder, name.c_str(), 0) == 0) continue;
    const os::UniqueFd below(::openat(folder, name.c_str(), kOpenFolder));
    if (!below.valid()) continue;
    if (depth > 0) {
      RemoveAllIn(below.get(), depth - 1, top, moved);
    } else if (::renameat(folder, name.c_str(), top, absl::StrCat(".moved-", *moved).c_str()) ==
               0) {
      ++*moved;
    }
    ::unlinkat(folder, name.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace

void SetVariable(const char* name, const char* value) { ::setenv(name, value, 1); }

void HoldSessionNice() {
  if (::getsid(0) != ::getpid()) return;
  OwnAutogroup().file.reset(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
}

bool SetProcessNice(int nice) {
  SetAutogroupNice(nice);
  return MayReturnFromNice() && ForEachThread([nice](pid_t tid) { return SetNice(tid, nice); });
}

bool SetProcessUtilisation(uint32_t most) {
  return ForEachThread([most](pid_t tid) {
    SchedAttributes attributes;
    attributes.flags = kKeepPolicy | kKeepParams | kUtilClampMax;
    attributes.util_max = most;
    return ::syscall(SYS_sched_setattr, tid, &attributes, 0) == 0;
  });
}

absl::StatusOr<os::UniqueFd> CaptureStdout() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return os::ErrnoStatus(errno, "pipe for the output of kernels");
  os::UniqueFd read_end(ends[0]);
  const os::UniqueFd write_end(ends[1]);
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(write_end.get(), F_SETPIPE_SZ, 1 << 20);  // May fail; a smaller pipe works too.
  std::fflush(stdout);
  if (::dup2(write_end.get(), STDOUT_FILENO) < 0) return os::ErrnoStatus(errno, "dup2 of stdout");
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  return read_end;
}

std::string ReadCaptured(int fd, size_t max_bytes) {
  std::string text(max_bytes, '\0');
  const ssize_t bytes = ::read(fd, text.data(), text.size());
  text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return text;
}

bool MatchesWildcard(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::string MakeTemporaryFolder() {
  std::error_code error;
  const std::filesystem::path above = std::filesystem::temp_directory_path(error);
  if (error) return "";  // TMPDIR is no folder; the working directory must not stand in for it.
  std::string name = (above / kTemporaryFolderPrefix).string() + "XXXXXX";
  return ::mkdtemp(name.data()) != nullptr ? name : "";
}

os::UniqueFd HoldFolder(const std::string& folder) {
  os::UniqueFd fd = OpenOwn(folder);
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
}

void RemoveHeldFolder(const std::string& folder, os::UniqueFd held) {
  if (!held.valid()) held = OpenOwn(folder);
  int moved = 0;
  for (int before = -1; held.valid() && moved != before;) {
    before = moved;
    RemoveAllIn(held.get(), kMostDepth, held.get(), &moved);
  }
  ::rmdir(folder.c_str());  // If another folder has the name by now, it goes only if it is empty.
}

bool IsPathInFolder(const std::string&) { return true; }

const char kOpenClLoader[] = "libOpenCL.so.1";
const char kOpenClLoaderAdvice[] = "install ocl-icd-libopencl1";

}  // namespace sluice::worker
