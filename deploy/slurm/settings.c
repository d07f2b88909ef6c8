// SPDX-License-Identifier: Apache-2.0
#include "deploy/slurm/settings.h"

#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

enum { kMostTokenSeconds = 315360000, kMostTimeout = 300 };

static bool IsPath(const char* value) { return value[0] == '/' && strlen(value) < 200; }

static bool ReadCount(const char* value, uint32_t most, uint32_t* count) {
  char* end = NULL;
  const unsigned long number = strtoul(value, &end, 10);
  if (value[0] < '0' || value[0] > '9' || *end != '\0' || number < 1 || number > most) return false;
  *count = (uint32_t)number;
  return true;
}

// NODES@HOST:PORT or HOST:PORT.
static bool ReadRemote(const char* value, struct Settings* settings) {
  if (settings->remote_count == kMostRemotes) return false;
  struct RemoteDaemon* const remote = &settings->remotes[settings->remote_count];
  const char* const at = strchr(value, '@');
  remote->nodes = value;
  remote->nodes_length = at == NULL ? 0 : (size_t)(at - value);
  remote->endpoint = at == NULL ? value : at + 1;
  if ((at != NULL && remote->nodes_length == 0) || strchr(remote->endpoint, ':') == NULL)
    return false;
  ++settings->remote_count;
  return true;
}

static const char** PathOf(struct Settings* settings, const char* key, size_t length) {
  const struct {
    const char* key;
    const char** target;
  } paths[] = {{"sluicectl", &settings->sluicectl},
               {"admin_socket", &settings->admin_socket},
               {"state", &settings->state},
               {"vendors", &settings->vendors},
               {"key", &settings->key},
               {"ca", &settings->ca}};
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); ++i) {
    if (strlen(paths[i].key) == length && strncmp(paths[i].key, key, length) == 0)
      return paths[i].target;
  }
  return NULL;
}

// The right form for this key; NULL if the argument has it.
static const char* ReadArgument(const char* argument, struct Settings* settings) {
  const char* const equals = strchr(argument, '=');
  if (equals == NULL) return "KEY=VALUE";
  const size_t length = (size_t)(equals - argument);
  const char* const value = equals + 1;
  const char** const path = PathOf(settings, argument, length);
  uint32_t number = 0;
  if (path != NULL) {
    *path = value;
    return IsPath(value) ? NULL : "an absolute path";
  }
  if (strncmp(argument, "remote=", length + 1) == 0)
    return ReadRemote(value, settings) ? NULL : "[NODES@]HOST:PORT, 16 times at most";
  if (strncmp(argument, "sessions=", length + 1) == 0)
    return ReadCount(value, kMostSessions, &settings->sessions) ? NULL : "1 to 10000";
  if (strncmp(argument, "token_seconds=", length + 1) == 0)
    return ReadCount(value, kMostTokenSeconds, &settings->token_seconds) ? NULL : "1 to 315360000";
  if (strncmp(argument, "timeout=", length + 1) == 0) {
    if (!ReadCount(value, kMostTimeout, &number)) return "1 to 300 seconds";
    settings->timeout_seconds = (int)number;
    return NULL;
  }
  return "sluicectl, admin_socket, state, vendors, remote, key, ca, sessions, token_seconds or "
         "timeout";
}

bool ReadSettings(int count, char* arguments[], struct Settings* settings,
                  struct Problem* problem) {
  memset(settings, 0, sizeof(*settings));
  settings->sluicectl = "/usr/bin/sluicectl";
  settings->state = "/run/sluice-slurm";
  settings->key = "/etc/sluice/slurm.key";
  settings->sessions = 16;
  settings->token_seconds = 7 * 24 * 3600;
  settings->timeout_seconds = 10;
  for (int i = 0; i < count; ++i) {
    const char* const right = ReadArgument(arguments[i], settings);
    if (right == NULL) continue;
    SetProblem(problem, "plugstack.conf: sluice's argument \"%.100s\" is wrong; allowed is %s",
               arguments[i], right);
    return false;
  }
  return true;
}

const struct RemoteDaemon* RemoteOf(const struct Settings* settings, const char* node) {
  for (size_t i = 0; i < settings->remote_count; ++i) {
    const struct RemoteDaemon* const remote = &settings->remotes[i];
    if (remote->nodes_length == 0) return remote;
    char* const nodes = strndup(remote->nodes, remote->nodes_length);
    struct hostlist* list = nodes == NULL ? NULL : slurm_hostlist_create(nodes);
    const bool is_one = list != NULL && slurm_hostlist_find(list, node) >= 0;
    if (list != NULL) slurm_hostlist_destroy(list);
    free(nodes);
    if (is_one) return remote;
  }
  return NULL;
}
