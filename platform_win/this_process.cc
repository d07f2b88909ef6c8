// SPDX-License-Identifier: Apache-2.0
#include "broker/os/this_process.h"

#include <windows.h>
// After windows.h.
#include <psapi.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

std::string FileOf(HMODULE module) {
  std::wstring path(32768, L'\0');  // The longest that Windows knows.
  path.resize(::GetModuleFileNameW(module, path.data(), static_cast<DWORD>(path.size())));
  return FromWide(path);
}

// The first folder of a portable path on another machine; the machine's name follows.
constexpr std::string_view kShares = "/unc/";

// The path that PortablePath was made from.
std::wstring NativePath(std::string_view portable) {
  if (portable.starts_with(kShares))
    return ToWide("//" + std::string(portable.substr(kShares.size())));
  if (portable.size() < 3 || portable[0] != '/' || portable[2] != '/') return ToWide(portable);
  return ToWide(std::string{portable[1], ':'} + std::string(portable.substr(2)));
}

bool NamesDrive(std::string_view path) {
  return path.size() >= 2 && path[1] == ':' && std::isalpha(static_cast<unsigned char>(path[0]));
}

// Completes a path with its drive or machine, from the process's current ones.
std::string WholePath(std::string path) {
  std::replace(path.begin(), path.end(), '/', '\\');
  std::wstring whole(32768, L'\0');
  whole.resize(::GetFullPathNameW(ToWide(path).c_str(), static_cast<DWORD>(whole.size()),
                                  whole.data(), nullptr));
  std::string result = whole.empty() ? path : FromWide(whole);
  std::replace(result.begin(), result.end(), '\\', '/');
  // The spelling that bypasses Windows' rules for names.
  if (result.starts_with("//?/UNC/")) return "//" + result.substr(8);
  return result.starts_with("//?/") ? result.substr(4) : result;
}

}  // namespace

int ProcessId() { return static_cast<int>(::GetCurrentProcessId()); }

std::string ProcessName() {
  const std::string file = FileOf(nullptr);
  return file.substr(file.find_last_of("\\/") + 1);
}

// Not from the C runtime's copy: an application with another runtime changes only its own copy and
// the system's.
std::optional<std::string> EnvironmentVariable(const char* name) {
  const std::wstring wide = ToWide(name);
  std::wstring value(256, L'\0');
  while (true) {
    // An empty value and a missing one both have length 0; only the latter is an error.
    ::SetLastError(ERROR_SUCCESS);
    const DWORD length =
        ::GetEnvironmentVariableW(wide.c_str(), value.data(), static_cast<DWORD>(value.size()));
    if (length == 0 && ::GetLastError() == ERROR_ENVVAR_NOT_FOUND) return std::nullopt;
    const bool fits = length < value.size();
    value.resize(length);  // With room for a NUL, if it did not fit.
    if (fits) return FromWide(value);
  }
}

std::string PortablePath(std::string_view path) {
  std::string portable(path);
  std::replace(portable.begin(), portable.end(), '\\', '/');
  if (!portable.starts_with('/') && !NamesDrive(portable)) return portable;
  portable = WholePath(std::move(portable));
  if (portable.starts_with("//")) return std::string(kShares) + portable.substr(2);
  if (!NamesDrive(portable)) return portable;
  const char drive = static_cast<char>(portable[0] | 0x20);  // In one spelling.
  return std::string("/") + drive + portable.substr(2);
}

bool BackslashSeparatesFolders() { return true; }

std::string CurrentDirectory() {
  std::wstring path(32768, L'\0');
  path.resize(::GetCurrentDirectoryW(static_cast<DWORD>(path.size()), path.data()));
  return PortablePath(FromWide(path));
}

PartOfPath LookAtThisHost(const std::string&) { return {true, ""}; }

bool IsFileOfThisHost(const std::string& path) {
  const DWORD attributes = ::GetFileAttributesW(NativePath(path).c_str());
  return attributes != INVALID_FILE_ATTRIBUTES &&
         (attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE)) == 0;
}

bool ReadFileOfThisHost(const std::string& path, size_t max_bytes, std::string* contents) {
  if (!IsFileOfThisHost(path)) return false;
  const HANDLE file = ::CreateFileW(NativePath(path).c_str(), GENERIC_READ,
                                    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                    OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return false;
  LARGE_INTEGER size = {};
  const bool good = ::GetFileType(file) == FILE_TYPE_DISK && ::GetFileSizeEx(file, &size) &&
                    static_cast<size_t>(size.QuadPart) <= max_bytes;
  if (good) {
    contents->resize(static_cast<size_t>(size.QuadPart));
    DWORD filled = 0;
    ::ReadFile(file, contents->data(), static_cast<DWORD>(contents->size()), &filled, nullptr);
    contents->resize(filled);
  }
  ::CloseHandle(file);
  return good;
}

void AtFork(void (*)(), void (*)(), void (*)()) {}

std::string LibraryFileOf(const void* address) {
  HMODULE module = nullptr;
  if (!::GetModuleHandleExW(
          GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
          static_cast<const wchar_t*>(address), &module)) {
    return "";
  }
  return FileOf(module);
}

std::string LibraryFolderOf(const void* address) {
  const std::string file = LibraryFileOf(address);
  return file.substr(0, file.find_last_of("\\/") + 1);
}

void KeepLibraryOf(const void* address) {
  HMODULE unused = nullptr;
  ::GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                       static_cast<const wchar_t*>(address), &unused);
}

std::vector<std::string> LoadedLibraryFiles() {
  std::vector<HMODULE> modules(1024);
  DWORD bytes = 0;
  if (!::K32EnumProcessModules(::GetCurrentProcess(), modules.data(),
                               static_cast<DWORD>(modules.size() * sizeof(HMODULE)), &bytes)) {
    return {};
  }
  modules.resize(std::min<size_t>(modules.size(), bytes / sizeof(HMODULE)));
  std::vector<std::string> files;
  for (HMODULE module : modules) files.push_back(FileOf(module));
  return files;
}

bool InOtherNamespace() { return false; }

// Each DLL binds to the DLLs it names.
const void* FindGlobalSymbol(const char*) { return nullptr; }

void* AllocatePages(size_t bytes) {
  return ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void FreePages(void* data, size_t) { ::VirtualFree(data, 0, MEM_RELEASE); }

}  // namespace sluice::os
