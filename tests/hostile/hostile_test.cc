// SPDX-License-Identifier: Apache-2.0
// A lying client ends its own session, with a reason that the broker is told, or gets the error
// that OpenCL has for it; another session of the same host never notices.
#include <CL/cl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "broker/os/file_access.h"
#include "tests/hostile/worker_process.h"

namespace sluice::worker {
namespace {

class HostileClientTest : public ::testing::Test {
 protected:
  // One worker that must not notice anything, for all tests: starting a driver takes a while.
  static void SetUpTestSuite() {
    std::string why;
    bystander_ = WorkerProcess::Start(&why).release();
    if (bystander_ == nullptr) std::printf("no worker runs here: %s\n", why.c_str());
  }
  static void TearDownTestSuite() {
    delete bystander_;
    bystander_ = nullptr;
  }
  void SetUp() override {
    if (bystander_ == nullptr) GTEST_SKIP() << "no OpenCL driver for a worker on this host";
    std::string why;
    worker_ = WorkerProcess::Start(&why);
    ASSERT_NE(worker_, nullptr) << why;
  }
  void TearDown() override {
    worker_.reset();
    EXPECT_TRUE(bystander_ == nullptr || bystander_->Ping()) << "the other session is gone";
  }

  // The session ends as one ends whose client broke the protocol, and says so.
  void ExpectViolation(const std::string& reason) {
    const std::optional<os::ExitStatus> end = worker_->WaitForEnd();
    ASSERT_TRUE(end.has_value()) << "the worker runs on";
    EXPECT_EQ(end->Describe(), "exit code 3");
    EXPECT_NE(worker_->ViolationNotice().find(reason), std::string::npos) << reason;
  }
  cl_int Status(const pb::Command& command, std::string_view payload = {}) {
    const std::optional<pb::Answer> answer = worker_->Call(command, payload);
    EXPECT_TRUE(answer.has_value()) << "no answer";
    return answer.has_value() ? answer->status() : 1;
  }
  pb::Command Context(uint64_t id, uint64_t device = 1) {
    pb::Command command;
    command.mutable_create_context()->set_context_id(id);
    command.mutable_create_context()->add_device_ids(device);
    return command;
  }
  // Context 100, queue 101, buffer 102 of 100000 bytes.
  void MakeObjects() {
    ASSERT_EQ(Status(Context(100)), CL_SUCCESS);
    pb::Command queue;
    queue.mutable_create_command_queue()->set_queue_id(101);
    queue.mutable_create_command_queue()->set_context_id(100);
    queue.mutable_create_command_queue()->set_device_id(1);
    ASSERT_EQ(Status(queue), CL_SUCCESS);
    pb::Command buffer;
    buffer.mutable_create_buffer()->set_mem_id(102);
    buffer.mutable_create_buffer()->set_context_id(100);
    buffer.mutable_create_buffer()->set_size(100000);
    ASSERT_EQ(Status(buffer), CL_SUCCESS);
  }
  pb::Command Write(uint64_t event, uint64_t queue = 101, uint64_t mem = 102) {
    pb::Command command;
    command.mutable_enqueue_write_buffer()->mutable_on()->set_queue_id(queue);
    command.mutable_enqueue_write_buffer()->mutable_on()->set_event_id(event);
    command.mutable_enqueue_write_buffer()->set_mem_id(mem);
    command.mutable_enqueue_write_buffer()->set_size(100000);
    return command;
  }
  // The end of an event.
  cl_int Completed(uint64_t event) {
    const auto reply =
        worker_->Receive([=](const pb::Reply& r) { return r.completion().event_id() == event; });
    EXPECT_TRUE(reply.has_value()) << "event " << event << " never ended";
    return reply.has_value() ? reply->completion().status() : 1;
  }

