// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/map_shadow.h"

#include <utility>

#include "broker/os/this_process.h"

namespace sluice::client {

std::unique_ptr<Shadow> Shadow::Make(size_t bytes) {
  void* data = os::AllocatePages(bytes);
  if (data == nullptr) return nullptr;
  return std::unique_ptr<Shadow>(new Shadow(static_cast<uint8_t*>(data), bytes));
}

Shadow::~Shadow() { os::FreePages(data_, bytes_); }

std::shared_ptr<Shadow> ShadowPool::Get(size_t bytes) {
  std::unique_ptr<Shadow> shadow;
  {
    absl::MutexLock lock(&mu_);
    if (spare_ != nullptr && spare_->bytes() >= bytes) shadow = std::move(spare_);
  }
  if (shadow == nullptr) shadow = Shadow::Make(bytes);
  if (shadow == nullptr) return nullptr;
  return {shadow.release(), [pool = weak_from_this()](Shadow* used) {
            std::unique_ptr<Shadow> owned(used);
            if (const auto alive = pool.lock()) alive->TakeBack(std::move(owned));
          }};
}

void ShadowPool::TakeBack(std::unique_ptr<Shadow> shadow) {
  if (shadow->bytes() > kMaxSpareBytes) return;
  absl::MutexLock lock(&mu_);
  if (spare_ == nullptr || spare_->bytes() < shadow->bytes()) spare_.swap(shadow);
}

}  // namespace sluice::client
