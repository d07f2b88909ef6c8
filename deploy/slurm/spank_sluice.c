// SPDX-License-Identifier: Apache-2.0
//
// Slurm's side of Sluice: the option --sluice of srun, sbatch and salloc, and what becomes of it on
// the node. README.md says who calls what.
//
//   submission      init, the option's callback: what is wrong with the option is refused there
//   slurmstepd      init, the callback, init_post_opt as root: asks the controller, makes the listener
//                   task_init as the user: a step that got no device ends here, with the reason
//   slurmd          epilog: takes the listener away
//
// A hook that fails as root ends more than the step: the node is drained, whoever's fault it was. So
// no fault of a user's or of the daemon's fails one; the tasks do.
//
// Slurm's thread only.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deploy/slurm/job_access.h"

// Slurm looks these up; all else stays hidden, for slurmstepd exports names of its own.
#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(sluice, 1)
#pragma GCC visibility pop

enum { kExternStep = 0xfffffffc };  // SLURM_EXTERN_CONT of slurm.h: a step without a program.

static struct Settings g_settings;
static struct JobRequest g_request;
static bool g_asked;
static struct Problem g_problem;  // Why this step gets no device.

static int OnOption(int value, const char* argument, int remote) {
  (void)value;
  struct Problem problem = {""};
  if (!remote && argument != NULL && strcmp(argument, "help") == 0) {
    fputs(kRequestHelp, stdout);
    exit(0);
  }
  g_asked = true;
  if (ReadJobRequest(argument, &g_request, &problem)) return ESPANK_SUCCESS;
  if (remote) {
    g_problem = problem;
    return ESPANK_SUCCESS;
  }
  slurm_error("%s", problem.text);
  return ESPANK_BAD_ARG;
}

static struct spank_option g_option = {
    .name = "sluice",
    .arginfo = "share:N,mem:SIZE[,sessions:N]",
    .usage = "a share of the node's device; --sluice=help says more",
    .has_arg = 1,
    .cb = OnOption,
};

int slurm_spank_init(spank_t spank, int count, char* arguments[]) {
  struct Problem problem = {""};
  if (!ReadSettings(count, arguments, &g_settings, &problem)) {
    slurm_error("%s", problem.text);
    g_problem = problem;  // Steps say it; a node is not drained for it.
  }
  if (spank_context() == S_CTX_SLURMD) return ESPANK_SUCCESS;
  return spank_option_register(spank, &g_option);
}

static void SetVariable(spank_t spank, const char* name, const char* value) {
  if (value == NULL || value[0] == '\0') {
    spank_unsetenv(spank, name);
  } else if (spank_setenv(spank, name, value, 1) != ESPANK_SUCCESS && g_problem.text[0] == '\0') {
    SetProblem(&g_problem, "this node cannot set %s for the job", name);
  }
}

// Values that a submission has set of these do not hold on the node.
static void SetVariables(spank_t spank, const struct JobAccess* access) {
  const bool remote = access->token_file[0] != '\0';
  SetVariable(spank, "SLUICE_ENDPOINT", access->endpoint);
  SetVariable(spank, "SLUICE_TOKEN_FILE", access->token_file);
  SetVariable(spank, "SLUICE_TLS_CA", remote ? g_settings.ca : NULL);
  SetVariable(spank, "SLUICE_TLS_CERT", NULL);
  SetVariable(spank, "SLUICE_TLS_KEY", NULL);
  SetVariable(spank, "SLUICE_ALLOW_PLAINTEXT", NULL);
  if (g_settings.vendors != NULL) {
    SetVariable(spank, "OCL_ICD_VENDORS", g_settings.vendors);
    SetVariable(spank, "OCL_ICD_FILENAMES", NULL);
  }
}

static void GiveDevice(spank_t spank) {
  uint32_t job_id = 0;
  const char* const node = getenv("SLURMD_NODENAME");  // slurmstepd's own, not the job's.
  struct Grant grant;
  struct JobAccess access;
  if (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS || node == NULL) {
    SetProblem(&g_problem, "this node does not know the job's number, or its own name");
  } else if (LookUpGrant(job_id, node, &grant, &g_problem) &&
             GiveAccess(&g_settings, node, job_id, &g_request, &grant, &access, &g_problem)) {
    SetVariables(spank, &access);
  }
}

int slurm_spank_init_post_opt(spank_t spank, int count, char* arguments[]) {
  (void)count;
  (void)arguments;
  uint32_t step = 0;
  if (spank_remote(spank) != 1 || !g_asked) return ESPANK_SUCCESS;
  if (spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step == kExternStep)
    return ESPANK_SUCCESS;
  if (g_problem.text[0] == '\0') GiveDevice(spank);
  if (g_problem.text[0] != '\0') slurm_error("sluice: %s", g_problem.text);
  return ESPANK_SUCCESS;
}

int slurm_spank_task_init(spank_t spank, int count, char* arguments[]) {
  (void)spank;
  (void)count;
  (void)arguments;
  if (!g_asked || g_problem.text[0] == '\0') return ESPANK_SUCCESS;
  dprintf(STDERR_FILENO, "sluice: %s\n", g_problem.text);
  return -1;  // Slurm takes no other number for a failure here.
}

// In a process of its own, where init has not been called.
int slurm_spank_job_epilog(spank_t spank, int count, char* arguments[]) {
  uint32_t job_id = 0;
  struct Problem problem = {""};
  if (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
  if (ReadSettings(count, arguments, &g_settings, &problem))
    EndAccess(&g_settings, job_id, &problem);
  if (problem.text[0] != '\0')
    slurm_error("sluice: job %u: %s; sluice-slurm-sweep tries it again", job_id, problem.text);
  return ESPANK_SUCCESS;
}
