// SPDX-License-Identifier: Apache-2.0
// A kernel on a CPU device asks these of the kernel of the machine, by system calls of its own: one
// named attack a run, in a session of its own. Prints "result=N", what the last call returned
// (-errno if it failed), or "ended=CODE" if the worker was ended by it.
//
//   attacks NAME [TEXT]       TEXT: a path, or a process's number, where the attack needs one
//   attacks --list
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ocl.h"
#include "system_call.h"

struct Attack {
  const char* name;
  const char* code;  // An expression of OpenCL C: t, p (t's address), s.
};

#define CALL0(n) "call(" n ", 0, 0, 0, 0, 0, 0)"
#if defined(__x86_64__)
#define READ "0"
#define SOCKET "41"
#define CONNECT "42"
#define SENDTO "44"
#define BIND "49"
#define LISTEN "50"
#define UNSHARE "272"
#define PRLIMIT "302"
#define KILL "62"
#define EXECVE "59"
#define CLONE "56"
#define EXIT "60"
#define WAIT4 "61"
#define GETPID "39"
#define OPENAT "257"
#define SHMGET "29"
#define SEMGET "64"
#define MSGGET "68"
#define PERF "298"
#define KEYCTL "250"
#define ADD_KEY "248"
#define USERFAULTFD "323"
#define MOUNT "165"
#define PTRACE "101"
#define READV "310"
#define BPF "321"
#define SETNS "308"
#define MEMFD "319"
#define EXECVEAT "322"
#else
#define READ "63"
#define SOCKET "198"
#define CONNECT "203"
#define SENDTO "206"
#define BIND "200"
#define LISTEN "201"
#define UNSHARE "97"
#define PRLIMIT "261"
#define KILL "129"
#define EXECVE "221"
#define CLONE "220"
#define EXIT "93"
#define WAIT4 "260"
#define GETPID "172"
#define OPENAT "56"
#define SHMGET "194"
#define SEMGET "190"
#define MSGGET "186"
#define PERF "241"
#define KEYCTL "219"
#define ADD_KEY "217"
#define USERFAULTFD "282"
#define MOUNT "40"
#define PTRACE "117"
#define READV "270"
#define BPF "280"
#define SETNS "268"
#define MEMFD "279"
#define EXECVEAT "281"
#endif
#define PIDFD_SEND "424"
#define PIDFD_OPEN "434"
#define IO_URING "425"
#define CLONE3 "435"

#define OPEN "call(" OPENAT ", -100, (long)path, 0, 0, 0, 0)"
#define OPEN_SOCKET(family, type, protocol) \
  "call(" SOCKET ", " family ", " type ", " protocol ", 0, 0, 0)"
// A child that makes one call and ends with its error (0: it worked), which the kernel waits for.
#define IN_CHILD(code)                                                     \
  "(s = call(" CLONE ", 17, 0, 0, 0, 0, 0)) == 0 ? call(" EXIT ", -(" code \
  ") & 127, 0, 0, 0, 0, 0)"                                                \
  " : s < 0 ? s : (call(" WAIT4                                            \
  ", s, p + 3000, 0, 0, 0, 0) < 0 ? -999 :"                                \
  " -(long)((*(__global int*)(t + 3000) >> 8) & 255))"

// t: 4 KiB that the host has filled with TEXT and what the attack needs; t + 2048 is an address.
static const char kSource[] = SYSTEM_CALL
    "long lines(__global char* t, long fd) {\n"  // Of an open file, which must be short; its error.
    "  long bytes = fd < 0 ? fd : call(" READ
    ", fd, (long)t + 2200, 1800, 0, 0, 0), count = 0;\n"
    "  for (long i = 0; i < bytes; ++i) count += t[2200 + i] == '\\n';\n"
    "  return bytes < 0 ? bytes : count;\n"
    "}\n"
    "__kernel void attack(__global char* t, __global long* out) {\n"
    "  long p = (long)t, s = 0;\n"
    "  char path[1000];\n"  // A child has no buffers: drivers keep them from it.
    "  long argv[2] = {(long)path, 0};\n"
    "  for (int i = 0; i < 1000; ++i) path[i] = t[i];\n"
    "  *out = -1000;\n"
    "  *out = ATTACK;\n"
    "}\n";

