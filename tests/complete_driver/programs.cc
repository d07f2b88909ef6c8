// SPDX-License-Identifier: Apache-2.0
// Programs: OpenCL C with pipes and device queues, as OpenCL C that PoCL compiles; SPIR-V.
#include <algorithm>
#include <map>
#include <mutex>
#include <regex>

#include "tests/complete_driver/complete_driver.h"

namespace sluice::complete_driver {
namespace {

// A pipe is the address of its memory (PipeHead in objects.cc). `pipe int` becomes `unsigned long
// int`: packets of other types need a name of their own there, which no test has.
constexpr char kPipeSource[] = R"(
#define pipe unsigned long
#define read_only
#define write_only
struct sluice_pipe { uint packet_bytes, max_packets; volatile uint written, read; uint at; };
int sluice_move(ulong p, private uchar* bytes, int is_write) {
  global struct sluice_pipe* pipe_at = (global struct sluice_pipe*)p;
  volatile global uint* count = is_write ? &pipe_at->written : &pipe_at->read;
  uint n;
  do {
    n = *count;
    if (is_write ? n - pipe_at->read >= pipe_at->max_packets : n == pipe_at->written) return -1;
  } while (atomic_cmpxchg(count, n, n + 1) != n);
  global uchar* packet =
      (global uchar*)p + pipe_at->at + n % pipe_at->max_packets * pipe_at->packet_bytes;
  for (uint i = 0; i < pipe_at->packet_bytes; ++i) {
    if (is_write) packet[i] = bytes[i]; else bytes[i] = packet[i];
  }
  return 0;
}
#define write_pipe(p, value) sluice_move(p, (private uchar*)(value), 1)
#define read_pipe(p, value) sluice_move(p, (private uchar*)(value), 0)
#line 1
)";

// A device queue is its size; a block is done at once, as an expression of statements: PoCL 6.0 has
// no blocks.
constexpr char kQueueSource[] = R"(
#define queue_t unsigned long
#define ndrange_t int
#define ndrange_1D(size) (size)
#undef CLK_ENQUEUE_FLAGS_NO_WAIT
#define CLK_ENQUEUE_FLAGS_NO_WAIT 0
#define enqueue_kernel(queue, flags, range, ...) ((queue) != 0 ? (__VA_ARGS__, 0) : -1)
#line 1
)";

std::string WithoutBlocks(const std::string& source) {
  return std::regex_replace(source, std::regex(R"(\^\{([^}]*)\})"), "({$1})");
}

struct Known {
  std::string source;  // As the application gave it.
  std::map<std::string, std::vector<Arg>> args;
  std::string il;
  Module module;
};

std::mutex g_programs_mu;
std::map<cl_program, Known> g_known;

void Note(cl_program program, Known known) {
  if (program == nullptr) return;
  std::lock_guard<std::mutex> lock(g_programs_mu);
  g_known[program] = std::move(known);
}

// Its handle may come again.
void CL_CALLBACK Forget(cl_program program, void*) {
  std::lock_guard<std::mutex> lock(g_programs_mu);
  g_known.erase(program);
}

Arg ReadArg(const std::string& text) {
  Arg arg;
  std::smatch match;
  if (std::regex_search(text, match, std::regex(R"(\bpipe\s+(\w+))"))) {
    arg.kind = Arg::Kind::kPipe;
    arg.type = match[1];
    arg.is_read = text.find("write_only") == text.npos;
  } else if (std::regex_search(text, std::regex(R"(\bqueue_t\b)"))) {
    arg.kind = Arg::Kind::kQueue;
  }
  return arg;
}

std::map<std::string, std::vector<Arg>> ReadKernels(const std::string& source) {
  std::map<std::string, std::vector<Arg>> kernels;
  const std::regex head(R"(kernel\s+void\s+(\w+)\s*\(([^)]*)\))");
  const std::regex comma(",");
  for (std::sregex_iterator it(source.begin(), source.end(), head), end; it != end; ++it) {
    const std::string list = (*it)[2];
    std::vector<Arg>& args = kernels[(*it)[1]];
    for (std::sregex_token_iterator arg(list.begin(), list.end(), comma, -1), last; arg != last;
         ++arg) {
      args.push_back(ReadArg(*arg));
    }
  }
  return kernels;
}

cl_program CL_API_CALL CreateWithSource(cl_context context, cl_uint count, const char** strings,
                                        const size_t* lengths, cl_int* error) {
  const auto pocls = Pocl().clCreateProgramWithSource;
  const bool readable =
      strings != nullptr && std::none_of(strings, strings + count, [](auto* s) { return !s; });
  if (!readable) return pocls(context, count, strings, lengths, error);
  Known known;
  for (cl_uint i = 0; i < count; ++i) {
    const bool counted = lengths != nullptr && lengths[i] != 0;
    known.source.append(strings[i], counted ? lengths[i] : std::strlen(strings[i]));
  }
  known.args = ReadKernels(known.source);
  const auto has = [&known](Arg::Kind kind) {
    return std::any_of(known.args.begin(), known.args.end(), [kind](const auto& kernel) {
      return std::any_of(kernel.second.begin(), kernel.second.end(),
                         [kind](const Arg& arg) { return arg.kind == kind; });
    });
  };
  const bool has_pipes = has(Arg::Kind::kPipe), has_queues = has(Arg::Kind::kQueue);
  if (!has_pipes && !has_queues) return pocls(context, count, strings, lengths, error);
  const std::string text = (has_pipes ? kPipeSource : "") +
                           (has_queues ? kQueueSource + WithoutBlocks(known.source) : known.source);
  const char* const pointer = text.c_str();
  const cl_program program = pocls(context, 1, const_cast<const char**>(&pointer), nullptr, error);
  Note(program, std::move(known));
  if (program != nullptr) Pocl().clSetProgramReleaseCallback(program, &Forget, nullptr);
  return program;
}

