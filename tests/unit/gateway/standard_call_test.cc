// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/standard_call.h"

#include <gtest/gtest.h>

#include "google/protobuf/descriptor.pb.h"
#include "proto/network/message_reader.h"

namespace sluice::gateway {
namespace {

std::string Request(uint32_t field, std::string_view value) {
  std::string request;
  wire::AppendStringField(field, value, &request);
  return request;
}

// The fields of a message, by number.
std::string Field(const std::string& message, uint32_t wanted) {
  const grpc::Slice slice(message);
  wire::MessageReader reader;
  EXPECT_TRUE(reader.Reset(grpc::ByteBuffer(&slice, 1)));
  uint32_t field = 0;
  while (reader.NextField(&field) == wire::MessageReader::Step::kField) {
    if (field == wanted) return reader.Rest();
  }
  return "";
}

// The server as a whole and its session service are healthy; a service it has not is unknown.
TEST(StandardCallTest, AnswersHealth) {
  EXPECT_EQ(AnswerHealth(""), HealthAnswer::kServing);
  EXPECT_EQ(AnswerHealth(Request(1, "sluice.v1.Session")), HealthAnswer::kServing);
  EXPECT_EQ(AnswerHealth(Request(1, "sluice.v1.Else")), HealthAnswer::kUnknownService);
  EXPECT_EQ(AnswerHealth("\x0a\x7f"), HealthAnswer::kMalformed);
}

// Reflection lists the services and gives the file that describes a symbol.
TEST(StandardCallTest, AnswersReflection) {
  const std::string list = Field(*AnswerReflection(Request(7, "")), 6);
  EXPECT_NE(list.find("sluice.v1.Session"), std::string::npos);
  EXPECT_NE(list.find("grpc.health.v1.Health"), std::string::npos);
  const std::string files = Field(*AnswerReflection(Request(4, "sluice.v1.Session")), 4);
  google::protobuf::FileDescriptorProto file;
  ASSERT_TRUE(file.ParseFromString(Field(files, 1)));
  EXPECT_EQ(file.name(), "proto/control.proto");
  EXPECT_EQ(Field(*AnswerReflection(Request(3, "proto/control.proto")), 4), files);
}

// A symbol that it does not have is an error in the answer, and the request comes back with it.
TEST(StandardCallTest, ReflectionNamesWhatIsMissing) {
  const std::string request = Request(4, "no.such.Symbol");
  const std::string answer = *AnswerReflection(request);
  EXPECT_EQ(Field(answer, 2), request);
  EXPECT_NE(Field(answer, 7).find("no.such.Symbol"), std::string::npos);
  EXPECT_FALSE(AnswerReflection("\x0a\x7f").has_value());
}

}  // namespace
}  // namespace sluice::gateway
