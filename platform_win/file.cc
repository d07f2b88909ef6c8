// SPDX-License-Identifier: Apache-2.0
#include "broker/os/file.h"

#include <windows.h>

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "broker/os/random.h"
#include "platform_win/handles/handle_table.h"
#include "platform_win/pipe.h"
#include "platform_win/security/access_notation.h"
#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

constexpr DWORD kOutputBytes = 64 << 10;

UniqueFd AddFile(OwnedHandle handle) {
  return AddDescriptor(std::make_shared<HandleObject>(HandleKind::kFile, std::move(handle)));
}

absl::StatusOr<std::shared_ptr<HandleObject>> FindFile(int fd) {
  std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kFile);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor is no file");
  return object;
}

OwnedHandle OpenExisting(const std::string& path) {
  return OwnedHandle(::CreateFileW(ToWide(path).c_str(), GENERIC_READ,
                                   FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                   OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr));
}

}  // namespace

absl::StatusOr<UniqueFd> OpenForReading(const std::string& path) {
  OwnedHandle file = OpenExisting(path);
  if (!file.valid()) return WindowsStatus(::GetLastError(), absl::StrCat("cannot read ", path));
  return AddFile(std::move(file));
}

absl::StatusOr<std::string> ReadToEnd(int fd, size_t max_bytes) {
  const auto file = FindFile(fd);
  if (!file.ok()) return file.status();
  std::string content;
  char buffer[4096];
  while (true) {
    DWORD bytes = 0;
    if (!::ReadFile((*file)->handle(), buffer, sizeof(buffer), &bytes, nullptr)) {
      const DWORD error = ::GetLastError();
      if (error == ERROR_BROKEN_PIPE || error == ERROR_HANDLE_EOF) return content;
      return WindowsStatus(error, "reading it");
    }
    if (bytes == 0) return content;
    content.append(buffer, bytes);
    if (content.size() > max_bytes)
      return absl::OutOfRangeError(
          absl::StrCat("it is longer than ", max_bytes, " bytes, the most that is taken"));
  }
}

absl::StatusOr<UniqueFd> CreateNewFile(const std::string& path, NewFile kind) {
  const AccessNotation owner_only(L"D:P(A;;FA;;;OW)");
  if (owner_only.get() == nullptr) return WindowsStatus(::GetLastError(), "an access list");
  SECURITY_ATTRIBUTES access = {sizeof(access), owner_only.get(), FALSE};
  OwnedHandle file(::CreateFileW(ToWide(path).c_str(), GENERIC_WRITE, 0,
                                 kind == NewFile::kPrivate ? &access : nullptr, CREATE_NEW,
                                 FILE_ATTRIBUTE_NORMAL, nullptr));
  if (!file.valid()) return WindowsStatus(::GetLastError(), absl::StrCat("cannot create ", path));
  return AddFile(std::move(file));
}

// A file in the user's temporary folder, removed with its last handle; nobody else can open it
// meanwhile.
absl::StatusOr<UniqueFd> CreateScratchFile(const char* name) {
  wchar_t folder[MAX_PATH + 1];
  const DWORD length = ::GetTempPathW(std::size(folder), folder);
  uint64_t secret[2];
  if (absl::Status random = FillRandom(secret, sizeof(secret)); !random.ok()) return random;
  const std::wstring path =
      std::wstring(folder, std::min<size_t>(length, MAX_PATH)) +
      ToWide(absl::StrCat(name, "-", absl::Hex(secret[0]), absl::Hex(secret[1]), ".tmp"));
  OwnedHandle file(::CreateFileW(path.c_str(), GENERIC_READ | GENERIC_WRITE | DELETE, 0, nullptr,
                                 CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE,
                                 nullptr));
  if (!file.valid()) return WindowsStatus(::GetLastError(), "creating a scratch file");
  return AddFile(std::move(file));
}

