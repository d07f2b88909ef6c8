// SPDX-License-Identifier: Apache-2.0
//
// A user of Debian's CLBlast library, unmodified: SGEMM, SGEMV, SAXPY and SDOT on the device under
// test, each compared with a plain loop on the CPU. Prints one PASS or FAIL line. Only OpenCL's
// public API and CLBlast's; nothing of Sluice.
#include <clblast.h>

#include <cmath>
#include <string>
#include <vector>

#include "../programs/ocl.h"

namespace {

constexpr size_t kRows = 96;     // Of A and C.
constexpr size_t kColumns = 80;  // Of B and C.
constexpr size_t kInner = 112;   // Columns of A, rows of B.

struct Device {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
};

std::vector<float> Values(size_t count, float seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(seed * static_cast<float>(i + 1));
  return values;
}

cl_mem Upload(const Device& device, const std::vector<float>& values) {
  cl_int code = CL_SUCCESS;
  const size_t bytes = values.size() * sizeof(float);
  cl_mem buffer = clCreateBuffer(device.context, CL_MEM_READ_WRITE, bytes, nullptr, &code);
  ocl_check(code, "clCreateBuffer");
  ocl_check(clEnqueueWriteBuffer(device.queue, buffer, CL_TRUE, 0, bytes, values.data(), 0, nullptr,
                                 nullptr),
            "clEnqueueWriteBuffer");
  return buffer;
}

// The largest difference between what the device made and what the CPU expects; releases the
// buffer.
double Difference(const Device& device, cl_mem buffer, const std::vector<double>& expected) {
  std::vector<float> got(expected.size());
  ocl_check(clEnqueueReadBuffer(device.queue, buffer, CL_TRUE, 0, got.size() * sizeof(float),
                                got.data(), 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
  clReleaseMemObject(buffer);
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::fmax(worst, std::fabs(got[i] - expected[i]));
  return worst;
}

void CheckStatus(clblast::StatusCode status, const char* what) {
  ocl_check(static_cast<cl_int>(status), what);
}

double TestGemm(Device device) {
  const auto a = Values(kRows * kInner, 0.37F);
  const auto b = Values(kInner * kColumns, 0.73F);
  const auto c = Values(kRows * kColumns, 0.11F);
  std::vector<double> expected(kRows * kColumns);
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (size_t k = 0; k < kInner; ++k) sum += double{a[i * kInner + k]} * b[k * kColumns + j];
      expected[i * kColumns + j] = 1.5 * sum + 0.5 * c[i * kColumns + j];
    }
  }
  cl_mem da = Upload(device, a);
  cl_mem db = Upload(device, b);
  cl_mem dc = Upload(device, c);
  cl_event done = nullptr;
  CheckStatus(
      clblast::Gemm<float>(clblast::Layout::kRowMajor, clblast::Transpose::kNo,
                           clblast::Transpose::kNo, kRows, kColumns, kInner, 1.5F, da, 0, kInner,
                           db, 0, kColumns, 0.5F, dc, 0, kColumns, &device.queue, &done),
      "clblast::Gemm");
  ocl_check(clWaitForEvents(1, &done), "clWaitForEvents");
  clReleaseEvent(done);
  clReleaseMemObject(da);
  clReleaseMemObject(db);
  return Difference(device, dc, expected);
}

double TestVectors(Device device) {
  const auto a = Values(kRows * kInner, 0.29F);
  const auto x = Values(kInner, 0.53F);
  const auto y = Values(kRows, 0.17F);
  std::vector<double> expected(kRows);
  double dot = 0;
  for (size_t i = 0; i < kRows; ++i) {
    double sum = 0;
    for (size_t k = 0; k < kInner; ++k) sum += double{a[i * kInner + k]} * x[k];
    expected[i] = sum + 2.0 * y[i];  // y = A x, then y += 2 y0.
    dot += expected[i] * y[i];
  }
  cl_mem da = Upload(device, a);
  cl_mem dx = Upload(device, x);
  cl_mem dy = Upload(device, y);
  cl_mem result = Upload(device, std::vector<float>(kRows, 0.0F));
  cl_mem scalar = Upload(device, {0.0F});
  CheckStatus(
      clblast::Gemv<float>(clblast::Layout::kRowMajor, clblast::Transpose::kNo, kRows, kInner, 1.0F,
                           da, 0, kInner, dx, 0, 1, 0.0F, result, 0, 1, &device.queue),
      "clblast::Gemv");
  CheckStatus(clblast::Axpy<float>(kRows, 2.0F, dy, 0, 1, result, 0, 1, &device.queue),
              "clblast::Axpy");
  CheckStatus(clblast::Dot<float>(kRows, scalar, 0, result, 0, 1, dy, 0, 1, &device.queue),
              "clblast::Dot");
  for (cl_mem buffer : {da, dx, dy}) clReleaseMemObject(buffer);
  return std::fmax(Difference(device, result, expected), Difference(device, scalar, {dot}));
}

}  // namespace

int main() {
  char name[256];
  cl_device_id id = ocl_device(nullptr, name, sizeof(name));
  cl_int code = CL_SUCCESS;
  Device device;
  device.context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
  ocl_check(code, "clCreateContext");
  device.queue = clCreateCommandQueueWithProperties(device.context, id, nullptr, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  const double gemm = TestGemm(device);
  const double vectors = TestVectors(device);
  clReleaseCommandQueue(device.queue);
  clReleaseContext(device.context);
  const bool good = gemm < 1e-3 && vectors < 1e-3;
  printf(
      "%s clblast on %s: worst difference to the CPU %.2g (gemm), %.2g (gemv, axpy, dot), allowed "
      "1e-3\n",
      good ? "PASS" : "FAIL", name, gemm, vectors);
  return good ? 0 : 1;
}