cl_program CL_API_CALL CreateWithIl(cl_context context, const void* code, size_t bytes,
                                    cl_int* error) {
  const auto refuse = [error](cl_int why) { return static_cast<cl_program>(Refuse(why, error)); };
  if (context == nullptr) return refuse(CL_INVALID_CONTEXT);
  if (code == nullptr || bytes == 0) return refuse(CL_INVALID_VALUE);
  Known known;
  if (!ReadSpirv(code, bytes, &known.module)) return refuse(CL_INVALID_VALUE);
  known.il.assign(static_cast<const char*>(code), bytes);
  std::sort(known.module.constants.begin(), known.module.constants.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  const std::string text = SourceOf(known.module) + "\n";
  const char* const pointer = text.c_str();
  const cl_program program = Pocl().clCreateProgramWithSource(
      context, 1, const_cast<const char**>(&pointer), nullptr, error);
  Note(program, std::move(known));
  if (program != nullptr) Pocl().clSetProgramReleaseCallback(program, &Forget, nullptr);
  return program;
}

cl_int CL_API_CALL SetConstant(cl_program program, cl_uint id, size_t bytes, const void* value) {
  std::lock_guard<std::mutex> lock(g_programs_mu);
  const auto found = g_known.find(program);
  // "CL_INVALID_PROGRAM if program is not a valid program object created from an intermediate
  // language" (section 5.8.2).
  if (found == g_known.end() || found->second.il.empty()) return CL_INVALID_PROGRAM;
  for (Module::Constant& constant : found->second.module.constants) {
    if (constant.id != id) continue;
    if (bytes != constant.bytes || value == nullptr) return CL_INVALID_VALUE;
    constant.value = 0;
    std::memcpy(&constant.value, value, bytes);
    return CL_SUCCESS;
  }
  return CL_INVALID_SPEC_ID;
}

std::string WithConstants(cl_program program, const char* options) {
  std::lock_guard<std::mutex> lock(g_programs_mu);
  const auto found = g_known.find(program);
  const std::string given = options == nullptr ? "" : options;
  return found == g_known.end() ? given : given + ConstantsOf(found->second.module);
}

cl_int CL_API_CALL Build(cl_program program, cl_uint device_count, const cl_device_id* devices,
                         const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                         void* user_data) {
  const std::string all = WithConstants(program, options);
  return Pocl().clBuildProgram(program, device_count, devices, all.empty() ? options : all.c_str(),
                               notify, user_data);
}

cl_int CL_API_CALL Compile(cl_program program, cl_uint device_count, const cl_device_id* devices,
                           const char* options, cl_uint header_count, const cl_program* headers,
                           const char** names, void(CL_CALLBACK* notify)(cl_program, void*),
                           void* user_data) {
  const std::string all = WithConstants(program, options);
  return Pocl().clCompileProgram(program, device_count, devices,
                                 all.empty() ? options : all.c_str(), header_count, headers, names,
                                 notify, user_data);
}

cl_int CL_API_CALL GetInfo(cl_program program, cl_program_info param, size_t room, void* out,
                           size_t* bytes_out) {
  if (param == CL_PROGRAM_IL || param == CL_PROGRAM_SOURCE) {
    std::lock_guard<std::mutex> lock(g_programs_mu);
    const auto found = g_known.find(program);
    const Known* const known = found == g_known.end() ? nullptr : &found->second;
    if (param == CL_PROGRAM_IL && known != nullptr)
      return Give(known->il.data(), known->il.size(), room, out, bytes_out);
    if (param == CL_PROGRAM_SOURCE && known != nullptr)
      return GiveText(known->source, room, out, bytes_out);
  }
  return Pocl().clGetProgramInfo(program, param, room, out, bytes_out);
}

}  // namespace

Arg ArgOf(cl_kernel kernel, cl_uint index) {
  cl_program program = nullptr;
  char name[256] = "";
  if (kernel == nullptr ||
      Pocl().clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(program), &program, nullptr) !=
          CL_SUCCESS ||
      Pocl().clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, nullptr) !=
          CL_SUCCESS) {
    return {};
  }
  std::lock_guard<std::mutex> lock(g_programs_mu);
  const auto known = g_known.find(program);
  if (known == g_known.end()) return {};
  const auto args = known->second.args.find(name);
  const bool has = args != known->second.args.end() && index < args->second.size();
  return has ? args->second[index] : Arg{};
}

void ReplaceProgramFunctions(cl_icd_dispatch* table) {
  table->clCreateProgramWithSource = &CreateWithSource;
  table->clCreateProgramWithIL = &CreateWithIl;
  table->clSetProgramSpecializationConstant = &SetConstant;
  table->clBuildProgram = &Build;
  table->clCompileProgram = &Compile;
  table->clGetProgramInfo = &GetInfo;
}

}  // namespace sluice::complete_driver
