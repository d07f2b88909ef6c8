// SPDX-License-Identifier: Apache-2.0
#include "broker/tenants/peer_container.h"

#include <windows.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "platform_win/handles/process_object.h"
#include "platform_win/security/account.h"

namespace sluice::broker {
namespace {

PeerContainer Unseen(uid_t owner, const char* call) {
  PeerContainer found;
  found.place = PeerContainer::Place::kUnseen;
  found.owner = owner;
  found.why = absl::StrCat(call, ": error ", ::GetLastError());
  return found;
}

}  // namespace

// An AppContainer's SID is made of its package's name: it is the same whenever the package runs.
absl::StatusOr<PeerContainer> FindPeerContainer(const os::PeerIdentity& peer) {
  const auto object = os::FindDescriptor(peer.pidfd.get(), os::HandleKind::kProcess);
  if (object == nullptr) return absl::UnavailableError("the process that connected has ended");
  const HANDLE process = static_cast<os::ProcessObject&>(*object).handle();
  HANDLE raw = nullptr;
  if (!::OpenProcessToken(process, TOKEN_QUERY, &raw)) return Unseen(peer.uid, "OpenProcessToken");
  const os::OwnedHandle token(raw);
  DWORD is_contained = 0;
  DWORD size = 0;
  if (!::GetTokenInformation(token.get(), TokenIsAppContainer, &is_contained, sizeof(is_contained),
                             &size)) {
    return Unseen(peer.uid, "TokenIsAppContainer");
  }
  PeerContainer found;
  found.owner = peer.uid;
  if (is_contained == 0) return found;
  std::vector<unsigned char> buffer(sizeof(TOKEN_APPCONTAINER_INFORMATION) + SECURITY_MAX_SID_SIZE);
  if (!::GetTokenInformation(token.get(), TokenAppContainerSid, buffer.data(),
                             static_cast<DWORD>(buffer.size()), &size)) {
    return Unseen(peer.uid, "TokenAppContainerSid");
  }
  const PSID sid =
      reinterpret_cast<const TOKEN_APPCONTAINER_INFORMATION*>(buffer.data())->TokenAppContainer;
  if (sid == nullptr) return Unseen(peer.uid, "TokenAppContainerSid");
  found.place = PeerContainer::Place::kContainer;
  found.key = os::TextOfSid(sid);
  found.lasting = true;
  return found;
}

}  // namespace sluice::broker
