// SPDX-License-Identifier: Apache-2.0
//
// Bounds what workers leave on the disk, from outside of them: each isolation domain's folder by
// `cache_bytes`, and all together by `all_caches_bytes`. Looks at a domain's folder when one of its
// sessions has ended, and now and again while it has some; at all folders at the start, and when
// together they may have passed the bound. Then those used longest ago are emptied first, and those
// without a session before the others.
//
// One look at a time, on a thread of its own (cache_folder.h). Owner: Workers. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "broker/children/cache_folder.h"
#include "broker/config/config.h"
#include "broker/event_loop.h"

namespace sluice::broker {

class CacheBounds {
 public:
  explicit CacheBounds(EventLoop* loop);
  ~CacheBounds();

  // `root`: the folder of the domains' folders; empty: there is none, and nothing is done.
  void Configure(const Config& config, const std::string& root);

  // A session has a folder, as long as the slot is held. Empty: none that is the daemon's.
  [[nodiscard]] std::shared_ptr<void> SessionOpened(const std::string& folder);

  struct Use {
    std::optional<uint64_t> bytes;  // At the last look; nothing: there was none.
    uint64_t limit = 0;             // 0: none.
  };
  Use UseOf(const std::string& folder) const;

  static constexpr uint64_t kMostFiles = 200'000;  // Of one domain.
  static constexpr int64_t kBetweenLooksMs = 10'000;

 private:
  struct Alive;  // Tells a finished look whether this is still there to hear it.
  struct Job {
    std::string folder;  // Empty: all below root.
    std::string root;
    uint64_t most_bytes = 0;
    uint64_t most_files = 0;
    uint64_t most_in_all = 0;
    std::set<std::string> busy;
  };
  using Sizes = std::map<std::string, uint64_t>;  // By folder.

  static Sizes Do(const Job& job);
  static void BoundAll(const Job& job, Sizes* sizes);
  void Next();
  void Done(const Job& job, Sizes sizes);
  void Look();
  void SessionEnded(const std::string& folder);

  EventLoop* const loop_;
  const std::shared_ptr<Alive> alive_;
  std::string root_;
  uint64_t most_bytes_ = 0;
  uint64_t most_in_all_ = 0;
  std::map<std::string, int> busy_;  // Sessions of each folder.
  std::set<std::string> waiting_;    // Folders to look at.
  bool all_wait_ = false;
  bool looking_ = false;
  Sizes sizes_;
  EventLoop::TimerId timer_ = 0;
};

}  // namespace sluice::broker
