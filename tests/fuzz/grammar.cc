// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/grammar.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::fuzz {
namespace {

// Of FieldDescriptorProto.
constexpr uint64_t kTypeInt32 = 5, kTypeUint64 = 4, kTypeBool = 8, kTypeString = 9,
                   kTypeMessage = 11, kTypeBytes = 12, kTypeUint32 = 13, kTypeEnum = 14;
constexpr uint64_t kRepeated = 3;

struct Field {
  std::string name;
  uint64_t number = 0;
  uint64_t label = 0;
  uint64_t type = 0;
  std::string type_name;
};
using Message = std::vector<Field>;

uint64_t TakeVarint(std::string_view* in) {
  uint64_t value = 0;
  for (int shift = 0; !in->empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

// Calls f(number, varint, bytes) for each field of an encoded message.
template <typename F>
void ForEachField(std::string_view in, F&& f) {
  while (!in.empty()) {
    const uint64_t tag = TakeVarint(&in);
    if (tag % 8 == 0) {
      f(tag / 8, TakeVarint(&in), std::string_view());
    } else if (tag % 8 == 2) {
      const uint64_t size = TakeVarint(&in);
      f(tag / 8, 0, in.substr(0, size));
      in.remove_prefix(size < in.size() ? size : in.size());
    } else {
      return;  // Descriptors have no others that matter.
    }
  }
}

using Messages = std::map<std::string, Message>;

void ReadMessage(std::string_view in, const std::string& scope, Messages* out) {
  std::string name;
  ForEachField(in, [&](uint64_t number, uint64_t, std::string_view bytes) {
    if (number == 1) name = scope + "." + std::string(bytes);
  });
  Message& message = (*out)[name];
  ForEachField(in, [&](uint64_t number, uint64_t, std::string_view bytes) {
    if (number == 3) ReadMessage(bytes, name, out);  // nested_type
    if (number != 2) return;
    Field field;
    ForEachField(bytes, [&](uint64_t n, uint64_t value, std::string_view text) {
      if (n == 1) field.name = text;
      if (n == 3) field.number = value;
      if (n == 4) field.label = value;
      if (n == 5) field.type = value;
      if (n == 6) field.type_name = text;
    });
    message.push_back(field);
  });
}

const Messages& AllMessages() {
  static const Messages& messages = *[] {
    auto* const all = new Messages;
    std::ifstream in(SLUICE_DESCRIPTORS, std::ios::binary);
    const std::string set{std::istreambuf_iterator<char>(in), {}};
    ForEachField(set, [&](uint64_t number, uint64_t, std::string_view file) {
      if (number != 1) return;
      std::string package;
      ForEachField(file, [&](uint64_t n, uint64_t, std::string_view bytes) {
        if (n == 2) package = "." + std::string(bytes);
      });
      ForEachField(file, [&](uint64_t n, uint64_t, std::string_view bytes) {
        if (n == 4) ReadMessage(bytes, package, all);
      });
    });
    if (all->count(".sluice.v1.Command") == 0) std::abort();  // Not built with its descriptors.
    return all;
  }();
  return messages;
}

void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Ids under which command_fuzzer.cc makes an object of the kind that a field of this name wants.
std::pair<uint64_t, uint64_t> PoolOf(const std::string& name) {
  if (name == "device_id" || name == "device_ids") return {1, 2};
  if (name == "context_id") return {3, 4};
  if (name == "queue_id") return {5, 6};
  if (name == "image_id") return {9, 9};
  if (name == "wait_event_ids" || name == "event_id") return {10, 10};
  if (name == "kernel_id") return {12, 12};
  if (name == "program_id" || name == "input_ids" || name == "header_ids") return {11, 11};
  return {7, 9};  // Memory under its many names.
}

// The id of the object that a command makes.
bool IsNewId(const std::string& message, const Field& field) {
  if (field.name == "first_id") return true;
  if (message == ".sluice.v1.Enqueue") return field.name == "event_id";
  if (message == ".sluice.v1.CreateSubDevices") return false;
  if (message == ".sluice.v1.CreateKernelsInProgram") return false;
  const std::string_view name = std::string_view(message).substr(sizeof(".sluice.v1.") - 1);
  const bool makes = name.substr(0, 6) == "Create" || name.substr(0, 5) == "Clone" ||
                     name == "LinkProgram" || name == "SvmAlloc" || name == "Finish";
  return makes && field.number == (name == "Finish" ? 2u : 1u);
}

uint64_t RandomNumber(const std::string& message, const Field& field, std::mt19937_64& random,
                      uint64_t sequence) {
  if (EndsWith(field.name, "_id") || EndsWith(field.name, "_ids")) {
    if (IsNewId(message, field) && random() % 200 != 0) return 100 + sequence;
    switch (random() % 16) {
      case 0:
        return random() % 40;
      case 1:
        return random();
      case 2:
      case 3:
      case 4:
      case 5:
        return 100 + random() % (sequence + 1);
      default: {
        const auto [first, last] = PoolOf(field.name);
        return first + random() % (last - first + 1);
      }
    }
  }
  switch (random() % 12) {
    case 0:
      return random();
    case 1:
      return UINT64_MAX - random() % 4;
    case 2:
      return uint64_t{1} << random() % 64;
    case 3:
      return 0x1000 + random() % 256;  // The places of OpenCL's enumerations.
    case 4:
      return 40000 + random() % 100000;
    default:
      return random() % 70;
  }
}

std::string RandomBytes(const Field& field, std::mt19937_64& random) {
  if (field.name == "name") return random() % 4 == 0 ? "x" : "k";
  if (field.name == "path") return random() % 2 == 0 ? "/a/b.h" : "/../c";
  if (field.name == "options") return "-I/a -D X";
  std::string bytes(random() % 4 == 0 ? random() % 300 : 4, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string RandomMessage(const std::string& name, std::mt19937_64& random, uint64_t sequence,
                          int depth);

void PutField(const std::string& message, const Field& field, std::mt19937_64& random,
              uint64_t sequence, int depth, std::string* out) {
  switch (field.type) {
    case kTypeMessage:
    case kTypeString:
    case kTypeBytes: {
      const std::string bytes = field.type == kTypeMessage
                                    ? RandomMessage(field.type_name, random, sequence, depth + 1)
                                    : RandomBytes(field, random);
      PutVarint(field.number * 8 + 2, out);
      PutVarint(bytes.size(), out);
      *out += bytes;
      return;
    }
    case kTypeBool:
    case kTypeEnum:
    case kTypeInt32:
    case kTypeUint32:
    case kTypeUint64:
      PutVarint(field.number * 8, out);
      PutVarint(field.type == kTypeBool   ? random() % 2
                : field.type == kTypeEnum ? random() % 17
                                          : RandomNumber(message, field, random, sequence),
                out);
      return;
    default:
      return;
  }
}

std::string RandomMessage(const std::string& name, std::mt19937_64& random, uint64_t sequence,
                          int depth) {
  std::string out;
  const auto found = AllMessages().find(name);
  if (found == AllMessages().end() || depth > 6) return out;
  const uint64_t dims = 1 + random() % 3;
  for (const Field& field : found->second) {
    // Rarely left out: without it a command gets nowhere.
    if (random() % (EndsWith(field.name, "_id") || field.name == "on" ? 60 : 8) == 0) continue;
    uint64_t times = 1;
    if (field.label == kRepeated) {
      times = random() % 8 == 0 ? random() % 40 : random() % 4;
      if (field.name == "properties") times &= ~uint64_t{1};
      if (name == ".sluice.v1.NdRange" && random() % 16 != 0) times = dims;
      if (field.name == "wait_event_ids") times = random() % 3 == 0 ? 1 + random() % 3 : 0;
    }
    for (; times > 0; --times) PutField(name, field, random, sequence, depth, &out);
  }
  return out;
}

}  // namespace

std::string RandomCommand(std::mt19937_64& random, uint64_t sequence) {
  const Message& commands = AllMessages().at(".sluice.v1.Command");
  std::string out;
  PutField(".sluice.v1.Command", commands[random() % commands.size()], random, sequence, 0, &out);
  return out;
}

}  // namespace sluice::fuzz
