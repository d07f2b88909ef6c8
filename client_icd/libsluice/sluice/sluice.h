/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libsluice: memory that Sluice's daemon owns and several programs share, for programs of any kind.
 *
 * A resource is a buffer or an image. One program makes it and gets two capabilities, one for
 * reading, one for reading and writing. It hands one on, over any channel that it trusts (a command
 * line is none: ps shows it to others). Whoever has the 24 bytes may use the resource, that is
 *
 *   sluice_export    the memory's handle, once: descriptors, which sluice_map maps
 *   sluice_acquire   wait for a turn: many readers or one writer, first come first served
 *     ...            look at the memory, or change it
 *   sluice_release
 *
 * Turns are an agreement between those who have the capabilities: a mapping, once given, stays, and
 * nothing stops a program from looking at it out of turn. Against anybody this holds: a reader
 * cannot write (but for a capability of Linux's, see SLUICE_TRUST_READERS), and nobody can shrink
 * the memory under another. A holder's death (not its main thread's alone, by ExitThread or
 * pthread_exit) releases what it held. If that was a writer, the next holders are told that
 * the contents are indeterminate. On Linux any writer can seal a memfd against new writers for good
 * (F_SEAL_FUTURE_WRITE, F_SEAL_WRITE), unless readers are trusted.
 *
 * Threads: everything may be called from any thread at any time, sluice_disconnect and
 * sluice_watch_close as the last call with their argument. No function waits for ever.
 *
 * A daemon that lives but does not answer (it hangs, is stopped, has no processor): functions that
 * ask it return SLUICE_TIMED_OUT, sluice_acquire about 5 s after its timeout, all others after
 * about 30 s. (In a forked child another process calls for it, each up to 5 s longer; exports of
 * one connection wait for each other.) The connection goes on. The call may still take effect, then
 * or later. A new resource whose capabilities nobody got ends with the connection. A destroy or
 * release takes effect, and may be tried again (SLUICE_NOT_FOUND or SLUICE_PERMISSION_DENIED: it
 * had). An acquire is withdrawn and holds nothing once the daemon goes on.
 *
 * fork: a child does not inherit connections and watches; its calls with the parent's return
 * SLUICE_LOST. It may connect for itself: where the parent has used gRPC, which does not survive
 * fork, a program that is installed with this library (sluice-resource-helper) makes the child's
 * calls; without it sluice_connect returns SLUICE_UNSUPPORTED there.
 *
 * When the daemon ends, every call returns SLUICE_LOST at once; mappings stay. Nothing is written
 * to stderr, and no signal is raised, but for what follows.
 *
 * Descriptors: a program that closes those of this library (to go into the background, say) must do
 * so before it first connects. Afterwards the next call may end the process with a message of
 * gRPC's on stderr, write a few bytes to a file that has one of the numbers by then, or,
 * sluice_disconnect, not return. Limits (setrlimit): without the descriptors and threads that gRPC
 * needs, sluice_connect and sluice_watch_open return SLUICE_LIMIT. A full address space may end the
 * process at any call, with a message on stderr.
 *
 * Structures with a `struct_size` grow at their end in later versions: set it to sizeof.
 */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(default)
#endif

/* The system's type for a handle of memory. */
#if defined(_WIN32)
typedef void* sluice_native_handle; /* a HANDLE; none is NULL */
#else
typedef int sluice_native_handle; /* a descriptor; none is -1 */
#endif

typedef enum sluice_status {
  SLUICE_OK = 0,
  SLUICE_INVALID_ARGUMENT = 1,  /* sluice_error_text says which, and what is allowed */
  SLUICE_PERMISSION_DENIED = 2, /* the capability opens nothing, or not for that; of
                                   sluice_connect: the daemon is not for this user */
  SLUICE_NOT_FOUND = 3,         /* no such hold */
  SLUICE_LIMIT = 4,             /* a limit of the daemon's or of this process's; or no memory */
  SLUICE_TIMED_OUT = 5,         /* the turn did not come in time; or the daemon does not answer */
  SLUICE_DESTROYED = 6,         /* the resource was destroyed while waiting */
  SLUICE_UNSUPPORTED = 7,       /* this host, or this memory, has no such thing */
  SLUICE_LOST = 8,              /* the connection is at its end: close it, connect anew */
  SLUICE_NO_DAEMON = 9,         /* nobody answers at the endpoint, or not with this service */
  SLUICE_FAILED = 10            /* anything else; sluice_error_text says what. The connection goes
                                   on: of sluice_create, when the daemon's process that makes memory
                                   has ended, which the daemon replaces within a second or two */
} sluice_status;

/* A few words on a status. Never null. */
const char* sluice_status_string(sluice_status status);

/* The message of the last call of this thread that failed; "" before that. Good until the next. */
const char* sluice_error_text(void);

/* ---- connection ------------------------------------------------------------------------------ */

typedef struct sluice_connection sluice_connection;

