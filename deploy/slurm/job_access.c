// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "deploy/slurm/job_access.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "deploy/slurm/run_program.h"

enum {
  kMostArguments = 24,
  kNoSuchListener = 4,  // sluicectl's exit codes.
  kNoDaemon = 3,
  kTokenGrace = 60,  // A token outlives its job's time limit by so many seconds.
};

struct Call {
  const char* arguments[kMostArguments + 1];
  size_t count;
};

static void Add(struct Call* call, const char* argument) {
  if (call->count < kMostArguments) call->arguments[call->count++] = argument;
}

static void Begin(const struct Settings* settings, struct Call* call, const char* command,
                  const char* what) {
  memset(call, 0, sizeof(*call));
  Add(call, settings->sluicectl);
  Add(call, command);
  Add(call, what);
}

static void AddAdminSocket(const struct Settings* settings, struct Call* call) {
  if (settings->admin_socket == NULL) return;
  Add(call, "--admin-socket");
  Add(call, settings->admin_socket);
}

static int Run(const struct Settings* settings, const struct Call* call,
               struct ProgramOutput* output, struct Problem* problem) {
  const int code = RunProgram(call->arguments, settings->timeout_seconds, output);
  if (code != 0)
    SetProblem(problem, "%s %s %s failed: %.300s", settings->sluicectl, call->arguments[1],
               call->arguments[2], output->errors);
  return code;
}

static void TenantOf(uint32_t job_id, char name[32]) {
  snprintf(name, 32, "slurm-%" PRIu32, job_id);
}

static bool RemoveListener(const struct Settings* settings, uint32_t job_id,
                           struct Problem* problem) {
  char tenant[32];
  TenantOf(job_id, tenant);
  struct Call call;
  Begin(settings, &call, "listener", "remove");
  Add(&call, tenant);
  Add(&call, "--end-sessions");
  AddAdminSocket(settings, &call);
  struct ProgramOutput output;
  const int code = Run(settings, &call, &output, problem);
  // A daemon that is gone has taken its listeners along.
  if (code != 0 && code != kNoSuchListener && code != kNoDaemon) return false;
  problem->text[0] = '\0';
  return true;
}

// A path by which SLUICE_ENDPOINT can name a socket.
static bool IsSocketPath(const char* path) {
  return path[0] == '/' && strlen(path) < sizeof(((struct sockaddr_un*)0)->sun_path) &&
         strpbrk(path, ", \t") == NULL;
}

static bool AddListener(const struct Settings* settings, uint32_t job_id, struct JobTerms* terms,
                        struct Problem* problem) {
  char tenant[32], uid[32], share[32], memory[32], sessions[32];
  TenantOf(job_id, tenant);
  snprintf(uid, sizeof(uid), "%ju", (uintmax_t)terms->uid);
  snprintf(share, sizeof(share), "%" PRIu32, terms->share);
  snprintf(memory, sizeof(memory), "%" PRIu64, terms->memory_bytes);
  snprintf(sessions, sizeof(sessions), "%" PRIu32, terms->sessions);
  struct Call call;
  Begin(settings, &call, "listener", "add");
  const char* const rest[] = {tenant,  "--user",          uid,    "--share",
                              share,   "--device-memory", memory, "--max-sessions",
                              sessions};
  for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); ++i) Add(&call, rest[i]);
  AddAdminSocket(settings, &call);
  struct ProgramOutput output;
  if (Run(settings, &call, &output, problem) != 0) return false;
  if (!IsSocketPath(output.text)) {
    SetProblem(problem, "%s made a listener at \"%.100s\", which is no path for SLUICE_ENDPOINT",
               settings->sluicectl, output.text);
    return false;
  }
  strcpy(terms->socket, output.text);
  return true;
}

// True if a daemon listens there: one that has been started again does not.
static bool Listens(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!IsSocketPath(path)) return false;
  strcpy(address.sun_path, path);
  const int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const bool listens =
      probe >= 0 && connect(probe, (struct sockaddr*)&address, sizeof(address)) == 0;
  if (probe >= 0) close(probe);
  return listens;
}

static bool IsRootsAlone(const char* key, struct Problem* problem) {
  struct stat info;
  if (stat(key, &info) != 0) {
    SetProblem(problem,
               "the key that signs tokens, %s, cannot be read: %s; tell your administrator", key,
               strerror(errno));
    return false;
  }
  if (info.st_uid == 0 && (info.st_mode & 077) == 0) return true;
  SetProblem(problem,
             "the key that signs tokens, %s, must be root's with mode 0600; tell your "
             "administrator",
             key);
  return false;
}

// Signed anew for each step: the job's time limit may have changed.
static bool MakeToken(const struct Settings* settings, uint32_t job_id, const struct Grant* grant,
                      const struct JobTerms* terms, const struct JobPlace* place,
                      struct Problem* problem) {
  if (!IsRootsAlone(settings->key, problem)) return false;
  const time_t now = time(NULL);
  const int64_t left = (int64_t)grant->ends - (int64_t)now + kTokenGrace;
  if (left <= kTokenGrace) {
    SetProblem(problem, "job %" PRIu32 " is at its time limit", job_id);
    return false;
  }
  char tenant[48], seconds[32], share[32], memory[32], sessions[32];
  // The other daemon may have one of each node of the job.
  snprintf(tenant, sizeof(tenant), "slurm-%" PRIu32 "-%d", job_id, grant->node_index);
  snprintf(seconds, sizeof(seconds), "%" PRId64,
           left < settings->token_seconds ? left : (int64_t)settings->token_seconds);
  snprintf(share, sizeof(share), "%" PRIu32, terms->share);
  // A token bounds each session: together they have what the job was granted.
  snprintf(memory, sizeof(memory), "%" PRIu64, terms->memory_bytes / terms->sessions);
  snprintf(sessions, sizeof(sessions), "%" PRIu32, terms->sessions);
  struct Call call;
  Begin(settings, &call, "token", "sign");
  const char* const rest[] = {tenant,  "--key",          settings->key, "--share",
                              share,   "--memory",       memory,        "--seconds",
                              seconds, "--max-sessions", sessions};
  for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); ++i) Add(&call, rest[i]);
  struct ProgramOutput output;
  if (Run(settings, &call, &output, problem) != 0) return false;
  return WriteToken(place, output.text, terms->uid, problem);
}

