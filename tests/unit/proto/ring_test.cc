// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "proto/ring_reader.h"
#include "proto/ring_writer.h"
#include "proto/spin.h"

namespace sluice::wire {
namespace {

constexpr int64_t kForever = -1;

struct FreeMemory {
  void operator()(uint8_t* memory) const { std::free(memory); }
};

class RingTest : public ::testing::Test {
 protected:
  RingTest()
      : memory_(static_cast<uint8_t*>(std::aligned_alloc(4096, kRingFileBytes))),
        shared_(*reinterpret_cast<RingShared*>(memory_.get())) {
    std::memset(memory_.get(), 0, kRingFileBytes);
    writer_ = std::make_unique<RingWriter>(memory_.get());
    reader_ = std::make_unique<RingReader>(memory_.get());
  }

  uint8_t* data() { return memory_.get() + kRingDataOffset; }

  // Writes a frame, waiting for room as a client does.
  static void Write(RingWriter* writer, uint64_t sequence, std::string_view message,
                    Wake wake = Wake::kUrgent, uint64_t event_id = 0) {
    FrameHeader header = {};
    header.sequence = sequence;
    header.message_bytes = static_cast<uint32_t>(message.size());
    CutFrame(
        header, message, {}, kMaxPieceBody,
        [&](const PieceHeader& piece, std::string_view a, std::string_view b, std::string_view c) {
          while (!writer->TryWritePiece(piece, a, b, c)) {
            if (writer->violated()) return false;
            writer->Notify(wake, event_id);
            writer->WaitForRoom(piece.body_bytes, kForever);
          }
          return true;
        });
    writer->Notify(wake, event_id);
  }

  // A piece put straight into the ring, as a hostile producer does.
  void Forge(const PieceHeader& piece, std::string_view body, uint64_t produced) {
    const uint64_t at = shared_.produced.load() % kRingCapacity;
    std::memcpy(data() + at, &piece, sizeof(piece));
    std::memcpy(data() + at + sizeof(piece), body.data(), body.size());
    shared_.produced.store(produced);
  }

