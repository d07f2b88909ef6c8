// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/native_device.h"

#include <gtest/gtest.h>

#include <vector>

#include "client_icd/objects/endpoint.h"

namespace sluice::client::sharing {
namespace {

using Values = google::protobuf::RepeatedPtrField<pb::InfoValue>;

const std::string kLuid = {1, 2, 3, 4, 5, 6, 7, 8};
constexpr AdapterLuid kAdapter = {1, 2, 3, 4, 5, 6, 7, 8};
constexpr AdapterLuid kOtherAdapter = {8, 7, 6, 5, 4, 3, 2, 1};

// A device that says a LUID, and whether it is valid.
Values OneWith(cl_bool valid, const std::string& luid) {
  Values values;
  pb::InfoValue& is_valid = *values.Add();
  is_valid.set_param_name(CL_DEVICE_LUID_VALID_KHR);
  is_valid.set_value(std::string(reinterpret_cast<const char*>(&valid), sizeof(valid)));
  pb::InfoValue& bytes = *values.Add();
  bytes.set_param_name(CL_DEVICE_LUID_KHR);
  bytes.set_value(luid);
  return values;
}
// As all platforms these are never destroyed.
Platform* NewPlatform(EndpointAddress::Kind kind, const std::vector<Values>& devices) {
  EndpointAddress address;
  address.kind = kind;
  pb::PlatformSnapshot::Platform described;
  for (const Values& values : devices) *described.add_devices()->mutable_info() = values;
  return new Platform(new Endpoint(address), described, /*shares_resources=*/false);
}
// Of two devices, the second on kAdapter.
Platform* TwoDevices(EndpointAddress::Kind kind) {
  return NewPlatform(kind, {OneWith(CL_FALSE, kLuid), OneWith(CL_TRUE, kLuid)});
}
// One of the nodes of linked adapters, which have one LUID.
Values Node(cl_uint mask) {
  Values values = OneWith(CL_TRUE, kLuid);
  pb::InfoValue& node = *values.Add();
  node.set_param_name(CL_DEVICE_NODE_MASK_KHR);
  node.set_value(std::string(reinterpret_cast<const char*>(&mask), sizeof(mask)));
  return values;
}

// A LUID counts only if the device says that it is valid, and only whole.
TEST(NativeDeviceTest, LuidMustBeValid) {
  EXPECT_EQ(LuidOf(InfoTable(OneWith(CL_TRUE, kLuid))), kAdapter);
  EXPECT_FALSE(LuidOf(InfoTable(OneWith(CL_FALSE, kLuid))));
  EXPECT_FALSE(LuidOf(InfoTable(OneWith(CL_TRUE, "1234"))));
  EXPECT_FALSE(LuidOf(InfoTable(OneWith(CL_TRUE, kLuid + "9"))));
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

// A context is on an adapter with its one device: if both say a LUID, and it is the same.
TEST(NativeDeviceTest, ContextIsOnTheAdapterOfItsOneDevice) {
  static const Platform* const platform = NewPlatform(
      EndpointAddress::Kind::kLocal,
      {OneWith(CL_TRUE, kLuid), OneWith(CL_FALSE, kLuid), Values(), OneWith(CL_TRUE, "1234")});
  const std::span<Device* const> devices = platform->devices();
  EXPECT_TRUE(IsOnAdapter(devices.subspan(0, 1), kAdapter));
  EXPECT_FALSE(IsOnAdapter(devices.subspan(0, 1), kOtherAdapter));
  EXPECT_FALSE(IsOnAdapter(devices.subspan(0, 1), std::nullopt));
  for (size_t i = 1; i < devices.size(); ++i) {
    EXPECT_FALSE(IsOnAdapter(devices.subspan(i, 1), kAdapter)) << i;
    EXPECT_FALSE(IsOnAdapter(devices.subspan(i, 1), std::nullopt)) << i;
  }
  EXPECT_FALSE(IsOnAdapter(devices, kAdapter)) << "of several devices each needs its own way";
  EXPECT_FALSE(IsOnAdapter({}, kAdapter));
}

// The same LUID on another machine is another adapter.
TEST(NativeDeviceTest, ContextElsewhereIsOnNoAdapter) {
  static const Platform* const platform =
      NewPlatform(EndpointAddress::Kind::kRemote, {OneWith(CL_TRUE, kLuid)});
  EXPECT_FALSE(IsOnAdapter(platform->devices(), kAdapter));
}

// The nodes of linked adapters are all on it: what DXGI names is the LUID.
TEST(NativeDeviceTest, NodesOfLinkedAdapters) {
  static const Platform* const platform =
      NewPlatform(EndpointAddress::Kind::kLocal, {Node(1), Node(2), OneWith(CL_TRUE, "87654321")});
  cl_device_id found[3] = {};
  cl_uint count = 0;
  EXPECT_EQ(GiveDevices(*platform, kAdapter, /*all=*/false, 3, found, &count), CL_SUCCESS);
  EXPECT_EQ(count, 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i], platform->devices()[i]->handle());
    EXPECT_TRUE(IsOnAdapter(platform->devices().subspan(i, 1), kAdapter)) << i;
  }
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
}  // namespace sluice::client::sharing