  static WorkerProcess* bystander_;
  std::unique_ptr<WorkerProcess> worker_;
};

WorkerProcess* HostileClientTest::bystander_ = nullptr;

// A producer index that no honest client can have ends the session.
TEST_F(HostileClientTest, TamperedProducerIndex) {
  worker_->command_ring().produced.store(wire::kRingCapacity * 5);
  worker_->RingTheBell();
  ExpectViolation("ring claims");
}

// An index that runs ahead of what was written is read as frames, which those bytes are not.
TEST_F(HostileClientTest, ProducerIndexAheadOfTheBytes) {
  std::memset(worker_->command_data(), 0xff, 4096);
  worker_->command_ring().produced.store(4096);
  worker_->RingTheBell();
  ExpectViolation("piece");
}

// A consumer index for the replies that goes where no consumer can be ends the session when the
// worker has something to say.
TEST_F(HostileClientTest, TamperedConsumerIndex) {
  worker_->reply_ring().consumed.store(uint64_t{1} << 40);
  // Room is only looked for when the known room is used up.
  pb::Command command;
  command.mutable_create_program_with_source()->set_context_id(1);
  for (int i = 0; i < 20000; ++i) worker_->Send(command);
  ExpectViolation("does not take its replies");
}

// Command numbers that repeat, skip or begin elsewhere are violations.
TEST_F(HostileClientTest, WrongSequence) {
  wire::FrameHeader header = {};
  header.sequence = 7;
  worker_->SendFrame(header, Context(100).SerializeAsString());
  ExpectViolation("command 7 follows 0");
}

// Bytes that are no message are a violation.
TEST_F(HostileClientTest, GarbageInsteadOfAMessage) {
  wire::FrameHeader header = {};
  header.sequence = 1;
  worker_->SendFrame(header, std::string(1000, '\xff'));
  ExpectViolation("does not parse");
}

// A message with no command in it, or one from the future, is a violation.
TEST_F(HostileClientTest, CommandOfTheFuture) {
  wire::FrameHeader header = {};
  header.sequence = 1;
  worker_->SendFrame(header, std::string("\xfa\x3e\x02\x08\x01", 5));  // Field 1007.
  ExpectViolation("no body");
}

// A frame whose lengths say more than it has is a violation.
TEST_F(HostileClientTest, LyingLengths) {
  wire::FrameHeader header = {};
  header.sequence = 1;
  header.message_bytes = 0xffffffff;
  header.payload_bytes = 1;
  const wire::PieceHeader piece = {sizeof(header), wire::kPieceFirst | wire::kPieceLast};
  std::memcpy(worker_->command_data(), &piece, sizeof(piece));
  std::memcpy(worker_->command_data() + sizeof(piece), &header, sizeof(header));
  worker_->command_ring().produced.store(sizeof(piece) + sizeof(header));
  worker_->RingTheBell();
  ExpectViolation("do not fill a frame");
}

// A frame that is begun and never ended keeps nobody from anything, and the client's end ends it.
TEST_F(HostileClientTest, TruncatedFrame) {
  const wire::PieceHeader piece = {8, wire::kPieceFirst};
  std::memcpy(worker_->command_data(), &piece, sizeof(piece));
  worker_->command_ring().produced.store(16);
  worker_->RingTheBell();
  worker_->CloseHandleChannel();
  const std::optional<os::ExitStatus> end = worker_->WaitForEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->Describe(), "exit code 0");
}

// A frame that goes on and on takes no more memory than the largest program may; once it ends it is
// answered, and the session goes on.
TEST_F(HostileClientTest, EndlessFrame) {
  std::string why;
  worker_ = WorkerProcess::Start(&why, {"--limit-program-bytes=1048576"});
  ASSERT_NE(worker_, nullptr) << why;
  ASSERT_TRUE(worker_->Ping());
  const uint64_t before = worker_->PeakMemoryBytes();
  ASSERT_NE(before, 0u);
  wire::FrameHeader header = {};
  header.sequence = worker_->next_sequence();
  const std::string source(256 << 20, ' ');
  pb::Command command;
  command.mutable_create_program_with_source()->set_context_id(100);
  worker_->SendFrame(header, command.SerializeAsString(), source);
  const auto answer = worker_->Receive([&](const pb::Reply& reply) {
    return reply.has_answer() && reply.answer().sequence() == header.sequence;
  });
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->answer().status(), CL_OUT_OF_HOST_MEMORY);
  EXPECT_LT(worker_->PeakMemoryBytes(), before + (uint64_t{32} << 20));
  EXPECT_TRUE(worker_->Ping());
}

