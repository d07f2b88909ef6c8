// SPDX-License-Identifier: Apache-2.0
// System calls of a kernel on a CPU device: SYSTEM_CALL is OpenCL C that defines call(number, six arguments), which
// returns -errno if it fails. NUMBER chooses between the two machines' numbers.
#pragma once

#if defined(__x86_64__)
#define NUMBER(x86, arm) x86
#define SYSTEM_CALL                                                                       \
  "long call(long n, long a, long b, long c, long d, long e, long f) {\n"                 \
  "  long result;\n"                                                                      \
  "  __asm__ volatile(\"movq %5, %%r10\\n movq %6, %%r8\\n movq %7, %%r9\\n syscall\"\n"  \
  "      : \"=a\"(result) : \"a\"(n), \"D\"(a), \"S\"(b), \"d\"(c), \"r\"(d), \"r\"(e), " \
  "\"r\"(f)\n"                                                                            \
  "      : \"rcx\", \"r11\", \"r10\", \"r8\", \"r9\", \"memory\");\n"                     \
  "  return result;\n"                                                                    \
  "}\n"
#else
#define NUMBER(x86, arm) arm
#define SYSTEM_CALL                                                                           \
  "long call(long n, long a, long b, long c, long d, long e, long f) {\n"                     \
  "  register long x8 __asm__(\"x8\") = n;\n"                                                 \
  "  register long x0 __asm__(\"x0\") = a;\n"                                                 \
  "  register long x1 __asm__(\"x1\") = b;\n"                                                 \
  "  register long x2 __asm__(\"x2\") = c;\n"                                                 \
  "  register long x3 __asm__(\"x3\") = d;\n"                                                 \
  "  register long x4 __asm__(\"x4\") = e;\n"                                                 \
  "  register long x5 __asm__(\"x5\") = f;\n"                                                 \
  "  __asm__ volatile(\"svc 0\" : \"+r\"(x0) : \"r\"(x8), \"r\"(x1), \"r\"(x2), \"r\"(x3),\n" \
  "                   \"r\"(x4), \"r\"(x5) : \"memory\");\n"                                  \
  "  return x0;\n"                                                                            \
  "}\n"
#endif
