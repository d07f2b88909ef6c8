// SPDX-License-Identifier: Apache-2.0
//
// What the running process is, for code that lives in a stranger's: its number and name, its
// environment, the libraries in it, its forks, its memory. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::os {

// Another one in the child of a fork.
int ProcessId();

// The program's name without its folder: for the daemon's lists.
std::string ProcessName();

// A variable of the environment, if it is set: UTF-8, which getenv's answer on Windows is not. In a
// program that has more rights than who started it (set-user-ID, file capabilities) none is set:
// where the daemon is, and which secrets it is shown, is not for that user to say.
std::optional<std::string> EnvironmentVariable(const char* name);

// How a path of this host is written where hosts of any kind must understand it: "/folder/file". On
// Windows the drive is the first folder, "C:\\folder\\file" is "/c/folder/file", and of
// "\\\\machine\\share" it is "unc"; a relative path only gets its slashes, unless it names a drive
// or begins at the root of the current one.
std::string PortablePath(std::string_view path);
// Whether a backslash in front of anything but a quote is part of a path.
bool BackslashSeparatesFolders();

// Portable; empty if it is not to be had.
std::string CurrentDirectory();

// What the portable `path` is for a path that leads through it. On Windows it is always a folder:
// Windows takes ".." away by the text alone, and follows links only where it opens a file.
struct PartOfPath {
  bool is_folder = false;
  std::string link;  // What the symbolic link says, if it is one.
};
PartOfPath LookAtThisHost(const std::string& path);

// Whether the portable `path` is a regular file; its bytes, unless it is none, cannot be read, or
// has more than `max_bytes`. Never waits for what is no regular file.
bool IsFileOfThisHost(const std::string& path);
bool ReadFileOfThisHost(const std::string& path, size_t max_bytes, std::string* contents);

// Calls `prepare` before each fork of the process, then `parent` and `child` in each of the two;
// any may be null. Nothing where processes do not fork.
void AtFork(void (*prepare)(), void (*parent)(), void (*child)());

// The file of the library or program that holds this address, as the loader knows it; empty if it
// is none.
std::string LibraryFileOf(const void* address);
// Its folder, with the separator at its end, or empty.
std::string LibraryFolderOf(const void* address);
// Has the library that holds this address stay in the process, where that is not said when it is
// linked.
void KeepLibraryOf(const void* address);
// The files of all the libraries in the process.
std::vector<std::string> LoadedLibraryFiles();
// Whether this code is in a second namespace of the linker, where glibc is there a second time too:
// dlmopen().
bool InOtherNamespace();
// What the process's libraries see under this name, if they share their names; null if none has it,
// or if each library has names of its own.
const void* FindGlobalSymbol(const char* name);

// Zero-filled memory of the process's own, which costs nothing until it is touched; null if there
// is no more. A multiple of pages is given back by FreePages with the same size.
void* AllocatePages(size_t bytes);
void FreePages(void* data, size_t bytes);

}  // namespace sluice::os
