// SPDX-License-Identifier: Apache-2.0
// proto/commands/program.proto through the worker.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

class ProgramLoopbackTest : public LoopbackTest {
 protected:
  void SetUp() override {
    LoopbackTest::SetUp();
    context_ = MakeContext();
  }
  uint64_t Source(std::string_view source) {
    pb::Command command;
    command.mutable_create_program_with_source()->set_program_id(client_->NewId());
    command.mutable_create_program_with_source()->set_context_id(context_);
    EXPECT_EQ(client_->Call(command, source).status(), CL_SUCCESS);
    return command.create_program_with_source().program_id();
  }
  uint64_t context_ = 0;
};

// The source reaches the driver byte for byte, the options as well, whatever bytes they are, with
// the request for argument information; the answer tells how the build went.
TEST_F(ProgramLoopbackTest, BuildForwardsSourceAndOptions) {
  const std::string source("void k() {} // \0 \xff", 18);
  const uint64_t id = Source(source);
  EXPECT_EQ(fake_->Last("clCreateProgramWithSource").bytes, source);
  pb::Command build;
  build.mutable_build_program()->set_program_id(id);
  build.mutable_build_program()->add_device_ids(kGpu);
  build.mutable_build_program()->set_options("-D X=\xe9");
  const pb::Answer answer = client_->Call(build);
  EXPECT_EQ(answer.status(), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clBuildProgram").bytes, "-D X=\xe9 -cl-kernel-arg-info");
  ASSERT_EQ(answer.program().devices_size(), 1);
  EXPECT_EQ(answer.program().devices(0).build_status(), CL_BUILD_SUCCESS);
  EXPECT_EQ(answer.program().devices(0).binary_type(), CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
}

// A driver that fails because argument information was asked for is asked again without.
TEST_F(ProgramLoopbackTest, BuildDoesWithoutArgumentInformation) {
  fake_->set_on_build([](const std::string& options) {
    return options.find("-cl-kernel-arg-info") == std::string::npos ? CL_SUCCESS
                                                                    : CL_BUILD_PROGRAM_FAILURE;
  });
  pb::Command build;
  build.mutable_build_program()->set_program_id(Source("kernel void k() {}"));
  build.mutable_build_program()->set_options("-DX");
  const pb::Answer answer = client_->Call(build);
  EXPECT_EQ(answer.status(), CL_SUCCESS);
  EXPECT_EQ(answer.program().devices(0).build_status(), CL_BUILD_SUCCESS);
  EXPECT_EQ(fake_->Last("clBuildProgram").bytes, "-DX");
}

// Other commands go on while a build runs, and a failed build is an answer.
TEST_F(ProgramLoopbackTest, BuildsRunBeside) {
  std::atomic<bool> go = false;
  fake_->set_on_build([&](const std::string&) {
    while (!go) std::this_thread::yield();
    return CL_SUCCESS;
  });
  pb::Command build;
  build.mutable_build_program()->set_program_id(Source("an error"));
  const uint64_t sequence = client_->Send(build);
  client_->Sync();
  go = true;
  const pb::Answer answer = client_->WaitForAnswer(sequence);
  EXPECT_EQ(answer.status(), CL_BUILD_PROGRAM_FAILURE);
  EXPECT_EQ(answer.program().devices(0).build_status(), CL_BUILD_ERROR);
}

// Files that the source includes lie under a folder of the worker's while it is built, and the
// options point there; afterwards nothing is left.
TEST_F(ProgramLoopbackTest, IncludedFilesAreThere) {
  std::string options;
  std::string contents;
  fake_->set_on_build([&](const std::string& given) {
    options = given;
    const std::string folder = given.substr(2, given.find(' ') - 2);
    std::ifstream in(folder + "/a.h");
    std::stringstream all;
    all << in.rdbuf();
    contents = all.str();
    return CL_SUCCESS;
  });
  pb::Command build;
  pb::BuildProgram& body = *build.mutable_build_program();
  body.set_program_id(Source("#include \"a.h\""));
  body.set_options("-I/srv/app/inc -DX");
  body.add_include_directories("/srv/app/inc");
  pb::IncludeFile& file = *body.add_include_files();
  file.set_path("/srv/app/inc/a.h");
  file.set_contents("#define A 1");
  EXPECT_EQ(client_->Call(build).status(), CL_SUCCESS);
  EXPECT_EQ(contents, "#define A 1");
  ASSERT_NE(options.find("/srv/app/inc -DX"), std::string::npos);
  const std::string folder = options.substr(2, options.find("/srv/app/inc") - 2);
  client_->Call(build);  // The build before it has been put away.
  client_->WaitUntil([&] { return !std::filesystem::exists(folder); });
}

// Headers travel to the driver with their names.
TEST_F(ProgramLoopbackTest, CompileForwardsHeaders) {
  pb::Command command;
  pb::CompileProgram& body = *command.mutable_compile_program();
  body.set_program_id(Source("main"));
  body.set_options("-O0");
  body.add_header_ids(Source("header source"));
  body.add_header_names("h.h");
  EXPECT_EQ(client_->Call(command).status(), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clCompileProgram").bytes, "-O0 -cl-kernel-arg-info|h.h=header source");
  body.set_header_ids(0, context_);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_PROGRAM);
}

// A link makes a program of its inputs, usable once it is answered; a link that fails but leaves a
// program says so.
TEST_F(ProgramLoopbackTest, LinkMakesAProgram) {
  for (const char* source : {"one", "error"}) {
    pb::Command command;
    pb::LinkProgram& body = *command.mutable_link_program();
    body.set_program_id(client_->NewId());
    body.set_context_id(context_);
    body.set_options("-x");
    body.add_input_ids(Source(source));
    const pb::Answer answer = client_->Call(command);
    const bool good = std::string(source) == "one";
    EXPECT_EQ(answer.status(), good ? CL_SUCCESS : CL_LINK_PROGRAM_FAILURE);
    EXPECT_TRUE(answer.program().program_made());
    EXPECT_EQ(fake_->Last("clLinkProgram").bytes, "-x");
    if (good) MakeKernel(body.program_id());
    body.clear_options();
    body.set_program_id(client_->NewId());
    client_->Call(command);
    EXPECT_EQ(fake_->Last("clLinkProgram").bytes, "(none)");
  }
}

// A program whose link has not ended is none yet, for whatever names it.
TEST_F(ProgramLoopbackTest, UnfinishedLinkIsNoProgram) {
  std::atomic<bool> go = false;
  fake_->set_on_build([&](const std::string&) {
    while (!go) std::this_thread::yield();
    return CL_SUCCESS;
  });
  pb::Command link;
  link.mutable_link_program()->set_program_id(client_->NewId());
  link.mutable_link_program()->set_context_id(context_);
  link.mutable_link_program()->add_input_ids(Source("one"));
  const uint64_t sequence = client_->Send(link);
  pb::Command build;
  build.mutable_build_program()->set_program_id(link.link_program().program_id());
  EXPECT_EQ(client_->Call(build).status(), CL_INVALID_PROGRAM);
  pb::Command again = link;
  again.mutable_link_program()->set_program_id(client_->NewId());
  again.mutable_link_program()->set_input_ids(0, link.link_program().program_id());
  EXPECT_EQ(client_->Call(again).status(), CL_INVALID_PROGRAM);
  go = true;
  EXPECT_EQ(client_->WaitForAnswer(sequence).status(), CL_SUCCESS);
}

// Binaries, intermediate language and built-in names reach the driver as they are.
TEST_F(ProgramLoopbackTest, OtherSourcesOfPrograms) {
  pb::Command binary;
  pb::CreateProgramWithBinary& body = *binary.mutable_create_program_with_binary();
  body.set_program_id(client_->NewId());
  body.set_context_id(context_);
  body.add_device_ids(kGpu);
  body.add_sizes(6);
  const pb::Answer answer = client_->Call(binary, "binary");
  EXPECT_EQ(answer.status(), CL_SUCCESS);
  EXPECT_EQ(answer.data(), std::string(4, '\0'));
  EXPECT_EQ(fake_->Last("clCreateProgramWithBinary").bytes, "binary");
  pb::Command il;
  il.mutable_create_program_with_il()->set_program_id(client_->NewId());
  il.mutable_create_program_with_il()->set_context_id(context_);
  EXPECT_EQ(client_->Call(il, "spir-v").status(), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clCreateProgramWithIL").bytes, "spir-v");
  pb::Command constant;
  constant.mutable_set_program_specialization_constant()->set_program_id(
      il.create_program_with_il().program_id());
  constant.mutable_set_program_specialization_constant()->set_spec_id(7);
  constant.mutable_set_program_specialization_constant()->set_value("1234");
  EXPECT_EQ(client_->Call(constant).status(), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clSetProgramSpecializationConstant").values[1], 7u);
  EXPECT_EQ(fake_->Last("clSetProgramSpecializationConstant").bytes, "1234");
  pb::Command built_in;
  built_in.mutable_create_program_with_built_in_kernels()->set_program_id(client_->NewId());
  built_in.mutable_create_program_with_built_in_kernels()->set_context_id(context_);
  built_in.mutable_create_program_with_built_in_kernels()->add_device_ids(kGpu);
  built_in.mutable_create_program_with_built_in_kernels()->set_names("a;b");
  EXPECT_EQ(client_->Call(built_in).status(), CL_SUCCESS);
  EXPECT_EQ(fake_->Last("clCreateProgramWithBuiltInKernels").bytes, "a;b");
}

// A driver whose device has no built-in kernels is not asked for some: it may not have the call.
TEST_F(ProgramLoopbackTest, NoBuiltInKernels) {
  pb::Command command;
  pb::CreateProgramWithBuiltInKernels& body =
      *command.mutable_create_program_with_built_in_kernels();
  body.set_program_id(client_->NewId());
  body.set_context_id(MakeContext(kCpu));
  body.add_device_ids(kCpu);
  body.set_names("a");
  fake_->ClearCalls();
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_VALUE);
  EXPECT_TRUE(fake_->Calls("clCreateProgramWithBuiltInKernels").empty());
}

// Programs over the session's size are refused, and so are include files.
TEST_F(ProgramLoopbackTest, ProgramsAreBounded) {
  SessionOptions options;
  options.limits.program_bytes = 100;
  Start(options);
  context_ = MakeContext();
  pb::Command command;
  command.mutable_create_program_with_source()->set_program_id(client_->NewId());
  command.mutable_create_program_with_source()->set_context_id(context_);
  EXPECT_EQ(client_->Call(command, std::string(101, 'x')).status(), CL_OUT_OF_HOST_MEMORY);
  pb::Command build;
  build.mutable_build_program()->set_program_id(Source("x"));
  build.mutable_build_program()->add_include_files()->set_path("/a");
  build.mutable_build_program()->mutable_include_files(0)->set_contents(std::string(101, 'x'));
  EXPECT_EQ(client_->Call(build).status(), CL_OUT_OF_HOST_MEMORY);
}

}  // namespace
}  // namespace sluice::worker
