// SPDX-License-Identifier: Apache-2.0
//
// glibc 2.29 has exp, log, log2 and pow a second time, without the error handling of SVID. gRPC's
// archives ask for those (-Wl,--wrap=), and get the first ones, which every glibc has: so the
// client needs no newer one.
#include <math.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#else
#error "which was the first version of glibc on this architecture?"
#endif

#define OLDER(name) __asm__(".symver older_" #name "," #name "@" FIRST)
OLDER(exp);
OLDER(log);
OLDER(log2);
OLDER(pow);
double older_exp(double x);
double older_log(double x);
double older_log2(double x);
double older_pow(double x, double y);

double __wrap_exp(double x) { return older_exp(x); }
double __wrap_log(double x) { return older_log(x); }
double __wrap_log2(double x) { return older_log2(x); }
double __wrap_pow(double x, double y) { return older_pow(x, y); }
