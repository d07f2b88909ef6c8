// SPDX-License-Identifier: Apache-2.0
extern "C" {
#include "deploy/slurm/run_program.h"
}

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace {

int Shell(const char* script, int seconds, ProgramOutput* output) {
  const char* const arguments[] = {"/bin/sh", "-c", script, nullptr};
  return RunProgram(arguments, seconds, output);
}

// Its code, its output and its errors are told, as one line each.
TEST(RunProgramTest, TellsWhatItSaid) {
  ProgramOutput output;
  EXPECT_EQ(Shell("echo a; printf 'b\\033\\377\\n'; echo wrong >&2; exit 3", 30, &output), 3);
  EXPECT_STREQ(output.text, "a b??");
  EXPECT_STREQ(output.errors, "wrong");
}

// It has nothing of its caller's: no variable, no descriptor, no input.
TEST(RunProgramTest, GivesItNothing) {
  setenv("SLUICE_TEST_SECRET", "1", 1);
  const int leaked = dup(1);  // Without O_CLOEXEC.
  ProgramOutput output;
  EXPECT_EQ(Shell("env; cat; ls /proc/self/fd", 30, &output), 0);
  EXPECT_EQ(std::string(output.text).find("SECRET"), std::string::npos) << output.text;
  EXPECT_NE(std::string(output.text).find("PATH=/usr/sbin"), std::string::npos) << output.text;
  EXPECT_NE(std::string(output.text).find(" 0 1 2 3"), std::string::npos) << output.text;
  EXPECT_EQ(std::string(output.text).find(" 0 1 2 3 4"), std::string::npos) << output.text;
  close(leaked);
  unsetenv("SLUICE_TEST_SECRET");
}

// More output than there is room for holds it up as little as one that says nothing for too long.
TEST(RunProgramTest, IsNeverWaitedForLong) {
  ProgramOutput output;
  EXPECT_EQ(Shell("head -c 1000000 /dev/zero | tr '\\0' x", 30, &output), 0);
  EXPECT_EQ(std::strlen(output.text), sizeof(output.text) - 1);
  EXPECT_EQ(Shell("exec sleep 600", 1, &output), -1);
  EXPECT_STREQ(output.errors, "it did not end in time");
}

// One that cannot be run, or is killed, is no success.
TEST(RunProgramTest, TellsOfItsFailure) {
  const char* const missing[] = {"/nonexistent", nullptr};
  ProgramOutput output;
  EXPECT_EQ(RunProgram(missing, 30, &output), -1);
  EXPECT_STREQ(output.errors, "it cannot be executed");
  EXPECT_EQ(Shell("kill -9 $$", 30, &output), -1);
  EXPECT_STREQ(output.errors, "it was killed by signal 9");
}

}  // namespace
