// SPDX-License-Identifier: Apache-2.0
//
// Rows about bulk data: blocking writes and reads by size, from pageable and from ALLOC_HOST_PTR
// memory, of buffers and of an image, and mapping. GB/s are 10^9 bytes per second.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench.h"

namespace sluice_bench {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kMapBytes = 16 * kMiB;

struct Size {
  const char* name;
  size_t bytes;
  int repeats;
};

double Gbs(size_t bytes, double seconds) { return static_cast<double>(bytes) / seconds * 1e-9; }

void* Map(const Device& device, cl_mem buffer, cl_map_flags flags, size_t bytes) {
  cl_int code = CL_SUCCESS;
  void* mapped = clEnqueueMapBuffer(device.queue, buffer, CL_TRUE, flags, 0, bytes, 0, nullptr,
                                    nullptr, &code);
  ocl_check(code, "clEnqueueMapBuffer");
  return mapped;
}

void Unmap(const Device& device, cl_mem buffer, void* mapped) {
  ocl_check(clEnqueueUnmapMemObject(device.queue, buffer, mapped, 0, nullptr, nullptr),
            "clEnqueueUnmapMemObject");
  ocl_check(clFinish(device.queue), "clFinish");
}

// Both directions between `host` and `buffer`, as rows write_NAME and read_NAME.
void MeasureBothWays(const Device& device, cl_mem buffer, void* host, const Size& size,
                     const std::string& name, Rows* rows) {
  const double write = MedianSeconds(size.repeats, [&] {
    ocl_check(clEnqueueWriteBuffer(device.queue, buffer, CL_TRUE, 0, size.bytes, host, 0, nullptr,
                                   nullptr),
              "clEnqueueWriteBuffer");
  });
  const double read = MedianSeconds(size.repeats, [&] {
    ocl_check(clEnqueueReadBuffer(device.queue, buffer, CL_TRUE, 0, size.bytes, host, 0, nullptr,
                                  nullptr),
              "clEnqueueReadBuffer");
  });
  rows->emplace_back("write_" + name + "_gbs", Gbs(size.bytes, write));
  rows->emplace_back("read_" + name + "_gbs", Gbs(size.bytes, read));
}

// Map for reading and writing, touch one byte, unmap, wait: no copy where memory is shared.
double MapUnmapUs(const Device& device, cl_mem_flags flags, int repeats) {
  cl_mem buffer = NewBuffer(device, CL_MEM_READ_WRITE | flags, kMapBytes);
  const double seconds = MedianSeconds(repeats, [&] {
    void* mapped = Map(device, buffer, CL_MAP_READ | CL_MAP_WRITE, kMapBytes);
    static_cast<volatile char*>(mapped)[0] = 1;
    Unmap(device, buffer, mapped);
  });
  ocl_check(clReleaseMemObject(buffer), "clReleaseMemObject");
  return seconds * 1e6;
}

// The same three of a 16 MiB image; nothing on a device without images.
void MeasureImage(const Device& device, bool quick, void* host, Rows* rows) {
  constexpr size_t kSide = 2048;
  const size_t origin[3] = {0, 0, 0};
  const size_t region[3] = {kSide, kSide, 1};
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = kSide;
  cl_bool has_images = CL_FALSE;
  ocl_check(
      clGetDeviceInfo(device.id, CL_DEVICE_IMAGE_SUPPORT, sizeof(has_images), &has_images, nullptr),
      "clGetDeviceInfo");
  if (has_images == CL_FALSE) return;
  cl_int code = CL_SUCCESS;
  cl_mem image = clCreateImage(device.context, CL_MEM_READ_WRITE, &format, &desc, nullptr, &code);
  ocl_check(code, "clCreateImage");
  const int repeats = quick ? 1 : 21;
  const double write = MedianSeconds(repeats, [&] {
    ocl_check(clEnqueueWriteImage(device.queue, image, CL_TRUE, origin, region, 0, 0, host, 0,
                                  nullptr, nullptr),
              "clEnqueueWriteImage");
  });
  const double read = MedianSeconds(repeats, [&] {
    ocl_check(clEnqueueReadImage(device.queue, image, CL_TRUE, origin, region, 0, 0, host, 0,
                                 nullptr, nullptr),
              "clEnqueueReadImage");
  });
  const double map = MedianSeconds(repeats, [&] {
    size_t row_pitch = 0;
    void* mapped =
        clEnqueueMapImage(device.queue, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin, region,
                          &row_pitch, nullptr, 0, nullptr, nullptr, &code);
    ocl_check(code, "clEnqueueMapImage");
    static_cast<volatile char*>(mapped)[0] = 1;
    Unmap(device, image, mapped);
  });
  ocl_check(clReleaseMemObject(image), "clReleaseMemObject");
  rows->emplace_back("write_image_16mib_gbs", Gbs(kSide * kSide * 4, write));
  rows->emplace_back("read_image_16mib_gbs", Gbs(kSide * kSide * 4, read));
  rows->emplace_back("map_unmap_image_16mib_us", map * 1e6);
}

}  // namespace

