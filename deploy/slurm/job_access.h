// SPDX-License-Identifier: Apache-2.0
//
// A job's way to its device: a listener of this node's daemon, or a token for another's. Made by the
// job's first step on the node, kept for the others, taken away by the epilog.
//
// Root's, on the node.
#pragma once

#include "deploy/slurm/grant.h"
#include "deploy/slurm/job_place.h"
#include "deploy/slurm/settings.h"

// The variables that the job's programs get.
struct JobAccess {
  char endpoint[kPathBytes + 8];    // SLUICE_ENDPOINT.
  char token_file[kPathBytes + 8];  // SLUICE_TOKEN_FILE; "": the daemon is this node's.
};

// Checks the request against what the controller granted, and against what the job has already.
bool GiveAccess(const struct Settings* settings, const char* node, uint32_t job_id,
                const struct JobRequest* request, const struct Grant* grant,
                struct JobAccess* access, struct Problem* problem);

// `problem` names a thing that could not be removed; the sweep tries it again.
void EndAccess(const struct Settings* settings, uint32_t job_id, struct Problem* problem);
