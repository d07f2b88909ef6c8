// SPDX-License-Identifier: Apache-2.0
//
// The running process, for code that lives in a stranger's: its number and name, its environment,
// the libraries in it, its forks, its memory. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::os {

// The process's number; another one in the child of a fork.
int ProcessId();

// The program's name without its folder: for the daemon's lists.
std::string ProcessName();

// A variable of the environment, if it is set: UTF-8, which getenv's answer on Windows is not. In a
// program that has more rights than who started it (set-user-ID, file capabilities) none is set:
// where the daemon is, and which secrets it is shown, is not for that user to say.
std::optional<std::string> EnvironmentVariable(const char* name);

// How a path of this host is written where hosts of any kind must understand it: "/folder/file". On
// Windows the drive is the first folder: "C:\\folder\\file" is "/c/folder/file", and
// "\\\\machine\\share" is "/unc/machine/share". A relative path only gets its slashes, unless it
// names a drive or begins at the root of the current one.
std::string PortablePath(std::string_view path);
// True if a backslash before anything but a quote separates folders in a path.
bool BackslashSeparatesFolders();

// Portable; empty if it is not to be had.
std::string CurrentDirectory();

// How a longer path that leads through the portable `path` is resolved there. On Windows it is
// always a folder: Windows removes ".." by the text alone, and follows links only where it opens a
// file.
struct PartOfPath {
  bool is_folder = false;
  std::string link;  // The symbolic link's target, if it is one.
};
PartOfPath LookAtThisHost(const std::string& path);

// The first is true if the portable `path` is a regular file; the second reads it, and is false if
// it is none, cannot be read, or has more than `max_bytes`. Neither waits for what is no regular
// file.
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
// Keeps the library that holds this address in the process, where linking it has not said so
// already.
void KeepLibraryOf(const void* address);
// The files of all the libraries in the process.
std::vector<std::string> LoadedLibraryFiles();
// True if this code is in a second namespace of the linker (dlmopen), which has a glibc of its own.
bool InOtherNamespace();
// The symbol of this name as the process's libraries see it, if they share their symbols; null if
// none has it, or if each library has its own.
const void* FindGlobalSymbol(const char* name);

// Zero-filled memory of the process's own, which costs nothing until it is touched; null if there
// is no more. A multiple of pages is given back by FreePages with the same size.
void* AllocatePages(size_t bytes);
void FreePages(void* data, size_t bytes);

}  // namespace sluice::os
