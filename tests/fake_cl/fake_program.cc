// SPDX-License-Identifier: Apache-2.0
// Programs whose every build succeeds unless the source says "error", and kernels "k" that all take
// (global int*, int, local int*, image2d_t, sampler_t).
#include <algorithm>
#include <cstring>

#include "tests/fake_cl/fake_objects.h"

namespace sluice::fake {
namespace {

cl_program NewProgram(cl_context context, std::vector<cl_device_id> devices) {
  const std::lock_guard lock(g_runtime->mu);
  auto* const program = new _cl_program;
  program->context = Ref(context);
  program->devices = devices.empty() ? context->devices : std::move(devices);
  return program;
}

cl_int Build(cl_program program, const char* options, cl_program_binary_type type) {
  std::function<cl_int(const std::string&)> on_build;
  {
    const std::lock_guard lock(g_runtime->mu);
    on_build = g_runtime->on_build;
    program->options = options == nullptr ? "" : options;
  }
  cl_int status = on_build ? on_build(program->options) : CL_SUCCESS;
  if (program->source.find("error") != std::string::npos) status = CL_BUILD_PROGRAM_FAILURE;
  const std::lock_guard lock(g_runtime->mu);
  program->build_status = status == CL_SUCCESS ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
  program->binary_type = status == CL_SUCCESS ? type : CL_PROGRAM_BINARY_TYPE_NONE;
  program->binary = "binary of " + program->source;
  return status;
}

}  // namespace

cl_program CL_API_CALL fake_clCreateProgramWithSource(cl_context context, cl_uint count,
                                                      const char** strings, const size_t* lengths,
                                                      cl_int* status) {
  const cl_program program = NewProgram(context, {});
  for (cl_uint i = 0; i < count; ++i) {
    const bool sized = lengths != nullptr && lengths[i] != 0;
    program->source.append(strings[i], sized ? lengths[i] : std::strlen(strings[i]));
  }
  NoteBytes(program->source.data(), program->source.size());
  return Set(status, CL_SUCCESS), program;
}

cl_program CL_API_CALL fake_clCreateProgramWithBinary(cl_context context, cl_uint count,
                                                      const cl_device_id* devices,
                                                      const size_t* lengths,
                                                      const unsigned char** binaries,
                                                      cl_int* statuses, cl_int* status) {
  if (count == 0) return Set(status, CL_INVALID_VALUE), nullptr;
  Note("lengths", lengths, count);
  std::string all;
  for (cl_uint i = 0; i < count; ++i) {
    all.append(reinterpret_cast<const char*>(binaries[i]), lengths[i]);
    if (statuses != nullptr) statuses[i] = lengths[i] == 0 ? CL_INVALID_VALUE : CL_SUCCESS;
    if (lengths[i] == 0) return Set(status, CL_INVALID_VALUE), nullptr;
  }
  NoteBytes(all.data(), all.size());
  const cl_program program = NewProgram(context, {devices, devices + count});
  program->binary = all;
  program->from_binary = true;
  return Set(status, CL_SUCCESS), program;
}

cl_program CL_API_CALL fake_clCreateProgramWithIL(cl_context context, const void* il, size_t size,
                                                  cl_int* status) {
  if (size == 0) return Set(status, CL_INVALID_VALUE), nullptr;
  NoteBytes(il, size);
  const cl_program program = NewProgram(context, {});
  program->binary.assign(static_cast<const char*>(il), size);
  return Set(status, CL_SUCCESS), program;
}

cl_program CL_API_CALL fake_clCreateProgramWithBuiltInKernels(cl_context context, cl_uint count,
                                                              const cl_device_id* devices,
                                                              const char* names, cl_int* status) {
  if (count == 0) return Set(status, CL_INVALID_VALUE), nullptr;
  NoteBytes(names, std::strlen(names));
  const cl_program program = NewProgram(context, {devices, devices + count});
  program->built_in = true;
  program->build_status = CL_BUILD_SUCCESS;
  return Set(status, CL_SUCCESS), program;
}

cl_int CL_API_CALL fake_clReleaseProgram(cl_program program) {
  const std::lock_guard lock(g_runtime->mu);
  Drop(program);
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clBuildProgram(cl_program program, cl_uint, const cl_device_id*,
                                       const char* options, void(CL_CALLBACK*)(cl_program, void*),
                                       void*) {
  if (options != nullptr) NoteBytes(options, std::strlen(options));
  return Build(program, options, CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
}

cl_int CL_API_CALL fake_clCompileProgram(cl_program program, cl_uint, const cl_device_id*,
                                         const char* options, cl_uint headers,
                                         const cl_program* inputs, const char** names,
                                         void(CL_CALLBACK*)(cl_program, void*), void*) {
  std::string noted = options;
  for (cl_uint i = 0; i < headers; ++i) {
    if (inputs[i] == nullptr) return CL_INVALID_PROGRAM;
    noted += std::string("|") + names[i] + "=" + inputs[i]->source;
  }
  NoteBytes(noted.data(), noted.size());
  return Build(program, options, CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
}

cl_program CL_API_CALL fake_clLinkProgram(cl_context context, cl_uint count,
                                          const cl_device_id* devices, const char* options,
                                          cl_uint inputs, const cl_program* programs,
                                          void(CL_CALLBACK*)(cl_program, void*), void*,
                                          cl_int* status) {
  if (options == nullptr) options = "(none)";
  NoteBytes(options, std::strlen(options));
  if (inputs == 0) return Set(status, CL_INVALID_VALUE), nullptr;
  std::vector<cl_device_id> list;
  if (devices != nullptr) list.assign(devices, devices + count);
  const cl_program program = NewProgram(context, list);
  for (cl_uint i = 0; i < inputs; ++i) program->source += programs[i]->source;
  const cl_int built = Build(program, options, CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
  return Set(status, built == CL_SUCCESS ? CL_SUCCESS : CL_LINK_PROGRAM_FAILURE), program;
}

cl_int CL_API_CALL fake_clSetProgramSpecializationConstant(cl_program, cl_uint, size_t size,
                                                           const void* value) {
  NoteBytes(value, size);
  return CL_SUCCESS;
}

cl_kernel CL_API_CALL fake_clCreateKernel(cl_program program, const char* name, cl_int* status) {
  NoteBytes(name, std::strlen(name));
  const std::lock_guard lock(g_runtime->mu);
  if (program->build_status != CL_BUILD_SUCCESS) {
    return Set(status, CL_INVALID_PROGRAM_EXECUTABLE), nullptr;
  }
  if (name[0] != 'k') return Set(status, CL_INVALID_KERNEL_NAME), nullptr;
  auto* const kernel = new _cl_kernel;
  kernel->program = Ref(program);
  kernel->name = name;
  return Set(status, CL_SUCCESS), kernel;
}

cl_int CL_API_CALL fake_clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel* out,
                                                 cl_uint* count) {
  if (program->build_status != CL_BUILD_SUCCESS) return CL_INVALID_PROGRAM_EXECUTABLE;
  if (out != nullptr && room < 2) return CL_INVALID_VALUE;
  if (count != nullptr) *count = 2;
  cl_int status = CL_SUCCESS;
  if (out != nullptr) {
    out[0] = fake_clCreateKernel(program, "k1", &status);
    out[1] = fake_clCreateKernel(program, "k2", &status);
  }
  return status;
}

cl_kernel CL_API_CALL fake_clCloneKernel(cl_kernel source, cl_int* status) {
  const std::lock_guard lock(g_runtime->mu);
  auto* const kernel = new _cl_kernel;
  kernel->program = Ref(source->program);
  kernel->name = source->name;
  kernel->args = source->args;
  return Set(status, CL_SUCCESS), kernel;
}

cl_int CL_API_CALL fake_clReleaseKernel(cl_kernel kernel) {
  const std::lock_guard lock(g_runtime->mu);
  Drop(kernel);
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
                                       const void* value) {
  NoteBytes(value, size);
  if (index > 4) return CL_INVALID_ARG_INDEX;
  if (index == 1 && size != sizeof(cl_int)) return CL_INVALID_ARG_SIZE;
  // A sampler is judged by its handle, whatever its type is called.
  constexpr char kNullHandle[sizeof(cl_sampler)] = {};
  if (index == 4 && size == sizeof(kNullHandle) && std::memcmp(value, kNullHandle, size) == 0) {
    FakeCl::Get().TellContext("clSetKernelArg: no sampler", /*with_data=*/true);
    return CL_INVALID_SAMPLER;
  }
  const std::lock_guard lock(g_runtime->mu);
  kernel->args[index] = value == nullptr ? "" : std::string(static_cast<const char*>(value), size);
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clSetKernelArgSVMPointer(cl_kernel, cl_uint index, const void*) {
  return index > 4 ? CL_INVALID_ARG_INDEX : CL_SUCCESS;
}

cl_int CL_API_CALL fake_clSetKernelExecInfo(cl_kernel, cl_kernel_exec_info, size_t size,
                                            const void* value) {
  NoteBytes(value, size);
  return CL_SUCCESS;
}

}  // namespace sluice::fake
