// SPDX-License-Identifier: Apache-2.0
#include "broker/os/file.h"

#include "absl/strings/str_cat.h"

namespace sluice::os {

absl::StatusOr<std::string> ReadNamedFile(const std::string& path, size_t max_bytes) {
  if (IsDirectory(path)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": Is a directory"));
  }
  const absl::StatusOr<UniqueFd> opened = OpenForReading(path);
  if (!opened.ok()) return opened.status();
  const UniqueFd& file = *opened;
  absl::StatusOr<std::string> content = ReadToEnd(file.get(), max_bytes);
  if (content.ok()) return content;
  return absl::Status(content.status().code(),
                      absl::StrCat("cannot read ", path, ": ", content.status().message()));
}

}  // namespace sluice::os
