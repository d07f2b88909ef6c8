// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/d3d/d3d_format.h"

#include <algorithm>
#include <iterator>

namespace sluice::client::sharing {
namespace {

struct Row {
  uint32_t native;
  cl_image_format format;
};
constexpr Row kDxgiFormats[] = {
#define DXGI_ROW(name, value, order, type) {value, {CL_##order, CL_##type}},
#include "proto/dxgi_formats.inc"
};
constexpr Row kD3d9Formats[] = {
#define D3D9_ROW(name, value, order, type) {value, {CL_##order, CL_##type}},
#include "client_icd/sharing/d3d/d3d9_formats.inc"
};

constexpr uint32_t FourCc(const char (&code)[5]) {
  return static_cast<uint32_t>(code[0]) | static_cast<uint32_t>(code[1]) << 8 |
         static_cast<uint32_t>(code[2]) << 16 | static_cast<uint32_t>(code[3]) << 24;
}
constexpr uint32_t kNv12 = FourCc("NV12");
constexpr uint32_t kYv12 = FourCc("YV12");

// Table 9.10.3.
constexpr cl_image_format kOne = {CL_R, CL_UNORM_INT8};
constexpr cl_image_format kPair = {CL_RG, CL_UNORM_INT8};
constexpr D3d9Plane kNv12Planes[] = {{kOne, 1, 1, 0}, {kPair, 2, 1, 4}};
// "The YV12 Plane 0 corresponds to the Y channel, Plane 1 corresponds to the V channel and Plane 2
// corresponds to the U channel", which is their order in memory.
constexpr D3d9Plane kYv12Planes[] = {{kOne, 1, 1, 0}, {kOne, 2, 2, 4}, {kOne, 2, 2, 5}};

template <size_t kCount>
std::optional<cl_image_format> Find(const Row (&rows)[kCount], uint32_t native) {
  const Row* found = std::find_if(std::begin(rows), std::end(rows),
                                  [native](const Row& one) { return one.native == native; });
  if (found == std::end(rows)) return std::nullopt;
  return found->format;
}

}  // namespace

std::optional<cl_image_format> FindDxgiFormat(uint32_t dxgi_format) {
  return Find(kDxgiFormats, dxgi_format);
}

std::optional<D3dExtent> ExtentOf(const D3dShape& shape, uint32_t subresource) {
  if (subresource / shape.levels >= shape.layers) return std::nullopt;
  const uint32_t level = subresource % shape.levels;
  const auto at_level = [level](uint32_t size) -> size_t { return std::max(size >> level, 1u); };
  return D3dExtent{at_level(shape.width), at_level(shape.height), at_level(shape.depth)};
}

uint32_t D3d9Planes(uint32_t format) {
  if (format == kNv12) return std::size(kNv12Planes);
  if (format == kYv12) return std::size(kYv12Planes);
  return Find(kD3d9Formats, format) ? 1 : 0;
}

D3d9Plane FindD3d9Plane(uint32_t format, uint32_t plane) {
  if (format == kNv12) return kNv12Planes[plane];
  if (format == kYv12) return kYv12Planes[plane];
  return {*Find(kD3d9Formats, format), 1, 1, 0};
}

}  // namespace sluice::client::sharing
