// SPDX-License-Identifier: Apache-2.0
#include "proto/network/message_reader.h"

#include <cstring>

namespace sluice::wire {
namespace {

constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kLengthDelimited = 2;
constexpr uint32_t kFixed32 = 5;

}  // namespace

bool MessageReader::Reset(const grpc::ByteBuffer& message) {
  slices_.clear();
  slice_ = at_ = 0;
  field_left_ = 0;
  message_left_ = 0;
  grpc::Slice single;
  if (message.TrySingleSlice(&single).ok()) {
    slices_.push_back(std::move(single));
  } else if (!message.Dump(&slices_).ok()) {
    return false;
  }
  for (const grpc::Slice& slice : slices_) message_left_ += slice.size();
  Advance(0);  // Past empty slices.
  return true;
}

void MessageReader::Advance(uint64_t bytes) {
  message_left_ -= bytes;
  at_ += bytes;
  while (slice_ < slices_.size() && at_ >= slices_[slice_].size()) {
    at_ -= slices_[slice_].size();
    ++slice_;
  }
}

bool MessageReader::ReadVarint(uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (message_left_ == 0) return false;
    const uint8_t byte = slices_[slice_].begin()[at_];
    Advance(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

MessageReader::Step MessageReader::NextField(uint32_t* number) {
  Advance(field_left_);
  field_left_ = 0;
  while (message_left_ > 0) {
    uint64_t tag = 0;
    uint64_t value = 0;
    if (!ReadVarint(&tag) || (tag >> 3) == 0 || (tag >> 3) > UINT32_MAX) return Step::kMalformed;
    switch (tag & 7) {
      case kVarint:
        if (!ReadVarint(&value)) return Step::kMalformed;
        break;
      case kFixed64:
      case kFixed32:
        value = (tag & 7) == kFixed64 ? 8 : 4;
        if (message_left_ < value) return Step::kMalformed;
        Advance(value);
        break;
      case kLengthDelimited:
        if (!ReadVarint(&value) || value > message_left_) return Step::kMalformed;
        field_left_ = value;
        *number = static_cast<uint32_t>(tag >> 3);
        return Step::kField;
      default:
        return Step::kMalformed;
    }
  }
  return Step::kEnd;
}

void MessageReader::CopyOut(char* out, size_t bytes) const {
  size_t slice = slice_;
  size_t at = at_;
  while (bytes > 0) {
    const size_t there = slices_[slice].size() - at;
    const size_t part = there < bytes ? there : bytes;
    std::memcpy(out, slices_[slice].begin() + at, part);
    out += part;
    bytes -= part;
    ++slice;
    at = 0;
  }
}

bool MessageReader::Peek(void* out, size_t bytes) const {
  if (bytes > field_left_) return false;
  CopyOut(static_cast<char*>(out), bytes);
  return true;
}

bool MessageReader::Skip(uint64_t bytes) {
  if (bytes > field_left_) return false;
  field_left_ -= bytes;
  Advance(bytes);
  return true;
}

bool MessageReader::Read(void* out, size_t bytes) { return Peek(out, bytes) && Skip(bytes); }

const char* MessageReader::Contiguous(size_t bytes, std::string* scratch) const {
  if (bytes > field_left_) return nullptr;
  if (bytes == 0) return "";
  const grpc::Slice& slice = slices_[slice_];
  if (slice.size() - at_ >= bytes) return reinterpret_cast<const char*>(slice.begin()) + at_;
  scratch->resize(bytes);
  CopyOut(scratch->data(), bytes);
  return scratch->data();
}

std::string MessageReader::Rest() {
  std::string rest(field_left_, '\0');
  CopyOut(rest.data(), rest.size());
  Skip(rest.size());
  return rest;
}

namespace {

bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

bool FindVarintField(std::string_view message, uint32_t number, uint64_t* value) {
  *value = 0;
  while (!message.empty()) {
    uint64_t tag = 0;
    uint64_t read = 0;
    if (!TakeVarint(&message, &tag)) return false;
    uint64_t skip = 0;
    switch (tag & 7) {
      case kVarint:
        if (!TakeVarint(&message, &read)) return false;
        if (tag >> 3 == number) *value = read;
        break;
      case kFixed64:
      case kFixed32:
        skip = (tag & 7) == kFixed64 ? 8 : 4;
        break;
      case kLengthDelimited:
        if (!TakeVarint(&message, &skip)) return false;
        break;
      default:
        return false;
    }
    if (skip > message.size()) return false;
    message.remove_prefix(skip);
  }
  return true;
}

void AppendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void AppendFieldHeader(uint32_t number, uint64_t bytes, std::string* out) {
  AppendVarint(uint64_t{number} << 3 | kLengthDelimited, out);
  AppendVarint(bytes, out);
}

void AppendStringField(uint32_t number, std::string_view value, std::string* out) {
  AppendFieldHeader(number, value.size(), out);
  out->append(value);
}

}  // namespace sluice::wire
