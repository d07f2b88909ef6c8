// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/worker_process.h"

#include <windows.h>
// After windows.h.
#include <fcntl.h>
#include <io.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "broker/os/random.h"
#include "platform_win/pipe.h"
#include "platform_win/wide_text.h"

namespace sluice::worker {
namespace {

constexpr DWORD kCapturedBytes = 1 << 20;
constexpr int kStdout = 1;

// True if `c` is in the set "[...]" at `pattern[at]`. `*end` is the index behind the set, or 0 if
// it has no end.
bool InSet(const std::string& pattern, size_t at, char c, size_t* end) {
  size_t i = at + 1;
  const bool inverted = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (inverted) ++i;
  bool found = false;
  for (const size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      found = found || pattern[i] == c;
    }
  }
  *end = i < pattern.size() ? i + 1 : 0;
  return found != inverted;
}

}  // namespace

void SetVariable(const char* name, const char* value) { ::_putenv_s(name, value); }

void HoldSessionNice() {}  // A process's class is weighed against all others'.

bool SetProcessNice(int nice) {
  return ::SetPriorityClass(::GetCurrentProcess(),
                            nice > 0 ? BELOW_NORMAL_PRIORITY_CLASS : NORMAL_PRIORITY_CLASS);
}

// Windows has no clamp of that kind.
bool SetProcessUtilisation(uint32_t) { return false; }

absl::StatusOr<os::UniqueFd> CaptureStdout() {
  auto ends = os::CreateOneWayPipe(PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE, kCapturedBytes);
  if (!ends.ok()) return ends.status();
  auto& [read_end, write_end] = *ends;
  std::fflush(stdout);
  ::SetStdHandle(STD_OUTPUT_HANDLE, write_end.get());
  const int descriptor =
      ::_open_osfhandle(reinterpret_cast<intptr_t>(write_end.release()), _O_WRONLY | _O_BINARY);
  if (descriptor < 0 || ::_dup2(descriptor, kStdout) != 0) {
    return absl::InternalError("taking over stdout");
  }
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  auto end = std::make_shared<os::PipeEnd>(std::move(read_end));
  end->SetNonBlocking(true);
  return os::AddDescriptor(std::move(end));
}

std::string ReadCaptured(int fd, size_t) {
  const std::shared_ptr<os::HandleObject> object = os::FindDescriptor(fd, os::HandleKind::kPipe);
  if (object == nullptr) return "";
  return static_cast<os::PipeEnd&>(*object).ReceiveRaw(/*may_block=*/false).value_or("");
}

bool MatchesWildcard(const std::string& pattern, const std::string& name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string::npos;  // The last star, and the text that it has been tried with.
  size_t tried = 0;
  while (n < name.size()) {
    size_t after_set = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = n;
      continue;
    }
    if (p < pattern.size() && pattern[p] == '[' && InSet(pattern, p, name[n], &after_set) &&
        after_set != 0) {
      p = after_set;
      ++n;
    } else if (p < pattern.size() && (after_set == 0 || pattern[p] != '[') &&
               (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++tried;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// In a folder whose path has no blanks, which would separate options.
std::string MakeTemporaryFolder() {
  uint64_t secret;
  std::error_code error;
  if (!os::FillRandom(&secret, sizeof(secret)).ok()) return "";
  std::wstring above = std::filesystem::temp_directory_path(error).wstring();
  wchar_t other[MAX_PATH];
  const DWORD length = ::GetShortPathNameW(above.c_str(), other, MAX_PATH);
  if (above.find(L' ') != std::wstring::npos && length != 0 && length < MAX_PATH) above = other;
  const std::filesystem::path folder =
      std::filesystem::path(above) / absl::StrCat(kTemporaryFolderPrefix, absl::Hex(secret));
  return !error && std::filesystem::create_directory(folder, error) ? folder.generic_string() : "";
}

// Holds the folder by a file in it, which goes with its last handle: an open folder could not be
// removed.
os::UniqueFd HoldFolder(const std::string& folder) {
  os::OwnedHandle held(::CreateFileW(os::ToWide(folder + "/.sluice-held").c_str(),
                                     GENERIC_WRITE | DELETE, 0, nullptr, CREATE_ALWAYS,
                                     FILE_FLAG_DELETE_ON_CLOSE, nullptr));
  if (!held.valid()) return os::UniqueFd();
  return os::AddDescriptor(
      std::make_shared<os::HandleObject>(os::HandleKind::kFile, std::move(held)));
}

// The file that holds the folder must be removed last: until then nobody else can take the folder.
void RemoveHeldFolder(const std::string& folder, os::UniqueFd held) {
  std::error_code error;
  const std::filesystem::path root(folder);
  for (const auto& entry : std::filesystem::directory_iterator(root, error))
    std::filesystem::remove_all(entry.path(), error);
  std::filesystem::remove(root, error);
  held.reset();
  std::filesystem::remove(root, error);
}

bool IsPathInFolder(const std::string& path) {
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    // No name may end in blanks or dots: ".. " could be the folder above.
    if (!part.empty() && (part.back() == ' ' || part.back() == '.')) return false;
    if (part.find_first_of("\\:*?\"<>|") != absl::string_view::npos) return false;
  }
  return true;
}

const char kOpenClLoader[] = "OpenCL.dll";
const char kOpenClLoaderAdvice[] = "it comes with a GPU's driver";

}  // namespace sluice::worker
