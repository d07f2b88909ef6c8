// SPDX-License-Identifier: Apache-2.0
//
// A thread's values under keys, as pthread_key_create() has them, kept in the client itself
// (-Wl,--wrap=).
//
// A program can load the client into a second namespace of the linker, by dlmopen(). glibc is there
// a second time, and hands out the same keys again, but a thread has one place for the values of
// both. The values that abseil or OpenSSL in here keep for a thread would overwrite the program's.
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

enum { kKeys = 128 };
typedef void Destroy(void*);

// Odd while the key is in use; another number for each use of it.
static _Atomic unsigned uses[kKeys];
static Destroy* _Atomic destroyers[kKeys];
static _Thread_local struct {
  unsigned use;
  void* value;
} values[kKeys];
static _Thread_local int rounds_left = PTHREAD_DESTRUCTOR_ITERATIONS;
static _Thread_local int ends_later;

int __cxa_thread_atexit_impl(Destroy* at_exit, void* object, void* library);
extern char __dso_handle __attribute__((visibility("hidden")));

static int InUse(pthread_key_t key) { return key < kKeys && atomic_load(&uses[key]) % 2 == 1; }

static void DestroyValues(void* unused) {
  (void)unused;
  ends_later = 0;
  --rounds_left;
  for (pthread_key_t key = 0; key < kKeys; ++key) {
    void* const value = values[key].value;
    if (value == NULL || !InUse(key) || values[key].use != atomic_load(&uses[key])) continue;
    values[key].value = NULL;
    Destroy* const destroy = atomic_load(&destroyers[key]);
    if (destroy != NULL) destroy(value);
  }
}

int __wrap_pthread_key_create(pthread_key_t* made, Destroy* destroy) {
  for (pthread_key_t key = 0; key < kKeys; ++key) {
    unsigned use = atomic_load(&uses[key]);
    if (use % 2 == 1 || !atomic_compare_exchange_strong(&uses[key], &use, use + 1)) continue;
    atomic_store(&destroyers[key], destroy);
    *made = key;
    return 0;
  }
  return EAGAIN;
}

int __wrap_pthread_key_delete(pthread_key_t key) {
  if (!InUse(key)) return EINVAL;
  atomic_fetch_add(&uses[key], 1);
  return 0;
}

void* __wrap_pthread_getspecific(pthread_key_t key) {
  return InUse(key) && values[key].use == atomic_load(&uses[key]) ? values[key].value : NULL;
}

int __wrap_pthread_setspecific(pthread_key_t key, const void* value) {
  if (!InUse(key)) return EINVAL;
  // In the end of a thread, too, as often as glibc looks for new values then.
  if (value != NULL && !ends_later && rounds_left > 0) {
    if (__cxa_thread_atexit_impl(DestroyValues, NULL, &__dso_handle) != 0) return ENOMEM;
    ends_later = 1;
  }
  values[key].use = atomic_load(&uses[key]);
  values[key].value = (void*)value;
  return 0;
}
