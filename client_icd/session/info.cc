// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/info.h"

#include <cstring>

#include "client_icd/session/session.h"

namespace sluice::client {

cl_int InfoSink::Bytes(const void* data, size_t size) const {
  if (value_ != nullptr) {
    if (room_ < size) return CL_INVALID_VALUE;
    if (size != 0) std::memcpy(value_, data, size);
  }
  if (size_ret_ != nullptr) *size_ret_ = size;
  return CL_SUCCESS;
}

cl_int InfoSink::String(std::string_view text) const {
  if (value_ != nullptr) {
    if (room_ < text.size() + 1) return CL_INVALID_VALUE;
    if (!text.empty()) std::memcpy(value_, text.data(), text.size());
    static_cast<char*>(value_)[text.size()] = '\0';
  }
  if (size_ret_ != nullptr) *size_ret_ = text.size() + 1;
  return CL_SUCCESS;
}

namespace {

cl_int Ask(Session& session, const WireQuery& query, pb::Answer* answer) {
  ScopedCommand command;
  pb::GetInfo& body = *command->mutable_get_info();
  body.set_kind(query.kind);
  body.set_id(query.id);
  body.set_param_name(query.param_name);
  if (query.device_id != 0) body.set_device_id(query.device_id);
  if (query.index != 0) body.set_index(query.index);
  if (!query.input.empty()) body.set_input(query.input.data(), query.input.size());
  if (query.room.has_value()) body.set_room(*query.room);
  return session.stream().Call(*command, {}, answer);
}

}  // namespace

cl_int WireInfo(Session& session, const WireQuery& query, const InfoSink& sink) {
  pb::Answer answer;
  const cl_int status = Ask(session, query, &answer);
  return status == CL_SUCCESS ? sink.Bytes(answer.data().data(), answer.data().size()) : status;
}

cl_int FetchInfo(Session& session, const WireQuery& query, std::string* value) {
  pb::Answer answer;
  const cl_int status = Ask(session, query, &answer);
  if (status == CL_SUCCESS) *value = std::move(*answer.mutable_data());
  return status;
}

}  // namespace sluice::client
