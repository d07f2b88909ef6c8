// SPDX-License-Identifier: Apache-2.0
//
// As much of an OpenCL driver as `sluicectl run` asks for before it points loaders at one: the
// entry that loaders look for. Under another name of that entry, a library that is no driver.
extern "C" [[gnu::visibility("default")]] void* SLUICE_TEST_ENTRY(const char*) { return nullptr; }