// A worker that finds no device says so to its client, who cannot see the daemon's log.
TEST_F(HostileClientTest, WorkerWithoutDevicesSaysWhy) {
  const char* const before = std::getenv("OCL_ICD_VENDORS");
  const std::string drivers = before == nullptr ? "/etc/OpenCL/vendors" : before;
  ::setenv("OCL_ICD_VENDORS", "/proc/self/no_such_folder", 1);
  std::string why;
  worker_ = WorkerProcess::Start(&why);
  ::setenv("OCL_ICD_VENDORS", drivers.c_str(), 1);
  ASSERT_NE(worker_, nullptr) << why;
  const auto end = worker_->Receive([](const pb::Reply& r) { return r.has_session_ended(); });
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->session_ended().reason().find("cannot start: no OpenCL platform"), 0u);
}

// The worker's memory cannot be resized under it.
TEST_F(HostileClientTest, RingsCannotBeTruncated) {
  EXPECT_NE(ftruncate(worker_->command_file(), 0), 0);
  EXPECT_TRUE(worker_->Ping());
}

// Whatever comes over the handle channel, descriptors too, is the end of the session.
TEST_F(HostileClientTest, DescriptorsForTheWorker) {
  const int swapped = memfd_create("swap", 0);
  char byte = 0;
  ASSERT_TRUE(os::SendMessage(worker_->handle_channel(), &byte, 1, &swapped, 1).ok());
  close(swapped);
  ASSERT_TRUE(worker_->WaitForEnd().has_value());
}

// A client that dies takes its worker along, whatever is in flight.
TEST_F(HostileClientTest, EarlyExit) {
  MakeObjects();
  for (uint64_t i = 0; i < 10; ++i) worker_->Send(Write(200 + i));
  worker_->CloseHandleChannel();
  const std::optional<os::ExitStatus> end = worker_->WaitForEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->Describe(), "exit code 0");
}

// Ids of other types, of nothing, of devices, and 0 are answered with the error of the type that
// was missing, and the session goes on.
TEST_F(HostileClientTest, ForgedIdsAreAnswered) {
  MakeObjects();
  EXPECT_EQ(Status(Context(200, 102)), CL_INVALID_DEVICE);
  EXPECT_EQ(Status(Context(200, 0)), CL_INVALID_DEVICE);
  pb::Command buffer;
  buffer.mutable_create_buffer()->set_mem_id(200);
  buffer.mutable_create_buffer()->set_size(10);
  for (const uint64_t not_a_context : {uint64_t{0}, uint64_t{1}, uint64_t{101}, UINT64_MAX}) {
    buffer.mutable_create_buffer()->set_context_id(not_a_context);
    EXPECT_EQ(Status(buffer), CL_INVALID_CONTEXT);
  }
  pb::Command sub;
  sub.mutable_create_sub_buffer()->set_mem_id(200);
  for (const uint64_t not_memory : {uint64_t{0}, uint64_t{1}, uint64_t{100}, uint64_t{101}}) {
    sub.mutable_create_sub_buffer()->set_parent_id(not_memory);
    EXPECT_EQ(Status(sub), CL_INVALID_MEM_OBJECT);
  }
  pb::Command kernel;
  kernel.mutable_create_kernel()->set_kernel_id(200);
  kernel.mutable_create_kernel()->set_program_id(102);
  EXPECT_EQ(Status(kernel), CL_INVALID_PROGRAM);
  worker_->Send(Write(300, /*queue=*/102));
  EXPECT_EQ(Completed(300), CL_INVALID_COMMAND_QUEUE);
  worker_->Send(Write(301, 101, /*mem=*/1));
  EXPECT_EQ(Completed(301), CL_INVALID_MEM_OBJECT);
  pb::Command waiting = Write(302);
  waiting.mutable_enqueue_write_buffer()->mutable_on()->add_wait_event_ids(102);
  worker_->Send(waiting);
  EXPECT_EQ(Completed(302), CL_INVALID_EVENT_WAIT_LIST);
  EXPECT_TRUE(worker_->Ping());
}

