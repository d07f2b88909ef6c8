// SPDX-License-Identifier: Apache-2.0
// The consumer's end of a ring whose producer is hostile: the input is a list of bursts of
// bytes in the ring, each with how far the producer's cursor goes.
//
//   burst: how far `produced` moves (4 bytes) | body bytes (2) | body
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "proto/ring_reader.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/grammar.h"

namespace {

struct FreeMemory {
  void operator()(uint8_t* memory) const { std::free(memory); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<uint8_t, FreeMemory> memory(
      static_cast<uint8_t*>(std::aligned_alloc(4096, sluice::wire::kRingFileBytes)));
  std::memset(memory.get(), 0, sluice::wire::kRingDataOffset);
  auto& shared = *reinterpret_cast<sluice::wire::RingShared*>(memory.get());
  sluice::wire::RingReader reader(memory.get());
  std::string_view in(reinterpret_cast<const char*>(data), size);
  uint64_t produced = 0;
  sluice::wire::Frame frame;
  while (in.size() >= 6) {
    uint32_t step = 0;
    uint16_t body_bytes = 0;
    std::memcpy(&step, in.data(), sizeof(step));
    std::memcpy(&body_bytes, in.data() + 4, sizeof(body_bytes));
    in.remove_prefix(6);
    const std::string_view body = in.substr(0, body_bytes);
    in.remove_prefix(body.size());
    for (size_t i = 0; i < body.size(); ++i) {
      memory.get()[sluice::wire::kRingDataOffset + (produced + i) % sluice::wire::kRingCapacity] =
          static_cast<uint8_t>(body[i]);
    }
    produced += step;
    shared.produced.store(produced);
    while (true) {
      const absl::StatusOr<bool> got = reader.Next(&frame);
      if (!got.ok()) return 0;
      if (!*got) break;
      // A frame that the reader returns is one: its parts can be read.
      uint64_t sum = 0;
      for (const char c : frame.message()) sum += static_cast<uint8_t>(c);
      for (const char c : frame.payload()) sum += static_cast<uint8_t>(c);
      if (sum == UINT64_MAX) std::abort();
    }
  }
  return 0;
}

std::string MakeFuzzInput(std::mt19937_64& random) {
  std::string input;
  for (size_t bursts = 1 + random() % 6; bursts > 0; --bursts) {
    std::string pieces;
    for (size_t frames = random() % 4; frames > 0; --frames) {
      const std::string message = sluice::fuzz::RandomCommand(random, frames);
      const std::string payload(random() % 3000, 'p');
      sluice::wire::FrameHeader header = {};
      header.message_bytes = static_cast<uint32_t>(message.size());
      header.payload_bytes = payload.size();
      if (random() % 20 == 0) header.payload_bytes += random();
      sluice::wire::AppendFrame(header, message, payload, &pieces);
    }
    if (pieces.size() > 60000) pieces.resize(60000);
    const uint32_t step =
        random() % 10 == 0 ? static_cast<uint32_t>(random()) : static_cast<uint32_t>(pieces.size());
    const auto body_bytes = static_cast<uint16_t>(pieces.size());
    input.append(reinterpret_cast<const char*>(&step), sizeof(step));
    input.append(reinterpret_cast<const char*>(&body_bytes), sizeof(body_bytes));
    input += pieces;
  }
  return input;
}
