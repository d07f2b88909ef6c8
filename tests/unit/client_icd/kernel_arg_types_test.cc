// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/kernel_arg_types.h"

#include <CL/cl.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::client {
namespace {

// Every scalar and vector name has the size of the host type that OpenCL 3.0 section 6.3 pairs it
// with.
TEST(KernelArgTypesTest, SizesOfHostTypes) {
  struct Row {
    const char* name;
    size_t scalar, two, three, four, eight, sixteen;
  };
#define ROW(name, type)                                                                     \
  {                                                                                         \
    name, sizeof(type), sizeof(type##2), sizeof(type##3), sizeof(type##4), sizeof(type##8), \
        sizeof(type##16)                                                                    \
  }
  const Row rows[] = {ROW("char", cl_char),     ROW("uchar", cl_uchar),  ROW("short", cl_short),
                      ROW("ushort", cl_ushort), ROW("int", cl_int),      ROW("uint", cl_uint),
                      ROW("long", cl_long),     ROW("ulong", cl_ulong),  ROW("half", cl_half),
                      ROW("float", cl_float),   ROW("double", cl_double)};
#undef ROW
  for (const Row& row : rows) {
    const std::string name = row.name;
    EXPECT_EQ(ValueTypeBytes(name), row.scalar) << name;
    EXPECT_EQ(ValueTypeBytes(name + "2"), row.two) << name;
    EXPECT_EQ(ValueTypeBytes(name + "3"), row.three) << name;
    EXPECT_EQ(ValueTypeBytes(name + "4"), row.four) << name;
    EXPECT_EQ(ValueTypeBytes(name + "8"), row.eight) << name;
    EXPECT_EQ(ValueTypeBytes(name + "16"), row.sixteen) << name;
  }
}

// C's spelling of the unsigned types is known too.
TEST(KernelArgTypesTest, SpeltOut) {
  EXPECT_EQ(ValueTypeBytes("unsigned char"), 1u);
  EXPECT_EQ(ValueTypeBytes("unsigned int"), 4u);
  EXPECT_EQ(ValueTypeBytes("unsigned"), 4u);
  EXPECT_EQ(ValueTypeBytes("unsigned long"), 8u);
}

// A name that is not one of OpenCL C's own, or only begins like one, has no size: the driver is
// asked.
TEST(KernelArgTypesTest, UnknownNames) {
  for (const char* name :
       {"", "u32", "struct point", "float5", "float40", "integer", "int*", "size_t", "half32",
        "unsigned int4", "floats", "float 4", "__private int"}) {
    EXPECT_EQ(ValueTypeBytes(name), 0u) << name;
  }
}

}  // namespace
}  // namespace sluice::client
