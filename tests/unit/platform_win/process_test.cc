// SPDX-License-Identifier: Apache-2.0
#include "broker/os/process.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "broker/os/dynamic_library.h"
#include "broker/os/file.h"
#include "broker/os/local_socket.h"
#include "broker/os/peer_identity.h"
#include "broker/os/poller.h"
#include "broker/os/random.h"
#include "platform_win/handles/handle_table.h"
#include "tests/unit/platform_win/child.h"

#undef SendMessage  // A macro of windows.h.

namespace sluice::os {
namespace {

std::string ReadToEnd(int fd) {
  std::string text;
  while (true) {
    const std::string more = ReadPipe(fd, 4096);
    if (more.empty()) return text;
    text += more;
  }
}

// The exit code of a child is told as it was, a crash as one; reaping frees the descriptor.
TEST(ProcessTest, ReportsHowItEnded) {
  const int before = CountDescriptors();
  auto child = Spawn(ChildOptions("exit7"));
  ASSERT_TRUE(child.ok()) << child.status();
  auto status = child->WaitAndReap(-1);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 7);
  EXPECT_EQ(status->signal, 0);
  EXPECT_FALSE(child->valid());
  EXPECT_EQ(CountDescriptors(), before);

  child = Spawn(ChildOptions("crash"));
  ASSERT_TRUE(child.ok());
  status = child->WaitAndReap(-1);
  ASSERT_TRUE(status.has_value());
  EXPECT_NE(status->signal, 0);
  EXPECT_EQ(status->Describe(), "exception 0xc0000005");
}

// A child has the descriptors it is given at their numbers and no others, the given environment
// alone, and no privileges but the one that everybody has. Of the administrators' rights it has
// only their prohibitions.
TEST(ProcessTest, ChildHasWhatItIsGiven) {
  auto pipe = CreatePipe();
  ASSERT_TRUE(pipe.ok());
  ::SetEnvironmentVariableA("SLUICE_TEST_SECRET", "secret");
  SpawnOptions options = ChildOptions("describe");
  options.environment.push_back("GIVEN=1");
  options.descriptors = {{pipe->second.get(), 4}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  pipe->second.reset();
  const std::string text = ReadToEnd(pipe->first.get());
  EXPECT_EQ(child->WaitAndReap(-1)->code, 0);
  EXPECT_NE(text.find("GIVEN=1"), std::string::npos) << text;
  EXPECT_EQ(text.find("SLUICE_TEST_SECRET"), std::string::npos);
  EXPECT_EQ(text.find("SLUICE_INHERITED"), std::string::npos);
  EXPECT_NE(text.find("descriptors=1\n"), std::string::npos) << text;
  const size_t at = text.find("privileges=");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LE(std::stoi(text.substr(at + 11)), 1);
  EXPECT_NE(text.find("administrators=denied\n"), std::string::npos) << text;
}

// Every child has a folder that it may fill, for who asks by either name; variables are known by
// names in capitals, as other systems' are ("Path").
TEST(ProcessTest, ChildHasAFolderForFiles) {
  auto pipe = CreatePipe();
  ASSERT_TRUE(pipe.ok());
  SpawnOptions options = ChildOptions("describe");
  options.environment.push_back("Mixed_Case=1");
  options.environment.push_back("MIXED_CASE=2");
  options.descriptors = {{pipe->second.get(), 4}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  pipe->second.reset();
  const std::string text = "\n" + ReadToEnd(pipe->first.get());
  EXPECT_EQ(child->WaitAndReap(-1)->code, 0);
  for (const char* name : {"\nTEMP=", "\nTMP="}) {
    const size_t at = text.find(name);
    ASSERT_NE(at, std::string::npos) << text;
    const size_t from = text.find('=', at) + 1;
    const std::string folder = text.substr(from, text.find('\n', from) - from);
    EXPECT_NE(folder.find("sluice-work"), std::string::npos) << folder;
    EXPECT_TRUE(IsDirectory(folder)) << folder;
  }
  EXPECT_NE(text.find("\nPATH="), std::string::npos) << text;
  EXPECT_NE(text.find("\nMIXED_CASE=2"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nMIXED_CASE=1"), std::string::npos) << text;
}

// An argument with quotes and backslashes arrives as it was.
TEST(ProcessTest, ArgumentsSurviveQuoting) {
  SpawnOptions options = ChildOptions("argument");
  options.arguments.push_back("a \"b\\\" c\\");
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(child->WaitAndReap(-1)->code, 0);
}

// A file that cannot be executed is an error that says why, with no child and no descriptor left.
TEST(ProcessTest, FailedExecIsReported) {
  const int before = CountDescriptors();
  SpawnOptions options;
  options.path = "C:\\nonexistent\\program.exe";
  const auto child = Spawn(options);
  EXPECT_TRUE(absl::IsNotFound(child.status())) << child.status();
  EXPECT_EQ(CountDescriptors(), before);
}

// Wine 8 knows no OWNER RIGHTS (2), and gives new threads no list of the token's (16).
int NotKeptByWine() {
  const bool wine =
      ::GetProcAddress(::GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != nullptr;
  return wine ? 2 | 16 : 0;
}

// No child can be opened by another of the same token, from its first moment, nor the threads of
// one that hides them; the broker's handle stays good.
TEST(ProcessTest, HidesFromOthers) {
  auto pair = CreateSocketPair();
  ASSERT_TRUE(pair.ok());
  const auto look = [](const std::vector<std::string>& at) {
    SpawnOptions options = ChildOptions("look");
    options.arguments.insert(options.arguments.end(), at.begin(), at.end());
    auto child = Spawn(options);
    return child.ok() ? child->WaitAndReap(-1)->code : -1;
  };
  SpawnOptions options = ChildOptions("hide");
  options.descriptors = {{pair->second.get(), 3}};
  auto hidden = Spawn(options);
  ASSERT_TRUE(hidden.ok()) << hidden.status();
  auto fresh = Spawn(ChildOptions("hold"));
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  EXPECT_EQ(look({std::to_string(fresh->pid())}) & ~NotKeptByWine(), 8);
  auto other_pair = CreateSocketPair();
  ASSERT_TRUE(other_pair.ok());
  options = ChildOptions("show");
  options.descriptors = {{other_pair->second.get(), 3}};
  auto open = Spawn(options);
  ASSERT_TRUE(open.ok()) << open.status();
  char text[64] = {};
  ASSERT_TRUE(ReceiveMessage(other_pair->first.get(), text, sizeof(text), nullptr, 0).ok());
  EXPECT_EQ(look({std::to_string(open->pid())}), 1 | 2 | 8);  // As who is no child of ours.
  text[0] = '\0';
  const auto size = ReceiveMessage(pair->first.get(), text, sizeof(text) - 1, nullptr, 0);
  ASSERT_TRUE(size.ok() && *size > 0);
  const std::vector<std::string> found = absl::StrSplit(text, ' ');
  ASSERT_EQ(found.size(), 3u) << text;
  EXPECT_EQ(look(found) & ~NotKeptByWine(), 8);
  for (ChildProcess* child : {&*hidden, &*fresh, &*open}) {
    child->KillGroup();
    EXPECT_TRUE(child->WaitAndReap(10'000).has_value());
  }
}

// Closing a console stops a daemon, which has the time to end well; that somebody logs off does
// not, and a service hears nothing of consoles.
TEST(ConsoleTest, WhatStopsADaemon) {
  for (const char* part : {"console-closed", "console-service"}) {
    auto child = Spawn(ChildOptions(part));
    ASSERT_TRUE(child.ok()) << child.status();
    EXPECT_EQ(child->WaitAndReap(20'000)->code, 0) << part;
  }
}

// Ending a child's group ends what the child has started, too.
TEST(ProcessTest, KillGroupReachesGrandchildren) {
  auto pair = CreateSocketPair();
  ASSERT_TRUE(pair.ok());
  SpawnOptions options = ChildOptions("hold-with-grandchild");
  options.descriptors = {{pair->second.get(), 3}};
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  pair->second.reset();
  char text[16] = {};
  const auto size = ReceiveMessage(pair->first.get(), text, sizeof(text) - 1, nullptr, 0);
  ASSERT_TRUE(size.ok() && *size > 0);
  const OwnedHandle grandchild(
      ::OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(std::stoul(text))));
  ASSERT_TRUE(grandchild.valid());
  EXPECT_FALSE(child->TryReap().has_value());
  EXPECT_FALSE(child->WaitAndReap(10).has_value());
  child->KillGroup();
  EXPECT_EQ(child->WaitAndReap(-1)->Describe(), "ended from outside");
  EXPECT_EQ(::WaitForSingleObject(grandchild.get(), 10'000), WAIT_OBJECT_0);
}

// A poller tells of a message, of a child's end and of nothing else, and forgets what is removed.
TEST(PollerTest, TellsWhatIsReady) {
  auto poller = Poller::Create();
  ASSERT_TRUE(poller.ok());
  auto pair = CreateSocketPair();
  auto child = Spawn(ChildOptions("hold"));
  ASSERT_TRUE(pair.ok() && child.ok());
  ASSERT_TRUE((*poller)->Add(7, pair->first.get(), Poller::Interest::kReadable).ok());
  ASSERT_TRUE((*poller)->Add(8, child->pidfd(), Poller::Interest::kReadable).ok());
  std::vector<uint64_t> ready;
  (*poller)->Wait(10, &ready);
  EXPECT_TRUE(ready.empty());
  ASSERT_TRUE(SendMessage(pair->second.get(), "x", 1).ok());
  for (int i = 0; i < 3; ++i) {  // Level-triggered.
    (*poller)->Wait(5000, &ready);
    EXPECT_EQ(ready, std::vector<uint64_t>{7});
  }
  (*poller)->Remove(7, pair->first.get());
  (*poller)->Wait(10, &ready);
  EXPECT_TRUE(ready.empty());
  child->KillGroup();
  (*poller)->Wait(5000, &ready);
  EXPECT_EQ(ready, std::vector<uint64_t>{8});
  (*poller)->Remove(8, child->pidfd());
}

// A child's output while it lives is told and read without waiting for more, all of it and in
// order, and so is its end.
TEST(PollerTest, TellsOfOutput) {
  constexpr size_t kAtOnce = 64 << 10;
  auto poller = Poller::Create();
  ASSERT_TRUE(poller.ok());
  auto ends = CreateOutputPipe();
  ASSERT_TRUE(ends.ok()) << ends.status();
  const int pipe = ends->first.get();
  EXPECT_EQ(ReadPipe(pipe, kAtOnce), "");
  ASSERT_TRUE((*poller)->Add(7, pipe, Poller::Interest::kReadable).ok());
  std::vector<uint64_t> ready;
  (*poller)->Wait(10, &ready);
  EXPECT_TRUE(ready.empty());
  SpawnOptions options = ChildOptions("say");
  options.output = ends->second.get();
  auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  ends->second.reset();
  const std::string expected = "out\r\nerr\r\n" + std::string(1 << 20, 'x');
  std::string text;
  while (text.size() < expected.size()) {
    (*poller)->Wait(5000, &ready);
    ASSERT_EQ(ready, std::vector<uint64_t>{7});
    const std::string more = ReadPipe(pipe, kAtOnce);
    ASSERT_FALSE(more.empty()) << text.size();
    ASSERT_LE(more.size(), kAtOnce);
    text += more;
  }
  EXPECT_TRUE(text == expected);
  EXPECT_EQ(ReadPipe(pipe, kAtOnce), "");
  (*poller)->Wait(10, &ready);
  EXPECT_TRUE(ready.empty());
  EXPECT_FALSE(child->TryReap().has_value());
  child->KillGroup();
  (*poller)->Wait(5000, &ready);
  EXPECT_EQ(ready, std::vector<uint64_t>{7});
  EXPECT_EQ(ReadPipe(pipe, kAtOnce), "");
  EXPECT_TRUE(child->WaitAndReap(5000).has_value());
  (*poller)->Remove(7, pipe);
}

// Far more descriptors than one wait of the system's can take.
TEST(PollerTest, ManyDescriptors) {
  auto poller = Poller::Create();
  ASSERT_TRUE(poller.ok());
  std::vector<std::pair<UniqueFd, UniqueFd>> pairs;
  for (uint64_t i = 0; i < 150; ++i) {
    auto pair = CreateSocketPair();
    ASSERT_TRUE(pair.ok()) << pair.status();
    ASSERT_TRUE((*poller)->Add(i + 1, pair->first.get(), Poller::Interest::kReadable).ok());
    pairs.push_back(*std::move(pair));
  }
  std::vector<uint64_t> ready;
  for (const size_t index : {size_t{149}, size_t{0}, size_t{70}}) {
    ASSERT_TRUE(SendMessage(pairs[index].second.get(), "x", 1).ok());
    (*poller)->Wait(5000, &ready);
    EXPECT_EQ(ready, std::vector<uint64_t>{index + 1});
    char byte;
    ASSERT_TRUE(ReceiveMessage(pairs[index].first.get(), &byte, 1, nullptr, 0).ok());
  }
}

// A scratch file holds what a child, or we, have written; too much is an error.
TEST(FileTest, ScratchFile) {
  const auto file = CreateScratchFile("sluice-test");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*ReadScratchFile(file->get(), 10), "");
  ASSERT_TRUE(WriteWhole(file->get(), "hello").ok());
  EXPECT_EQ(*ReadScratchFile(file->get(), 5), "hello");
  EXPECT_TRUE(absl::IsOutOfRange(ReadScratchFile(file->get(), 4).status()));
}

// Users are known by SIDs; a name of the machine's and its SID are the same number. A group, which
// no process runs as, is no user.
TEST(UserTest, NamesAndSids) {
  EXPECT_TRUE(absl::IsNotFound(LookUpUser("no-such-user-here").status()));
  EXPECT_FALSE(ParseUser("1000").has_value());
  const std::string own = UserName(OwnUser()).substr(4);
  EXPECT_EQ(ParseUser(own), OwnUser());
  EXPECT_EQ(ParseUser(absl::AsciiStrToLower(own)), OwnUser());
  EXPECT_EQ(ParseUser("S-1-05-18"), ParseUser("S-1-5-18"));
  EXPECT_NE(ParseUser("S-1-5-18"), ParseUser("S-1-5-19"));
  EXPECT_TRUE(ParseUser("S-1-5-18").has_value());
  EXPECT_TRUE(ParseUser("S-1-5-21-1-2-3-1001").has_value());  // Perhaps a domain's.
  EXPECT_TRUE(LookUpUser("SYSTEM").ok());
  for (const char* group : {"Users", "Administrators", "Everyone"})
    EXPECT_TRUE(absl::IsNotFound(LookUpUser(group).status())) << group;
  for (const char* group : {"S-1-5-32-545", "S-1-1-0"}) EXPECT_FALSE(ParseUser(group)) << group;
}

// A library that is not there is an error; the system's has its symbols.
TEST(DynamicLibraryTest, Opens) {
  EXPECT_TRUE(absl::IsNotFound(DynamicLibrary::Open("no-such-library.dll").status()));
  const auto library = DynamicLibrary::Open("advapi32.dll");
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_NE(library->Find("RegOpenKeyExW"), nullptr);
  EXPECT_EQ(library->Find("no_such_symbol_here"), nullptr);
}

// A library that lies in the current folder, or beside the program, is loaded by nobody who asks by
// its bare name. Neither is a driver's name through DynamicLibrary, nor, in a daemon, anything that
// the system's own libraries load.
TEST(DynamicLibraryTest, PlantedOnesAreNotFound) {
  const std::string program = *OwnExecutablePath();
  const std::string beside =
      program.substr(0, program.find_last_of("\\/") + 1) + "other_vendor.dll";
  char folder[MAX_PATH + 1] = {};
  char before[MAX_PATH + 1] = {};
  ASSERT_NE(::GetTempPathA(sizeof(folder), folder), 0u);
  const std::string planted = std::string(folder) + "sluice_planted.dll";
  ASSERT_TRUE(::CopyFileA(beside.c_str(), planted.c_str(), FALSE)) << beside;
  ::GetCurrentDirectoryA(sizeof(before), before);
  ASSERT_TRUE(::SetCurrentDirectoryA(folder));
  for (const char* name : {"sluice_planted.dll", "other_vendor.dll"}) {
    EXPECT_TRUE(absl::IsNotFound(DynamicLibrary::Open(name).status())) << name;
    for (const char* part : {"load-as-stranger", "load-as-daemon"}) {
      SpawnOptions options = ChildOptions(part);
      options.arguments.push_back(name);
      auto child = Spawn(options);
      ASSERT_TRUE(child.ok()) << child.status();
      EXPECT_EQ(child->WaitAndReap(-1)->code, 0) << part << " " << name;
    }
  }
  EXPECT_TRUE(DynamicLibrary::Open(planted).ok()) << "with its folder it is found";
  ::SetCurrentDirectoryA(before);
  ::DeleteFileA(planted.c_str());
}

// Two draws of 256 bits differ.
TEST(RandomTest, Differs) {
  uint64_t a[4] = {};
  uint64_t b[4] = {};
  ASSERT_TRUE(FillRandom(a, sizeof(a)).ok() && FillRandom(b, sizeof(b)).ok());
  EXPECT_NE(std::memcmp(a, b, sizeof(a)), 0);
}

}  // namespace
}  // namespace sluice::os