// An id that has been released is nothing, and its number may be used again.
TEST_F(HostileClientTest, StaleIdsAreAnswered) {
  MakeObjects();
  pb::Command release;
  release.mutable_release_object()->set_id(102);
  worker_->Send(release);
  worker_->Send(release);
  worker_->Send(Write(300));
  EXPECT_EQ(Completed(300), CL_INVALID_MEM_OBJECT);
  EXPECT_TRUE(worker_->Ping());
}

// An id that is in use cannot be given to another object.
TEST_F(HostileClientTest, ReusedIdEndsTheSession) {
  MakeObjects();
  worker_->Send(Context(101));
  ExpectViolation("object id 101 is in use");
}

// Nor to an event, before the driver has been asked for anything.
TEST_F(HostileClientTest, ReusedEventIdEndsTheSession) {
  MakeObjects();
  worker_->Send(Write(101));
  ExpectViolation("object id 101 is in use");
}

// A chunk of a transfer that was never granted, or lies beyond what was, ends the session.
TEST_F(HostileClientTest, ChunkThatWasNeverGranted) {
  MakeObjects();
  worker_->Send(Write(300));
  wire::BulkSpan bulk;
  const auto grant = worker_->Receive([](const pb::Reply& r) { return r.has_grant(); }, &bulk);
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(bulk.size, 100000u);
  pb::Command chunk;
  chunk.mutable_transfer_chunk()->set_event_id(300);
  chunk.mutable_transfer_chunk()->set_offset(UINT64_MAX - 10);
  chunk.mutable_transfer_chunk()->set_size(100);
  worker_->Send(chunk);
  ExpectViolation("was never granted");
}

// A span that wraps past 2^64 is out of the buffer.
TEST_F(HostileClientTest, WrappingOffsets) {
  MakeObjects();
  uint64_t event = 300;
  for (const auto& [offset, size] :
       {std::pair<uint64_t, uint64_t>{UINT64_MAX, 2}, {2, UINT64_MAX}, {100000, 1}, {0, 100001}}) {
    pb::Command write = Write(event);
    write.mutable_enqueue_write_buffer()->set_offset(offset);
    write.mutable_enqueue_write_buffer()->set_size(size);
    worker_->Send(write);
    EXPECT_EQ(Completed(event++), CL_INVALID_VALUE);
    pb::Command read;
    read.mutable_enqueue_read_buffer()->mutable_on()->set_queue_id(101);
    read.mutable_enqueue_read_buffer()->mutable_on()->set_event_id(event);
    read.mutable_enqueue_read_buffer()->set_mem_id(102);
    read.mutable_enqueue_read_buffer()->set_offset(offset);
    read.mutable_enqueue_read_buffer()->set_size(size);
    worker_->Send(read);
    EXPECT_EQ(Completed(event++), CL_INVALID_VALUE);
  }
  for (const uint64_t side : {uint64_t{1} << 22, uint64_t{1} << 32, UINT64_MAX}) {
    pb::Command read;
    pb::EnqueueReadBuffer& body = *read.mutable_enqueue_read_buffer();
    body.mutable_on()->set_queue_id(101);
    body.mutable_on()->set_event_id(event);
    body.set_mem_id(102);
    for (pb::Size3* size : {body.mutable_rect()->mutable_region()}) {
      size->set_x(side);
      size->set_y(side);
      size->set_z(side);
    }
    worker_->Send(read);
    EXPECT_EQ(Completed(event++), CL_INVALID_VALUE);
  }
  EXPECT_TRUE(worker_->Ping());
}