void MeasureTransfers(const Device& device, const Options& options, Rows* rows) {
  const bool quick = options.quick;
  std::vector<Size> sizes = {{"64kib", 64 * kKiB, quick ? 20 : 300},
                             {"1mib", kMiB, quick ? 5 : 100},
                             {"16mib", 16 * kMiB, quick ? 1 : 21},
                             {"256mib", 256 * kMiB, quick ? 1 : 5}};
  cl_ulong largest = 0;
  ocl_check(
      clGetDeviceInfo(device.id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(largest), &largest, nullptr),
      "clGetDeviceInfo");
  std::erase_if(sizes, [&](const Size& size) { return size.bytes > largest; });
  const size_t most = sizes.back().bytes;
  // Touched once, so that the first transfer does not pay for the pages.
  const auto host = std::make_unique<char[]>(most);
  std::memset(host.get(), 1, most);
  cl_mem buffer = NewBuffer(device, CL_MEM_READ_WRITE, most);
  for (const Size& size : sizes) {
    MeasureBothWays(device, buffer, host.get(), size, size.name, rows);
  }

  cl_mem pinned = NewBuffer(device, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, kMapBytes);
  void* mapped = Map(device, pinned, CL_MAP_READ | CL_MAP_WRITE, kMapBytes);
  std::memset(mapped, 1, kMapBytes);
  MeasureBothWays(device, buffer, mapped, {"", kMapBytes, quick ? 1 : 21}, "pinned_16mib", rows);
  Unmap(device, pinned, mapped);
  ocl_check(clReleaseMemObject(pinned), "clReleaseMemObject");
  ocl_check(clReleaseMemObject(buffer), "clReleaseMemObject");

  rows->emplace_back("map_unmap_16mib_us", MapUnmapUs(device, 0, quick ? 3 : 51));
  rows->emplace_back("map_unmap_host_16mib_us",
                     MapUnmapUs(device, CL_MEM_ALLOC_HOST_PTR, quick ? 3 : 51));
  if (most >= kMapBytes) MeasureImage(device, quick, host.get(), rows);
}

// Half a gigabyte each way in pieces that overlap on the way, ended by one clFinish.
void MeasureSustained(const Device& device, const Options& options, Rows* rows) {
  constexpr size_t kPiece = 16 * kMiB;
  const int pieces = options.quick ? 2 : 32;
  const auto host = std::make_unique<char[]>(kPiece);
  std::memset(host.get(), 1, kPiece);
  cl_mem buffer = NewBuffer(device, CL_MEM_READ_WRITE, kPiece);
  const double write = MedianSeconds(3, [&] {
    for (int i = 0; i < pieces; ++i) {
      ocl_check(clEnqueueWriteBuffer(device.queue, buffer, CL_FALSE, 0, kPiece, host.get(), 0,
                                     nullptr, nullptr),
                "clEnqueueWriteBuffer");
    }
    ocl_check(clFinish(device.queue), "clFinish");
  });
  const double read = MedianSeconds(3, [&] {
    for (int i = 0; i < pieces; ++i) {
      ocl_check(clEnqueueReadBuffer(device.queue, buffer, CL_FALSE, 0, kPiece, host.get(), 0,
                                    nullptr, nullptr),
                "clEnqueueReadBuffer");
    }
    ocl_check(clFinish(device.queue), "clFinish");
  });
  ocl_check(clReleaseMemObject(buffer), "clReleaseMemObject");
  rows->emplace_back("sustained_write_gbs", Gbs(kPiece * pieces, write));
  rows->emplace_back("sustained_read_gbs", Gbs(kPiece * pieces, read));
}

}  // namespace sluice_bench
