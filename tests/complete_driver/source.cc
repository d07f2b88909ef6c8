// SPDX-License-Identifier: Apache-2.0
// SPIR-V as OpenCL C: of a module only what says which constants it has, and of what types.
#include <map>

#include "tests/complete_driver/complete_driver.h"

namespace sluice::complete_driver {
namespace {

constexpr cl_uint kMagic = 0x07230203;
constexpr size_t kHeaderWords = 5;
// Opcodes, section 3.37 of the SPIR-V specification.
enum : cl_uint {
  kEntryPoint = 15,
  kTypeBool = 20,
  kTypeInt = 21,
  kTypePointer = 32,
  kSpecConstantTrue = 48,
  kSpecConstantFalse = 49,
  kSpecConstant = 50,
  kDecorate = 71,
};
constexpr cl_uint kSpecId = 1;          // Decorations.
constexpr cl_uint kCrossWorkgroup = 5;  // Storage classes.

struct Types {
  std::map<cl_uint, size_t> bytes;  // By id.
  std::map<cl_uint, cl_uint> spec_ids;
};

void ReadInstruction(const cl_uint* words, size_t count, Types* types, Module* out) {
  switch (words[0] & 0xffff) {
    case kEntryPoint:
      if (count > 3) out->kernel = reinterpret_cast<const char*>(words + 3);
      break;
    case kDecorate:
      if (count > 3 && words[2] == kSpecId) types->spec_ids[words[1]] = words[3];
      break;
    case kTypeBool:
      types->bytes[words[1]] = 1;
      break;
    case kTypeInt:
      types->bytes[words[1]] = words[2] / 8;
      break;
    case kTypePointer:
      if (words[2] == kCrossWorkgroup) out->element_bytes = types->bytes[words[3]];
      break;
    case kSpecConstantTrue:
    case kSpecConstantFalse:
      out->constants.push_back(
          {types->spec_ids[words[2]], 1, (words[0] & 0xffff) == kSpecConstantTrue ? 1u : 0u});
      break;
    case kSpecConstant: {
      const cl_ulong high = count > 4 ? words[4] : 0;
      out->constants.push_back(
          {types->spec_ids[words[2]], types->bytes[words[1]], high << 32 | words[3]});
      break;
    }
    default:
      break;
  }
}

const char* TypeOf(size_t bytes) {
  return bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : "ulong";
}

std::string NameOf(const Module::Constant& constant) {
  return "SPECIALISED_" + std::to_string(constant.id);
}

}  // namespace

bool ReadSpirv(const void* code, size_t bytes, Module* out) {
  std::vector<cl_uint> words(bytes / sizeof(cl_uint));
  std::memcpy(words.data(), code, words.size() * sizeof(cl_uint));
  if (bytes % sizeof(cl_uint) != 0 || words.size() < kHeaderWords || words[0] != kMagic)
    return false;
  Types types;
  for (size_t at = kHeaderWords; at < words.size();) {
    const size_t count = words[at] >> 16;
    if (count == 0 || count > words.size() - at) return false;
    ReadInstruction(&words[at], count, &types, out);
    at += count;
  }
  return true;
}

std::string SourceOf(const Module& module) {
  if (module.kernel.empty()) return "";
  std::string text = std::string("kernel void ") + module.kernel + "(global " +
                     TypeOf(module.element_bytes) + "* out) {";
  for (size_t i = 0; i < module.constants.size(); ++i)
    text += " out[" + std::to_string(i) + "] = " + NameOf(module.constants[i]) + ";";
  return text + " }";
}

std::string ConstantsOf(const Module& module) {
  std::string options;
  for (const Module::Constant& constant : module.constants)
    options += " -D" + NameOf(constant) + "=" + std::to_string(constant.value) + "ul";
  return options;
}

}  // namespace sluice::complete_driver