absl::Status WriteWhole(int fd, std::string_view bytes) {
  const auto file = FindFile(fd);
  if (!file.ok()) return file.status();
  while (!bytes.empty()) {
    DWORD written = 0;
    if (!::WriteFile((*file)->handle(), bytes.data(),
                     static_cast<DWORD>(std::min<size_t>(bytes.size(), INT_MAX)), &written,
                     nullptr)) {
      return WindowsStatus(::GetLastError(), "writing a file");
    }
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadScratchFile(int fd, size_t max_bytes) {
  const auto file = FindFile(fd);
  if (!file.ok()) return file.status();
  LARGE_INTEGER size;
  if (!::GetFileSizeEx((*file)->handle(), &size)) {
    return WindowsStatus(::GetLastError(), "size of a scratch file");
  }
  if (static_cast<uint64_t>(size.QuadPart) > max_bytes) {
    return absl::OutOfRangeError(
        absl::StrCat("it has ", size.QuadPart, " bytes, at most ", max_bytes, " are taken"));
  }
  std::string bytes(static_cast<size_t>(size.QuadPart), '\0');
  for (size_t done = 0; done < bytes.size();) {
    OVERLAPPED at = {};  // The offset to read from; the read also moves the writer's position.
    at.Offset = static_cast<DWORD>(done);
    DWORD count = 0;
    if (!::ReadFile((*file)->handle(), bytes.data() + done, static_cast<DWORD>(bytes.size() - done),
                    &count, &at) ||
        count == 0) {
      return absl::DataLossError("it shrank while it was read");
    }
    done += count;
  }
  return bytes;
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreatePipe() {
  HANDLE read = nullptr;
  HANDLE write = nullptr;
  if (!::CreatePipe(&read, &write, nullptr, 0)) {
    return WindowsStatus(::GetLastError(), "creating a pipe");
  }
  UniqueFd read_end = AddFile(OwnedHandle(read));
  return std::make_pair(std::move(read_end), AddFile(OwnedHandle(write)));
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateOutputPipe() {
  auto ends = CreateOneWayPipe(PIPE_TYPE_BYTE | PIPE_READMODE_BYTE, kOutputBytes);
  if (!ends.ok()) return ends.status();
  UniqueFd read_end = AddDescriptor(std::make_shared<PipeEnd>(std::move(ends->first)));
  return std::make_pair(std::move(read_end), AddFile(std::move(ends->second)));
}

std::string ReadPipe(int fd, size_t max_bytes) {
  if (const auto watched = FindDescriptor(fd, HandleKind::kPipe)) {
    std::string bytes;
    for (size_t reads = max_bytes / PipeEnd::kReadBytes; reads > 0; --reads) {
      const auto more = static_cast<PipeEnd&>(*watched).ReceiveRaw(/*may_block=*/false);
      if (!more.ok() || more->empty()) break;
      bytes += *more;
    }
    return bytes;
  }
  const auto file = FindFile(fd);
  std::string bytes(max_bytes, '\0');
  DWORD count = 0;
  if (!file.ok() || !::ReadFile((*file)->handle(), bytes.data(), static_cast<DWORD>(max_bytes),
                                &count, nullptr)) {
    count = 0;
  }
  bytes.resize(count);
  return bytes;
}

bool IsAbsolutePath(const std::string& path) {
  const bool drive = path.size() >= 3 && ::isalpha(static_cast<unsigned char>(path[0])) &&
                     path[1] == ':' && (path[2] == '\\' || path[2] == '/');
  return drive || path.starts_with("\\\\");
}

bool IsDirectory(const std::string& path) {
  const DWORD attributes = ::GetFileAttributesW(ToWide(path).c_str());
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

absl::Status CheckReadableFile(const std::string& path) {
  if (OpenExisting(path).valid()) return absl::OkStatus();
  return WindowsStatus(::GetLastError(), absl::StrCat("cannot read ", path));
}

}  // namespace sluice::os
