// SPDX-License-Identifier: Apache-2.0
//
// The lists of confined_calls.cc: names of system calls, by what a driver, a compiler or a library
// needs them for. A name that this machine's processor or libseccomp does not know is left out.
#pragma once

#include <cstdint>

namespace sluice::os {

// Every program: memory, threads, time and its own signals (arguments of the rest are judged
// in confined_calls.cc).
inline constexpr const char* kProcessCalls[] = {
    // Memory. Drivers map device nodes, and code that they have compiled.
    "brk", "madvise", "mbind", "get_mempolicy", "set_mempolicy", "mincore", "mlock", "mlock2",
    "mlockall", "mmap", "mprotect", "mremap", "msync", "munlock", "munlockall", "munmap",
    "pkey_alloc", "pkey_free", "pkey_mprotect", "membarrier",
    // Threads, and how they wait for each other.
    "exit", "exit_group", "futex", "futex_waitv", "get_robust_list", "set_robust_list",
    "set_tid_address", "rseq", "restart_syscall", "arch_prctl", "gettid", "getpid", "getppid",
    "getpgid", "getpgrp", "getsid", "getcpu", "sched_yield",
    // A driver places its threads, and a session of low priority gives way (queue_hints.h).
    "sched_getaffinity", "sched_setaffinity", "sched_getattr", "sched_setattr", "sched_getparam",
    "sched_setparam", "sched_getscheduler", "sched_setscheduler", "sched_get_priority_max",
    "sched_get_priority_min", "sched_rr_get_interval", "getpriority", "setpriority",
    // Its own signals.
    "pause", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend",
    "rt_sigtimedwait", "sigaltstack", "signalfd", "signalfd4",
    // Time.
    "alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "setitimer",
    "gettimeofday", "nanosleep", "time", "timer_create", "timer_delete", "timer_getoverrun",
    "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
    "times",
    // The process itself and its processors.
    "capget", "getegid", "geteuid", "getgid", "getgroups", "getrandom", "getresgid", "getresuid",
    "getrlimit", "setrlimit", "getrusage", "getuid", "sysinfo", "uname"};

// Every program: files, which landlock and their modes judge, and waiting for descriptors.
inline constexpr const char* kFileCalls[] = {
    "access", "close", "close_range", "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2",
    "fadvise64", "fallocate", "fchdir", "fcntl", "fdatasync", "flock", "fstat", "fstatfs", "fsync",
    "ftruncate", "getcwd", "getdents", "getdents64", "lseek", "lstat", "memfd_create", "newfstatat",
    "open", "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2",
    "read", "readahead", "readlink", "readlinkat", "readv", "stat", "statfs", "statx", "umask",
    "write", "writev", "pipe", "pipe2", "sendfile", "copy_file_range",
    // Waiting.
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "eventfd", "eventfd2", "poll", "ppoll", "pselect6", "select",
    // The broker's descriptors, which are sockets; a new pair reaches nobody else.
    "getpeername", "getsockname", "getsockopt", "recvfrom", "recvmsg", "setsockopt", "shutdown"};

// A worker writes to its caches, as do the compilers that it starts.
inline constexpr const char* kCacheCalls[] = {
    "chdir",     "chmod",    "fchmod",    "fchmodat",  "fchmodat2",       "futimesat",
    "link",      "linkat",   "mkdir",     "mkdirat",   "rename",          "renameat",
    "renameat2", "rmdir",    "symlink",   "symlinkat", "sync_file_range", "syncfs",
    "truncate",  "unlink",   "unlinkat",  "utime",     "utimensat",       "utimes",
    "fgetxattr", "getxattr", "lgetxattr", "listxattr", "flistxattr",      "llistxattr"};

// PoCL links each kernel with `ld`, which its compiler starts and waits for. Landlock says which
// files may be run (driver_files.h).
inline constexpr const char* kCompilerCalls[] = {"execve", "vfork", "fork", "wait4", "waitid"};

// The gateway answers strangers.
inline constexpr const char* kServerCalls[] = {"accept",  "accept4", "bind",
                                               "connect", "listen",  "recvmmsg"};

// Calls that libraries try and do without. They fail with EPERM, as under other sandboxes; so do
// those of the lists above whose arguments are refused. Calls on no list fail with ENOSYS, as on an
// older kernel, for which libraries have another way.
inline constexpr const char* kRefusedCalls[] = {
    // Sockets: there are only the broker's, whose other ends it chose.
    "accept", "accept4", "bind", "connect", "listen", "socket", "socketpair", "sendmmsg",
    "recvmmsg",
    // Programs, and other processes.
    "execve", "fork", "vfork", "wait4", "waitid", "tkill", "pidfd_open", "pidfd_getfd",
    "pidfd_send_signal", "migrate_pages", "ioprio_get", "ioprio_set", "process_madvise",
    "process_mrelease", "setpgid", "setsid",
    // Namespaces and rights.
    "unshare", "setns", "chroot", "capset", "setuid", "setgid", "setreuid", "setregid", "setresuid",
    "setresgid", "setfsuid", "setfsgid", "setgroups",
    // Objects that the kernel keeps when their maker is gone.
    "shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "msgget",
    "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "add_key", "keyctl", "request_key",
    // These need much of the kernel's code and are of little use.
    "io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "userfaultfd",
    "perf_event_open", "fanotify_init", "inotify_init", "inotify_init1", "vmsplice", "splice",
    "tee", "remap_file_pages", "name_to_handle_at",
    // Special files, owners, attributes.
    "mknod", "mknodat", "chown", "fchown", "lchown", "fchownat", "setxattr", "fsetxattr",
    "lsetxattr", "removexattr", "fremovexattr", "lremovexattr", "mkdir", "mkdirat", "unlink",
    "unlinkat", "rmdir", "rename", "renameat", "renameat2", "link", "linkat", "symlink",
    "symlinkat", "chmod", "fchmod", "fchmodat", "chdir", "truncate", "utimensat", "sync", "syslog",
    "vhangup"};

// No driver, compiler or library makes these: a process that does is killed, and the broker logs
// the call.
inline constexpr const char* kDeadlyCalls[] = {"acct",
                                               "bpf",
                                               "clock_adjtime",
                                               "clock_settime",
                                               "adjtimex",
                                               "settimeofday",
                                               "create_module",
                                               "delete_module",
                                               "finit_module",
                                               "init_module",
                                               "fsconfig",
                                               "fsmount",
                                               "fsopen",
                                               "fspick",
                                               "mount",
                                               "mount_setattr",
                                               "move_mount",
                                               "open_tree",
                                               "pivot_root",
                                               "umount",
                                               "umount2",
                                               "ioperm",
                                               "iopl",
                                               "kexec_file_load",
                                               "kexec_load",
                                               "nfsservctl",
                                               "open_by_handle_at",
                                               "process_vm_readv",
                                               "process_vm_writev",
                                               "ptrace",
                                               "quotactl",
                                               "quotactl_fd",
                                               "reboot",
                                               "sethostname",
                                               "setdomainname",
                                               "swapoff",
                                               "swapon",
                                               "uselib",
                                               "_sysctl"};

// The kind of device by ioctl's second argument. UVM's numbers, NVIDIA's, have no letter.
inline constexpr uint64_t kIoctlKind = 0xff00;
inline constexpr uint64_t kDeviceKinds[] = {
    'd',   // DRM: every Mesa and Intel driver, and compute accelerators.
    'F',   // /dev/nvidiactl, /dev/nvidia*.
    0,     // /dev/nvidia-uvm.
    'm',   // /dev/nvidia-modeset: which NVIDIA's OpenGL and Vulkan ask.
    'K',   // /dev/kfd: AMD's.
    0x80,  // Mali's.
    'b',   // dma-buf: the begin and end of access.
    'H',   // /dev/dma_heap.
    'u',   // /dev/udmabuf.
    '>'};  // sync_file: fences.
// For any descriptor: TCGETS, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
inline constexpr uint64_t kPlainIoctls[] = {0x5401, 0x541b, 0x5421, 0x5450, 0x5451};

}  // namespace sluice::os
