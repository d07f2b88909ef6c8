// SPDX-License-Identifier: Apache-2.0
#include "deploy/slurm/grant.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>

// The count of "TYPE(CNT:25)" or "TYPE:25"; 0 if `part` is none of that type.
static uint64_t CountOf(const char* part, const char* type) {
  const size_t length = strlen(type);
  if (strncmp(part, type, length) != 0) return 0;
  const char* number = part + length;
  if (strncmp(number, "(CNT:", 5) == 0) {
    number += 5;
  } else if (*number == ':') {
    number += 1;
  } else {
    return 0;
  }
  char* end = NULL;
  const unsigned long long count = strtoull(number, &end, 10);
  static const char kUnits[] = "KMGT";  // Some versions of Slurm shorten it.
  const char* const unit = *end == '\0' ? NULL : strchr(kUnits, *end);
  const unsigned shift = unit == NULL ? 0 : 10 * (unsigned)(unit - kUnits + 1);
  return count > (UINT64_MAX >> shift) ? 0 : (uint64_t)count << shift;
}

void ReadGres(const char* text, struct Grant* grant) {
  for (const char* part = text; part != NULL && *part != '\0';) {
    grant->share += (uint32_t)CountOf(part, "sluice:share");
    grant->memory_bytes += CountOf(part, "sluice:mem");
    part = strchr(part, ',');
    if (part != NULL) ++part;
  }
}

static bool Fill(const job_info_t* job, const char* node, struct Grant* grant) {
  struct hostlist* list = slurm_hostlist_create(job->nodes);
  if (list == NULL) return false;
  grant->node_index = slurm_hostlist_find(list, node);
  slurm_hostlist_destroy(list);
  if (grant->node_index < 0) return false;
  grant->uid = job->user_id;
  grant->submitted = job->submit_time;
  grant->ends = job->end_time;
  grant->is_part = job->het_job_id != 0;
  if ((uint32_t)grant->node_index < job->gres_detail_cnt)
    ReadGres(job->gres_detail_str[grant->node_index], grant);
  return true;
}

bool LookUpGrant(uint32_t job_id, const char* node, struct Grant* grant, struct Problem* problem) {
  memset(grant, 0, sizeof(*grant));
  job_info_msg_t* jobs = NULL;
  if (slurm_load_job(&jobs, job_id, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS) {
    SetProblem(problem,
               "this node cannot ask the controller what job %u was granted (%s); submit it again, "
               "and tell your administrator if that is no help",
               job_id, slurm_strerror(errno));
    return false;
  }
  bool found = false;
  for (uint32_t i = 0; i < jobs->record_count && !found; ++i)
    found = jobs->job_array[i].job_id == job_id && Fill(&jobs->job_array[i], node, grant);
  slurm_free_job_info_msg(jobs);
  if (!found) SetProblem(problem, "the controller knows of no job %u on node %s", job_id, node);
  return found;
}
