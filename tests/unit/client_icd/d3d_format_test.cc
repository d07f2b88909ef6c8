// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/d3d/d3d_format.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "proto/image_format.h"

namespace sluice::client::sharing {
namespace {

constexpr uint32_t kNv12 = 0x3231564e;  // MAKEFOURCC('N', 'V', '1', '2')
constexpr uint32_t kYv12 = 0x32315659;
constexpr uint32_t kA8R8G8B8 = 21;

bool Is(const cl_image_format& format, cl_channel_order order, cl_channel_type type) {
  return format.image_channel_order == order && format.image_channel_data_type == type;
}

// The text of the OpenCL 2.2 Extension Specification, table 9.9.3 (9.11.3 is the same).
constexpr char kDxgiTable[] = R"(
DXGI_FORMAT_R32G32B32A32_FLOAT CL_RGBA, CL_FLOAT
DXGI_FORMAT_R32G32B32A32_UINT CL_RGBA, CL_UNSIGNED_INT32
DXGI_FORMAT_R32G32B32A32_SINT CL_RGBA, CL_SIGNED_INT32
DXGI_FORMAT_R16G16B16A16_FLOAT CL_RGBA, CL_HALF_FLOAT
DXGI_FORMAT_R16G16B16A16_UNORM CL_RGBA, CL_UNORM_INT16
DXGI_FORMAT_R16G16B16A16_UINT CL_RGBA, CL_UNSIGNED_INT16
DXGI_FORMAT_R16G16B16A16_SNORM CL_RGBA, CL_SNORM_INT16
DXGI_FORMAT_R16G16B16A16_SINT CL_RGBA, CL_SIGNED_INT16
DXGI_FORMAT_B8G8R8A8_UNORM CL_BGRA, CL_UNORM_INT8
DXGI_FORMAT_R8G8B8A8_UNORM CL_RGBA, CL_UNORM_INT8
DXGI_FORMAT_R8G8B8A8_UINT CL_RGBA, CL_UNSIGNED_INT8
DXGI_FORMAT_R8G8B8A8_SNORM CL_RGBA, CL_SNORM_INT8
DXGI_FORMAT_R8G8B8A8_SINT CL_RGBA, CL_SIGNED_INT8
DXGI_FORMAT_R32G32_FLOAT CL_RG, CL_FLOAT
DXGI_FORMAT_R32G32_UINT CL_RG, CL_UNSIGNED_INT32
DXGI_FORMAT_R32G32_SINT CL_RG, CL_SIGNED_INT32
DXGI_FORMAT_R16G16_FLOAT CL_RG, CL_HALF_FLOAT
DXGI_FORMAT_R16G16_UNORM CL_RG, CL_UNORM_INT16
DXGI_FORMAT_R16G16_UINT CL_RG, CL_UNSIGNED_INT16
DXGI_FORMAT_R16G16_SNORM CL_RG, CL_SNORM_INT16
DXGI_FORMAT_R16G16_SINT CL_RG, CL_SIGNED_INT16
DXGI_FORMAT_R8G8_UNORM CL_RG, CL_UNORM_INT8
DXGI_FORMAT_R8G8_UINT CL_RG, CL_UNSIGNED_INT8
DXGI_FORMAT_R8G8_SNORM CL_RG, CL_SNORM_INT8
DXGI_FORMAT_R8G8_SINT CL_RG, CL_SIGNED_INT8
DXGI_FORMAT_R32_FLOAT CL_R, CL_FLOAT
DXGI_FORMAT_R32_UINT CL_R, CL_UNSIGNED_INT32
DXGI_FORMAT_R32_SINT CL_R, CL_SIGNED_INT32
DXGI_FORMAT_R16_FLOAT CL_R, CL_HALF_FLOAT
DXGI_FORMAT_R16_UNORM CL_R, CL_UNORM_INT16
DXGI_FORMAT_R16_UINT CL_R, CL_UNSIGNED_INT16
DXGI_FORMAT_R16_SNORM CL_R, CL_SNORM_INT16
DXGI_FORMAT_R16_SINT CL_R, CL_SIGNED_INT16
DXGI_FORMAT_R8_UNORM CL_R, CL_UNORM_INT8
DXGI_FORMAT_R8_UINT CL_R, CL_UNSIGNED_INT8
DXGI_FORMAT_R8_SNORM CL_R, CL_SNORM_INT8
DXGI_FORMAT_R8_SINT CL_R, CL_SIGNED_INT8
)";

// Table 9.10.4.
constexpr char kD3d9Table[] = R"(
D3DFMT_R32F CL_R, CL_FLOAT
D3DFMT_R16F CL_R, CL_HALF_FLOAT
D3DFMT_L16 CL_R, CL_UNORM_INT16
D3DFMT_A8 CL_A, CL_UNORM_INT8
D3DFMT_L8 CL_R, CL_UNORM_INT8
D3DFMT_G32R32F CL_RG, CL_FLOAT
D3DFMT_G16R16F CL_RG, CL_HALF_FLOAT
D3DFMT_G16R16 CL_RG, CL_UNORM_INT16
D3DFMT_A8L8 CL_RG, CL_UNORM_INT8
D3DFMT_A32B32G32R32F CL_RGBA, CL_FLOAT
D3DFMT_A16B16G16R16F CL_RGBA, CL_HALF_FLOAT
D3DFMT_A16B16G16R16 CL_RGBA, CL_UNORM_INT16
D3DFMT_A8B8G8R8 CL_RGBA, CL_UNORM_INT8
D3DFMT_X8B8G8R8 CL_RGBA, CL_UNORM_INT8
D3DFMT_A8R8G8B8 CL_BGRA, CL_UNORM_INT8
D3DFMT_X8R8G8B8 CL_BGRA, CL_UNORM_INT8
)";

