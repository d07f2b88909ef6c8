// SPDX-License-Identifier: Apache-2.0
//
// The sections that are mapped in this process, by address: a sleeper, which knows only a word's
// address, finds the section's doorbells here (doorbell.cc). Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "platform_win/handles/section.h"

namespace sluice::os {

void NoteMapping(const void* data, size_t size, std::shared_ptr<const Section> section);
void ForgetMapping(const void* data);

struct MappedWord {
  std::shared_ptr<const Section> section;  // Null: the word is in no section of ours.
  size_t offset = 0;
};
MappedWord FindMappedWord(const void* word);

}  // namespace sluice::os
