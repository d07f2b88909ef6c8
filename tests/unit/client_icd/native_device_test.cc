// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/native_device.h"

#include <gtest/gtest.h>

#include "client_icd/endpoint.h"

namespace sluice::sharing {
namespace {

using Values = google::protobuf::RepeatedPtrField<pb::InfoValue>;

const std::string kLuid = {1, 2, 3, 4, 5, 6, 7, 8};
constexpr AdapterLuid kAdapter = {1, 2, 3, 4, 5, 6, 7, 8};
constexpr AdapterLuid kOtherAdapter = {8, 7, 6, 5, 4, 3, 2, 1};

void SayLuid(cl_bool valid, const std::string& luid, Values* values) {
  pb::InfoValue& is_valid = *values->Add();
  is_valid.set_param_name(CL_DEVICE_LUID_VALID_KHR);
  is_valid.set_value(std::string(reinterpret_cast<const char*>(&valid), sizeof(valid)));
  pb::InfoValue& bytes = *values->Add();
  bytes.set_param_name(CL_DEVICE_LUID_KHR);
  bytes.set_value(luid);
}
InfoTable Table(cl_bool valid, const std::string& luid) {
  Values values;
  SayLuid(valid, luid, &values);
  return InfoTable(values);
}

// A platform of two devices, the second on kAdapter. As all platforms it is never destroyed.
Platform* TwoDevices(EndpointAddress::Kind kind) {
  EndpointAddress address;
  address.kind = kind;
  pb::PlatformSnapshot::Platform described;
  SayLuid(CL_FALSE, kLuid, described.add_devices()->mutable_info());
  SayLuid(CL_TRUE, kLuid, described.add_devices()->mutable_info());
  return new Platform(new Endpoint(address), described);
}

// A LUID counts only if the device says that it is valid, and only whole.
TEST(NativeDeviceTest, LuidMustBeValid) {
  EXPECT_EQ(LuidOf(Table(CL_TRUE, kLuid)), kAdapter);
  EXPECT_FALSE(LuidOf(Table(CL_FALSE, kLuid)));
  EXPECT_FALSE(LuidOf(Table(CL_TRUE, "1234")));
  EXPECT_FALSE(LuidOf(InfoTable()));
}

// The preferred devices are those of the adapter's LUID; all are all, as many as there is room for.
TEST(NativeDeviceTest, PreferredAreOnTheAdapter) {
  static const Platform* const platform = TwoDevices(EndpointAddress::Kind::kLocal);
  cl_device_id found[2] = {};
  cl_uint count = 0;
  EXPECT_EQ(GiveDevices(*platform, kAdapter, /*all=*/false, 2, found, &count), CL_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(found[0], platform->devices()[1]->handle());
  EXPECT_EQ(found[1], nullptr);
  EXPECT_EQ(GiveDevices(*platform, kOtherAdapter, /*all=*/false, 2, found, &count),
            CL_DEVICE_NOT_FOUND);
  EXPECT_EQ(GiveDevices(*platform, std::nullopt, /*all=*/false, 2, found, &count),
            CL_DEVICE_NOT_FOUND);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(GiveDevices(*platform, kOtherAdapter, /*all=*/true, 1, found, &count), CL_SUCCESS);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(found[0], platform->devices()[0]->handle());
  EXPECT_EQ(found[1], nullptr);
}

// A LUID is of one machine: what a daemon on another says is no match.
TEST(NativeDeviceTest, NoneIsPreferredElsewhere) {
  static const Platform* const platform = TwoDevices(EndpointAddress::Kind::kRemote);
  cl_uint count = 0;
  EXPECT_EQ(GiveDevices(*platform, kAdapter, /*all=*/false, 0, nullptr, &count),
            CL_DEVICE_NOT_FOUND);
  EXPECT_EQ(GiveDevices(*platform, kAdapter, /*all=*/true, 0, nullptr, &count), CL_SUCCESS);
  EXPECT_EQ(count, 2u);
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
