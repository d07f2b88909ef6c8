// SPDX-License-Identifier: Apache-2.0
// proto/commands/sampler.proto through the worker.
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

using SamplerLoopbackTest = LoopbackTest;

// The driver sees the sampler's properties; a driver of OpenCL 1.2 sees the values they stand for.
TEST_F(SamplerLoopbackTest, CreateForwardsProperties) {
  pb::Command command;
  pb::CreateSampler& body = *command.mutable_create_sampler();
  body.set_sampler_id(client_->NewId());
  body.set_context_id(MakeContext());
  for (const uint64_t value : {CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE, CL_SAMPLER_ADDRESSING_MODE,
                               CL_ADDRESS_REPEAT, CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR}) {
    body.add_properties(value);
  }
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clCreateSamplerWithProperties").arrays["properties"].size(), 6u);
  fake_->RemoveFunctions({"clCreateSamplerWithProperties"});
  body.set_sampler_id(client_->NewId());
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  const fake::RecordedCall call = fake_->Last("clCreateSampler");
  EXPECT_EQ(call.values[1], uint64_t{CL_FALSE});
  EXPECT_EQ(call.values[2], uint64_t{CL_ADDRESS_REPEAT});
  EXPECT_EQ(call.values[3], uint64_t{CL_FILTER_LINEAR});
}

// An empty list reaches the driver as the defaults in full: not every driver takes an empty one.
TEST_F(SamplerLoopbackTest, EmptyListIsSaidInFull) {
  pb::Command command;
  command.mutable_create_sampler()->set_sampler_id(client_->NewId());
  command.mutable_create_sampler()->set_context_id(MakeContext());
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  EXPECT_EQ(
      fake_->Last("clCreateSamplerWithProperties").arrays["properties"],
      (std::vector<uint64_t>{CL_SAMPLER_NORMALIZED_COORDS, CL_TRUE, CL_SAMPLER_ADDRESSING_MODE,
                             CL_ADDRESS_CLAMP, CL_SAMPLER_FILTER_MODE, CL_FILTER_NEAREST}));
}

}  // namespace
}  // namespace sluice::worker
