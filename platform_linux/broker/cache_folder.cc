// SPDX-License-Identifier: Apache-2.0
#include "broker/children/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/base/check.h"
#include "broker/os/scoped_handle.h"

namespace sluice::broker {
namespace {

// Drivers keep a program in a folder of this depth; a file above it is a unit of its own.
constexpr size_t kUnitDepth = 4;
// Deeper folders are moved up to the top: paths and descriptors have limits.
constexpr size_t kMostDepth = 48;
constexpr char kBroughtUp[] = ".deep-";
constexpr int kMostBroughtUp = 1000;
constexpr size_t kMostNames = 65536;  // Of a folder at once.

// Gives the calling thread alone the owner's rights to files as long as this lives.
class AsOwner {
 public:
  AsOwner(uid_t uid, gid_t gid)
      : old_gid_(static_cast<gid_t>(::setfsgid(gid))),
        old_uid_(static_cast<uid_t>(::setfsuid(uid))),
        taken_(static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) == uid) {}
  ~AsOwner() {
    ::setfsuid(old_uid_);
    ::setfsgid(old_gid_);
    SLUICE_CHECK(static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) == old_uid_);
  }
  AsOwner(const AsOwner&) = delete;
  AsOwner& operator=(const AsOwner&) = delete;
  bool taken() const { return taken_; }

 private:
  const gid_t old_gid_;
  const uid_t old_uid_;
  const bool taken_;
};

struct Unit {
  uint64_t bytes = 0;
  int64_t used_s = 0;
};

os::UniqueFd OpenFolder(int at, const char* name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  os::UniqueFd fd(::openat(at, name, kFlags));
  if (fd.valid() || errno != EACCES) return fd;
  // The owner may have removed its own right to read.
  struct stat info;
  if (::fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(info.st_mode) ||
      ::fchmodat(at, name, 0700, 0) != 0)
    return fd;
  return os::UniqueFd(::openat(at, name, kFlags));
}

