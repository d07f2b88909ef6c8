// SPDX-License-Identifier: Apache-2.0
//
// The administrator's settings of the plugin in plugstack.conf, KEY=VALUE behind its name.
// README.md has the keys.
//
// Plain data; the texts are Slurm's and live as long as the plugin.
#pragma once

#include "deploy/slurm/job_request.h"

enum { kMostRemotes = 16 };

// Nodes without a device, and the daemon that their jobs use.
struct RemoteDaemon {
  const char* nodes;  // "cpu[1-8]", of so many characters; none: every node.
  size_t nodes_length;
  const char* endpoint;  // HOST:PORT.
};

struct Settings {
  const char* sluicectl;
  const char* admin_socket;  // NULL: sluicectl's default.
  const char* state;         // A folder of root's.
  const char* vendors;       // OCL_ICD_VENDORS of jobs; NULL: as they have it.
  const char* key;           // Signs tokens.
  const char* ca;            // NULL: the authorities that the system trusts.
  uint32_t sessions;         // Of a job, and the most that it may ask for.
  uint32_t token_seconds;    // The longest life of a token.
  int timeout_seconds;       // Of each call of sluicectl.
  struct RemoteDaemon remotes[kMostRemotes];
  size_t remote_count;
};

// False, with a sentence that names the key.
bool ReadSettings(int count, char* arguments[], struct Settings* settings, struct Problem* problem);

// The daemon that jobs on this node use; NULL: the node's own.
const struct RemoteDaemon* RemoteOf(const struct Settings* settings, const char* node);
