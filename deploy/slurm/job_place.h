// SPDX-License-Identifier: Apache-2.0
//
// The files that this node keeps of each job with a device, below the folder of settings (root's,
// 0711):
//
//   lock          held while a job's listener is made or removed
//   job-12/       0711
//     terms       0600: whose it is, and what it was given; one line
//     token       0400, the job's user's: on nodes whose jobs use another node's daemon
//
// Nobody but root can write there. A user can open the token of a job of theirs by its name.
//
// Root's, on the node.
#pragma once

#include <sys/types.h>
#include <time.h>

#include "deploy/slurm/job_request.h"

enum { kPathBytes = 256, kSocketBytes = 108 };

// One line of `terms`. Another job of that number (a cluster that began anew) has another user or
// another time.
struct JobTerms {
  uid_t uid;
  time_t submitted;
  uint32_t share;
  uint64_t memory_bytes;
  uint32_t sessions;
  char socket[kSocketBytes];  // Of its listener; "-" on a node whose jobs use another's daemon.
};

struct JobPlace {
  int root;  // The folder of all jobs.
  int lock;
  int folder;  // The job's; -1: it has none.
  char path[kPathBytes];
};

// Opens it and takes the lock. With `make`, the folders are made. False, with a sentence; nothing is
// to be closed then.
bool OpenPlace(const char* state, uint32_t job_id, bool make, struct JobPlace* place,
               struct Problem* problem);
void ClosePlace(struct JobPlace* place);

bool ReadTerms(const struct JobPlace* place, struct JobTerms* terms);
bool WriteTerms(const struct JobPlace* place, const struct JobTerms* terms,
                struct Problem* problem);
// Readable for that user alone. An earlier one is replaced in one step.
bool WriteToken(const struct JobPlace* place, const char* token, uid_t uid,
                struct Problem* problem);

// True if there may be something of the job's to remove; takes no lock.
bool HasPlace(const char* state, uint32_t job_id);
// Takes away the job's folder.
void RemovePlace(struct JobPlace* place, uint32_t job_id);