  std::unique_ptr<uint8_t, FreeMemory> memory_;
  RingShared& shared_;
  std::unique_ptr<RingWriter> writer_;
  std::unique_ptr<RingReader> reader_;
};

// A producer that waits for room is woken once half of the ring is free, not for each piece.
TEST_F(RingTest, ProducerIsWokenAtHalf) {
  const std::string message(1000, 'm');
  uint64_t written = 0;
  FrameHeader header = {};
  header.message_bytes = static_cast<uint32_t>(message.size());
  bool full = false;
  while (!full) {
    header.sequence = written + 1;
    CutFrame(header, message, {}, kMaxPieceBody,
             [&](const PieceHeader& piece, std::string_view a, std::string_view b,
                 std::string_view c) { return !(full = !writer_->TryWritePiece(piece, a, b, c)); });
    if (!full) ++written;
  }
  shared_.producer_waits.store(1);  // As WaitForRoom.
  const uint32_t before = shared_.space_bell.load();
  Frame frame;
  for (uint64_t i = 1; i <= written; ++i) {
    ASSERT_TRUE(*reader_->Next(&frame));
    const bool half = shared_.produced.load() - shared_.consumed.load() <= kRingCapacity / 2;
    EXPECT_EQ(shared_.space_bell.load(), before + half) << i;
  }
}

// Frames of all sizes, many times the ring's capacity, come out as they went in: no byte is lost
// where they wrap around.
TEST_F(RingTest, FramesSurviveWrapAround) {
  uint64_t bytes = 0;
  Frame frame;
  for (uint64_t i = 1; bytes < 6 * kRingCapacity; ++i) {
    const std::string message(i * 997 % 200001, static_cast<char>('a' + i % 26));
    Write(writer_.get(), i, message);
    bytes += message.size();
    const absl::StatusOr<bool> got = reader_->Next(&frame);
    ASSERT_TRUE(got.ok() && *got) << got.status();
    EXPECT_EQ(frame.header().sequence, i);
    ASSERT_TRUE(frame.message() == message) << "frame " << i;
  }
  EXPECT_FALSE(*reader_->Next(&frame));
  EXPECT_FALSE(reader_->HasPiece());
}

// Two threads at full speed, both sleeping and waking: every frame arrives, once, in order.
TEST_F(RingTest, ThreadsPassFramesInOrder) {
  constexpr uint64_t kFrames = 3000;
  std::thread producer([&] {
    for (uint64_t i = 1; i <= kFrames; ++i) {
      Write(writer_.get(), i, std::string(i * 31 % 5000, static_cast<char>(i)));
    }
  });
  Frame frame;
  for (uint64_t i = 1; i <= kFrames;) {
    const absl::StatusOr<bool> got = reader_->Next(&frame);
    ASSERT_TRUE(got.ok()) << got.status();
    if (!*got) {
      reader_->Sleep(kSleepsForAny, 0, kBitWaiter, kForever);
      reader_->Arm(kAwake);
      continue;
    }
    ASSERT_EQ(frame.header().sequence, i);
    ASSERT_EQ(frame.message(), std::string(i * 31 % 5000, static_cast<char>(i)));
    ++i;
  }
  producer.join();
}

// A frame larger than the ring passes through it, the producer waiting for room.
TEST_F(RingTest, FrameLargerThanTheRing) {
  const std::string message(3 * kRingCapacity + 5, 'x');
  std::thread producer([&] { Write(writer_.get(), 1, message); });
  Frame frame;
  while (true) {
    const absl::StatusOr<bool> got = reader_->Next(&frame);
    ASSERT_TRUE(got.ok());
    if (*got) break;
    reader_->Sleep(kSleepsForAny, 0, kBitWaiter, kForever);
  }
  EXPECT_TRUE(frame.message() == message);
  producer.join();
}

// A full ring takes no more until something has been taken out.
TEST_F(RingTest, FullRingRefuses) {
  const std::string body(60000, 'x');
  int written = 0;
  while (writer_->TryWritePiece({60000, kPieceFirst | kPieceLast}, body, {}, {})) ++written;
  EXPECT_EQ(written, static_cast<int>(kRingCapacity / 60008));
  EXPECT_FALSE(writer_->violated());
  Frame frame;
  (void)reader_->Next(&frame);  // Not a frame, but its bytes are taken.
  EXPECT_TRUE(writer_->TryWritePiece({60000, kPieceFirst | kPieceLast}, body, {}, {}));
}

// A producer that claims more than the ring holds, less than before, or odd positions, is refused.
TEST_F(RingTest, TornProducerCursorIsRefused) {
  for (const uint64_t produced : {kRingCapacity + 8, uint64_t{0} - 8, uint64_t{4},
                                  uint64_t{1} << 63, UINT64_MAX, uint64_t{8} + 1}) {
    RingReader reader(memory_.get());
    shared_.produced.store(produced);
    Frame frame;
    EXPECT_FALSE(reader.Next(&frame).ok()) << produced;
  }
}

// A piece that claims more than is there is refused before anything of it is used.
TEST_F(RingTest, OversizePiecesAreRefused) {
  struct Case {
    uint32_t body_bytes;
    uint64_t produced;
  };
  for (const Case& c : {Case{17, 16}, Case{kMaxPieceBody + 1, kRingCapacity},
                        Case{UINT32_MAX, 4096}, Case{kMaxPieceBody, 4096}, Case{1, 8}}) {
    shared_.produced.store(0);
    RingReader reader(memory_.get());
    Forge({c.body_bytes, kPieceFirst | kPieceLast}, "", c.produced);
    Frame frame;
    EXPECT_FALSE(reader.Next(&frame).ok()) << c.body_bytes;
  }
}

// The reader goes by its own cursor: what a producer writes over `consumed` makes it neither skip
// nor repeat, nor believe that there is something to take.
TEST_F(RingTest, ReaderIgnoresTheSharedConsumedCursor) {
  Write(writer_.get(), 1, "one");
  Frame frame;
  ASSERT_TRUE(*reader_->Next(&frame));
  shared_.consumed.store(0);
  EXPECT_FALSE(reader_->HasPiece());
  EXPECT_FALSE(*reader_->Next(&frame));
  Write(writer_.get(), 2, "two");
  ASSERT_TRUE(*reader_->Next(&frame));
  EXPECT_EQ(frame.message(), "two");
}

// A consumer whose cursor is impossible is found out, and nothing is written any more.
TEST_F(RingTest, TornConsumerCursorIsAViolation) {
  for (const uint64_t consumed : {uint64_t{1000}, uint64_t{0} - 8, UINT64_MAX}) {
    RingWriter writer(memory_.get());
    shared_.consumed.store(consumed);
    writer.used_bytes();
    EXPECT_TRUE(writer.violated()) << consumed;
    EXPECT_FALSE(writer.TryWritePiece({8, kPieceFirst | kPieceLast}, "12345678", {}, {}));
  }
  // Backwards, too.
  shared_.consumed.store(0);
  RingWriter writer(memory_.get());
  ASSERT_TRUE(writer.TryWritePiece({8, kPieceFirst | kPieceLast}, "12345678", {}, {}));
  shared_.consumed.store(16);
  writer.used_bytes();
  EXPECT_FALSE(writer.violated());
  shared_.consumed.store(8);
  writer.used_bytes();
  EXPECT_TRUE(writer.violated());
}

// A sleeper is woken by exactly the frames that its state asks for.
TEST_F(RingTest, NotifyRingsForTheStatesThatAsk) {
  struct Case {
    RingSleep state;
    Wake wake;
    uint64_t event_id;
    bool rings;
  };
  for (const Case& c :
       {Case{kAwake, Wake::kUrgent, 0, false}, Case{kSleepsLazily, Wake::kIfAwaited, 7, false},
        Case{kSleepsLazily, Wake::kWaiter, 0, false}, Case{kSleepsLazily, Wake::kUrgent, 0, true},
        Case{kSleepsForEvent, Wake::kIfAwaited, 8, false},
        Case{kSleepsForEvent, Wake::kIfAwaited, 7, true},
        Case{kSleepsForEvent, Wake::kWaiter, 0, true},
        Case{kSleepsForEvent, Wake::kUrgent, 0, true},
        Case{kSleepsForAny, Wake::kIfAwaited, 8, true},
        Case{kSleepsEagerly, Wake::kIfAwaited, 8, true}}) {
    shared_.awaited_event.store(7);
    reader_->Arm(c.state);
    const uint32_t before = shared_.bell.load();
    writer_->Notify(c.wake, c.event_id);
    EXPECT_EQ(shared_.bell.load() != before, c.rings) << c.state << " " << static_cast<int>(c.wake);
    // A reader that has been rung for is awake, so that the next frame costs no system call.
    EXPECT_EQ(shared_.sleep_state.load() == kAwake, c.rings || c.state == kAwake);
  }
}

// Nobody sleeps through a ring that fills: a lazy sleeper is woken at a quarter, one that waits for
// an event at half.
TEST_F(RingTest, FillingRingWakesSleepers) {
  const std::string body(kRingCapacity / 16, 'x');
  const PieceHeader piece = {static_cast<uint32_t>(body.size()), kPieceFirst | kPieceLast};
  int lazily = 0;
  int for_event = 0;
  for (int i = 1; i <= 12; ++i) {
    ASSERT_TRUE(writer_->TryWritePiece(piece, body, {}, {}));
    for (const RingSleep state : {kSleepsLazily, kSleepsForEvent}) {
      shared_.awaited_event.store(7);
      reader_->Arm(state);
      const uint32_t before = shared_.bell.load();
      writer_->Notify(Wake::kIfAwaited, 8);
      int& first = state == kSleepsLazily ? lazily : for_event;
      if (shared_.bell.load() != before && first == 0) first = i;
    }
  }
  EXPECT_EQ(lazily, 4);
  EXPECT_EQ(for_event, 8);
}

// Sleep returns at once if something is there, and after its time if nothing comes.
TEST_F(RingTest, SleepReturns) {
  reader_->Sleep(kSleepsForAny, 0, kBitWaiter, 1'000'000);
  Write(writer_.get(), 1, "x", Wake::kIfAwaited);
  reader_->Sleep(kSleepsLazily, 0, kBitWaiter, kForever);
}

// An interrupt wakes a sleeper, also one that only now goes to sleep, and only those it is for.
TEST_F(RingTest, InterruptIsNeverLost) {
  reader_->Interrupt(kBitWaiter);
  reader_->Sleep(kSleepsForAny, 0, kBitWaiter, kForever);  // Returns: it was meant.
  reader_->Interrupt(kBitBackground);
  const int64_t start = MonotonicNs();
  reader_->Sleep(kSleepsForAny, 0, kBitWaiter, 20'000'000);
  EXPECT_GE(MonotonicNs() - start, 20'000'000);
  std::thread sleeper([&] { reader_->Sleep(kSleepsForAny, 0, kBitWaiter, kForever); });
  reader_->Interrupt(kBitWaiter);
  sleeper.join();
}

// A writer that waits for room is let go by WakeWriter.
TEST_F(RingTest, WakeWriterEndsAWait) {
  const std::string body(kMaxPieceBody, 'x');
  while (writer_->TryWritePiece({kMaxPieceBody, kPieceFirst | kPieceLast}, body, {}, {})) {
  }
  std::atomic<bool> woken = false;
  std::thread waiter([&] {
    writer_->WaitForRoom(kMaxPieceBody, kForever);
    woken = true;
  });
  while (!woken) {
    writer_->WakeWriter();
    std::this_thread::yield();
  }
  waiter.join();
}

}  // namespace
}  // namespace sluice::wire
