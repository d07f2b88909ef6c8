// SPDX-License-Identifier: Apache-2.0
#include "broker/tenants/tenant_finder.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "broker/base/check.h"
#include "broker/base/log.h"
#include "broker/os/random.h"

namespace sluice::broker {
namespace {

// "1000" of "uid:1000".
std::string WithoutKind(const std::string& name) { return name.substr(name.find(':') + 1); }

std::string RandomName() {
  uint64_t number = 0;
  SLUICE_CHECK(os::FillRandom(&number, sizeof(number)).ok());
  return absl::StrCat(absl::Hex(number, absl::kZeroPad16));
}

// "_" is in no tenant's name and in no user's number, so that no two of them make one.
std::string DomainName(const os::PeerIdentity& peer, PeerContainer::Place place,
                       const std::string& container, const ListenerConfig* listener) {
  using Place = PeerContainer::Place;
  const std::string user = WithoutKind(os::UserName(peer.uid));
  const std::string suffix = place == Place::kHere     ? ""
                             : place == Place::kUnseen ? "_unseen"
                                                       : absl::StrCat("_", container);
  if (listener != nullptr) return absl::StrCat("tenant:", listener->tenant, "_", user, suffix);
  if (place == Place::kHere) return os::UserName(peer.uid);
  return absl::StrCat(place == Place::kUnseen ? "unseen:" : "container:", user, suffix);
}

}  // namespace

absl::StatusOr<TenantFinder::Found> TenantFinder::Find(const os::PeerIdentity& peer,
                                                       const ListenerConfig* listener) {
  absl::StatusOr<PeerContainer> container = FindPeerContainer(peer);
  if (!container.ok()) return container.status();
  if (container->place == PeerContainer::Place::kUnseen && !std::exchange(told_unseen_, true)) {
    Log(LogLevel::kWarning, "broker",
        "the system does not show in which container a client is: clients of one user whose "
        "containers are not seen share one compile cache",
        {{"user", os::UserName(peer.uid)},
         {"pid", peer.pid},
         {"reason", container->why},
         {"advice", "root's daemon sees all with CAP_SYS_PTRACE, outside of containers"}});
  }
  return Name(peer, *std::move(container), listener);
}

TenantFinder::Found TenantFinder::Name(const os::PeerIdentity& peer, PeerContainer container,
                                       const ListenerConfig* listener) {
  Found found;
  found.owner = container.owner;
  found.tenant.user = os::UserName(peer.uid);
  if (listener != nullptr) {
    found.tenant.account = AccountOf(*listener);
  } else {
    found.tenant.account.name = os::UserName(container.owner);
  }
  const PeerContainer::Place place = container.place;
  std::string name;
  if (place == PeerContainer::Place::kContainer)
    name = NameOf(std::move(container), found.tenant.account.name, &found.container);
  found.tenant.domain.name = DomainName(peer, place, name, listener);
  return found;
}

std::string TenantFinder::NameOf(PeerContainer container, const std::string& account,
                                 std::shared_ptr<const void>* held) {
  if (container.lasting) return container.key;
  auto known = containers_.find(container.key);
  if (known == containers_.end()) {
    MakeRoom(account);
    Container fresh;
    fresh.name = RandomName();
    fresh.account = account;
    fresh.held = std::make_shared<std::vector<os::UniqueFd>>(std::move(container.held));
    known = containers_.emplace(container.key, std::move(fresh)).first;
  }
  known->second.last_used = ++uses_;
  *held = known->second.held;
  return known->second.name;
}

// Those with connections keep their names, as they keep their namespaces: forgotten here, the same
// container would have two. An account's oldest goes first, then anybody's.
void TenantFinder::MakeRoom(const std::string& account) {
  const auto idle = [](const Container& container) { return container.held.use_count() == 1; };
  size_t own = 0;
  size_t all = 0;
  auto oldest_own = containers_.end();
  auto oldest = containers_.end();
  for (auto it = containers_.begin(); it != containers_.end(); ++it) {
    if (!idle(it->second)) continue;
    ++all;
    if (oldest == containers_.end() || it->second.last_used < oldest->second.last_used) oldest = it;
    if (it->second.account != account) continue;
    ++own;
    if (oldest_own == containers_.end() || it->second.last_used < oldest_own->second.last_used)
      oldest_own = it;
  }
  if (own >= kMostOfAccount) {
    containers_.erase(oldest_own);
  } else if (all >= kMost) {
    containers_.erase(oldest);
  }
}

}  // namespace sluice::broker