/* Connects to a daemon on this machine. `endpoint` is "unix:PATH", on Windows "pipe:NAME"; null or
 * "" means the first local one of the environment variable SLUICE_ENDPOINT, else
 * $XDG_RUNTIME_DIR/sluice/clients/broker.sock if there is one, else
 * /run/sluice/clients/broker.sock; on Windows the service's pipe. Takes at most about ten seconds,
 * while the daemon starts. On failure *connection is null. */
sluice_status sluice_connect(const char* endpoint, sluice_connection** connection);

/* Ends it, and with it every hold of it. Resources that no other connection has used are gone then
 * (or after their linger_ms). Null does nothing. */
void sluice_disconnect(sluice_connection* connection);

/* ---- capabilities ---------------------------------------------------------------------------- */

typedef struct sluice_capability {
  uint8_t bytes[24];
} sluice_capability;

#define SLUICE_CAPABILITY_TEXT_SIZE 49 /* 48 hexadecimal digits and a NUL */

void sluice_capability_to_text(const sluice_capability* capability,
                               char text[SLUICE_CAPABILITY_TEXT_SIZE]);
sluice_status sluice_capability_from_text(const char* text, sluice_capability* capability);

/* ---- making resources ------------------------------------------------------------------------ */

typedef enum sluice_access {
  SLUICE_READ = 1,
  SLUICE_WRITE = 2 /* and read */
} sluice_access;

typedef enum sluice_backing {
  SLUICE_BACKING_ANY = 0,      /* memfd */
  SLUICE_BACKING_MEMFD = 1,    /* can be mapped; on Windows a section */
  SLUICE_BACKING_DMABUF = 2,   /* dma-heap or udmabuf, where the daemon's host has them */
  SLUICE_BACKING_VULKAN = 3,   /* an opaque descriptor for VK_KHR_external_memory_fd and the like,
                                * for trusted readers. On the daemon's GPU, its OpenCL, OpenGL and
                                * Vulkan open it and nobody maps it. Without a GPU it is on the
                                * CPU's device, and can be mapped */
  SLUICE_BACKING_GRALLOC = 4,  /* a native_handle_t: one memfd and a few ints */
  SLUICE_BACKING_IMPORTED = 5, /* in descriptions only */
  SLUICE_BACKING_D3D11 = 6 /* Windows: a texture or buffer, for trusted readers; sluice_d3d11.h */
} sluice_backing;

#define SLUICE_MAX_PLANES 4
#define SLUICE_MAX_DESCRIPTORS 4
#define SLUICE_MAX_INTS 16

typedef struct sluice_plane { /* bytes, from the start of the memory */
  uint64_t offset;
  uint64_t row_pitch;
  uint64_t slice_pitch;
} sluice_plane;

typedef struct sluice_shape {
  uint64_t size_bytes; /* of a buffer; of an image 0: what it needs */
  /* All below is 0 for a buffer. The format of an image: OpenCL's channel order and type (their
   * numbers, such as CL_RGBA and CL_UNORM_INT8), or a DRM fourcc, or both if they agree. */
  uint32_t channel_order;
  uint32_t channel_type;
  uint32_t drm_fourcc;
  uint32_t plane_count; /* 0: tight planes, filled in by the daemon */
  uint64_t width;
  uint64_t height;
  uint64_t depth;        /* 0 as 1 */
  uint64_t array_layers; /* 0 as 1 */
  sluice_plane planes[SLUICE_MAX_PLANES];
} sluice_shape;

/* Readers are trusted not to write. Without it a read export is proof even against a reader who may
 * reopen descriptors of the daemon's user. Once such a reader has one, nobody can export or map for
 * writing any more, so map before the read capability is handed on. Of memory other than memfds
 * only a dma-buf that was imported for reading only is exported for reading then. On Linux the
 * daemon knows a reader by its user id alone. One that is not root's but has CAP_DAC_OVERRIDE on
 * the host can open what it was given for writing, until the memory is sealed for another. */
#define SLUICE_TRUST_READERS 1u

typedef struct sluice_create_info {
  uint32_t struct_size;
  uint32_t flags;
  sluice_shape shape;
  uint32_t backing;   /* sluice_backing; ignored by sluice_import */
  uint32_t linger_ms; /* how long it outlives its last user; bounded by the daemon */
  const char* label;  /* for `sluicectl resources`; null or at most 63 bytes of UTF-8 */
} sluice_create_info;

/* New memory, zero. The capabilities go to `read` and `write`; either may be null, but not both. */
sluice_status sluice_create(sluice_connection* connection, const sluice_create_info* info,
                            sluice_capability* read, sluice_capability* write);

/* A resource of the caller's memory: a memfd with F_SEAL_SHRINK and F_SEAL_GROW, or a dma-buf. On
 * Windows a committed section of the paging file, by a handle that has SECTION_QUERY besides the
 * rights to map: one of OpenFileMapping(FILE_MAP_READ) has not. `memory` stays the caller's, and
 * may be a descriptor for reading only. Memory that cannot be written here, or is sealed against
 * it, is not exported for writing. Unless readers are trusted, two kinds are not exported for
 * reading to one who could open them for writing again (SLUICE_TRUST_READERS says who). One is a
 * memfd that is not sealed against writing and cannot be (it has F_SEAL_SEAL, or `memory` is for
 * reading only). The other is a section whose access list lets a reader make a handle for writing,
 * as an ordinary one's does. Only a list whose one entry gives OWNER RIGHTS (S-1-3-4) nothing
 * prevents that. */
