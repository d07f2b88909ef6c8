// SPDX-License-Identifier: Apache-2.0
//
// A user's request by --sluice=share:25,mem:4G,sessions:8. The text comes from anybody: a
// submission, a variable of the job's, a message. It is read in the submitting program and once
// more as root on the node.
//
// Plain data and functions of their arguments alone.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  kMostShare = 100,
  kMostSessions = 10000,
  kMostRequest = 200,  // Characters.
  kProblemBytes = 512,
};

// A message for a person. Empty: nothing is wrong.
struct Problem {
  char text[kProblemBytes];
};

__attribute__((format(printf, 2, 3))) void SetProblem(struct Problem* problem, const char* format,
                                                      ...);

struct JobRequest {
  uint32_t share;         // Per cent of the device's time.
  uint64_t memory_bytes;  // Of the device.
  uint32_t sessions;      // 0: as many as the administrator allows.
};

extern const char kRequestHelp[];

// False, with a sentence that names what is wrong and what is right.
bool ReadJobRequest(const char* text, struct JobRequest* request, struct Problem* problem);

// "4G": a number and its unit, K, M, G or T (of 1024), with or without "iB". False: it is none, or
// more than 64 bits.
bool ReadBytes(const char* text, size_t length, uint64_t* bytes);
