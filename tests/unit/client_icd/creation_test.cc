// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/context.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client_icd/base/api.h"
#include "tests/unit/client_icd/sharing_fixture.h"

namespace sluice::client {
namespace {

// A context whose worker answers no creation that was not asked for.
class CreationTest : public sharing::SharingTest {
 protected:
  void SetUp() override {
    SharingTest::SetUp();
    {
      absl::MutexLock lock(&ToldOf(this).mu);
      ToldOf(this).refusals.clear();
    }
    context_ = MakeUnaskedContext();
    Grant(1000, 1000);
  }
  Ref<Context> MakeUnaskedContext() {
    pb::ContextPlacement placement;
    placement.set_takes_unasked(true);
    pb::SupportedImageFormats& formats = *placement.add_image_formats();
    formats.set_flags(CL_MEM_READ_ONLY);
    formats.set_image_type(CL_MEM_OBJECT_IMAGE2D);
    const cl_image_format one = {CL_RGBA, CL_FLOAT};
    formats.set_formats(&one, sizeof(one));
    auto context = Ref<Context>::Adopt(
        new Context(session_, nullptr, {device_}, PropertyList(), &OnNotify, &ToldOf(this)));
    context->SetPlacement(placement, /*is_local=*/false);
    return context;
  }
  void Grant(uint64_t bytes, uint64_t objects) {
    pb::Lease lease;
    lease.set_memory_bytes(bytes);
    lease.set_objects(objects);
    session_->creation_lease().Renew(session_->creation_lease().Taken(), lease);
  }
  cl_mem Buffer(size_t size) {
    cl_int status = 77;
    const cl_mem buffer =
        api::clCreateBuffer(context_->handle(), CL_MEM_READ_WRITE, size, nullptr, &status);
    EXPECT_EQ(status, CL_SUCCESS);
    return buffer;
  }
  void SamplerOf(cl_filter_mode filter) {
    cl_int status = 77;
    const cl_sampler sampler =
        api::clCreateSampler(context_->handle(), CL_TRUE, CL_ADDRESS_NONE, filter, &status);
    EXPECT_EQ(status, CL_SUCCESS);
    EXPECT_EQ(api::clReleaseSampler(sampler), CL_SUCCESS);
  }
  // Outlives the test: the end of its session is told as well.
  struct Told {
    absl::Mutex mu;
    std::vector<std::string> refusals ABSL_GUARDED_BY(mu);
  };
  static Told& ToldOf(const CreationTest* test) {
    static auto* const all = new std::map<const CreationTest*, Told>;
    return (*all)[test];
  }
  static void CL_CALLBACK OnNotify(const char* message, const void*, size_t, void* told) {
    if (std::string_view(message).find("was refused") == std::string_view::npos) return;
    absl::MutexLock lock(&static_cast<Told*>(told)->mu);
    static_cast<Told*>(told)->refusals.emplace_back(message);
  }
};

// Buffers, their parts and queues are made without a question.
TEST_F(CreationTest, WaitsForNothing) {
  const cl_mem buffer = Buffer(64);
  const cl_buffer_region region = {0, 16};
  cl_int status = 77;
  const cl_mem part =
      api::clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
  EXPECT_EQ(status, CL_SUCCESS);
  const cl_command_queue queue = api::clCreateCommandQueueWithProperties(
      context_->handle(), device_->handle(), nullptr, &status);
  EXPECT_EQ(status, CL_SUCCESS);
  EXPECT_EQ(worker_->Unasked(), 3u);
  EXPECT_EQ(session_->stream().waits().answers, 1u);  // MakeQueue's of the fixture.
  EXPECT_EQ(api::clReleaseCommandQueue(queue), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseMemObject(part), CL_SUCCESS);
  EXPECT_EQ(api::clReleaseMemObject(buffer), CL_SUCCESS);
  EXPECT_EQ(worker_->Count(pb::Command::kReleaseObject), 3u);
}

// What a limit of the session might refuse is asked for.
TEST_F(CreationTest, AsksNearALimit) {
  const cl_mem small = Buffer(700);
  EXPECT_EQ(worker_->Unasked(), 1u);
  const cl_mem large = Buffer(100);
  EXPECT_EQ(worker_->Unasked(), 1u);
  Grant(1000, 1000);
  const cl_mem again = Buffer(100);
  EXPECT_EQ(worker_->Unasked(), 2u);
  for (const cl_mem one : {small, large, again})
    EXPECT_EQ(api::clReleaseMemObject(one), CL_SUCCESS);
}

// The driver is asked for the first of each kind of sampler.
TEST_F(CreationTest, AsksForTheFirstOfAKind) {
  SamplerOf(CL_FILTER_NEAREST);
  EXPECT_EQ(worker_->Unasked(), 0u);
  SamplerOf(CL_FILTER_NEAREST);
  EXPECT_EQ(worker_->Unasked(), 1u);
  SamplerOf(CL_FILTER_LINEAR);
  EXPECT_EQ(worker_->Unasked(), 1u);
}

// A failure that comes later is told to the context's callback, and from then on the context's
// creations wait.
TEST_F(CreationTest, LateFailureIsTold) {
  worker_->FailNextCreation(CL_OUT_OF_RESOURCES);
  const cl_mem failed = Buffer(64);
  Told& told = ToldOf(this);
  {
    absl::MutexLock lock(&told.mu);
    told.mu.Await(absl::Condition(
        +[](std::vector<std::string>* refusals) { return !refusals->empty(); }, &told.refusals));
  }
  const cl_mem asked = Buffer(64);
  EXPECT_EQ(worker_->Unasked(), 1u);
  {
    absl::MutexLock lock(&told.mu);
    ASSERT_EQ(told.refusals.size(), 1u);
    EXPECT_NE(told.refusals[0].find("clScripted was refused with -5"), std::string::npos)
        << told.refusals[0];
  }
  for (const cl_mem one : {failed, asked}) EXPECT_EQ(api::clReleaseMemObject(one), CL_SUCCESS);
}

// Image formats that came with the context are told without a question.
TEST_F(CreationTest, ImageFormatsAreKnown) {
  cl_image_format format = {};
  cl_uint count = 0;
  EXPECT_EQ(api::clGetSupportedImageFormats(context_->handle(), CL_MEM_READ_ONLY,
                                            CL_MEM_OBJECT_IMAGE2D, 1, &format, &count),
            CL_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(format.image_channel_data_type, static_cast<cl_channel_type>(CL_FLOAT));
  EXPECT_EQ(worker_->Count(pb::Command::kGetSupportedImageFormats), 0u);
}

}  // namespace
}  // namespace sluice::client
