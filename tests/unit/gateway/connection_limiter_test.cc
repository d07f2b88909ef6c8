// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/front/connection_limiter.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::gateway {
namespace {

class AdmissionTest : public testing::Test {
 protected:
  std::unique_ptr<ConnectionLimiter::Place> Enter(const std::string& address) {
    const int number = next_++;
    return limiter_.Enter(address, [this, number] { evicted_.push_back(number); });
  }

  ConnectionLimiter limiter_{
      ConnectionLimits{.most = 3, .most_of_address = 3, .most_newcomers = 4}};
  std::vector<int> evicted_;

 private:
  int next_ = 0;
};

// Among newcomers the oldest of the address that has the most gives way, not the one that came
// alone.
TEST_F(AdmissionTest, CrowdGivesWay) {
  const auto alone = Enter("192.0.2.1");
  const std::unique_ptr<ConnectionLimiter::Place> crowd[] = {Enter("192.0.2.2"), Enter("192.0.2.2"),
                                                             Enter("192.0.2.3")};
  const auto next = Enter("192.0.2.4");
  EXPECT_NE(next, nullptr);
  EXPECT_EQ(evicted_, std::vector<int>{1});
  EXPECT_EQ(limiter_.newcomers(), 4);
  EXPECT_FALSE(limiter_.Settle(crowd[0].get()));  // It is on its way out.
}

// Where all addresses have as many newcomers, the oldest gives way.
TEST_F(AdmissionTest, OldestGivesWay) {
  std::vector<std::unique_ptr<ConnectionLimiter::Place>> places;
  for (const char* address : {"192.0.2.9", "192.0.2.1", "192.0.2.5", "192.0.2.3", "192.0.2.2"})
    places.push_back(Enter(address));
  EXPECT_EQ(evicted_, std::vector<int>{0});
}

// Members keep their places whatever newcomers do, and newcomers theirs when members are full.
TEST_F(AdmissionTest, MembersHaveRoomOfTheirOwn) {
  std::vector<std::unique_ptr<ConnectionLimiter::Place>> members;
  for (const char* address : {"192.0.2.1", "192.0.2.2", "192.0.2.3"}) {
    members.push_back(Enter(address));
    EXPECT_TRUE(limiter_.Settle(members.back().get()));
  }
  std::vector<std::unique_ptr<ConnectionLimiter::Place>> newcomers;
  for (int i = 0; i < 20; ++i) {
    newcomers.push_back(Enter("192.0.2." + std::to_string(100 + i)));
    EXPECT_NE(newcomers.back(), nullptr);
  }
  for (const int number : evicted_) EXPECT_GE(number, 3);
  EXPECT_FALSE(limiter_.Settle(newcomers.back().get()));
  members.clear();
  EXPECT_TRUE(limiter_.Settle(newcomers.back().get()));
  EXPECT_EQ(limiter_.members(), 1);
}

// One address has no more than it may, whatever they are; what has left counts no more.
TEST_F(AdmissionTest, AddressesAreBounded) {
  auto first = Enter("192.0.2.1");
  const auto second = Enter("192.0.2.1");
  const auto third = Enter("192.0.2.1");
  EXPECT_TRUE(limiter_.Settle(first.get()));
  EXPECT_EQ(Enter("192.0.2.1"), nullptr);
  EXPECT_NE(Enter("192.0.2.2"), nullptr);
  first->End();
  EXPECT_NE(Enter("192.0.2.1"), nullptr);
  EXPECT_TRUE(evicted_.empty());
}

// A network of 64 bits is one address: who has one of it has them all.
TEST_F(AdmissionTest, Ipv6CountsByNetwork) {
  EXPECT_EQ(AddressGroup("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(AddressGroup("[2001:db8:1:2:3:4:5:6]"), AddressGroup("[2001:db8:1:2::1]"));
  EXPECT_NE(AddressGroup("[2001:db8:1:2::1]"), AddressGroup("[2001:db8:1:3::1]"));
  EXPECT_EQ(AddressGroup("[2001:db8::1]"), AddressGroup("[2001:db8::2]"));
}

}  // namespace
}  // namespace sluice::gateway
