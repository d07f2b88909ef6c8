// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/creation_lease.h"

#include <gtest/gtest.h>

namespace sluice::client {
namespace {

v1::Lease LeaseOf(uint64_t bytes, uint64_t objects) {
  v1::Lease lease;
  lease.set_memory_bytes(bytes);
  lease.set_objects(objects);
  return lease;
}

// Nothing is granted before the worker has said anything.
TEST(CreationLeaseTest, BeginsWithNothing) {
  CreationLease lease;
  EXPECT_FALSE(lease.Take(0));
}

// Three quarters of what the worker says may be taken, of bytes and of objects.
TEST(CreationLeaseTest, GrantsThreeQuarters) {
  CreationLease lease;
  lease.Renew(lease.Taken(), LeaseOf(1000, 8));
  EXPECT_FALSE(lease.Take(751));
  EXPECT_TRUE(lease.Take(700));
  EXPECT_FALSE(lease.Take(51));
  EXPECT_TRUE(lease.Take(50));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(lease.Take(0));
  EXPECT_FALSE(lease.Take(0));
}

// An amount that was taken after the question was sent, which the answer may not know, counts
// against it.
TEST(CreationLeaseTest, CountsWhatWasTakenMeanwhile) {
  CreationLease lease;
  lease.Renew(lease.Taken(), LeaseOf(1000, 100));
  const CreationLease::Amount asked = lease.Taken();
  EXPECT_TRUE(lease.Take(500));
  lease.Renew(asked, LeaseOf(1000, 100));
  EXPECT_TRUE(lease.Take(250));
  EXPECT_FALSE(lease.Take(1));
}

// No limit is a limit beyond counting, and an answer with less than was granted takes nothing back.
TEST(CreationLeaseTest, HandlesExtremes) {
  CreationLease lease;
  lease.Renew(lease.Taken(), LeaseOf(UINT64_MAX, UINT64_MAX));
  EXPECT_TRUE(lease.Take(uint64_t{1} << 62));
  lease.Renew(lease.Taken(), LeaseOf(UINT64_MAX, UINT64_MAX));
  EXPECT_TRUE(lease.Take(uint64_t{1} << 62));
  lease.Renew({}, LeaseOf(0, 0));
  EXPECT_FALSE(lease.Take(1));
}

}  // namespace
}  // namespace sluice::client
