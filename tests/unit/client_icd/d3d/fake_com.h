// SPDX-License-Identifier: Apache-2.0
// COM interfaces of which a test gives the few methods that may be called; any other call ends the
// test with a message. Interfaces of a device have a hundred methods, so they are not derived from.
// The table of functions is made here, and a method's place in it is what the compiler has in a
// pointer to it (the C++ ABI of GCC).
//
//   FakeInterface<ID3D11Query> query;
//   query.Set(&ID3D11Query::GetDesc, +[](ID3D11Query*, D3D11_QUERY_DESC*) {});
//
// Owner: the test. Thread-compatible.
#pragma once

#include <unknwn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sluice::client::sharing {

template <typename Interface>
class FakeInterface {
 public:
  FakeInterface() {
    for (void*& method : methods_) method = reinterpret_cast<void*>(&Unexpected);
    object_.methods = methods_;
  }
  FakeInterface(const FakeInterface&) = delete;
  FakeInterface& operator=(const FakeInterface&) = delete;

  template <typename Method, typename Function>
  void Set(Method method, Function* function) {
    ptrdiff_t words[2];
    static_assert(sizeof(method) == sizeof(words));
    std::memcpy(words, &method, sizeof(words));
    methods_[static_cast<size_t>(words[0] - 1) / sizeof(void*)] = reinterpret_cast<void*>(function);
  }

  // Headers have a second one by that name, a template.
  template <typename Function>
  void SetQueryInterface(Function* function) {
    using Query = HRESULT (STDMETHODCALLTYPE IUnknown::*)(REFIID, void**);
    Set(static_cast<Query>(&IUnknown::QueryInterface), function);
  }

  Interface* get() { return reinterpret_cast<Interface*>(&object_); }

 private:
  static void Unexpected() {
    std::fprintf(stderr, "a COM method was called that this test does not expect\n");
    std::abort();
  }

  struct {
    void** methods;
  } object_;
  void* methods_[256];
};

}  // namespace sluice::client::sharing
