// SPDX-License-Identifier: Apache-2.0
// What the Direct3D tests have in common on OpenCL's side: a context and a queue, and images whole.
// Owner: each test has its own. Thread: the test's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/fixtures.h"

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
};

// Of OpenCL alone.
Own<cl_mem> PlainBuffer(cl_context context);
Own<cl_mem> PlainImage(cl_context context);
// The names of all of Direct3D's extensions but the one that has `own`, of a memory object and of
// an image: each has its extension's own code.
void ExpectNoOtherApi(cl_mem memory, cl_mem image, cl_mem_info own);

cl_image_format FormatOf(cl_mem image);
Size SizeOf(cl_mem image);

}  // namespace sluice::d3dtest