std::vector<std::string> NamesIn(int folder) {
  std::vector<std::string> names;
  const int fd = ::fcntl(folder, F_DUPFD_CLOEXEC, 0);
  DIR* const stream = fd < 0 ? nullptr : ::fdopendir(fd);
  if (stream == nullptr) {
    if (fd >= 0) ::close(fd);
    return names;
  }
  ::rewinddir(stream);
  while (names.size() < kMostNames) {
    const dirent* const entry = ::readdir(stream);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(stream);
  return names;
}

// True if it lies in `top` now.
bool MoveFolderUp(int top, int folder, const std::string& name) {
  for (int i = 0; i < kMostBroughtUp; ++i) {
    const std::string to = absl::StrCat(kBroughtUp, i);
    struct stat info;
    if (::fstatat(top, to.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) continue;
    return ::renameat(folder, name.c_str(), top, to.c_str()) == 0;
  }
  return false;
}

// One look at a folder: what there is, by units.
class Look {
 public:
  Look(int top, uint64_t most_files) : top_(top), most_files_(most_files) {}

  void At(int folder, const std::string& path, size_t depth) {
    for (const std::string& name : NamesIn(folder)) {
      if (files_ > most_files_) return;  // The rest is not looked at.
      struct stat info;
      if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      ++files_;
      const std::string own = path.empty() ? name : absl::StrCat(path, "/", name);
      const bool is_folder = S_ISDIR(info.st_mode);
      const uint64_t bytes = static_cast<uint64_t>(info.st_blocks) * 512;
      bytes_ += bytes;
      if (!is_folder || depth + 1 >= kUnitDepth) {
        Unit& unit = units_[depth < kUnitDepth ? own : path];
        unit.bytes += bytes;
        if (!is_folder)
          unit.used_s = std::max({unit.used_s, int64_t{info.st_mtime}, int64_t{info.st_atime}});
      }
      if (!is_folder) continue;
      if (depth >= kMostDepth) {
        brought_up_ = MoveFolderUp(top_, folder, name) || brought_up_;
        continue;
      }
      const os::UniqueFd inner = OpenFolder(folder, name.c_str());
      if (inner.valid()) At(inner.get(), depth < kUnitDepth ? own : path, depth + 1);
    }
  }

  const std::map<std::string, Unit>& units() const { return units_; }
  uint64_t files() const { return files_; }
  uint64_t bytes() const { return bytes_; }
  bool brought_up() const { return brought_up_; }

 private:
  const int top_;
  const uint64_t most_files_;
  std::map<std::string, Unit> units_;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
  bool brought_up_ = false;
};

// Removes below `top`, with what is in it.
class Remover {
 public:
  explicit Remover(int top) : top_(top) {}

  // By a path of plain names.
  void Remove(const std::string& path) {
    os::UniqueFd folder;
    int at = top_;
    size_t begin = 0;
    for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', begin)) {
      os::UniqueFd inner = OpenFolder(at, path.substr(begin, end - begin).c_str());
      if (!inner.valid()) return;
      folder = std::move(inner);
      at = folder.get();
      begin = end + 1;
    }
    RemoveAt(at, path.substr(begin), 0);
  }

  // Removes all, however deep and however much: each round moves up folders that are too deep for
  // it.
  bool RemoveAll() {
    for (uint64_t before = 0;; before = changes_) {
      Empty(top_, 0);
      if (NamesIn(top_).empty()) return true;
      if (changes_ == before) return false;
    }
  }

 private:
  void Empty(int folder, size_t depth) {
    for (const std::string& name : NamesIn(folder)) RemoveAt(folder, name, depth);
  }

  void RemoveAt(int folder, const std::string& name, size_t depth) {
    if (Unlink(folder, name, 0) || Unlink(folder, name, AT_REMOVEDIR)) return;
    if (depth >= kMostDepth) return MoveUp(folder, name);
    {
      const os::UniqueFd inner = OpenFolder(folder, name.c_str());
      if (!inner.valid()) return;
      ::fchmod(inner.get(), 0700);
      Empty(inner.get(), depth + 1);
    }
    Unlink(folder, name, AT_REMOVEDIR);
  }

  bool Unlink(int folder, const std::string& name, int flags) {
    if (::unlinkat(folder, name.c_str(), flags) != 0) return false;
    ++changes_;
    return true;
  }

  void MoveUp(int folder, const std::string& name) {
    if (MoveFolderUp(top_, folder, name)) ++changes_;
  }

  const int top_;
  uint64_t changes_ = 0;
};

void Trim(int top, const Look& look, uint64_t most_bytes, uint64_t* left) {
  std::vector<std::pair<int64_t, std::string>> oldest;
  for (const auto& [path, unit] : look.units()) oldest.emplace_back(unit.used_s, path);
  std::sort(oldest.begin(), oldest.end());
  Remover remover(top);
  for (const auto& [used, path] : oldest) {
    if (*left <= most_bytes / 4 * 3) return;
    remover.Remove(path);
    *left -= std::min(*left, look.units().at(path).bytes);
  }
}

}  // namespace

CacheUse BoundCache(const std::string& folder, uint64_t most_bytes, uint64_t most_files) {
  CacheUse use;
  struct stat info;
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return use;
  use.changed_ns = int64_t{info.st_ctim.tv_sec} * 1'000'000'000 + info.st_ctim.tv_nsec;
  const AsOwner owner(info.st_uid, info.st_gid);
  const os::UniqueFd top = OpenFolder(AT_FDCWD, folder.c_str());
  struct stat opened;
  if (!owner.taken() || !top.valid() || ::fstat(top.get(), &opened) != 0 ||
      opened.st_uid != info.st_uid) {
    use.done = false;
    return use;
  }
  if (most_bytes == 0 && most_files == 0) {
    use.done = Remover(top.get()).RemoveAll();
    return use;
  }
  auto look = std::make_unique<Look>(top.get(), most_files);
  look->At(top.get(), "", 0);
  for (int i = 0; look->brought_up() && i < kMostBroughtUp; ++i) {
    look = std::make_unique<Look>(top.get(), most_files);
    look->At(top.get(), "", 0);
  }
  use.bytes = look->bytes();
  use.files = look->files();
  if (use.bytes <= most_bytes && use.files <= most_files) return use;
  const uint64_t before = use.bytes;
  if (use.files > most_files) {
    // No compiler writes so much: all of it is removed.
    use.done = Remover(top.get()).RemoveAll();
    use.bytes = use.files = 0;
  } else {
    Trim(top.get(), *look, most_bytes, &use.bytes);
  }
  use.removed_bytes = before - use.bytes;
  return use;
}

bool RemoveCache(const std::string& folder) {
  const bool emptied = BoundCache(folder, 0, 0).done;
  return (::rmdir(folder.c_str()) == 0 || ::unlink(folder.c_str()) == 0) && emptied;
}

}  // namespace sluice::broker
