// SPDX-License-Identifier: Apache-2.0
//
// The Container Device Interface's files, by which podman, Docker, containerd and CRI-O give a
// container a device: here three mounts, with no hook, no device node and no environment. Written
// in version 0.5.0, which podman 4.3 still reads. Thread-safe.
//
// The kind's domain is a name only, which nothing resolves; who ships Sluice under a domain of his
// own has another with --kind.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice::ctl {

inline constexpr char kCdiKind[] = "sluice.dev/gpu";

// OK if runtimes take it as a kind: DOMAIN/CLASS.
absl::Status CheckCdiKind(const std::string& kind);

struct CdiOptions {
  std::string kind = kCdiKind;
  std::string client_folder;  // On the host.
  std::string socket_folder;  // On the host.
};

// The whole document. The files that it mounts need not be there yet.
nlohmann::ordered_json MakeCdi(const CdiOptions& options);

// OK if a folder may be given to containers as the clients' socket folder; else what in it may not.
absl::Status CheckSocketFolder(const std::string& folder);

// Why programs in a container that has this folder may find no daemon; "" if they do.
std::string SocketFolderDoubt(const std::string& folder);

struct CdiFinding {
  std::string field;  // "devices[0].containerEdits.mounts[1].hostPath"; "" of the whole file.
  std::string problem;
  bool is_error = true;  // Else a warning: some runtimes, or some containers.
};

// The faults of a file's text, as runtimes see them; of Sluice's kind also whether what it mounts
// is there, and whole.
std::vector<CdiFinding> ExamineCdi(const std::string& text);

// The kind of a CDI file; "" if it is none.
std::string CdiKindOf(const std::string& text);

// The files of the folders that runtimes read, or of `folders` if it names some, in their order.
std::vector<std::string> CdiFiles(const std::vector<std::string>& folders);

}  // namespace sluice::ctl
