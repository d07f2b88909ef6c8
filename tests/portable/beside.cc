// SPDX-License-Identifier: Apache-2.0
//
// A program that has a gRPC, protobuf, abseil and OpenSSL of its own, of other versions than the
// driver's, and loads the driver into the same process in a way that programs do. Built on Debian
// 11 against its libraries, shared and static: check.py.
//
//   beside first|last local|global|deepbind|namespace DRIVER
//
// first: its own libraries are used before the driver is loaded; last: after. Both are used again
// afterwards. The daemon is the one that SLUICE_ENDPOINT names.
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/struct.pb.h>
#include <grpcpp/grpcpp.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace {

void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "beside: %s\n", what);
  std::exit(1);
}

void UseOwnLibraries() {
  google::protobuf::Struct message;
  (*message.mutable_fields())["key"].set_string_value("value");
  google::protobuf::Struct copy;
  Check(copy.ParseFromString(message.SerializeAsString()),
        "its protobuf cannot read what it wrote");
  Check(copy.fields().at("key").string_value() == "value", "its protobuf has lost a value");
  Check(google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
            "google.protobuf.Struct") != nullptr,
        "its protobuf does not know its own messages");

  absl::Mutex mutex;
  absl::flat_hash_map<std::string, int> numbers;
  for (int i = 0; i < 100; ++i) {
    absl::MutexLock lock(&mutex);
    numbers[absl::StrCat("number ", i)] = i;
  }
  Check(numbers["number 42"] == 42, "its abseil has lost a number");

  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  Check(EVP_Digest("abc", 3, digest, &size, EVP_sha256(), nullptr) == 1 && size == 32 &&
            digest[0] == 0xba && digest[31] == 0xad,
        "its OpenSSL makes another digest");

  const auto channel =
      grpc::CreateChannel("127.0.0.1:1", grpc::SslCredentials(grpc::SslCredentialsOptions()));
  Check(
      !channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::milliseconds(50)),
      "its gRPC is connected to nobody");
}

const cl_icd_dispatch* LoadDriver(const char* file, const std::string& way,
                                  cl_platform_id* platform) {
  const int flags = RTLD_NOW | (way == "global" ? RTLD_GLOBAL : RTLD_LOCAL) |
                    (way == "deepbind" ? RTLD_DEEPBIND : 0);
  void* const library =
      way == "namespace" ? ::dlmopen(LM_ID_NEWLM, file, RTLD_NOW) : ::dlopen(file, flags);
  Check(library != nullptr, library == nullptr ? ::dlerror() : "");
  using Find = void*(const char*);
  using Platforms = cl_int(cl_uint, cl_platform_id*, cl_uint*);
  auto* const find = reinterpret_cast<Find*>(::dlsym(library, "clGetExtensionFunctionAddress"));
  Check(find != nullptr, "the driver has no clGetExtensionFunctionAddress");
  auto* const platforms = reinterpret_cast<Platforms*>(find("clIcdGetPlatformIDsKHR"));
  cl_uint count = 0;
  Check(platforms != nullptr && platforms(1, platform, &count) == CL_SUCCESS && count > 0,
        "the driver offers no platform");
  return *reinterpret_cast<const cl_icd_dispatch**>(*platform);
}

void AddVectors(const cl_icd_dispatch& cl, cl_platform_id platform) {
  constexpr size_t kCount = 1 << 16;
  const char* source =
      "kernel void add(global const float* a, global float* b) {"
      "  size_t i = get_global_id(0); b[i] += a[i]; }";
  std::vector<float> numbers(kCount, 2.0F);
  cl_device_id device = nullptr;
  Check(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) == CL_SUCCESS,
        "no device");
  cl_int code = CL_SUCCESS;
  const cl_context context = cl.clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  Check(code == CL_SUCCESS, "no context");
  const cl_command_queue queue = cl.clCreateCommandQueue(context, device, 0, &code);
  const cl_program program = cl.clCreateProgramWithSource(context, 1, &source, nullptr, &code);
  Check(cl.clBuildProgram(program, 1, &device, "", nullptr, nullptr) == CL_SUCCESS, "no program");
  const cl_kernel kernel = cl.clCreateKernel(program, "add", &code);
  cl_mem buffers[2];
  for (cl_uint i = 0; i < 2; ++i) {
    buffers[i] = cl.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                   kCount * sizeof(float), numbers.data(), &code);
    cl.clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[i]);
  }
  Check(cl.clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &kCount, nullptr, 0, nullptr,
                                  nullptr) == CL_SUCCESS,
        "no launch");
  Check(cl.clEnqueueReadBuffer(queue, buffers[1], CL_TRUE, 0, kCount * sizeof(float),
                               numbers.data(), 0, nullptr, nullptr) == CL_SUCCESS,
        "no read");
  for (const float number : numbers) Check(number == 4.0F, "a wrong sum");
  for (const cl_mem buffer : buffers) cl.clReleaseMemObject(buffer);
  cl.clReleaseKernel(kernel);
  cl.clReleaseProgram(program);
  cl.clReleaseCommandQueue(queue);
  cl.clReleaseContext(context);
}

}  // namespace

int main(int argc, char** argv) {
  Check(argc == 4, "usage: beside first|last local|global|deepbind|namespace DRIVER");
  const bool first = std::strcmp(argv[1], "first") == 0;
  if (first) UseOwnLibraries();
  cl_platform_id platform = nullptr;
  const cl_icd_dispatch* const cl = LoadDriver(argv[3], argv[2], &platform);
  AddVectors(*cl, platform);
  UseOwnLibraries();
  AddVectors(*cl, platform);
  std::printf("sums are right beside gRPC %s, protobuf %d and %s\n", grpc::Version().c_str(),
              GOOGLE_PROTOBUF_VERSION, OpenSSL_version(OPENSSL_VERSION));
  return 0;
}
