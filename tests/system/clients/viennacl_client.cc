// SPDX-License-Identifier: Apache-2.0
//
// A user of Debian's ViennaCL headers, unmodified: a dense product, vector arithmetic with norms,
// and a conjugate-gradient solve of a sparse system, on the device under test, each against the
// CPU. ViennaCL is C++ code that wraps OpenCL objects in reference-counted handles. Prints one PASS
// or FAIL line.
#define VIENNACL_WITH_OPENCL 1
#include <cmath>
#include <map>
#include <vector>

#include "../programs/ocl.h"
#include "viennacl/compressed_matrix.hpp"
#include "viennacl/linalg/cg.hpp"
#include "viennacl/linalg/inner_prod.hpp"
#include "viennacl/linalg/norm_2.hpp"
#include "viennacl/linalg/prod.hpp"
#include "viennacl/matrix.hpp"
#include "viennacl/vector.hpp"

namespace {

constexpr size_t kSize = 64;

std::vector<float> Values(size_t count, float seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(seed * static_cast<float>(i + 1));
  return values;
}

// Worst difference of a dense matrix-matrix product.
double TestDenseProduct() {
  const auto a = Values(kSize * kSize, 0.37F);
  const auto b = Values(kSize * kSize, 0.71F);
  std::vector<std::vector<float>> rows_a(kSize, std::vector<float>(kSize));
  auto rows_b = rows_a;
  auto rows_c = rows_a;
  for (size_t i = 0; i < kSize * kSize; ++i) {
    rows_a[i / kSize][i % kSize] = a[i];
    rows_b[i / kSize][i % kSize] = b[i];
  }
  viennacl::matrix<float> da(kSize, kSize), db(kSize, kSize), dc(kSize, kSize);
  viennacl::copy(rows_a, da);
  viennacl::copy(rows_b, db);
  dc = viennacl::linalg::prod(da, db);
  viennacl::copy(dc, rows_c);
  double worst = 0;
  for (size_t i = 0; i < kSize; ++i) {
    for (size_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (size_t k = 0; k < kSize; ++k) sum += double{rows_a[i][k]} * rows_b[k][j];
      worst = std::fmax(worst, std::fabs(sum - rows_c[i][j]));
    }
  }
  return worst;
}

// Worst difference of an inner product and a norm of a linear combination.
double TestVectors() {
  const auto x = Values(10000, 0.13F);
  const auto y = Values(10000, 0.19F);
  viennacl::vector<float> dx(x.size()), dy(y.size()), dz(x.size());
  viennacl::copy(x, dx);
  viennacl::copy(y, dy);
  if (dx.handle().get_active_handle_id() != viennacl::OPENCL_MEMORY) {
    fprintf(stderr, "ViennaCL keeps its vectors outside OpenCL\n");
    exit(1);
  }
  dz = 2.0F * dx + 3.0F * dy;
  const float dot = viennacl::linalg::inner_prod(dx, dy);
  const float norm = viennacl::linalg::norm_2(dz);
  double expected_dot = 0;
  double expected_norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    expected_dot += double{x[i]} * y[i];
    expected_norm += std::pow(2.0 * x[i] + 3.0 * y[i], 2);
  }
  return std::fmax(std::fabs(dot - expected_dot), std::fabs(norm - std::sqrt(expected_norm)));
}

// Residual of a conjugate-gradient solution of the one-dimensional Poisson problem.
double TestSparseSolve() {
  const size_t size = 400;
  std::vector<std::map<unsigned, float>> rows(size);
  for (unsigned i = 0; i < size; ++i) {
    rows[i][i] = 2.5F;
    if (i > 0) rows[i][i - 1] = -1.0F;
    if (i + 1 < size) rows[i][i + 1] = -1.0F;
  }
  const auto b = Values(size, 0.41F);
  viennacl::compressed_matrix<float> matrix(size, size);
  viennacl::vector<float> rhs(size), solution(size);
  viennacl::copy(rows, matrix);
  viennacl::copy(b, rhs);
  solution = viennacl::linalg::solve(matrix, rhs, viennacl::linalg::cg_tag(1e-6, 500));
  std::vector<float> x(size);
  viennacl::copy(solution, x);
  double worst = 0;
  for (unsigned i = 0; i < size; ++i) {
    double sum = -b[i];
    for (const auto& [column, value] : rows[i]) sum += double{value} * x[column];
    worst = std::fmax(worst, std::fabs(sum));
  }
  return worst;
}

}  // namespace

int main() {
  char name[256];
  cl_device_id device = ocl_device(nullptr, name, sizeof(name));
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  ocl_check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, &code);
  ocl_check(code, "clCreateCommandQueueWithProperties");
  viennacl::ocl::setup_context(0, context, device, queue);
  const double dense = TestDenseProduct();
  const double vectors = TestVectors();
  const double sparse = TestSparseSolve();
  const bool good = dense < 1e-3 && vectors < 1e-2 && sparse < 1e-3;
  printf(
      "%s viennacl on %s: differences to the CPU %.2g (matrix product), %.2g (vectors), %.2g "
      "(cg)\n",
      good ? "PASS" : "FAIL", name, dense, vectors, sparse);
  return good ? 0 : 1;
}