static const struct Attack kAttacks[] = {
    {"tcp", OPEN_SOCKET("2", "1", "0")},
    {"tcp6", OPEN_SOCKET("10", "1", "6")},
    {"mptcp", OPEN_SOCKET("2", "1", "262")},
    {"udp", OPEN_SOCKET("2", "2", "0")},
    {"fastopen", "(s = " OPEN_SOCKET("2", "1", "0") ") < 0 ? s : call(" SENDTO
                                                    ", s, p, 1, 0x20000000, p + 2048, 16)"},
    {"listen", "(s = " OPEN_SOCKET("2", "1", "0") ") < 0 ? s : call(" LISTEN ", s, 1, 0, 0, 0, 0)"},
    {"bind",
     "(s = " OPEN_SOCKET("2", "1", "0") ") < 0 ? s : call(" BIND ", s, p + 2048, 16, 0, 0, 0)"},
    {"unix",
     "(s = " OPEN_SOCKET("1", "1", "0") ") < 0 ? s : call(" CONNECT ", s, p + 2048, 110, 0, 0, 0)"},
    {"netlink", OPEN_SOCKET("16", "3", "0")},
    {"vsock", OPEN_SOCKET("40", "1", "0")},
    {"packet", OPEN_SOCKET("17", "3", "0")},
    {"io_uring", "call(" IO_URING ", 4, p + 1024, 0, 0, 0, 0)"},
    {"userfaultfd", "call(" USERFAULTFD ", 1, 0, 0, 0, 0, 0)"},
    {"perf", "call(" PERF ", p + 1024, 0, -1, -1, 0, 0)"},
    {"add_key", "call(" ADD_KEY ", p + 1100, p + 1100, p, 1, -2, 0)"},
    {"keyctl", "call(" KEYCTL ", 0, -2, 1, 0, 0, 0)"},
    {"shmget", "call(" SHMGET ", 0, 4096, 0x3b0, 0, 0, 0)"},
    {"semget", "call(" SEMGET ", 0, 1, 0x3b0, 0, 0, 0)"},
    {"msgget", "call(" MSGGET ", 0, 0x3b0, 0, 0, 0, 0)"},
    {"unshare_user", "call(" UNSHARE ", 0x10000000, 0, 0, 0, 0, 0)"},
    {"clone_user", "(s = call(" CLONE ", 0x10000011, 0, 0, 0, 0, 0)) == 0 ? call(" EXIT
                   ", 0, 0, 0, 0, 0, 0) : s"},
    {"clone3", "call(" CLONE3 ", p + 1024, 64, 0, 0, 0, 0)"},
    {"setns", "call(" SETNS ", -1, 0, 0, 0, 0, 0)"},
    {"mount", "call(" MOUNT ", p, p, p, 0, 0, 0)"},
    {"ptrace", "call(" PTRACE ", 0x4206, *(__global int*)(t + 1024), 0, 0, 0, 0)"},
    {"read_others", "call(" READV ", *(__global int*)(t + 1024), 0, 0, 0, 0, 0)"},
    {"bpf", "call(" BPF ", 0, p + 1024, 8, 0, 0, 0)"},
    {"prlimit_others", "call(" PRLIMIT ", *(__global int*)(t + 1024), 7, 0, p + 3000, 0, 0)"},
    {"prlimit_own", "call(" PRLIMIT ", 0, 7, 0, p + 3000, 0, 0)"},
    {"kill_others", "call(" KILL ", *(__global int*)(t + 1024), 0, 0, 0, 0, 0)"},
    {"pidfd_others",
     "(s = call(" PIDFD_OPEN ", *(__global int*)(t + 1024), 0, 0, 0, 0, 0)) < 0 ? s : "
     "call(" PIDFD_SEND ", s, 0, 0, 0, 0, 0)"},
    // TEXT, with itself alone as arguments: what was laid in the worker's own folder, or the machine's.
    {"exec", IN_CHILD("call(" EXECVE ", (long)path, (long)argv, (long)(argv + 1), 0, 0, 0)")},
    {"open", OPEN},
    {"write", "call(" OPENAT ", -100, (long)path, 0x41, 0600, 0, 0)"},  // O_CREAT, O_WRONLY.
    {"lines", "lines(t, " OPEN ")"},
    {"unknown", CALL0("1023")},
};

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (size_t i = 0; i < sizeof(kAttacks) / sizeof(kAttacks[0]); ++i) puts(kAttacks[i].name);
    return 0;
  }
  const struct Attack* attack = NULL;
  for (size_t i = 0; argc >= 2 && i < sizeof(kAttacks) / sizeof(kAttacks[0]); ++i) {
    if (strcmp(argv[1], kAttacks[i].name) == 0) attack = &kAttacks[i];
  }
  if (attack == NULL) {
    fprintf(stderr, "attacks NAME [TEXT], attacks --list\n");
    return 2;
  }
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  cl_int error;
  cl_platform_id platform;
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
    puts("no device");
    return 1;
  }
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  queue = clCreateCommandQueue(context, device, 0, &error);
  char* source = malloc(sizeof(kSource) + 1000);
  strcpy(source, "#define ATTACK ");
  strcat(strcat(strcat(source, attack->code), "\n"), kSource);
  const char* sources[] = {source};
  cl_program program = clCreateProgramWithSource(context, 1, sources, NULL, &error);
  if (clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) {
    char log[4096] = "";
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log), log, NULL);
    printf("no program: %s\n", log);
    return 1;
  }
  cl_kernel kernel = clCreateKernel(program, "attack", &error);
  char text[4096] = "";
  const char* given = argc > 2 ? argv[2] : "";
  strncpy(text, given, 1000);
  const int number = atoi(given);
  memcpy(text + 1024, &number, sizeof(number));
  memcpy(text + 1100, "user", 5);
  text[2048] =
      strcmp(attack->name, "unix") == 0 ? 1 : 2;  // sa_family; of AF_INET: port 0x0101, 127.0.0.1
  if (text[2048] == 1) {
    strncpy(text + 2050, given, 100);
  } else {
    memcpy(text + 2050, "\1\1\177\0\0\1", 6);
  }
  long out = -2000;
  cl_mem t =
      clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(text), text, &error);
  cl_mem o = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(out), NULL, &error);
  clSetKernelArg(kernel, 0, sizeof(t), &t);
  clSetKernelArg(kernel, 1, sizeof(o), &o);
  const size_t one = 1;
  error = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
  if (error == CL_SUCCESS)
    error = clEnqueueReadBuffer(queue, o, CL_TRUE, 0, sizeof(out), &out, 0, NULL, NULL);
  if (error != CL_SUCCESS) {
    printf("ended=%d\n", error);
  } else {
    printf("result=%ld\n", out);
  }
  return 0;
}
