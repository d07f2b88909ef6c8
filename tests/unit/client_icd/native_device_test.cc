// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/native_device.h"

#include <gtest/gtest.h>

namespace sluice::sharing {
namespace {

InfoTable Table(cl_bool valid, const std::string& luid) {
  google::protobuf::RepeatedPtrField<pb::InfoValue> values;
  pb::InfoValue& is_valid = *values.Add();
  is_valid.set_param_name(CL_DEVICE_LUID_VALID_KHR);
  is_valid.set_value(std::string(reinterpret_cast<const char*>(&valid), sizeof(valid)));
  pb::InfoValue& bytes = *values.Add();
  bytes.set_param_name(CL_DEVICE_LUID_KHR);
  bytes.set_value(luid);
  return InfoTable(values);
}

// A LUID counts only if the device says that it is valid, and only whole.
TEST(NativeDeviceTest, LuidMustBeValid) {
  const std::string luid = {1, 2, 3, 4, 5, 6, 7, 8};
  const AdapterLuid wanted = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(LuidOf(Table(CL_TRUE, luid)), wanted);
  EXPECT_FALSE(LuidOf(Table(CL_FALSE, luid)));
  EXPECT_FALSE(LuidOf(Table(CL_TRUE, "1234")));
  EXPECT_FALSE(LuidOf(InfoTable()));
}

// CL_INVALID_VALUE for room without a size, and for neither room nor a count.
TEST(NativeDeviceTest, DeviceLists) {
  cl_device_id room = nullptr;
  cl_uint count = 0;
  EXPECT_EQ(CheckDeviceList(1, &room, nullptr), CL_SUCCESS);
  EXPECT_EQ(CheckDeviceList(0, nullptr, &count), CL_SUCCESS);
  EXPECT_EQ(CheckDeviceList(0, &room, &count), CL_INVALID_VALUE);
  EXPECT_EQ(CheckDeviceList(0, nullptr, nullptr), CL_INVALID_VALUE);
}

}  // namespace
}  // namespace sluice::sharing
