// SPDX-License-Identifier: Apache-2.0
//
// Measures one OpenCL platform and prints one JSON object: where it ran, and a number per row.
//
// usage: sluice_bench [--quick] [--calls | --rtt | --sustained]
//   --calls      only the rows of calls and small commands
//   --rtt        only the loopback TCP round trip, which remote latency is judged against
//   --sustained  only a long transfer each way, for links that iperf3 measures too
#include <cstdio>
#include <cstring>

#include "bench.h"

namespace {

void PrintString(const char* key, const std::string& value) {
  std::printf("  \"%s\": \"", key);
  for (const char c : value) {
    if (c == '"' || c == '\\') std::putchar('\\');
    std::putchar(static_cast<unsigned char>(c) < ' ' ? ' ' : c);
  }
  std::printf("\",\n");
}

void PrintRows(const sluice_bench::Rows& rows) {
  const char* separator = "\n";
  for (const auto& [name, value] : rows) {
    std::printf("%s    \"%s\": %.6g", separator, name.c_str(), value);
    separator = ",\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  sluice_bench::Options options;
  bool only_round_trip = false;
  bool only_sustained = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      options.quick = true;
    } else if (std::strcmp(argv[i], "--calls") == 0) {
      options.calls = true;
    } else if (std::strcmp(argv[i], "--rtt") == 0) {
      only_round_trip = true;
    } else if (std::strcmp(argv[i], "--sustained") == 0) {
      only_sustained = true;
    } else {
      std::fprintf(stderr, "usage: sluice_bench [--quick] [--calls | --rtt | --sustained]\n");
      return 2;
    }
  }
  if (only_round_trip) {
    std::printf("{\"rtt_us\": %.3f}\n", sluice_bench::LoopbackRoundTripUs(options));
    return 0;
  }
  sluice_bench::Rows rows;
  const sluice_bench::Device device = sluice_bench::OpenDevice();
  if (only_sustained) {
    sluice_bench::MeasureSustained(device, options, &rows);
    std::printf("{");
    PrintRows(rows);
    std::printf("}\n");
    return 0;
  }
  sluice_bench::MeasureCalls(device, options, &rows);
  if (!options.calls) sluice_bench::MeasureTransfers(device, options, &rows);
  std::printf("{\n");
  PrintString("platform", device.platform_name);
  PrintString("device", device.name);
  PrintString("driver", device.driver);
  PrintString("type", device.type);
  std::printf("  \"rows\": {");
  PrintRows(rows);
  std::printf("\n  }\n}\n");
  return 0;
}
