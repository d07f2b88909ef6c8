// SPDX-License-Identifier: Apache-2.0
#include "broker/os/lasting_thread.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <string>
#include <thread>

#include "broker/os/threads.h"

namespace sluice::os {
namespace {

struct Pipe {
  Pipe() {
    const std::string name = R"(\\.\pipe\sluice-lasting-)" + std::to_string(GetCurrentProcessId());
    in = CreateNamedPipeA(name.c_str(), PIPE_ACCESS_INBOUND | FILE_FLAG_OVERLAPPED, PIPE_TYPE_BYTE,
                          1, 4096, 4096, 0, nullptr);
    out = CreateFileA(name.c_str(), GENERIC_WRITE, 0, nullptr, OPEN_EXISTING, 0, nullptr);
    overlapped.hEvent = CreateEventW(nullptr, TRUE, FALSE, nullptr);
  }
  ~Pipe() {
    CloseHandle(in);
    CloseHandle(out);
    CloseHandle(overlapped.hEvent);
  }
  HANDLE in = nullptr;
  HANDLE out = nullptr;
  OVERLAPPED overlapped = {};
  char byte = 0;
};

// A read that is begun where I/O lasts gets its byte, though the thread that asked for it is gone.
TEST(LastingThreadTest, IoOutlivesTheThreadThatAsked) {
  Pipe pipe;
  std::thread asking([&pipe] {
    RunWhereIoLasts([&pipe] {
      EXPECT_FALSE(ReadFile(pipe.in, &pipe.byte, 1, nullptr, &pipe.overlapped));
      EXPECT_EQ(GetLastError(), DWORD{ERROR_IO_PENDING});
    });
  });
  asking.join();
  DWORD bytes = 0;
  ASSERT_TRUE(WriteFile(pipe.out, "x", 1, &bytes, nullptr));
  ASSERT_TRUE(GetOverlappedResult(pipe.in, &pipe.overlapped, &bytes, TRUE)) << GetLastError();
  EXPECT_EQ(bytes, 1u);
  EXPECT_EQ(pipe.byte, 'x');
}

// Bodies that wait for each other all run: each has a thread of its own, none of them the caller's.
TEST(LastingThreadTest, EachHasAThread) {
  const int mine = ThisThreadNumber();
  for (int round = 0; round < 20; ++round) {
    RunWhereIoLasts([mine] {
      const int outer = ThisThreadNumber();
      EXPECT_NE(outer, mine);
      RunWhereIoLasts([mine, outer] {
        EXPECT_NE(ThisThreadNumber(), mine);
        EXPECT_NE(ThisThreadNumber(), outer);
      });
    });
  }
}

}  // namespace
}  // namespace sluice::os
