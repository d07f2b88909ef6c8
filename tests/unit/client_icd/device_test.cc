// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/device.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::client {
namespace {

// The driver's description of a root device with these extensions.
Ref<Device> DeviceWith(const std::string& list) {
  google::protobuf::RepeatedPtrField<pb::InfoValue> values;
  pb::InfoValue& extensions = *values.Add();
  extensions.set_param_name(CL_DEVICE_EXTENSIONS);
  extensions.set_value(list.c_str(), list.size() + 1);
  return Ref<Device>::Adopt(new Device(nullptr, 1, /*key=*/0, InfoTable(values)));
}

// The client's own code sees the same of a device as an application: the driver's extensions, ours,
// and those of ours that go with one of the driver's.
TEST(DeviceTest, HasTheExtensionsThatItIsSaidToHave) {
  const Ref<Device> plain = DeviceWith("cl_khr_fp64");
  EXPECT_TRUE(plain->HasExtension("cl_khr_fp64"));
  EXPECT_TRUE(plain->HasExtension("cl_khr_gl_sharing"));
  EXPECT_FALSE(plain->HasExtension("cl_khr_depth_images"));
  EXPECT_FALSE(plain->HasExtension("cl_khr_gl_depth_images"));
  const Ref<Device> deep = DeviceWith("cl_khr_fp64 cl_khr_depth_images");
  EXPECT_TRUE(deep->HasExtension("cl_khr_depth_images"));
  EXPECT_TRUE(deep->HasExtension("cl_khr_gl_depth_images"));
  EXPECT_FALSE(deep->HasExtension("cl_khr"));
}

}  // namespace
}  // namespace sluice::client
