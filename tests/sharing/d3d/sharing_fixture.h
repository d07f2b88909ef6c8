// SPDX-License-Identifier: Apache-2.0
// Shared by the Direct3D tests on OpenCL's side: a context and a queue, and images whole. Owner:
// each test has its own. Thread: the test's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::d3dtest {

using conformance::Own;
using Bytes = std::vector<uint8_t>;

struct Size {
  size_t width = 1;
  size_t height = 1;
  size_t depth = 1;
  size_t elements() const { return width * height * depth; }
};

size_t ElementBytes(const cl_image_format& format);
// Elements that every API keeps bit for bit: no odd floats, no value of a signed normalised type
// that has two encodings. `seed` makes different ones.
Bytes Pattern(const cl_image_format& format, size_t elements, uint32_t seed);
// The same for bytes.
Bytes Pattern(size_t bytes, uint32_t seed);
// Each row from its end.
Bytes Mirrored(const cl_image_format& format, const Size& size, const Bytes& bytes);

cl_image_format FormatOf(cl_mem image);
Size SizeOf(cl_mem image);

class WithSharing : public conformance::WithPlatform {
 protected:
  cl_context context() const { return context_; }
  cl_command_queue queue() const { return queue_; }
  // For a context of these properties, terminator included.
  void MakeContext(const std::vector<cl_context_properties>& properties);
  Own<cl_context> NewContext(const std::vector<cl_context_properties>& properties, cl_int* status);
  Own<cl_command_queue> NewQueue(cl_command_queue_properties flags = 0);
  void LetContextGo();

  bool DeviceHas(const cl_image_format& format, cl_mem_object_type type, cl_mem_flags flags);
  Bytes ReadImage(cl_mem image, const Size& size);
  void WriteImage(cl_mem image, const Size& size, const Bytes& bytes);
  Bytes ReadBuffer(cl_mem buffer, size_t bytes);
  void WriteBuffer(cl_mem buffer, const Bytes& bytes);
  Own<cl_kernel> BuildKernel(const char* source, const char* name);
  Own<cl_mem> NewBuffer(size_t bytes);

 private:
  Own<cl_context> context_;
  Own<cl_command_queue> queue_;
  std::vector<Own<cl_program>> programs_;
};

// Base is a fixture that acquires and releases.
template <typename Base>
class WithImages : public Base {
 protected:
  // Direct3D has `before` in it; OpenCL must see that, and leaves `after`.
  void ThroughImage(cl_mem image, const Size& size, const Bytes& before, const Bytes& after) {
    ASSERT_EQ(this->Acquire(image), CL_SUCCESS);
    EXPECT_TRUE(this->ReadImage(image, size) == before);
    this->WriteImage(image, size, after);
    ASSERT_EQ(this->Release(image), CL_SUCCESS);
  }
  // OpenCL leaves in `to` what Direct3D has in `from`, each row from its end: a kernel does that in
  // buffers, since not every driver's kernels write every format bit for bit.
  void ThroughKernel(cl_mem from, cl_mem to) {
    const Size size = SizeOf(from);
    const size_t element = ElementBytes(FormatOf(from));
    Own<cl_mem> in = this->NewBuffer(size.elements() * element);
    Own<cl_mem> out = this->NewBuffer(size.elements() * element);
    if (mirror_.get() == nullptr) {
      mirror_ = this->BuildKernel(
          "kernel void mirror(global const uchar* in, global uchar* out) {"
          "  const size_t bytes = get_global_size(0), width = get_global_size(1);"
          "  const size_t row = get_global_id(2) * width, column = get_global_id(1);"
          "  out[(row + column) * bytes + get_global_id(0)] ="
          "      in[(row + width - 1 - column) * bytes + get_global_id(0)]; }",
          "mirror");
    }
    conformance::SetArg(mirror_, 0, in);
    conformance::SetArg(mirror_, 1, out);
    const size_t zero[3] = {};
    const size_t whole[3] = {size.width, size.height, 1};
    const size_t global[3] = {element, size.width, size.height};
    cl_command_queue queue = this->queue();
    ASSERT_EQ(this->Acquire(from), CL_SUCCESS);
    ASSERT_EQ(this->Acquire(to), CL_SUCCESS);
    ASSERT_EQ(clEnqueueCopyImageToBuffer(queue, from, in, zero, whole, 0, 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(
        clEnqueueNDRangeKernel(queue, mirror_, 3, nullptr, global, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
    ASSERT_EQ(clEnqueueCopyBufferToImage(queue, out, to, 0, zero, whole, 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(this->Release(to), CL_SUCCESS);
    ASSERT_EQ(this->Release(from), CL_SUCCESS);
  }

 private:
  Own<cl_kernel> mirror_;
};

// Of OpenCL alone.
Own<cl_mem> PlainBuffer(cl_context context);
Own<cl_mem> PlainImage(cl_context context);
// The names of all of Direct3D's extensions but the one that has `own`, of a memory object and of
// an image: each has its extension's own code.
void ExpectNoOtherApi(cl_mem memory, cl_mem image, cl_mem_info own);

}  // namespace sluice::d3dtest
