// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "deploy/slurm/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kCannotRun = 127 };

static int64_t NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// In the child. Slurm's programs have threads: only what is safe after a fork.
__attribute__((noreturn)) static void BecomeProgram(const char* const arguments[], int out,
                                                    int errors) {
  static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  char* environment[] = {path, NULL};
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0 ||
      close_range(3, ~0U, 0) != 0 || chdir("/") != 0)
    _exit(kCannotRun);
  execve(arguments[0], (char* const*)arguments, environment);
  static const char kSentence[] = "it cannot be executed";
  const ssize_t ignored = write(2, kSentence, sizeof(kSentence) - 1);
  (void)ignored;
  _exit(kCannotRun);
}

struct Stream {
  int fd;
  char* text;
  size_t size;
  size_t used;
};

// Bytes that do not fit are read and dropped, so that the program does not wait. False at its end.
static bool ReadSome(struct Stream* stream) {
  char buffer[1024];
  const ssize_t count = read(stream->fd, buffer, sizeof(buffer));
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  const size_t room = stream->size - 1 - stream->used;
  const size_t kept = (size_t)count < room ? (size_t)count : room;
  memcpy(stream->text + stream->used, buffer, kept);
  stream->used += kept;
  return true;
}

// False if the time has passed.
static bool ReadAll(struct Stream streams[2], int64_t deadline) {
  bool open[2] = {true, true};
  while (open[0] || open[1]) {
    struct pollfd polled[2];
    for (int i = 0; i < 2; ++i) {
      polled[i].fd = open[i] ? streams[i].fd : -1;
      polled[i].events = POLLIN;
      polled[i].revents = 0;
    }
    const int64_t left = deadline - NowMs();
    if (left <= 0) return false;
    if (poll(polled, 2, (int)left) < 0 && errno != EINTR) return false;
    for (int i = 0; i < 2; ++i) {
      if (polled[i].revents != 0) open[i] = ReadSome(&streams[i]);
    }
  }
  return true;
}

// One line that a log and a terminal can show.
static void End(struct Stream* stream) {
  while (stream->used > 0 && (unsigned char)stream->text[stream->used - 1] <= ' ') --stream->used;
  stream->text[stream->used] = '\0';
  for (size_t i = 0; i < stream->used; ++i) {
    const unsigned char byte = (unsigned char)stream->text[i];
    if (byte < ' ' || byte >= 0x7f) stream->text[i] = byte == '\n' ? ' ' : '?';
  }
}

static int WaitFor(pid_t child, bool in_time, struct ProgramOutput* output) {
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    snprintf(output->errors, sizeof(output->errors), "its end is not known: %s", strerror(errno));
    return -1;
  }
  if (in_time && WIFEXITED(status) && WEXITSTATUS(status) != kCannotRun) return WEXITSTATUS(status);
  if (!in_time) {
    snprintf(output->errors, sizeof(output->errors), "it did not end in time");
  } else if (WIFSIGNALED(status)) {
    snprintf(output->errors, sizeof(output->errors), "it was killed by signal %d",
             WTERMSIG(status));
  }
  return -1;
}

int RunProgram(const char* const arguments[], int timeout_seconds, struct ProgramOutput* output) {
  memset(output, 0, sizeof(*output));
  int out[2] = {-1, -1};
  int errors[2] = {-1, -1};
  pid_t child = -1;
  if (pipe2(out, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0) child = fork();
  if (child == 0) BecomeProgram(arguments, out[1], errors[1]);
  if (child < 0)
    snprintf(output->errors, sizeof(output->errors), "it cannot be started: %s", strerror(errno));
  if (out[1] >= 0) close(out[1]);
  if (errors[1] >= 0) close(errors[1]);
  int code = -1;
  if (child > 0) {
    struct Stream streams[2] = {{out[0], output->text, sizeof(output->text), 0},
                                {errors[0], output->errors, sizeof(output->errors), 0}};
    const bool in_time = ReadAll(streams, NowMs() + (int64_t)timeout_seconds * 1000);
    End(&streams[0]);
    End(&streams[1]);
    code = WaitFor(child, in_time, output);
  }
  if (out[0] >= 0) close(out[0]);
  if (errors[0] >= 0) close(errors[0]);
  return code;
}
