// SPDX-License-Identifier: Apache-2.0
//
// The differences of native drivers from the OpenCL 3.0 specification: a table of checks, by the
// name that the check carries in its EXPECT_ macro. Everything that is not in the table must answer
// as the specification says, on the native driver, on the ring and on the network alike. Owner:
// static data. Thread: immutable. Trust: a row for a native driver is itself checked (a driver that
// answers as specified, or with a third code, fails the row, so that the table cannot rot).
#pragma once

#include <CL/cl.h>

#include <span>
#include <string_view>

namespace sluice::conformance {

enum class Where {
  kNative,  // Only the driver in the application's own process differs; Sluice's client answers as
            // specified.
  kDriverDecides,  // The driver's answer is passed on unchanged, so Sluice may answer like the
                   // driver, or as specified.
};

// In place of a code: the native driver crashes, hangs or harms later calls, so the check is not
// run there.
inline constexpr cl_int kDoNotRun = 0x7fff0001;
// In place of a code: the difference is in a value or an effect, and the test asks with
// Differs(name).
inline constexpr cl_int kBehaviour = 0x7fff0002;

struct Difference {
  std::string_view name;      // "clFoo.what", as in the check.
  std::string_view platform;  // Substring of the native platform's name.
  Where where;
  cl_int seen;              // The driver's answer; kDoNotRun; kBehaviour.
  std::string_view reason;  // The specification's words, and the driver's behaviour.
  // Prefixes of CL_DRIVER_VERSION, with a blank between; "": any version.
  std::string_view versions = "";
};

// One table per driver, each in a file of its own.
std::span<const Difference> PoclDifferences();
std::span<const Difference> NvidiaDifferences();
std::span<const Difference> RusticlDifferences();

// The row that applies to `name` on this run's platform and kind, or nullptr.
const Difference* FindDifference(std::string_view name);

// True if a row applies; prints its reason once. For effects that no code shows.
bool Differs(std::string_view name);

}  // namespace sluice::conformance
