// SPDX-License-Identifier: Apache-2.0
// Messages that no daemon of today sends: the structures' own bounds.
#include "client_icd/libsluice/translation.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::broker {
namespace {

// A label that is longer than its room is cut where a character ends.
TEST(TranslationTest, LabelsAreCutBetweenCharacters) {
  constexpr size_t kRoom = sizeof(sluice_description::label) - 1;
  for (const std::string character : {"x", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    for (size_t before = 0; before <= kRoom; ++before) {
      std::string label(before, '-');
      while (label.size() <= kRoom) label += character;
      v1::ResourceDescription message;
      message.set_label(label);
      sluice_description description = {};
      description.struct_size = sizeof(description);
      ASSERT_TRUE(client::FromDescription(message, &description).ok());
      const std::string cut = description.label;
      EXPECT_EQ(cut, label.substr(0, cut.size()));
      EXPECT_GT(cut.size() + character.size(), kRoom);
      EXPECT_EQ((cut.size() - before) % character.size(), 0u) << before;
    }
  }
  v1::ResourceDescription message;
  sluice_description description = {};
  description.struct_size = sizeof(description);
  for (const std::string& whole : {std::string(), std::string("short"), std::string(kRoom, 'x')}) {
    message.set_label(whole);
    ASSERT_TRUE(client::FromDescription(message, &description).ok());
    EXPECT_EQ(description.label, whole);
  }
}

// A buffer has nothing of an image: what is not 0 is refused by name, not passed over.
TEST(TranslationTest, BuffersHaveNoImageFields) {
  const auto refusal = [](void (*change)(sluice_shape*)) {
    sluice_create_info info = {};
    info.struct_size = sizeof(info);
    info.shape.size_bytes = 64;
    change(&info.shape);
    return std::string(client::ToCreateRequest(info).status().message());
  };
  EXPECT_EQ(refusal([](sluice_shape*) {}), "");
  const auto names = [&](const char* field, void (*change)(sluice_shape*)) {
    EXPECT_EQ(refusal(change).rfind(field, 0), 0u) << field << ": " << refusal(change);
  };
  names("channel_type", [](sluice_shape* shape) { shape->channel_type = 7; });
  names("plane_count", [](sluice_shape* shape) { shape->plane_count = 2; });
  names("depth", [](sluice_shape* shape) { shape->depth = 9; });
  names("array_layers", [](sluice_shape* shape) { shape->array_layers = 1; });
  names("planes", [](sluice_shape* shape) { shape->planes[2].row_pitch = 64; });
}

}  // namespace
}  // namespace sluice::broker
