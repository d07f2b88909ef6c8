// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/front/connection_limiter.h"

#include <utility>

namespace sluice::gateway {

std::string AddressGroup(const std::string& address) {
  if (!address.starts_with("[")) return address;
  // Texts of the system's: a network of 64 bits is four groups, or what stands before "::".
  size_t end = 1;
  for (int groups = 0; end < address.size() && address[end] != ']'; ++end) {
    if (address[end] != ':') continue;
    if (++groups == 4 || address[end + 1] == ':') break;
  }
  return address.substr(0, end);
}

std::unique_ptr<ConnectionLimiter::Place> ConnectionLimiter::Enter(const std::string& address,
                                                                   std::function<void()> evict) {
  std::string name = AddressGroup(address);
  absl::MutexLock lock(&mu_);
  const auto found = groups_.find(name);
  if (found != groups_.end() && found->second.count() >= limits_.most_of_address) return nullptr;
  if (newcomers_ >= limits_.most_newcomers) EvictOneLocked();
  std::unique_ptr<Place> place(new Place(this, name, next_number_++, std::move(evict)));
  std::list<Place*>& newcomers = groups_[name].newcomers;
  place->at_ = newcomers.insert(newcomers.end(), place.get());
  ++newcomers_;
  return place;
}

bool ConnectionLimiter::Settle(Place* place) {
  absl::MutexLock lock(&mu_);
  if (place->state_ == Place::State::kMember) return true;
  if (place->state_ != Place::State::kNewcomer || members_ >= limits_.most) return false;
  Group& group = groups_[place->group_];
  ForgetNewcomerLocked(&group, place);
  place->state_ = Place::State::kMember;
  ++group.members;
  ++members_;
  return true;
}

void ConnectionLimiter::EvictOne() {
  absl::MutexLock lock(&mu_);
  EvictOneLocked();
}

void ConnectionLimiter::EvictOneLocked() {
  Group* most = nullptr;
  for (auto& [name, group] : groups_) {
    if (group.newcomers.empty()) continue;
    const bool more = most == nullptr || group.newcomers.size() > most->newcomers.size();
    const bool older = !more && group.newcomers.size() == most->newcomers.size() &&
                       group.newcomers.front()->number_ < most->newcomers.front()->number_;
    if (more || older) most = &group;
  }
  if (most == nullptr) return;
  Place* const place = most->newcomers.front();
  ForgetNewcomerLocked(most, place);
  place->state_ = Place::State::kEvicted;
  ++most->evicted;
  place->evict_();
}

void ConnectionLimiter::ForgetNewcomerLocked(Group* group, Place* place) {
  group->newcomers.erase(place->at_);
  --newcomers_;
}

void ConnectionLimiter::Leave(Place* place) {
  absl::MutexLock lock(&mu_);
  if (place->state_ == Place::State::kLeft) return;
  const auto found = groups_.find(place->group_);
  Group& group = found->second;
  switch (std::exchange(place->state_, Place::State::kLeft)) {
    case Place::State::kLeft:
      break;
    case Place::State::kNewcomer:
      ForgetNewcomerLocked(&group, place);
      break;
    case Place::State::kMember:
      --group.members;
      --members_;
      break;
    case Place::State::kEvicted:
      --group.evicted;
      break;
  }
  if (group.count() == 0) groups_.erase(found);
}

int ConnectionLimiter::newcomers() const {
  absl::MutexLock lock(&mu_);
  return newcomers_;
}

int ConnectionLimiter::members() const {
  absl::MutexLock lock(&mu_);
  return members_;
}

}  // namespace sluice::gateway