// Refuses a request for more than the controller granted.
static bool CheckRequest(uint32_t job_id, const struct Settings* settings,
                         const struct JobRequest* request, const struct Grant* grant,
                         struct Problem* problem) {
  if (grant->is_part) {
    // Slurm tells every component the --sluice of the last one.
    SetProblem(problem,
               "job %" PRIu32
               " is a component of a heterogeneous job, which --sluice does not serve; submit its "
               "components as jobs of their own",
               job_id);
  } else if (request->share > grant->share) {
    SetProblem(problem,
               "--sluice=share:%" PRIu32 " is more than the controller granted job %" PRIu32
               " on this node, %" PRIu32 "; ask for --gres=sluice:share:%" PRIu32
               ",sluice:mem:SIZE, too",
               request->share, job_id, grant->share, request->share);
  } else if (request->memory_bytes > grant->memory_bytes) {
    SetProblem(problem,
               "--sluice asks for %" PRIu64
               " bytes of memory, and the controller granted job %" PRIu32 " %" PRIu64
               " on this node; ask for --gres=sluice:share:%" PRIu32 ",sluice:mem:SIZE, too",
               request->memory_bytes, job_id, grant->memory_bytes, request->share);
  } else if (request->sessions > settings->sessions) {
    SetProblem(problem, "--sluice=sessions:%" PRIu32 " is more than this site allows, %" PRIu32,
               request->sessions, settings->sessions);
  }
  return problem->text[0] == '\0';
}

// A later step's, beside what the job's first one got.
static bool CheckTerms(const struct JobRequest* request, const struct JobTerms* terms,
                       struct Problem* problem) {
  if (request->share <= terms->share && request->memory_bytes <= terms->memory_bytes &&
      request->sessions <= terms->sessions)
    return true;
  SetProblem(problem,
             "this job's first step has asked for share:%" PRIu32 ", %" PRIu64
             " bytes of memory and sessions:%" PRIu32 "; a later step cannot ask for more",
             terms->share, terms->memory_bytes, terms->sessions);
  return false;
}

static bool GiveLocked(const struct Settings* settings, const char* node, uint32_t job_id,
                       const struct JobRequest* request, const struct Grant* grant,
                       const struct JobPlace* place, struct JobAccess* access,
                       struct Problem* problem) {
  struct JobTerms terms;
  const bool own =
      ReadTerms(place, &terms) && terms.uid == grant->uid && terms.submitted == grant->submitted;
  if (own && !CheckTerms(request, &terms, problem)) return false;
  if (!own) {
    terms.uid = grant->uid;
    terms.submitted = grant->submitted;
    terms.share = request->share;
    terms.memory_bytes = request->memory_bytes;
    terms.sessions = request->sessions == 0 ? settings->sessions : request->sessions;
    strcpy(terms.socket, "-");
  }
  const struct RemoteDaemon* const remote = RemoteOf(settings, node);
  if (remote != NULL) {
    snprintf(access->endpoint, sizeof(access->endpoint), "%s", remote->endpoint);
    snprintf(access->token_file, sizeof(access->token_file), "%.250s/token", place->path);
    return WriteTerms(place, &terms, problem) &&
           MakeToken(settings, job_id, grant, &terms, place, problem);
  }
  // One of this name that is not this job's is an earlier job's, whose end nobody saw.
  if (!own || !Listens(terms.socket)) {
    if (!RemoveListener(settings, job_id, problem) ||
        !AddListener(settings, job_id, &terms, problem) || !WriteTerms(place, &terms, problem))
      return false;
  }
  snprintf(access->endpoint, sizeof(access->endpoint), "unix:%s", terms.socket);
  return true;
}

bool GiveAccess(const struct Settings* settings, const char* node, uint32_t job_id,
                const struct JobRequest* request, const struct Grant* grant,
                struct JobAccess* access, struct Problem* problem) {
  memset(access, 0, sizeof(*access));
  if (!CheckRequest(job_id, settings, request, grant, problem)) return false;
  struct JobPlace place;
  if (!OpenPlace(settings->state, job_id, /*make=*/true, &place, problem)) return false;
  const bool given = GiveLocked(settings, node, job_id, request, grant, &place, access, problem);
  ClosePlace(&place);
  return given;
}

void EndAccess(const struct Settings* settings, uint32_t job_id, struct Problem* problem) {
  struct JobPlace place;
  if (!HasPlace(settings->state, job_id)) return;
  if (!OpenPlace(settings->state, job_id, /*make=*/false, &place, problem)) return;
  struct JobTerms terms;
  const bool is_remote = ReadTerms(&place, &terms) && strcmp(terms.socket, "-") == 0;
  if (is_remote || RemoveListener(settings, job_id, problem)) RemovePlace(&place, job_id);
  ClosePlace(&place);
}
