// SPDX-License-Identifier: Apache-2.0
#include "deploy/slurm/job_request.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char kRequestHelp[] =
    "--sluice=share:N,mem:SIZE[,sessions:N] gives the job a share of its node's device:\n"
    "  share:N     per cent of the device's time, 1 to 100\n"
    "  mem:SIZE    memory of the device, such as 512M or 4G\n"
    "  sessions:N  programs that use the device at once; default: as many as the site allows\n"
    "The controller places the job by --gres=sluice:share:N,sluice:mem:SIZE. Give that, too, "
    "unless\n"
    "your site adds it.\n";

enum { kShown = 40 };

void SetProblem(struct Problem* problem, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem->text, sizeof(problem->text), format, arguments);
  va_end(arguments);
}

// A user's words, so that a terminal and a log can show them.
static const char* Shown(const char* text, size_t length, char shown[kShown + 4]) {
  size_t used = 0;
  for (; used < length && used < kShown; ++used) {
    const unsigned char byte = (unsigned char)text[used];
    shown[used] = byte >= 0x20 && byte < 0x7f ? (char)byte : '?';
  }
  strcpy(shown + used, used < length ? "..." : "");
  return shown;
}

static bool ReadNumber(const char* text, size_t length, uint64_t most, uint64_t* number) {
  if (length == 0 || length > 19) return false;
  uint64_t value = 0;
  for (size_t i = 0; i < length; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (uint64_t)(text[i] - '0');
  }
  *number = value;
  return value >= 1 && value <= most;
}

bool ReadBytes(const char* text, size_t length, uint64_t* bytes) {
  static const char kUnits[] = "KMGT";
  size_t digits = 0;
  while (digits < length && text[digits] >= '0' && text[digits] <= '9') ++digits;
  uint64_t number = 0;
  if (digits == length || !ReadNumber(text, digits, UINT64_MAX >> 1, &number)) return false;
  const char* unit = strchr(kUnits, toupper((unsigned char)text[digits]));
  if (unit == NULL || *unit == '\0') return false;
  const size_t rest = length - digits - 1;
  if (rest != 0 && (rest != 2 || strncmp(text + digits + 1, "iB", 2) != 0)) return false;
  const unsigned shift = 10 * (unsigned)(unit - kUnits + 1);
  if (number > (UINT64_MAX >> 1) >> shift) return false;
  *bytes = number << shift;
  return true;
}

static bool ReadValue(const char* key, size_t key_length, const char* value, size_t length,
                      struct JobRequest* request, struct Problem* problem) {
  char shown[kShown + 4];
  uint64_t number = 0;
  const bool is_share = key_length == 5 && strncmp(key, "share", 5) == 0;
  const bool is_sessions = key_length == 8 && strncmp(key, "sessions", 8) == 0;
  if (key_length == 3 && strncmp(key, "mem", 3) == 0) {
    if (request->memory_bytes != 0) {
      SetProblem(problem, "--sluice has mem twice; give it once");
    } else if (!ReadBytes(value, length, &request->memory_bytes)) {
      SetProblem(problem, "--sluice: mem:%s is no size with its unit, such as 512M or 4G",
                 Shown(value, length, shown));
    }
  } else if (is_share || is_sessions) {
    uint32_t* const target = is_share ? &request->share : &request->sessions;
    const int most = is_share ? kMostShare : kMostSessions;
    const char* const name = is_share ? "share" : "sessions";
    if (*target != 0) {
      SetProblem(problem, "--sluice has %s twice; give it once", name);
    } else if (!ReadNumber(value, length, (uint64_t)most, &number)) {
      SetProblem(problem, "--sluice: %s:%s is no number from 1 to %d", name,
                 Shown(value, length, shown), most);
    } else {
      *target = (uint32_t)number;
    }
  } else {
    SetProblem(problem, "--sluice has no \"%s\"; it has share, mem and sessions (--sluice=help)",
               Shown(key, key_length, shown));
  }
  return problem->text[0] == '\0';
}

bool ReadJobRequest(const char* text, struct JobRequest* request, struct Problem* problem) {
  memset(request, 0, sizeof(*request));
  problem->text[0] = '\0';
  if (text == NULL || strnlen(text, kMostRequest + 1) > kMostRequest) {
    SetProblem(problem, "--sluice takes KEY:VALUE,..., %d characters at most (--sluice=help)",
               kMostRequest);
    return false;
  }
  char shown[kShown + 4];
  for (const char* next = text; *next != '\0' || next == text;) {
    const size_t length = strcspn(next, ",");
    const char* const colon = memchr(next, ':', length);
    if (colon == NULL) {
      SetProblem(problem, "--sluice: \"%s\" is no KEY:VALUE, such as share:25",
                 Shown(next, length, shown));
      return false;
    }
    const size_t key_length = (size_t)(colon - next);
    if (!ReadValue(next, key_length, colon + 1, length - key_length - 1, request, problem))
      return false;
    next += length;
    if (*next != ',') break;
    if (*++next == '\0') {
      SetProblem(problem, "--sluice ends with a comma; nothing follows it");
      return false;
    }
  }
  if (request->share == 0 || request->memory_bytes == 0) {
    SetProblem(problem, "--sluice wants both share and mem, such as --sluice=share:25,mem:4G");
    return false;
  }
  return true;
}
