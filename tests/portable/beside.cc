// SPDX-License-Identifier: Apache-2.0
//
// A program that has a gRPC, protobuf, abseil and OpenSSL of its own, of other versions than the
// driver's, and loads the driver into the same process in a way that programs do. Built on Debian
// 11 against its libraries, shared and static: check.py.
//
//   beside first|last local|global|deepbind|namespace DRIVER [LIBSLUICE]
//
// With LIBSLUICE a resource is made, written and shared too, by that library, loaded in the same way.
// first: its own libraries are used before the driver is loaded; last: after. Both are used again
// afterwards. The daemon is the one that SLUICE_ENDPOINT names.
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/struct.pb.h>
#include <grpcpp/grpcpp.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sluice/sluice.h>

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

void* Load(const char* file, const std::string& way) {
  const int flags = RTLD_NOW | (way == "global" ? RTLD_GLOBAL : RTLD_LOCAL) |
                    (way == "deepbind" ? RTLD_DEEPBIND : 0);
  void* const library =
      way == "namespace" ? ::dlmopen(LM_ID_NEWLM, file, RTLD_NOW) : ::dlopen(file, flags);
  Check(library != nullptr, library == nullptr ? ::dlerror() : "");
  return library;
}

const cl_icd_dispatch* LoadDriver(const char* file, const std::string& way,
                                  cl_platform_id* platform) {
  void* const library = Load(file, way);
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

template <typename Function>
Function* Named(void* library, const char* name) {
  void* const found = ::dlsym(library, name);
  Check(found != nullptr, name);
  return reinterpret_cast<Function*>(found);
}

void ShareMemory(const char* file, const std::string& way) {
  void* const library = Load(file, way);
  const auto good = [&](int status, const char* what) {
    if (status != SLUICE_OK)
      std::fprintf(stderr, "%s\n",
                   Named<decltype(sluice_error_text)>(library, "sluice_error_text")());
    Check(status == SLUICE_OK, what);
  };
  sluice_connection* connection = nullptr;
  good(Named<decltype(sluice_connect)>(library, "sluice_connect")(nullptr, &connection),
       "no connection");
  sluice_create_info info = {};
  info.struct_size = sizeof(info);
  info.shape.size_bytes = 4096;
  info.label = "beside";
  sluice_capability read;
  sluice_capability write;
  good(Named<decltype(sluice_create)>(library, "sluice_create")(connection, &info, &read, &write),
       "no resource");
  sluice_handle handle = {};
  handle.struct_size = sizeof(handle);
  good(Named<decltype(sluice_export)>(library, "sluice_export")(connection, &write, SLUICE_WRITE,
                                                                &handle),
       "no handle");
  void* bytes = nullptr;
  good(Named<decltype(sluice_map)>(library, "sluice_map")(&handle, &bytes), "no mapping");
  sluice_hold hold;
  good(Named<decltype(sluice_acquire)>(library, "sluice_acquire")(connection, &write, SLUICE_WRITE,
                                                                  1000, &hold),
       "not acquired");
  std::strcpy(static_cast<char*>(bytes), "hello");
  good(Named<decltype(sluice_release)>(library, "sluice_release")(connection, &hold, 0),
       "not released");
  Named<decltype(sluice_disconnect)>(library, "sluice_disconnect")(connection);
  std::printf("a resource was shared\n");
}

}  // namespace

int main(int argc, char** argv) {
  Check(argc == 4 || argc == 5,
        "usage: beside first|last local|global|deepbind|namespace DRIVER [LIBSLUICE]");
  const bool first = std::strcmp(argv[1], "first") == 0;
  if (first) UseOwnLibraries();
  cl_platform_id platform = nullptr;
  const cl_icd_dispatch* const cl = LoadDriver(argv[3], argv[2], &platform);
  AddVectors(*cl, platform);
  if (argc == 5) ShareMemory(argv[4], argv[2]);
  UseOwnLibraries();
  AddVectors(*cl, platform);
  std::printf("sums are right beside gRPC %s, protobuf %d and %s\n", grpc::Version().c_str(),
              GOOGLE_PROTOBUF_VERSION, OpenSSL_version(OPENSSL_VERSION));
  return 0;
}
