// SPDX-License-Identifier: Apache-2.0
#include "broker/os/this_process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "broker/os/scoped_handle.h"

namespace sluice::os {

int ProcessId() { return ::getpid(); }

std::string ProcessName() { return ::program_invocation_short_name; }

std::optional<std::string> EnvironmentVariable(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string PortablePath(std::string_view path) { return std::string(path); }

bool BackslashSeparatesFolders() { return false; }

std::string CurrentDirectory() {
  char buffer[PATH_MAX];
  return ::getcwd(buffer, sizeof(buffer)) != nullptr ? buffer : "";
}

PartOfPath LookAtThisHost(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISLNK(info.st_mode)) return {S_ISDIR(info.st_mode), ""};
  char link[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), link, sizeof(link));
  return {false, length > 0 ? std::string(link, static_cast<size_t>(length)) : ""};
}

bool IsFileOfThisHost(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool ReadFileOfThisHost(const std::string& path, size_t max_bytes, std::string* contents) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<size_t>(info.st_size) > max_bytes) {
    return false;
  }
  contents->resize(static_cast<size_t>(info.st_size));
  size_t filled = 0;
  while (filled < contents->size()) {
    const ssize_t count = ::read(file.get(), contents->data() + filled, contents->size() - filled);
    if (count <= 0) break;
    filled += static_cast<size_t>(count);
  }
  contents->resize(filled);
  return true;
}

void AtFork(void (*prepare)(), void (*parent)(), void (*child)()) {
  ::pthread_atfork(prepare, parent, child);
}

std::string LibraryFileOf(const void* address) {
  Dl_info info = {};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  return info.dli_fname;
}

std::string LibraryFolderOf(const void* address) {
  const std::string file = LibraryFileOf(address);
  return file.substr(0, file.rfind('/') + 1);
}

void KeepLibraryOf(const void*) {}  // -z nodelete.

std::vector<std::string> LoadedLibraryFiles() {
  std::vector<std::string> files;
  const auto add = [](dl_phdr_info* object, size_t, void* out) {
    if (object->dlpi_name != nullptr)
      static_cast<std::vector<std::string>*>(out)->emplace_back(object->dlpi_name);
    return 0;
  };
  ::dl_iterate_phdr(add, &files);
  return files;
}

// Only the first namespace has the program itself: the first of its files, without a name.
bool InOtherNamespace() {
  const std::vector<std::string> files = LoadedLibraryFiles();
  return !files.empty() && !files.front().empty();
}

const void* FindGlobalSymbol(const char* name) { return ::dlsym(RTLD_DEFAULT, name); }

void* AllocatePages(size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

void FreePages(void* data, size_t bytes) { ::munmap(data, bytes); }

}  // namespace sluice::os
