// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/memory_grant.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "daemon/worker/quota.h"

namespace sluice::worker {
namespace {

constexpr uint64_t kLimit = 256 << 10;  // Of which a 256th, 1 KiB, is promised to a client.

// A broker that answers from a thread of its own, as the worker's main thread does.
class MemoryGrantTest : public testing::Test {
 protected:
  struct Question {
    uint64_t serial;
    uint64_t bytes;
    bool ahead;
  };

  MemoryGrantTest() : quota_(Limits{}) {}
  ~MemoryGrantTest() override {
    for (std::thread& one : answers_) one.join();
  }

  // Each question is answered with what `answer` says of it.
  void Attach(std::function<uint64_t(const Question&)> answer) {
    MemoryGrant::Broker broker;
    broker.want = [this, answer](uint64_t serial, uint64_t bytes, bool ahead) {
      const Question question{serial, bytes, ahead};
      questions_.push_back(question);  // One at a time.
      answers_.emplace_back([this, answer, question] {
        quota_.grant().OnGranted(question.serial, answer(question));
      });
      return true;
    };
    broker.give_back = [this](uint64_t bytes) { returned_.push_back(bytes); };
    quota_.grant().Attach(std::move(broker), kLimit);
  }

  Quota quota_;
  std::vector<Question> questions_;
  std::vector<uint64_t> returned_;
  std::vector<std::thread> answers_;
};

// Nothing is charged that the broker has not granted; what it gives ahead needs no question.
TEST_F(MemoryGrantTest, ChargesWhatIsGranted) {
  Attach([](const Question& question) { return question.ahead ? 0 : question.bytes + 1000; });
  EXPECT_TRUE(quota_.ChargeMemory(100));
  ASSERT_EQ(questions_.size(), 1u);
  EXPECT_EQ(questions_[0].bytes, 100u);
  EXPECT_TRUE(quota_.ChargeMemory(500));
  EXPECT_EQ(questions_.size(), 1u);
  quota_.ReturnMemory(600);
  EXPECT_TRUE(quota_.ChargeMemory(600));
  EXPECT_EQ(questions_.size(), 1u);
}

// Before it runs out it asks for more, and waits for nothing.
TEST_F(MemoryGrantTest, AsksAhead) {
  Attach([](const Question& question) { return question.ahead ? 1000 : question.bytes + 1000; });
  EXPECT_TRUE(quota_.ChargeMemory(100));
  EXPECT_TRUE(quota_.ChargeMemory(900));
  ASSERT_EQ(questions_.size(), 2u);
  EXPECT_TRUE(questions_[1].ahead);
  answers_[1].join();
  answers_.pop_back();
  EXPECT_EQ(quota_.grant().granted(), 2100u);
}

// A refusal charges nothing, and another amount may be had after it.
TEST_F(MemoryGrantTest, ARefusalChargesNothing) {
  Attach([](const Question& question) { return question.bytes > 100 ? 0 : question.bytes; });
  EXPECT_FALSE(quota_.ChargeMemory(101));
  EXPECT_EQ(quota_.memory_bytes(), 0u);
  EXPECT_TRUE(quota_.ChargeMemory(100));
}

// Memory in use, and memory that a client was promised, stays; the rest goes back when the broker
// asks.
TEST_F(MemoryGrantTest, GivesBackWhatIsNotUsed) {
  Attach([](const Question& question) { return question.bytes + 100'000; });
  EXPECT_TRUE(quota_.ChargeMemory(5000));
  EXPECT_EQ(quota_.MemoryLeft(), kLimit / 256);
  quota_.grant().OnSpare();
  EXPECT_EQ(returned_, (std::vector<uint64_t>{100'000 - kLimit / 256}));
  EXPECT_TRUE(quota_.ChargeMemory(kLimit / 256)) << "which was promised";
  EXPECT_EQ(questions_.size(), 1u);
  quota_.ReturnMemory(5000);
  EXPECT_EQ(quota_.MemoryLeft(), kLimit / 256);
  quota_.grant().OnSpare();
  EXPECT_EQ(returned_.back(), 5000 - kLimit / 256);
}

// Without its broker a worker keeps what it was granted, and gets no more.
TEST_F(MemoryGrantTest, ABrokersEndRefuses) {
  Attach([](const Question& question) { return question.bytes; });
  EXPECT_TRUE(quota_.ChargeMemory(100));
  quota_.grant().OnLost();
  EXPECT_FALSE(quota_.ChargeMemory(1));
  quota_.ReturnMemory(100);
  EXPECT_TRUE(quota_.ChargeMemory(100));
}

// A program that is refused again and again asks no more often than a broker bears.
TEST_F(MemoryGrantTest, KeepsItsPace) {
  Attach([](const Question&) { return 0; });
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 60; ++i) EXPECT_FALSE(quota_.ChargeMemory(1));
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(150));
}

// Several threads charge at once: no more than was granted, and nothing is lost.
TEST_F(MemoryGrantTest, ThreadsShareIt) {
  std::atomic<uint64_t> left = 4000;
  Attach([&left](const Question& question) {
    const uint64_t most = left.load();
    const uint64_t bytes = question.bytes > most ? 0 : question.bytes;
    left -= bytes;
    return bytes;
  });
  std::vector<std::thread> threads;
  std::atomic<uint64_t> had = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        if (quota_.ChargeMemory(100)) had += 100;
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(had.load(), quota_.memory_bytes());
  EXPECT_LE(quota_.memory_bytes(), quota_.grant().granted());
  EXPECT_LE(quota_.memory_bytes(), 4000u);
}

}  // namespace
}  // namespace sluice::worker