sluice_status sluice_import(sluice_connection* connection, const sluice_create_info* info,
                            sluice_native_handle memory, sluice_capability* read,
                            sluice_capability* write);

/* Ends it for everybody; needs the write capability. Holds stay until released. */
sluice_status sluice_destroy(sluice_connection* connection, const sluice_capability* write);

typedef struct sluice_state {
  uint64_t generation; /* how many writes have been released */
  uint32_t readers;    /* holds */
  uint32_t waiting;
  uint8_t writer;
  uint8_t indeterminate; /* the last writer died, or gave up half way */
  uint8_t destroyed;
  uint8_t reserved[5];
} sluice_state;

typedef struct sluice_description {
  uint32_t struct_size;
  uint32_t backing;
  uint64_t resource_id; /* as in `sluicectl resources`; opens nothing */
  sluice_shape shape;   /* everything filled in */
  sluice_state state;
  char label[64];
} sluice_description;

sluice_status sluice_describe(sluice_connection* connection, const sluice_capability* capability,
                              sluice_description* description);

/* ---- the memory ------------------------------------------------------------------------------ */

typedef struct sluice_handle {
  uint32_t struct_size;
  uint32_t backing;
  sluice_native_handle fds[SLUICE_MAX_DESCRIPTORS]; /* the caller's, not inherited by programs */
  uint32_t fd_count;
  uint32_t int_count;
  int32_t ints[SLUICE_MAX_INTS]; /* of a gralloc handle; of Vulkan memory: ints[4] to [7] are the 16
                                  * bytes of the driver's UUID, those before are for sluice_map */
  uint64_t size_bytes;           /* can be mapped with sluice_map; not so a GPU's memory */
  uint64_t allocation_bytes;     /* of Vulkan memory: what an importer names as its size */
  uint8_t device_uuid[16];       /* of Vulkan memory: the device that made it; of Direct3D's: the
                                  * adapter's LUID, in the first 8 bytes */
  uint32_t writable;
  uint32_t reserved;
} sluice_handle;

/* The memory's native handle; on failure one without descriptors (fd_count 0, each of fds none),
 * which may be closed as well. With SLUICE_READ it cannot be written, however it is opened again.
 * Memory that is exported to trusted readers only (Vulkan's, Direct3D's and dma-bufs) is an
 * exception: its handle is the writers', and `writable` alone says that it is not to be written. */
sluice_status sluice_export(sluice_connection* connection, const sluice_capability* capability,
                            sluice_access access, sluice_handle* handle);
void sluice_handle_close(sluice_handle* handle); /* closes the first fd_count of its descriptors */

/* Maps all size_bytes of a handle, writable if it is; the handle may be closed afterwards. Never
 * map Vulkan's descriptor otherwise: the resource's bytes are not at its start. SLUICE_UNSUPPORTED:
 * the memory is a device's own, which only its APIs open. Around access to a dma-buf,
 * DMA_BUF_IOCTL_SYNC is the caller's business. */
sluice_status sluice_map(const sluice_handle* handle, void** address);
void sluice_unmap(void* address, uint64_t size_bytes);

/* ---- turns ----------------------------------------------------------------------------------- */

typedef struct sluice_hold {
  uint64_t id;
  uint64_t generation;
  uint32_t indeterminate; /* 1: the contents may be half-written */
  uint32_t reserved;
} sluice_hold;

/* Waits for its turn, at most `timeout_ms` (0: takes it only if it is free; the daemon bounds it),
 * and about 5 s more for a daemon that does not answer. */
sluice_status sluice_acquire(sluice_connection* connection, const sluice_capability* capability,
                             sluice_access access, uint32_t timeout_ms, sluice_hold* hold);

#define SLUICE_CONTENTS_INDETERMINATE 1u /* a writer gave up half way */
#define SLUICE_CONTENTS_UNTOUCHED 2u     /* a writer wrote nothing: no new generation */

/* A writer's release counts a generation, and makes the contents good unless it says otherwise. */
sluice_status sluice_release(sluice_connection* connection, const sluice_hold* hold,
                             uint32_t flags);

/* ---- watching -------------------------------------------------------------------------------- */

typedef struct sluice_watch sluice_watch;

/* Waits, at most about 30 s, for the resource's state, which sluice_watch_next then returns. Beyond
 * max_watches_per_connection: SLUICE_LIMIT. On failure *watch is null. */
sluice_status sluice_watch_open(sluice_connection* connection, const sluice_capability* capability,
                                sluice_watch** watch);

/* The latest state, once there is one that this call has not returned yet; waits for it at most
 * `timeout_ms`. States between two calls are skipped. After `destroyed`: SLUICE_DESTROYED. */
sluice_status sluice_watch_next(sluice_watch* watch, uint32_t timeout_ms, sluice_state* state);
void sluice_watch_close(sluice_watch* watch); /* before its connection; null does nothing */

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
