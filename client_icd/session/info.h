// SPDX-License-Identifier: Apache-2.0
// One way to answer a clGet*Info. InfoSink writes a value by the rules that all of them share
// (param_value_size, param_value, param_value_size_ret; CL_INVALID_VALUE when the room is too
// small), and WireInfo asks the worker for what the client does not know. An entry point is a
// switch of local answers whose default is WireInfo. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "proto/commands/info.pb.h"

namespace sluice::client {

namespace pb = v1;

class Session;

class InfoSink {
 public:
  InfoSink(size_t room, void* value, size_t* size_ret)
      : room_(room), value_(value), size_ret_(size_ret) {}

  cl_int Bytes(const void* data, size_t size) const;
  // A scalar or handle, exactly of the type the specification names: Value<cl_uint>(n).
  template <typename T>
  cl_int Value(const std::type_identity_t<T>& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return Bytes(&value, sizeof(T));  // NOLINT(bugprone-sizeof-expression): handles are pointers.
  }
  // A char[]: the terminator is added and counted.
  cl_int String(std::string_view text) const;
  // A list; may be empty.
  template <typename List>
  cl_int Array(const List& list) const {
    static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*list.data())>>);
    // NOLINTNEXTLINE(bugprone-sizeof-expression): a list of handles is one of pointers.
    return Bytes(list.data(), list.size() * sizeof(*list.data()));
  }

  size_t room() const { return room_; }
  void* value() const { return value_; }
  size_t* size_ret() const { return size_ret_; }

 private:
  size_t room_;
  void* value_;
  size_t* size_ret_;
};

struct WireQuery {
  pb::GetInfo::Kind kind;
  uint64_t id;
  uint32_t param_name;
  uint64_t device_id = 0;
  uint32_t index = 0;
  std::string_view input = {};
  std::optional<uint32_t> room = {};
};

// Asks the worker. CL_DEVICE_NOT_AVAILABLE if the session is lost.
cl_int WireInfo(Session& session, const WireQuery& query, const InfoSink& sink);
// The same, into a string, for callers that want to keep or change the value.
cl_int FetchInfo(Session& session, const WireQuery& query, std::string* value);

}  // namespace sluice::client
