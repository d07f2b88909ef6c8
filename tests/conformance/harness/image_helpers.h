// SPDX-License-Identifier: Apache-2.0
//
// Shared by the image tests: the kinds of images with a small shape each, the formats that the
// tests use, and images filled with a known pattern. Owner: the test that includes it. Thread: the
// test's. Trust: none needed.
#pragma once

#include <string>
#include <vector>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {

struct ImageKind {
  const char* name;
  cl_mem_object_type type;
  size_t width, height, depth,
      array_size;  // As clGetImageInfo tells them: 0 where the kind has no such extent.

  // The region of the whole image, and the number of rows and slices in it.
  size_t Rows() const;
  size_t Slices() const;
};

extern const ImageKind kImageKinds[6];
const ImageKind& KindOf(cl_mem_object_type type);

// The formats that the tests use, all of them; a driver must have most for reading and writing.
extern const cl_image_format kFormats[7];
std::string FormatName(const cl_image_format& format);
size_t PixelBytes(const cl_image_format& format);

cl_image_desc Describe(cl_mem_object_type type, size_t width, size_t height = 0, size_t depth = 0,
                       size_t layers = 0);

struct TestImage {
  Own<cl_mem> buffer;  // Of a 1D image buffer.
  Own<cl_mem> memory;
};

class WithImages : public WithQueue {
 protected:
  void SetUp() override;
  // Those of kFormats that the driver lists for this kind, for reading and writing alike.
  std::vector<cl_image_format> UsableFormats(cl_mem_object_type type) const;
  TestImage Make(const ImageKind& kind, const cl_image_format& format,
                 cl_mem_flags flags = CL_MEM_READ_WRITE) const;
  // The whole image, rows and slices packed.
  std::vector<cl_uchar> ReadAll(const ImageKind& kind, const cl_image_format& format,
                                cl_mem image) const;
  void WriteAll(const ImageKind& kind, cl_mem image, const std::vector<cl_uchar>& pixels) const;
};

// Bytes of the whole image, packed, each different from its neighbours; floats are valid numbers.
std::vector<cl_uchar> ImagePattern(const ImageKind& kind, const cl_image_format& format,
                                   unsigned seed);

// Fills `region` for a transfer of the whole image.
void WholeRegion(const ImageKind& kind, size_t region[3]);

}  // namespace sluice::conformance
