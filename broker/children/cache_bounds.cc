// SPDX-License-Identifier: Apache-2.0
#include "broker/children/cache_bounds.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "broker/base/log.h"
#include "broker/os/lasting_thread.h"

namespace sluice::broker {
namespace {

namespace fs = std::filesystem;

uint64_t OrNone(uint64_t limit) {
  return limit != 0 ? limit : std::numeric_limits<uint64_t>::max();
}

uint64_t SumOf(const std::map<std::string, uint64_t>& sizes) {
  uint64_t sum = 0;
  for (const auto& [folder, bytes] : sizes) sum += bytes;
  return sum;
}

// As FolderNameOf has them.
bool IsDomainsFolder(const std::string& name) {
  for (const char* kind : {"uid-", "net-", "tenant-", "container-", "unseen-"}) {
    if (name.starts_with(kind)) return true;
  }
  return false;
}

void Tell(const std::string& folder, const CacheUse& use) {
  if (!use.done) {
    Log(LogLevel::kWarning, "broker", "a tenant's cache could not be kept within its bounds",
        {{"folder", folder}});
  } else if (use.removed_bytes != 0) {
    Log(LogLevel::kInfo, "broker", "a tenant's cache was too large, and was trimmed",
        {{"folder", folder}, {"removed_bytes", use.removed_bytes}, {"bytes_left", use.bytes}});
  }
}

}  // namespace

struct CacheBounds::Alive {
  absl::Mutex mutex;
  CacheBounds* owner ABSL_GUARDED_BY(mutex) = nullptr;
};

CacheBounds::CacheBounds(EventLoop* loop) : loop_(loop), alive_(std::make_shared<Alive>()) {
  absl::MutexLock lock(&alive_->mutex);
  alive_->owner = this;
}

CacheBounds::~CacheBounds() {
  loop_->CancelTimer(&timer_);
  absl::MutexLock lock(&alive_->mutex);
  alive_->owner = nullptr;
}

void CacheBounds::Configure(const Config& config, const std::string& root) {
  root_ = root;
  most_bytes_ = config.worker.cache_bytes;
  most_in_all_ = config.worker.all_caches_bytes;
  if (root_.empty() || (most_bytes_ == 0 && most_in_all_ == 0)) return;
  all_wait_ = true;
  if (timer_ == 0) timer_ = loop_->AddTimer(kBetweenLooksMs, [this] { Look(); });
}

std::shared_ptr<void> CacheBounds::SessionOpened(const std::string& folder) {
  if (folder.empty() || !fs::path(folder).has_parent_path() ||
      fs::path(folder).parent_path() != root_)
    return nullptr;
  ++busy_[folder];
  return std::shared_ptr<void>(alive_.get(), [alive = alive_, folder](void*) {
    absl::MutexLock lock(&alive->mutex);
    if (alive->owner == nullptr) return;
    CacheBounds* const owner = alive->owner;
    // A slot may be let go by another thread.
    owner->loop_->Post([alive, folder] {
      CacheBounds* bounds = nullptr;
      {
        absl::MutexLock locked(&alive->mutex);
        bounds = alive->owner;
      }
      if (bounds != nullptr) bounds->SessionEnded(folder);
    });
  });
}

CacheBounds::Use CacheBounds::UseOf(const std::string& folder) const {
  Use use;
  const auto found = sizes_.find(folder);
  if (found != sizes_.end()) use.bytes = found->second;
  if (!root_.empty()) use.limit = most_bytes_;
  return use;
}

void CacheBounds::SessionEnded(const std::string& folder) {
  const auto found = busy_.find(folder);
  if (found != busy_.end() && --found->second == 0) busy_.erase(found);
  waiting_.insert(folder);
  Next();
}

void CacheBounds::Look() {
  timer_ = loop_->AddTimer(kBetweenLooksMs, [this] { Look(); });
  for (const auto& [folder, sessions] : busy_) waiting_.insert(folder);
  Next();
}

void CacheBounds::Next() {
  if (looking_ || root_.empty() || (most_bytes_ == 0 && most_in_all_ == 0)) return;
  Job job;
  job.root = root_;
  job.most_bytes = OrNone(most_bytes_);
  job.most_files = most_bytes_ != 0 ? kMostFiles : OrNone(0);
  job.most_in_all = OrNone(most_in_all_);
  for (const auto& [folder, sessions] : busy_) job.busy.insert(folder);
  if (!waiting_.empty()) {
    job.folder = *waiting_.begin();
    waiting_.erase(waiting_.begin());
  } else if (!std::exchange(all_wait_, false)) {
    return;
  }
  looking_ = os::StartOnLastingThread([job, alive = alive_] {
    Sizes sizes = Do(job);
    absl::MutexLock lock(&alive->mutex);
    if (alive->owner == nullptr) return;
    alive->owner->loop_->Post([alive, job, sizes = std::move(sizes)]() mutable {
      CacheBounds* bounds = nullptr;
      {
        absl::MutexLock locked(&alive->mutex);
        bounds = alive->owner;
      }
      if (bounds != nullptr) bounds->Done(job, std::move(sizes));
    });
  });
}

void CacheBounds::Done(const Job& job, Sizes sizes) {
  looking_ = false;
  if (job.folder.empty()) {
    sizes_ = std::move(sizes);
  } else {
    sizes_[job.folder] = sizes[job.folder];
    all_wait_ = all_wait_ || SumOf(sizes_) > OrNone(most_in_all_);
  }
  Next();
}

CacheBounds::Sizes CacheBounds::Do(const Job& job) {
  Sizes sizes;
  if (job.folder.empty()) {
    BoundAll(job, &sizes);
    return sizes;
  }
  const CacheUse use = BoundCache(job.folder, job.most_bytes, job.most_files);
  Tell(job.folder, use);
  sizes[job.folder] = use.bytes;
  return sizes;
}

void CacheBounds::BoundAll(const Job& job, Sizes* sizes) {
  std::vector<std::tuple<bool, int64_t, std::string>> oldest;
  std::error_code error;
  for (fs::directory_iterator it(job.root, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (it->symlink_status(gone).type() != fs::file_type::directory) continue;
    // An operator may keep other things beside them.
    if (!IsDomainsFolder(it->path().filename().string())) continue;
    const std::string folder = it->path().string();
    const CacheUse use = BoundCache(folder, job.most_bytes, job.most_files);
    Tell(folder, use);
    (*sizes)[folder] = use.bytes;
    // The broker changes the folder with each session.
    oldest.emplace_back(job.busy.contains(folder), use.changed_ns, folder);
  }
  uint64_t sum = SumOf(*sizes);
  if (sum <= job.most_in_all) return;
  std::sort(oldest.begin(), oldest.end());
  const uint64_t before = sum;
  size_t emptied = 0;
  for (const auto& [busy, used, folder] : oldest) {
    if (sum <= job.most_in_all / 8 * 7) break;
    uint64_t& own = (*sizes)[folder];
    if (own == 0) continue;
    const CacheUse use = BoundCache(folder, 0, 0);
    Tell(folder, use);
    if (!use.done) continue;
    sum -= own;
    own = 0;
    ++emptied;
  }
  Log(LogLevel::kInfo, "broker",
      "the compile caches were too large together: those used longest ago were emptied",
      {{"emptied", emptied}, {"bytes_before", before}, {"bytes_left", sum}});
}

}  // namespace sluice::broker
