// SPDX-License-Identifier: Apache-2.0
// Direct3D's formats and subresources as OpenCL images. Formats are by number, as DXGI and Direct3D
// 9 give them, so that this needs no Windows header; sharing/d3d/ checks the numbers against those.
// Thread-safe: constants.
#pragma once

#include <CL/cl.h>

#include <cstdint>
#include <optional>

namespace sluice::client::sharing {

// Of a DXGI_FORMAT; nothing if it is not in the table.
std::optional<cl_image_format> FindDxgiFormat(uint32_t dxgi_format);

// The properties of a Direct3D 10 or 11 resource, from its description.
struct D3dShape {
  enum class Kind { kBuffer, kTexture2d, kTexture3d };
  Kind kind = Kind::kBuffer;
  uint32_t width = 0;  // Bytes of a buffer.
  uint32_t height = 1;
  uint32_t depth = 1;
  uint32_t levels = 1;
  uint32_t layers = 1;
  uint32_t dxgi_format = 0;
  uint32_t samples = 1;
  bool immutable = false;
  bool nt_handle = false;    // Created to be shared by an NT handle,
  bool keyed_mutex = false;  // and with a keyed mutex.
};

// One subresource of it: level and layer are counted as D3D11CalcSubresource does. Elements of a
// buffer are bytes.
struct D3dExtent {
  size_t width = 0;
  size_t height = 1;
  size_t depth = 1;
};
// Nothing if the resource has no such subresource.
std::optional<D3dExtent> ExtentOf(const D3dShape& shape, uint32_t subresource);

// The place of a plane in a Direct3D 9 surface's memory as it is locked.
struct D3d9Plane {
  cl_image_format format = {};
  uint32_t divisor = 1;          // Of the surface's width and height.
  uint32_t pitch_divisor = 1;    // Of the surface's row pitch.
  uint32_t quarters_before = 0;  // Of height * pitch, that lie before it.
};
// Section 9.7.7.5. How many planes a D3DFORMAT has; 0 if it is not in the tables.
uint32_t D3d9Planes(uint32_t format);
D3d9Plane FindD3d9Plane(uint32_t format, uint32_t plane);  // `plane` is one of those.

}  // namespace sluice::client::sharing
