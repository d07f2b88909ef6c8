// SPDX-License-Identifier: Apache-2.0
//
// The controller's grant to a job on this node, by its own word. A job's options and variables are
// its user's; this is not.
//
// Root's, on the node.
#pragma once

#include <sys/types.h>
#include <time.h>

#include "deploy/slurm/job_request.h"

struct Grant {
  uint32_t share;
  uint64_t memory_bytes;
  uid_t uid;
  time_t submitted;
  time_t ends;     // By its time limit.
  int node_index;  // Of this node, among the job's.
  bool is_part;    // Of a heterogeneous job.
};

// Adds up what one node's part of a job's GRES says: "sluice:share(CNT:25),sluice:mem(CNT:1024)".
void ReadGres(const char* text, struct Grant* grant);

// Asks the controller. False, with a sentence.
bool LookUpGrant(uint32_t job_id, const char* node, struct Grant* grant, struct Problem* problem);
