// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/conformance/harness/image_helpers.h"

namespace sluice::conformance {
namespace {

using SamplerTest = WithImages;

template <typename T>
T SamplerInfo(cl_sampler sampler, cl_sampler_info param) {
  T value{};
  size_t bytes = 0;
  EXPECT_CL("clGetSamplerInfo.plain", CL_SUCCESS,
            clGetSamplerInfo(sampler, param, sizeof(value), &value, &bytes));
  EXPECT_EQ(bytes, sizeof(value));
  return value;
}

// A sampler of every addressing and filter mode is made, the old way and the new, and tells what it
// is.
TEST_F(SamplerTest, EveryModeIsCreated) {
  for (cl_addressing_mode mode : {CL_ADDRESS_NONE, CL_ADDRESS_CLAMP_TO_EDGE, CL_ADDRESS_CLAMP,
                                  CL_ADDRESS_REPEAT, CL_ADDRESS_MIRRORED_REPEAT}) {
    for (cl_filter_mode filter : {CL_FILTER_NEAREST, CL_FILTER_LINEAR}) {
      const bool wraps = mode == CL_ADDRESS_REPEAT || mode == CL_ADDRESS_MIRRORED_REPEAT;
      const cl_bool normalised = wraps ? CL_TRUE : CL_FALSE;
      const Own<cl_sampler> old = MAKE("clCreateSampler.plain",
                                       clCreateSampler(context(), normalised, mode, filter, error));
      const cl_sampler_properties list[] = {CL_SAMPLER_NORMALIZED_COORDS,
                                            normalised,
                                            CL_SAMPLER_ADDRESSING_MODE,
                                            mode,
                                            CL_SAMPLER_FILTER_MODE,
                                            filter,
                                            0};
      const Own<cl_sampler> made = MAKE("clCreateSamplerWithProperties.plain",
                                        clCreateSamplerWithProperties(context(), list, error));
      for (cl_sampler sampler : {old.get(), made.get()}) {
        EXPECT_EQ(SamplerInfo<cl_addressing_mode>(sampler, CL_SAMPLER_ADDRESSING_MODE), mode);
        EXPECT_EQ(SamplerInfo<cl_filter_mode>(sampler, CL_SAMPLER_FILTER_MODE), filter);
        EXPECT_EQ(SamplerInfo<cl_bool>(sampler, CL_SAMPLER_NORMALIZED_COORDS), normalised);
        EXPECT_EQ(SamplerInfo<cl_context>(sampler, CL_SAMPLER_CONTEXT), context());
        EXPECT_EQ(SamplerInfo<cl_uint>(sampler, CL_SAMPLER_REFERENCE_COUNT), 1u);
      }
    }
  }
}

// Properties that are left out have the specification's defaults: normalised, clamped, nearest. The
// property list can be asked back.
TEST_F(SamplerTest, DefaultsAndProperties) {
  const Own<cl_sampler> bare = MAKE("clCreateSamplerWithProperties.none",
                                    clCreateSamplerWithProperties(context(), nullptr, error));
  if (bare.get() != nullptr) {
    EXPECT_EQ(SamplerInfo<cl_bool>(bare, CL_SAMPLER_NORMALIZED_COORDS),
              static_cast<cl_bool>(CL_TRUE));
    EXPECT_EQ(SamplerInfo<cl_addressing_mode>(bare, CL_SAMPLER_ADDRESSING_MODE),
              static_cast<cl_addressing_mode>(CL_ADDRESS_CLAMP));
    EXPECT_EQ(SamplerInfo<cl_filter_mode>(bare, CL_SAMPLER_FILTER_MODE),
              static_cast<cl_filter_mode>(CL_FILTER_NEAREST));
  }
  const cl_sampler_properties list[] = {CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, 0};
  const Own<cl_sampler> listed = MAKE("clCreateSamplerWithProperties.listed",
                                      clCreateSamplerWithProperties(context(), list, error));
  cl_sampler_properties back[8] = {};
  size_t bytes = 0;
  EXPECT_CL("clGetSamplerInfo.properties", CL_SUCCESS,
            clGetSamplerInfo(listed, CL_SAMPLER_PROPERTIES, sizeof(back), back, &bytes));
  if (!Differs("clGetSamplerInfo.properties_value")) {
    ASSERT_EQ(bytes, sizeof(list));
    EXPECT_TRUE(std::equal(std::begin(list), std::end(list), back));
  }
}

// Each wrong argument of the two create functions has its code.
TEST_F(SamplerTest, CreateRefusals) {
  EXPECT_CREATE("clCreateSampler.null_context", CL_INVALID_CONTEXT,
                clCreateSampler(nullptr, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, error));
  EXPECT_CREATE("clCreateSampler.unknown_mode", CL_INVALID_VALUE,
                clCreateSampler(context(), CL_TRUE, 0x7ffe, CL_FILTER_NEAREST, error));
  EXPECT_CREATE("clCreateSampler.unknown_filter", CL_INVALID_VALUE,
                clCreateSampler(context(), CL_TRUE, CL_ADDRESS_CLAMP, 0x7ffe, error));
  EXPECT_CREATE("clCreateSamplerWithProperties.null_context", CL_INVALID_CONTEXT,
                clCreateSamplerWithProperties(nullptr, nullptr, error));
  const cl_sampler_properties unknown[] = {0x7ffe, 1, 0};
  EXPECT_CREATE("clCreateSamplerWithProperties.unknown_property", CL_INVALID_VALUE,
                clCreateSamplerWithProperties(context(), unknown, error));
  const cl_sampler_properties twice[] = {CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR,
                                         CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, 0};
  EXPECT_CREATE("clCreateSamplerWithProperties.repeated_property", CL_INVALID_VALUE,
                clCreateSamplerWithProperties(context(), twice, error));
  const cl_sampler_properties bad_value[] = {CL_SAMPLER_ADDRESSING_MODE, 0x7ffe, 0};
  EXPECT_CREATE("clCreateSamplerWithProperties.bad_value", CL_INVALID_VALUE,
                clCreateSamplerWithProperties(context(), bad_value, error));
}

// Retain and release count; wrong queries are refused.
TEST_F(SamplerTest, IsCounted) {
  const Own<cl_sampler> sampler =
      MAKE("clCreateSampler.counted",
           clCreateSampler(context(), CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, error));
  EXPECT_CL("clRetainSampler.plain", CL_SUCCESS, clRetainSampler(sampler));
  EXPECT_EQ(SamplerInfo<cl_uint>(sampler, CL_SAMPLER_REFERENCE_COUNT), 2u);
  EXPECT_CL("clReleaseSampler.plain", CL_SUCCESS, clReleaseSampler(sampler));
  EXPECT_EQ(SamplerInfo<cl_uint>(sampler, CL_SAMPLER_REFERENCE_COUNT), 1u);
  EXPECT_CL("clRetainSampler.null", CL_INVALID_SAMPLER, clRetainSampler(nullptr));
  EXPECT_CL("clReleaseSampler.null", CL_INVALID_SAMPLER, clReleaseSampler(nullptr));
  char value[8];
  EXPECT_CL("clGetSamplerInfo.unknown", CL_INVALID_VALUE,
            clGetSamplerInfo(sampler, 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetSamplerInfo.too_small", CL_INVALID_VALUE,
            clGetSamplerInfo(sampler, CL_SAMPLER_CONTEXT, 1, value, nullptr));
  EXPECT_CL("clGetSamplerInfo.null", CL_INVALID_SAMPLER,
            clGetSamplerInfo(nullptr, CL_SAMPLER_CONTEXT, sizeof(value), value, nullptr));
}

// Kernels read and write images of each kind, through samplers given as arguments.
TEST_F(SamplerTest, KernelsUseImagesAndSamplers) {
  if (!HasCompiler())
    GTEST_SKIP() << "the device has no compiler (CL_DEVICE_COMPILER_AVAILABLE is false)";
  const Own<cl_program> program = Program(R"(
kernel void invert(read_only image2d_t in, write_only image2d_t out, sampler_t how) {
  const int2 at = (int2)(get_global_id(0), get_global_id(1));
  write_imageui(out, at, (uint4)(255) - read_imageui(in, how, at));
}
kernel void read_edge(read_only image2d_t in, sampler_t how, global float* out) {
  const int x = get_global_id(0);
  out[x] = read_imagef(in, how, (int2)(x - 2, 0)).x;
}
kernel void layers(read_only image3d_t deep, read_only image2d_array_t array, sampler_t how, global uint* out) {
  const int z = get_global_id(0);
  out[2 * z] = read_imageui(deep, how, (int4)(1, 1, z, 0)).x;
  out[2 * z + 1] = read_imageui(array, how, (int4)(1, 1, z, 0)).x;
}
)");
  const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
  const ImageKind& flat = KindOf(CL_MEM_OBJECT_IMAGE2D);
  const TestImage in = Make(flat, format, CL_MEM_READ_ONLY),
                  out = Make(flat, format, CL_MEM_WRITE_ONLY);
  std::vector<cl_uchar> pixels = ImagePattern(flat, format, 1);
  WriteAll(flat, in.memory, pixels);
  const Own<cl_sampler> clamp =
      MAKE("clCreateSampler.kernel",
           clCreateSampler(context(), CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, error));
  const cl_sampler how = clamp;
  const Own<cl_kernel> invert = Kernel(program, "invert");
  SetArg(invert, 0, in.memory);
  SetArg(invert, 1, out.memory);
  EXPECT_CL("clSetKernelArg.sampler", CL_SUCCESS, clSetKernelArg(invert, 2, sizeof(how), &how));
  const size_t global[2] = {flat.width, flat.height};
  ASSERT_CL(
      "clEnqueueNDRangeKernel.images", CL_SUCCESS,
      clEnqueueNDRangeKernel(queue(), invert, 2, nullptr, global, nullptr, 0, nullptr, nullptr));
  for (cl_uchar& one : pixels) one = static_cast<cl_uchar>(255 - one);
  EXPECT_EQ(ReadAll(flat, format, out.memory), pixels);

  const cl_image_format floats = {CL_RGBA, CL_FLOAT};
  const TestImage row = Make(flat, floats);
  WriteAll(flat, row.memory, ImagePattern(flat, floats, 4));
  const Own<cl_sampler> edge = MAKE(
      "clCreateSampler.edge",
      clCreateSampler(context(), CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST, error));
  const Own<cl_kernel> read_edge = Kernel(program, "read_edge");
  const Own<cl_mem> seen = Buffer(8 * sizeof(cl_float));
  for (cl_sampler sampler : {edge.get(), clamp.get()}) {
    SetArg(read_edge, 0, row.memory);
    EXPECT_EQ(clSetKernelArg(read_edge, 1, sizeof(sampler), &sampler), CL_SUCCESS);
    SetArg(read_edge, 2, seen);
    ASSERT_EQ(Launch(queue(), read_edge, 4), CL_SUCCESS);
    // The pattern's first pixels are 1, 4, ... in x; left of the edge it is the edge's or the
    // border's colour.
    const cl_float border = sampler == edge.get() ? 1.0f : 0.0f;
    EXPECT_EQ(Read<cl_float>(seen, 4), (std::vector<cl_float>{border, border, 1.0f, 4.0f}));
  }

  const ImageKind &deep_kind = KindOf(CL_MEM_OBJECT_IMAGE3D),
                  &array_kind = KindOf(CL_MEM_OBJECT_IMAGE2D_ARRAY);
  const TestImage deep = Make(deep_kind, format), array = Make(array_kind, format);
  const std::vector<cl_uchar> deep_pixels = ImagePattern(deep_kind, format, 2);
  const std::vector<cl_uchar> array_pixels = ImagePattern(array_kind, format, 3);
  WriteAll(deep_kind, deep.memory, deep_pixels);
  WriteAll(array_kind, array.memory, array_pixels);
  const Own<cl_kernel> layers = Kernel(program, "layers");
  SetArg(layers, 0, deep.memory);
  SetArg(layers, 1, array.memory);
  EXPECT_EQ(clSetKernelArg(layers, 2, sizeof(how), &how), CL_SUCCESS);
  SetArg(layers, 3, seen);
  ASSERT_EQ(Launch(queue(), layers, 4), CL_SUCCESS);
  const std::vector<cl_uint> found = Read<cl_uint>(seen, 8);
  for (size_t z = 0; z < 4; ++z) {
    EXPECT_EQ(found[2 * z], deep_pixels[((z * deep_kind.height + 1) * deep_kind.width + 1) * 4]);
    EXPECT_EQ(found[2 * z + 1],
              array_pixels[((z * array_kind.height + 1) * array_kind.width + 1) * 4]);
  }
}

}  // namespace
}  // namespace sluice::conformance
