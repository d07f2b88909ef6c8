// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/standard_call.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "broker/base/log.h"
#include "broker/base/peer_version.h"
#include "daemon/gateway/server.h"
#include "proto/control.pb.h"
#include "proto/network/message_reader.h"

namespace sluice::gateway {
namespace {

// Of a call that is no watch, from its beginning to its end.
constexpr std::chrono::seconds kCallTimeout(10);
constexpr char kSessionService[] = "sluice.v1.Session";
constexpr char kHealthService[] = "grpc.health.v1.Health";
constexpr char kReflectionService[] = "grpc.reflection.v1alpha.ServerReflection";

// Fields of grpc.reflection.v1alpha's messages.
constexpr uint32_t kFileByFilename = 3;
constexpr uint32_t kFileContainingSymbol = 4;
constexpr uint32_t kListServices = 7;
constexpr uint32_t kOriginalRequest = 2;
constexpr uint32_t kFileDescriptorResponse = 4;
constexpr uint32_t kListServicesResponse = 6;
constexpr uint32_t kErrorResponse = 7;

bool Parse(const std::string& message, std::vector<std::pair<uint32_t, std::string>>* fields) {
  const grpc::Slice slice(message);
  wire::MessageReader reader;
  if (!reader.Reset(grpc::ByteBuffer(&slice, 1))) return false;
  uint32_t number = 0;
  wire::MessageReader::Step step;
  while ((step = reader.NextField(&number)) == wire::MessageReader::Step::kField) {
    fields->emplace_back(number, reader.Rest());
  }
  return step == wire::MessageReader::Step::kEnd;
}

// `file` and all that it imports.
void AppendFiles(const google::protobuf::FileDescriptor& file, std::set<std::string>* done,
                 std::string* out) {
  if (!done->insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto described;
  file.CopyTo(&described);
  wire::AppendStringField(1, described.SerializeAsString(), out);
  for (int i = 0; i < file.dependency_count(); ++i) AppendFiles(*file.dependency(i), done, out);
}

std::string ListServices() {
  std::string list;
  for (const char* name : {kSessionService, kHealthService, kReflectionService}) {
    std::string service;
    wire::AppendStringField(1, name, &service);
    wire::AppendStringField(1, service, &list);
  }
  return list;
}

std::string ReflectionError(grpc::StatusCode code, std::string_view message) {
  std::string error;
  wire::AppendVarint(1 << 3, &error);  // error_code, a varint.
  wire::AppendVarint(static_cast<uint64_t>(code), &error);
  wire::AppendStringField(2, message, &error);
  return error;
}

std::string ReadAll(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

}  // namespace

HealthAnswer AnswerHealth(const std::string& request) {
  std::vector<std::pair<uint32_t, std::string>> fields;
  if (!Parse(request, &fields)) return HealthAnswer::kMalformed;
  for (const auto& [number, value] : fields) {
    if (number == 1 && !value.empty() && value != kSessionService)
      return HealthAnswer::kUnknownService;
  }
  return HealthAnswer::kServing;
}

std::optional<std::string> AnswerReflection(const std::string& request) {
  std::vector<std::pair<uint32_t, std::string>> fields;
  if (!Parse(request, &fields)) return std::nullopt;
  std::string answer;
  wire::AppendStringField(kOriginalRequest, request, &answer);
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  for (const auto& [number, value] : fields) {
    const google::protobuf::FileDescriptor* file = nullptr;
    switch (number) {
      case kListServices:
        wire::AppendStringField(kListServicesResponse, ListServices(), &answer);
        return answer;
      case kFileByFilename:
        file = pool->FindFileByName(value);
        break;
      case kFileContainingSymbol:
        file = pool->FindFileContainingSymbol(value);
        break;
      default:
        continue;
    }
    if (file == nullptr) {
      wire::AppendStringField(
          kErrorResponse,
          ReflectionError(grpc::StatusCode::NOT_FOUND, value + " is not known here"), &answer);
      return answer;
    }
    std::string files;
    std::set<std::string> done;
    AppendFiles(*file, &done, &files);
    wire::AppendStringField(kFileDescriptorResponse, files, &answer);
    return answer;
  }
  wire::AppendStringField(
      kErrorResponse, ReflectionError(grpc::StatusCode::UNIMPLEMENTED, "no such kind of request"),
      &answer);
  return answer;
}

void StandardCall::AcceptNext(GatewayServer* server) {
  const auto call = std::make_shared<StandardCall>(server);
  server->other_services().RequestCall(&call->context_, &call->stream_, server->queue(),
                                       server->queue(), call->accept_op_.Start(call));
}

StandardCall::~StandardCall() {
  if (counted_in_ != nullptr) counted_in_->Leave();
}

void StandardCall::OnAccepted(bool ok) {
  if (!ok) return;
  AcceptNext(server_);
  if (!place_.Take(&server_->calls(), context_.peer())) return context_.TryCancel();
  CallCount* count = &server_->questions();
  const std::string& method = context_.method();
  if (method == "/sluice.v1.Session/DescribePlatforms") {
    kind_ = Kind::kDescribe;
    const AdmittedPeer admitted = server_->front().PeerOf(context_);
    const absl::StatusOr<std::string> peer =
        server_->authenticator()->Authenticate(admitted, context_);
    if (!peer.ok()) {
      LogRefused(admitted, peer.status());
      return Finish(grpc::StatusCode::UNAUTHENTICATED, std::string(peer.status().message()));
    }
    if (!server_->front().Known(context_))
      return Finish(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many connections");
    peer_ = *peer;
    count = &server_->sessions();
  } else if (method == "/grpc.health.v1.Health/Check") {
    kind_ = Kind::kHealthCheck;
  } else if (method == "/grpc.health.v1.Health/Watch") {
    kind_ = Kind::kHealthWatch;
    count = &server_->watches();
  } else if (method == "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo") {
    kind_ = Kind::kReflection;
  } else {
    return Finish(grpc::StatusCode::UNIMPLEMENTED, "no method " + method);
  }
  if (!count->Enter()) return Finish(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls");
  counted_in_ = count;
  if (kind_ != Kind::kHealthWatch) {
    timer_.Set(server_->queue(), std::chrono::system_clock::now() + kCallTimeout,
               timer_op_.Start(shared_from_this()));
  }
  stream_.Read(&incoming_, read_op_.Start(shared_from_this()));
}

void StandardCall::OnTimeout(bool ok) {
  if (ok) context_.TryCancel();  // Whatever it does fails, and the call with it.
}

void StandardCall::OnRead(bool ok) {
  // A watcher's second read ends with the call; a client of reflection has no more questions.
  if (!ok) return Finish(grpc::StatusCode::OK, "");
  const std::string request = ReadAll(incoming_);
  incoming_.Clear();
  Answer(request);
}

void StandardCall::Answer(const std::string& request) {
  if (kind_ == Kind::kDescribe) return Describe(request);
  if (kind_ == Kind::kReflection) {
    const std::optional<std::string> answer = AnswerReflection(request);
    if (!answer.has_value())
      return Finish(grpc::StatusCode::INVALID_ARGUMENT, "a request that does not parse");
    return Write(*answer);
  }
  constexpr char kServing[] = {1 << 3, 1};         // status = SERVING
  constexpr char kServiceUnknown[] = {1 << 3, 3};  // status = SERVICE_UNKNOWN
  switch (AnswerHealth(request)) {
    case HealthAnswer::kServing:
      return Write(std::string(kServing, sizeof(kServing)));
    case HealthAnswer::kUnknownService:
      if (kind_ == Kind::kHealthWatch)
        return Write(std::string(kServiceUnknown, sizeof(kServiceUnknown)));
      return Finish(grpc::StatusCode::NOT_FOUND, "unknown service");
    case HealthAnswer::kMalformed:
      return Finish(grpc::StatusCode::INVALID_ARGUMENT, "a request that does not parse");
  }
}

void StandardCall::Describe(const std::string& request) {
  v1::DescribePlatformsRequest described;
  if (!described.ParseFromString(request))
    return Finish(grpc::StatusCode::INVALID_ARGUMENT, "a request that does not parse");
  Log(LogLevel::kDebug, "gateway", "platforms described",
      {{"peer", peer_}, {"process", described.process_name()}});
  v1::DescribePlatformsReply reply;
  BrokerLink::Snapshot snapshot = server_->link().snapshot();
  reply.set_snapshot(std::move(snapshot.bytes));
  reply.set_message(std::move(snapshot.message));
  if (!VersionAmong(described.features()).empty()) reply.add_features(VersionFeature());
  Write(reply.SerializeAsString());
}

void StandardCall::Write(const std::string& message) {
  const grpc::Slice slice(message);
  const grpc::ByteBuffer buffer(&slice, 1);
  void* const tag = write_op_.Start(shared_from_this());
  stream_.Write(buffer, tag);
}

void StandardCall::OnWritten(bool ok) {
  if (!ok) return Finish(grpc::StatusCode::CANCELLED, "");
  // The gateway's health does not change while it runs: a watcher hears no more.
  if (kind_ == Kind::kHealthCheck || kind_ == Kind::kDescribe)
    return Finish(grpc::StatusCode::OK, "");
  stream_.Read(&incoming_, read_op_.Start(shared_from_this()));
}

void StandardCall::Finish(grpc::StatusCode code, const std::string& message) {
  stream_.Finish(grpc::Status(code, message), finish_op_.Start(shared_from_this()));
}

}  // namespace sluice::gateway