// A table's formats as it writes them, "CL_RGBA, CL_FLOAT", by their names.
std::map<std::string, std::string> Parse(const char* table) {
  std::map<std::string, std::string> rows;
  std::istringstream text(table);
  for (std::string name, order, type; text >> name >> order >> type;)
    rows[name] = order + " " + type;
  return rows;
}

std::string Written(const cl_image_format& format) {
#define NAMED(constant) \
  { constant, #constant }
  static const std::map<cl_uint, std::string> names = {NAMED(CL_A),
                                                       NAMED(CL_R),
                                                       NAMED(CL_RG),
                                                       NAMED(CL_RGBA),
                                                       NAMED(CL_BGRA),
                                                       NAMED(CL_FLOAT),
                                                       NAMED(CL_HALF_FLOAT),
                                                       NAMED(CL_UNORM_INT8),
                                                       NAMED(CL_UNORM_INT16),
                                                       NAMED(CL_SNORM_INT8),
                                                       NAMED(CL_SNORM_INT16),
                                                       NAMED(CL_SIGNED_INT8),
                                                       NAMED(CL_SIGNED_INT16),
                                                       NAMED(CL_SIGNED_INT32),
                                                       NAMED(CL_UNSIGNED_INT8),
                                                       NAMED(CL_UNSIGNED_INT16),
                                                       NAMED(CL_UNSIGNED_INT32)};
#undef NAMED
  return names.at(format.image_channel_order) + ", " + names.at(format.image_channel_data_type);
}

// Each row says what the specification's says, and none is missing. (That the values are those of
// the names is checked where Direct3D's headers are, on Windows.)
TEST(D3dFormatTest, RowsAreTheSpecifications) {
  std::map<std::string, std::string> dxgi, d3d9;
#define DXGI_ROW(name, value, order, type) \
  dxgi["DXGI_FORMAT_" #name] = Written(*FindDxgiFormat(value));
#include "proto/dxgi_formats.inc"
#define D3D9_ROW(name, value, order, type) \
  d3d9["D3DFMT_" #name] = Written(FindD3d9Plane(value, 0).format);
#include "client_icd/sharing/d3d/d3d9_formats.inc"
  EXPECT_EQ(Parse(kDxgiTable).size(), 37u);
  EXPECT_EQ(Parse(kD3d9Table).size(), 16u);
  EXPECT_EQ(dxgi, Parse(kDxgiTable));
  EXPECT_EQ(d3d9, Parse(kD3d9Table));
}

// Of all DXGI formats exactly those of table 9.9.3 are images, of elements whose size is known;
// their neighbours (typeless, sRGB, depth, packed, BGRX) are not.
TEST(D3dFormatTest, DxgiFormatsAreTheTables) {
  int found = 0;
  for (uint32_t format = 0; format < 200; ++format) {
    const std::optional<cl_image_format> image = FindDxgiFormat(format);
    found += image.has_value();
    if (image) {
      EXPECT_GT(wire::ElementBytes(*image), 0u) << format;
    }
  }
  EXPECT_EQ(found, 37);
  EXPECT_TRUE(Is(*FindDxgiFormat(2), CL_RGBA, CL_FLOAT));        // R32G32B32A32_FLOAT
  EXPECT_TRUE(Is(*FindDxgiFormat(28), CL_RGBA, CL_UNORM_INT8));  // R8G8B8A8_UNORM
  EXPECT_TRUE(Is(*FindDxgiFormat(87), CL_BGRA, CL_UNORM_INT8));  // B8G8R8A8_UNORM
  EXPECT_TRUE(Is(*FindDxgiFormat(64), CL_R, CL_SIGNED_INT8));    // R8_SINT
  for (const uint32_t other : {0u, 1u, 6u, 24u, 27u, 29u, 40u, 88u, 91u, 103u}) {
    EXPECT_FALSE(FindDxgiFormat(other)) << other;
  }
}

// Levels count first, then layers; each level is half of the one before, and never nothing.
TEST(D3dFormatTest, SubresourcesAreLevelsOfLayers) {
  D3dShape shape;
  shape.kind = D3dShape::Kind::kTexture2d;
  shape.width = 20;
  shape.height = 5;
  shape.levels = 5;
  shape.layers = 2;
  EXPECT_EQ(ExtentOf(shape, 0)->width, 20u);
  EXPECT_EQ(ExtentOf(shape, 1)->width, 10u);
  EXPECT_EQ(ExtentOf(shape, 1)->height, 2u);
  EXPECT_EQ(ExtentOf(shape, 4)->width, 1u);
  EXPECT_EQ(ExtentOf(shape, 4)->height, 1u);
  EXPECT_EQ(ExtentOf(shape, 6)->width, 10u);
  EXPECT_TRUE(ExtentOf(shape, 9));
  EXPECT_FALSE(ExtentOf(shape, 10));
  EXPECT_FALSE(ExtentOf(shape, 0xffffffff));
}

// The third dimension shrinks with the level too, and a buffer is one subresource.
TEST(D3dFormatTest, VolumesAndBuffers) {
  D3dShape volume;
  volume.kind = D3dShape::Kind::kTexture3d;
  volume.width = volume.height = 8;
  volume.depth = 4;
  volume.levels = 4;
  EXPECT_EQ(ExtentOf(volume, 1)->depth, 2u);
  EXPECT_EQ(ExtentOf(volume, 3)->depth, 1u);
  EXPECT_FALSE(ExtentOf(volume, 4));
  D3dShape buffer;
  buffer.width = 100;
  EXPECT_EQ(ExtentOf(buffer, 0)->width, 100u);
  EXPECT_FALSE(ExtentOf(buffer, 1));
}

// Tables 9.10.3 and 9.10.4, and the planes' places in memory: NV12 has its pairs behind the
// luminance at the same pitch, YV12 its V and U behind it at half the pitch.
TEST(D3dFormatTest, Direct3d9Planes) {
  EXPECT_EQ(D3d9Planes(kA8R8G8B8), 1u);
  EXPECT_TRUE(Is(FindD3d9Plane(kA8R8G8B8, 0).format, CL_BGRA, CL_UNORM_INT8));
  EXPECT_EQ(D3d9Planes(kNv12), 2u);
  EXPECT_TRUE(Is(FindD3d9Plane(kNv12, 0).format, CL_R, CL_UNORM_INT8));
  const D3d9Plane pairs = FindD3d9Plane(kNv12, 1);
  EXPECT_TRUE(Is(pairs.format, CL_RG, CL_UNORM_INT8));
  EXPECT_EQ(pairs.divisor, 2u);
  EXPECT_EQ(pairs.pitch_divisor, 1u);
  EXPECT_EQ(pairs.quarters_before, 4u);
  EXPECT_EQ(D3d9Planes(kYv12), 3u);
  EXPECT_EQ(FindD3d9Plane(kYv12, 1).quarters_before, 4u);
  EXPECT_EQ(FindD3d9Plane(kYv12, 2).quarters_before, 5u);
  EXPECT_EQ(FindD3d9Plane(kYv12, 2).pitch_divisor, 2u);
  // D3DFMT_R5G6B5, D3DFMT_D24S8, YUY2.
  for (const uint32_t other : {23u, 75u, 0x32595559u}) EXPECT_EQ(D3d9Planes(other), 0u) << other;
}

}  // namespace
}  // namespace sluice::client::sharing
