// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/api_rules.h"

#include <CL/cl_ext.h>
#include <gtest/gtest.h>

#include "client_icd/sharing/core/shared_object.h"

namespace sluice::client::sharing {
namespace {

constexpr Api kApis[] = {Api::kGl,    Api::kEgl,      Api::kGralloc, Api::kD3d10,
                         Api::kD3d11, Api::kDx9Media, Api::kSluice};

// Every API has a row of its own, with commands of its own and an error for each misuse that must
// never pass.
TEST(ApiRulesTest, EveryApiHasARow) {
  for (const Api api : kApis) {
    const ApiRules& rules = RulesOf(api);
    EXPECT_EQ(rules.api, api);
    EXPECT_NE(rules.invalid_object, CL_SUCCESS) << rules.name;
    EXPECT_NE(rules.use_not_acquired, CL_SUCCESS) << rules.name;
    EXPECT_NE(rules.other_context, CL_SUCCESS) << rules.name;
    EXPECT_NE(rules.acquire_command, rules.release_command) << rules.name;
    for (const Api other : kApis) {
      EXPECT_EQ(RulesOf(other).acquire_command == rules.acquire_command, other == api);
    }
  }
}

// The codes of the extensions, as their texts give them: acquired twice, released or used while not
// acquired, created twice.
TEST(ApiRulesTest, CodesAreTheExtensions) {
  struct Row {
    Api api;
    cl_int again, release, use, twice;
  };
  const Row rows[] = {
      {Api::kGl, CL_SUCCESS, CL_SUCCESS, -60, CL_SUCCESS},
      {Api::kEgl, CL_SUCCESS, CL_SUCCESS, -1092, CL_SUCCESS},
      {Api::kGralloc, CL_SUCCESS, 0x40D4, 0x40D4, CL_SUCCESS},
      {Api::kD3d10, -1004, -1005, -1005, -1003},
      {Api::kD3d11, -1008, -1009, -1009, -1007},
      {Api::kDx9Media, -1012, -1013, -1013, -1011},
  };
  for (const Row& row : rows) {
    const ApiRules& rules = RulesOf(row.api);
    EXPECT_EQ(rules.already_acquired, row.again) << rules.name;
    EXPECT_EQ(rules.release_not_acquired, row.release) << rules.name;
    EXPECT_EQ(rules.use_not_acquired, row.use) << rules.name;
    EXPECT_EQ(rules.created_twice, row.twice) << rules.name;
  }
}

// A name of clGet*Info belongs to one API at most, and a row without one owns none.
TEST(ApiRulesTest, ParamsHaveOneOwner) {
  EXPECT_EQ(RulesOfMemParam(0), nullptr);
  EXPECT_EQ(RulesOfImageParam(0), nullptr);
  EXPECT_EQ(RulesOfMemParam(0x401E)->api, Api::kD3d11);
  EXPECT_EQ(RulesOfImageParam(0x4016)->api, Api::kD3d10);
}

// Native objects that need nothing but to be there.
class Stone : public NativeObject {
 public:
  Stone(NativeKey key, bool writable) : key_(key), writable_(writable) {}
  NativeKey key() const override { return key_; }
  NativeThread& thread() override { return thread_; }
  bool writable() const override { return writable_; }
  cl_int Fetch(uint8_t*, absl::Time) override { return CL_SUCCESS; }
  cl_int Store(const uint8_t*, absl::Time) override { return CL_SUCCESS; }
  absl::Duration timeout() const override { return absl::ZeroDuration(); }

 private:
  const NativeKey key_;
  const bool writable_;
  NativeThread thread_{"stone"};
};

// A second memory object of one (object, subresource, plane) is refused where the API says so,
// until the first is gone; other subresources and planes, and other APIs, are their own. (The end
// of one that the application has released is waited for: sharing_again_test.)
TEST(TakeKeyTest, RefusesTheSecondWhereTheApiDoes) {
  const auto registry = std::make_shared<SharedRegistry>();
  const auto make = [&registry](const ApiRules& rules, const NativeKey& key) {
    return std::make_unique<SharedObject>(rules, std::make_unique<Stone>(key, true), registry);
  };
  for (const Api api : kApis) {
    const ApiRules& rules = RulesOf(api);
    const NativeKey key = {42, 1, 2};
    const ApiRules& other_api = RulesOf(api == Api::kD3d10 ? Api::kD3d11 : Api::kD3d10);
    auto first = make(rules, key);
    ASSERT_TRUE(first->TakeKey());
    EXPECT_EQ(make(rules, key)->TakeKey(), rules.created_twice == CL_SUCCESS) << rules.name;
    EXPECT_TRUE(make(other_api, key)->TakeKey());
    for (const NativeKey& other : {NativeKey{42, 0, 2}, {42, 1, 0}, {43, 1, 2}})
      EXPECT_TRUE(make(rules, other)->TakeKey()) << rules.name;
    first = nullptr;
    EXPECT_TRUE(make(rules, key)->TakeKey()) << rules.name;
  }
}

// Every look at a state, for every API: refused while released, allowed while acquired; writing is
// remembered until it is asked for, and refused for what cannot be written.
TEST(SharedStateTest, UseFollowsTheState) {
  for (const Api api : kApis) {
    const ApiRules& rules = RulesOf(api);
    SharedState state(rules, /*writable=*/true);
    EXPECT_FALSE(state.acquired());
    EXPECT_EQ(state.Use(false), rules.use_not_acquired) << rules.name;
    EXPECT_EQ(state.Use(true), rules.use_not_acquired) << rules.name;
    EXPECT_FALSE(state.TakeWritten());
    state.SetAcquired(true);
    EXPECT_EQ(state.Use(false), CL_SUCCESS);
    EXPECT_FALSE(state.TakeWritten());
    EXPECT_EQ(state.Use(true), CL_SUCCESS);
    EXPECT_TRUE(state.TakeWritten());
    EXPECT_FALSE(state.TakeWritten());
    state.SetAcquired(false);
    EXPECT_EQ(state.Use(false), rules.use_not_acquired) << rules.name;
    SharedState fixed(rules, /*writable=*/false);
    fixed.SetAcquired(true);
    EXPECT_EQ(fixed.Use(false), CL_SUCCESS);
    EXPECT_EQ(fixed.Use(true), CL_INVALID_OPERATION);
    EXPECT_FALSE(fixed.TakeWritten());
  }
}

}  // namespace
}  // namespace sluice::client::sharing
