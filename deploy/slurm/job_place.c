// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "deploy/slurm/job_place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char kTerms[] = "terms";
static const char kToken[] = "token";

static void NameOf(uint32_t job_id, char name[32]) { snprintf(name, 32, "job-%" PRIu32, job_id); }

static bool Fail(struct Problem* problem, const char* what, const char* path) {
  SetProblem(problem, "this node cannot %s %s: %s; tell your administrator", what, path,
             strerror(errno));
  return false;
}

// A folder of root's that nobody else can write.
static int OpenRoot(const char* state, bool make, struct Problem* problem) {
  if (make && mkdir(state, 0711) != 0 && errno != EEXIST) return Fail(problem, "make", state), -1;
  const int root = open(state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info;
  if (root < 0 || fstat(root, &info) != 0) {
    Fail(problem, "open", state);
    if (root >= 0) close(root);
    return -1;
  }
  if (info.st_uid == geteuid() && (info.st_mode & 022) == 0) return root;
  SetProblem(problem, "%s must be root's, and nobody else's to write; tell your administrator",
             state);
  close(root);
  return -1;
}

bool OpenPlace(const char* state, uint32_t job_id, bool make, struct JobPlace* place,
               struct Problem* problem) {
  char name[32];
  NameOf(job_id, name);
  snprintf(place->path, sizeof(place->path), "%s/%s", state, name);
  place->lock = place->folder = -1;
  place->root = OpenRoot(state, make, problem);
  if (place->root < 0) return false;
  place->lock = openat(place->root, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (place->lock < 0 || flock(place->lock, LOCK_EX) != 0) {
    Fail(problem, "lock", state);
    ClosePlace(place);
    return false;
  }
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  if (make && (mkdirat(place->root, name, 0711) != 0 && errno != EEXIST)) {
    Fail(problem, "make", place->path);
    ClosePlace(place);
    return false;
  }
  place->folder = openat(place->root, name, flags);
  if (place->folder >= 0 || !make) {
    // Whatever the umask of Slurm's programs is: the user opens the token below.
    if (make && (fchmod(place->root, 0711) != 0 || fchmod(place->folder, 0711) != 0)) {
      Fail(problem, "open to the job", place->path);
      ClosePlace(place);
      return false;
    }
    return true;
  }
  Fail(problem, "open", place->path);
  ClosePlace(place);
  return false;
}

void ClosePlace(struct JobPlace* place) {
  int* const fds[] = {&place->folder, &place->lock, &place->root};
  for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); ++i) {
    if (*fds[i] >= 0) close(*fds[i]);
    *fds[i] = -1;
  }
}

// Under another name first, so that no reader finds a part of it.
static bool Write(const struct JobPlace* place, const char* name, const char* text, uid_t uid,
                  mode_t mode, struct Problem* problem) {
  static const char kNew[] = "new";
  unlinkat(place->folder, kNew, 0);
  const int file =
      openat(place->folder, kNew, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const size_t size = strlen(text);
  const bool written = file >= 0 && write(file, text, size) == (ssize_t)size &&
                       fchmod(file, mode) == 0 && fchown(file, uid, (gid_t)-1) == 0 &&
                       renameat(place->folder, kNew, place->folder, name) == 0;
  if (!written) Fail(problem, "write a file in", place->path);
  if (file >= 0) close(file);
  return written;
}

bool ReadTerms(const struct JobPlace* place, struct JobTerms* terms) {
  char line[kPathBytes];
  const int file =
      place->folder < 0 ? -1 : openat(place->folder, kTerms, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  const ssize_t size = file < 0 ? -1 : read(file, line, sizeof(line) - 1);
  if (file >= 0) close(file);
  if (size <= 0) return false;
  line[size] = '\0';
  intmax_t submitted = 0;
  uintmax_t uid = 0;
  if (sscanf(line, "%ju %jd %" SCNu32 " %" SCNu64 " %" SCNu32 " %107s", &uid, &submitted,
             &terms->share, &terms->memory_bytes, &terms->sessions, terms->socket) != 6)
    return false;
  terms->uid = (uid_t)uid;
  terms->submitted = (time_t)submitted;
  return true;
}

bool WriteTerms(const struct JobPlace* place, const struct JobTerms* terms,
                struct Problem* problem) {
  char line[kPathBytes];
  snprintf(line, sizeof(line), "%ju %jd %" PRIu32 " %" PRIu64 " %" PRIu32 " %s\n",
           (uintmax_t)terms->uid, (intmax_t)terms->submitted, terms->share, terms->memory_bytes,
           terms->sessions, terms->socket);
  return Write(place, kTerms, line, (uid_t)-1, 0600, problem);
}

bool WriteToken(const struct JobPlace* place, const char* token, uid_t uid,
                struct Problem* problem) {
  char line[4200];
  snprintf(line, sizeof(line), "%s\n", token);
  return Write(place, kToken, line, uid, 0400, problem);
}

bool HasPlace(const char* state, uint32_t job_id) {
  char name[32];
  char path[kPathBytes];
  NameOf(job_id, name);
  snprintf(path, sizeof(path), "%s/%s", state, name);
  struct stat info;
  return lstat(path, &info) == 0;
}

void RemovePlace(struct JobPlace* place, uint32_t job_id) {
  char name[32];
  NameOf(job_id, name);
  static const char* const kFiles[] = {"terms", "token", "new"};
  for (size_t i = 0; i < sizeof(kFiles) / sizeof(kFiles[0]) && place->folder >= 0; ++i)
    unlinkat(place->folder, kFiles[i], 0);
  unlinkat(place->root, name, AT_REMOVEDIR);
}