// Images in the heap. Maps of regions that are not in the image, or of an object that is no image,
// get the error that OpenCL has for them. So do images whose bytes wrap or lie beyond their buffer.
TEST_F(HostileClientTest, ImagesOutOfBounds) {
  MakeObjects();
  pb::Command create;
  pb::CreateImage& image = *create.mutable_create_image();
  image.set_mem_id(103);
  image.set_context_id(100);
  image.mutable_format()->set_channel_order(CL_RGBA);
  image.mutable_format()->set_channel_data_type(CL_UNORM_INT8);
  image.mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE2D);
  image.mutable_desc()->set_width(16);
  image.mutable_desc()->set_height(16);
  ASSERT_EQ(Status(create), CL_SUCCESS);
  uint64_t event = 300;
  struct Box {
    uint64_t mem, x, width;
  };
  for (const Box& box : {Box{103, 0, 17},
                         {103, 16, 1},
                         {103, UINT64_MAX, 2},
                         {103, 2, UINT64_MAX},
                         {103, 0, 0},
                         {102, 0, 1},
                         {101, 0, 1}}) {
    pb::Command map;
    pb::EnqueueMapShared& body = *map.mutable_enqueue_map_shared();
    body.mutable_on()->set_queue_id(101);
    body.mutable_on()->set_event_id(event);
    body.set_mem_id(box.mem);
    body.set_map_flags(CL_MAP_READ);
    body.mutable_origin()->set_x(box.x);
    body.mutable_region()->set_x(box.width);
    body.mutable_region()->set_y(1);
    body.mutable_region()->set_z(1);
    worker_->Send(map);
    EXPECT_LT(Completed(event++), 0) << box.mem << " " << box.x << "+" << box.width;
    pb::Command read;
    pb::EnqueueReadImage& reading = *read.mutable_enqueue_read_image();
    *reading.mutable_on() = body.on();
    reading.mutable_on()->set_event_id(event);
    reading.set_mem_id(box.mem);
    *reading.mutable_origin() = body.origin();
    *reading.mutable_region() = body.region();
    worker_->Send(read);
    EXPECT_LT(Completed(event++), 0) << box.mem << " " << box.x << "+" << box.width;
  }
  for (const uint64_t side : {uint64_t{1} << 31, uint64_t{1} << 40, UINT64_MAX}) {
    image.set_mem_id(104);
    image.mutable_desc()->set_width(side);
    image.mutable_desc()->set_height(side);
    EXPECT_LT(Status(create), 0) << side;
    image.mutable_desc()->set_parent_id(102);
    image.mutable_desc()->set_row_pitch(side);
    EXPECT_LT(Status(create), 0) << side;
    image.mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE1D_BUFFER);
    EXPECT_LT(Status(create), 0) << side;
    image.mutable_desc()->clear_parent_id();
    image.mutable_desc()->set_image_type(CL_MEM_OBJECT_IMAGE2D);
  }
  EXPECT_TRUE(worker_->Ping());
}

// A payload of another size than the command says is a violation.
TEST_F(HostileClientTest, PayloadOfAnotherSize) {
  MakeObjects();
  worker_->Send(Write(300), "ten bytes.");
  ExpectViolation("payload of 10");
}

// Property lists of any length are the driver's to refuse; one without its last value is a
// violation.
TEST_F(HostileClientTest, HugePropertyLists) {
  pb::Command huge = Context(100);
  for (int i = 0; i < 200000; ++i) huge.mutable_create_context()->add_properties(0x7777);
  EXPECT_LT(Status(huge), 0);
  pb::Command odd = Context(100);
  odd.mutable_create_context()->add_properties(CL_CONTEXT_INTEROP_USER_SYNC);
  worker_->Send(odd);
  ExpectViolation("without a value");
}

