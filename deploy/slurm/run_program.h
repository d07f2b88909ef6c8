// SPDX-License-Identifier: Apache-2.0
//
// Runs a program of the administrator's: by its absolute path, without a shell, with no environment
// but PATH, no descriptors of the caller's and a bound on its time.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ProgramOutput {
  char text[4096];   // Its output, up to its last character that is no space.
  char errors[400];  // Its stderr, the same.
};

// Its exit code; -1 if it could not be run, was killed, or took too long: `errors` says so.
int RunProgram(const char* const arguments[], int timeout_seconds, struct ProgramOutput* output);
