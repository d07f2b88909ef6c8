// SPDX-License-Identifier: Apache-2.0
#include "broker/os/peer_identity.h"

#include <windows.h>
// After windows.h.
#include <sddl.h>

#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform_win/handles/process_object.h"
#include "platform_win/pipe.h"
#include "platform_win/security/account.h"
#include "platform_win/wide_text.h"

namespace sluice::os {

std::string UserName(uid_t uid) { return absl::StrCat("sid:", SidOfUser(uid)); }

std::optional<uid_t> ParseUser(const std::string& text) {
  if (!absl::StartsWithIgnoreCase(text, "S-1-")) return std::nullopt;
  PSID sid = nullptr;
  if (!::ConvertStringSidToSidW(ToWide(text).c_str(), &sid)) return std::nullopt;
  wchar_t name[256];
  wchar_t domain[256];
  DWORD name_length = std::size(name);
  DWORD domain_length = std::size(domain);
  SID_NAME_USE use;
  // A SID that the system does not know now may be a domain user's.
  const bool is_group =
      ::LookupAccountSidW(nullptr, sid, name, &name_length, domain, &domain_length, &use) &&
      IsGroup(sid, use);
  // In the spelling of tokens' SIDs, with which it is compared: there are other spellings.
  const std::string plain = TextOfSid(sid);
  ::LocalFree(sid);
  return is_group || plain.empty() ? std::nullopt : std::make_optional(UserOfSid(plain));
}

uid_t OwnUser() { return UserOfSid(OwnSid()); }

absl::StatusOr<PeerIdentity> GetPeerIdentity(int socket) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(socket, HandleKind::kPipe);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor is no pipe");
  const PipePeer& peer = static_cast<PipeEnd&>(*object).peer();
  if (peer.pid < 0) return absl::UnavailableError("the system does not know the peer");
  PeerIdentity identity;
  identity.uid = peer.user;
  identity.gid = peer.user;
  identity.pid = peer.pid;
  identity.pidfd = AddDescriptor(
      std::make_shared<ProcessObject>(DuplicateHandleHere(peer.process.get()), OwnedHandle()));
  return identity;
}

}  // namespace sluice::os