// More objects than the session may have are refused one by one, also when nothing is ever
// released; an application does that too.
TEST_F(HostileClientTest, EndlessObjects) {
  MakeObjects();
  for (uint64_t i = 0; i < 12000; ++i) {
    pb::Command event;
    event.mutable_enqueue_marker()->mutable_on()->set_queue_id(101);
    event.mutable_enqueue_marker()->mutable_on()->set_event_id(1000 + i);
    worker_->Send(event);
  }
  EXPECT_TRUE(worker_->Ping());
  EXPECT_EQ(Status(Context(100'000)), CL_OUT_OF_RESOURCES);
}

// Commands that wait for what never comes are bounded: the client that sends more than it was
// allowed ends its session.
TEST_F(HostileClientTest, EndlessCommandsInFlight) {
  std::string why;
  worker_ = WorkerProcess::Start(&why, {"--limit-in-flight=100"});
  ASSERT_NE(worker_, nullptr) << why;
  MakeObjects();
  pb::Command gate;
  gate.mutable_create_user_event()->set_event_id(200);
  gate.mutable_create_user_event()->set_context_id(100);
  worker_->Send(gate);
  pb::Command marker;
  marker.mutable_enqueue_marker()->mutable_on()->set_queue_id(101);
  marker.mutable_enqueue_marker()->mutable_on()->add_wait_event_ids(200);
  for (int i = 0; i < 3000; ++i) worker_->Send(marker);
  ExpectViolation("commands in flight");
}

// Nothing that a source or its options say makes the worker's compiler read a file of the daemon's
// host: neither does the program see what the file defines, nor the log quote it.
TEST_F(HostileClientTest, SourcesCannotReadTheHostsFiles) {
  if (os::FileConfinementVersion() == 0) GTEST_SKIP() << "this kernel has no landlock";
  MakeObjects();
  std::string folder = "/var/tmp/sluice-hostile-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/secret.h";
  std::ofstream(file) << "#define SECRET\nTOPSECRET words that no compiler takes\n";
  const struct {
    std::string source;
    std::string options;
  } attempts[] = {
      {"#include \"" + file + "\"\n", ""},
      {"#include <" + file + ">\n", ""},
      {"#include \"../../../../../../../../../../../.." + file + "\"\n", ""},
      {"#define F \"" + file + "\"\n#include F\n", ""},
      {"#include_next \"" + file + "\"\n", ""},
      {"%:include \"" + file + "\"\n", ""},
      {"#if __has_include(\"" + file + "\")\n#define SECRET\n#endif\n", ""},
      {"#include \"secret.h\"\n", "-I" + folder},
      {"#include \"secret.h\"\n", "-I " + folder},
      {"#include \"secret.h\"\n", "-I/proc/1/root" + folder},
      {"", "-include " + file},
      {"", "-imacros " + file},
      {"", "-DX -include" + file},
      {"#include F\n", "-DF=\\\"" + file + "\\\""},
  };
  uint64_t id = 1000;
  for (const auto& attempt : attempts) {
    pb::Command create;
    create.mutable_create_program_with_source()->set_program_id(++id);
    create.mutable_create_program_with_source()->set_context_id(100);
    ASSERT_EQ(Status(create, attempt.source + "#ifdef SECRET\nkernel void leaked() {}\n#endif\n"
                                              "kernel void plain() {}\n"),
              CL_SUCCESS);
    pb::Command build;
    build.mutable_build_program()->set_program_id(id);
    build.mutable_build_program()->set_options(attempt.options);
    Status(build);
    pb::Command kernel;
    kernel.mutable_create_kernel()->set_program_id(id);
    kernel.mutable_create_kernel()->set_kernel_id(id + 1000);
    kernel.mutable_create_kernel()->set_name("leaked");
    EXPECT_NE(Status(kernel), CL_SUCCESS) << attempt.source << attempt.options;
    pb::Command log;
    log.mutable_get_info()->set_kind(pb::GetInfo::PROGRAM_BUILD);
    log.mutable_get_info()->set_id(id);
    log.mutable_get_info()->set_param_name(CL_PROGRAM_BUILD_LOG);
    log.mutable_get_info()->set_device_id(1);
    const std::optional<pb::Answer> answer = worker_->Call(log);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->data().find("TOPSECRET"), std::string::npos)
        << attempt.source << attempt.options << "\n"
        << answer->data();
  }
  std::filesystem::remove_all(folder);
}

// Include paths that leave the worker's folder are a violation, and write nothing.
TEST_F(HostileClientTest, EscapingIncludePaths) {
  MakeObjects();
  pb::Command source;
  source.mutable_create_program_with_source()->set_program_id(200);
  source.mutable_create_program_with_source()->set_context_id(100);
  ASSERT_EQ(Status(source, "kernel void k() {}"), CL_SUCCESS);
  pb::Command build;
  build.mutable_build_program()->set_program_id(200);
  build.mutable_build_program()->add_include_files()->set_path("/../../../../tmp/sluice-escaped");
  worker_->Send(build);
  ExpectViolation("include path");
  EXPECT_NE(access("/tmp/sluice-escaped", F_OK), 0);
}

// A client that never takes its replies does not stop the worker from taking commands.
TEST_F(HostileClientTest, RepliesNobodyTakes) {
  pb::Command command;
  command.mutable_get_info()->set_kind(pb::GetInfo::DEVICE);
  command.mutable_get_info()->set_id(1);
  command.mutable_get_info()->set_param_name(CL_DEVICE_EXTENSIONS);
  for (int i = 0; i < 20000; ++i) worker_->Send(command);
  EXPECT_TRUE(worker_->Ping());
}

// An honest client of such a worker gets its work done.
TEST_F(HostileClientTest, HonestSessionStillWorks) {
  MakeObjects();
  pb::Command fill;
  fill.mutable_enqueue_fill_buffer()->mutable_on()->set_queue_id(101);
  fill.mutable_enqueue_fill_buffer()->mutable_on()->set_event_id(300);
  fill.mutable_enqueue_fill_buffer()->set_mem_id(102);
  fill.mutable_enqueue_fill_buffer()->set_pattern("abcd");
  fill.mutable_enqueue_fill_buffer()->set_size(100000);
  worker_->Send(fill);
  EXPECT_EQ(Completed(300), CL_COMPLETE);
}

// Shadow commands on what is no shadow, sizes beyond all memory, and contexts that are none are
// refused with the codes that fit, and the session lives.
TEST_F(HostileClientTest, ForgedShadows) {
  ASSERT_NO_FATAL_FAILURE(MakeObjects());
  pb::Command command;
  pb::Enqueue& on = *command.mutable_enqueue_acquire_shadow()->mutable_on();
  on.set_queue_id(101);
  on.set_event_id(200);
  command.mutable_enqueue_acquire_shadow()->set_mem_id(102);
  worker_->Send(command);
  EXPECT_EQ(Completed(200), CL_INVALID_MEM_OBJECT);
  command.mutable_enqueue_release_shadow()->mutable_on()->set_queue_id(101);
  command.mutable_enqueue_release_shadow()->mutable_on()->set_event_id(201);
  command.mutable_enqueue_release_shadow()->set_mem_id(~uint64_t{0});
  worker_->Send(command);
  EXPECT_EQ(Completed(201), CL_INVALID_MEM_OBJECT);
  pb::CreateShadowBuffer& create = *command.mutable_create_shadow_buffer();
  create.set_mem_id(202);
  create.set_context_id(100);
  for (const uint64_t size : {~uint64_t{0}, ~uint64_t{0} - 65535, uint64_t{1} << 60}) {
    create.set_size(size);
    EXPECT_NE(Status(command), CL_SUCCESS);
  }
  create.set_size(4096);
  create.set_context_id(102);
  EXPECT_EQ(Status(command), CL_INVALID_CONTEXT);
  EXPECT_TRUE(worker_->Ping());
}

// A shadow under an id that is in use is a violation, as for every object.
TEST_F(HostileClientTest, ShadowUnderAUsedId) {
  ASSERT_NO_FATAL_FAILURE(MakeObjects());
  pb::Command command;
  command.mutable_create_shadow_buffer()->set_mem_id(102);
  command.mutable_create_shadow_buffer()->set_context_id(100);
  command.mutable_create_shadow_buffer()->set_size(4096);
  worker_->Send(command);
  ExpectViolation("id 102 is in use");
}

}  // namespace
}  // namespace sluice::worker
