// SPDX-License-Identifier: Apache-2.0
// proto/commands/image.proto through the worker.
#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

std::string TexelPattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 13 + i / 999);
  return bytes;
}

pb::ImageDesc Desc(cl_mem_object_type type, uint64_t width, uint64_t height = 0, uint64_t depth = 0,
                   uint64_t layers = 0) {
  pb::ImageDesc desc;
  desc.set_image_type(type);
  desc.set_width(width);
  desc.set_height(height);
  desc.set_depth(depth);
  desc.set_array_size(layers);
  return desc;
}

class ImageLoopbackTest : public LoopbackTest {
 protected:
  void SetUp() override {
    LoopbackTest::SetUp();
    Use(kGpu);
  }
  void Use(uint64_t device, cl_command_queue_properties flags = 0) {
    context_ = MakeContext(device);
    queue_ = MakeQueue(context_, device, flags);
  }
  // A command for a new image of 4-byte elements.
  pb::Command Create(const pb::ImageDesc& desc) {
    pb::Command command;
    pb::CreateImage& body = *command.mutable_create_image();
    body.set_mem_id(client_->NewId());
    body.set_context_id(context_);
    body.set_flags(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
    body.mutable_format()->set_channel_order(CL_RGBA);
    body.mutable_format()->set_channel_data_type(CL_UNORM_INT8);
    *body.mutable_desc() = desc;
    return command;
  }
  uint64_t MapShared(uint64_t image, uint64_t map_id, const std::vector<uint64_t>& origin,
                     const std::vector<uint64_t>& region) {
    pb::Command command;
    pb::EnqueueMapShared& body = *command.mutable_enqueue_map_shared();
    const uint64_t event = On(body.mutable_on(), queue_);
    body.set_mem_id(image);
    body.set_map_flags(CL_MAP_READ);
    body.set_map_id(map_id);
    Set(body.mutable_origin(), origin);
    Set(body.mutable_region(), region);
    client_->Send(command);
    return event;
  }
  uint64_t WriteInitial(uint64_t image) {
    pb::Command command;
    pb::WriteInitialContents& body = *command.mutable_write_initial_contents();
    body.mutable_on()->set_event_id(client_->NewId());
    body.set_mem_id(image);
    client_->Send(command);
    return body.on().event_id();
  }
  static void Set(pb::Size3* size, const std::vector<uint64_t>& v) {
    size->set_x(v[0]);
    size->set_y(v[1]);
    size->set_z(v[2]);
  }
  std::string Read(uint64_t image, const std::vector<uint64_t>& origin,
                   const std::vector<uint64_t>& region) {
    pb::Command command;
    pb::EnqueueReadImage& body = *command.mutable_enqueue_read_image();
    const uint64_t event = On(body.mutable_on(), queue_);
    body.set_mem_id(image);
    Set(body.mutable_origin(), origin);
    Set(body.mutable_region(), region);
    client_->Send(command);
    const uint64_t bytes = 4 * region[0] * region[1] * region[2];
    if (bytes > wire::kInlineTransferBytes) return Take(event, bytes);
    std::string payload;
    EXPECT_EQ(client_->WaitForCompletion(event, &payload).status(), CL_COMPLETE);
    return payload;
  }
  cl_int Write(uint64_t image, const std::vector<uint64_t>& origin,
               const std::vector<uint64_t>& region, std::string_view bytes) {
    pb::Command command;
    pb::EnqueueWriteImage& body = *command.mutable_enqueue_write_image();
    const uint64_t event = On(body.mutable_on(), queue_);
    body.set_mem_id(image);
    Set(body.mutable_origin(), origin);
    Set(body.mutable_region(), region);
    const bool small = bytes.size() <= wire::kInlineTransferBytes;
    client_->Send(command, small ? bytes : "");
    return (small ? Completed(event) : Feed(event, bytes)).status();
  }
  uint64_t context_ = 0, queue_ = 0;
};

// Every kind of image keeps its contents through creation, large and small reads and writes: no
// kind is moved with another's pitches.
TEST_F(ImageLoopbackTest, EveryKindKeepsItsBytes) {
  struct Kind {
    pb::ImageDesc desc;
    std::vector<uint64_t> whole;
  };
  for (const uint64_t device : {kGpu, kCpu}) {
    Use(device);
    for (const Kind& kind :
         {Kind{Desc(CL_MEM_OBJECT_IMAGE1D, 9000), {9000, 1, 1}},
          Kind{Desc(CL_MEM_OBJECT_IMAGE1D_ARRAY, 700, 0, 0, 2000), {700, 2000, 1}},
          Kind{Desc(CL_MEM_OBJECT_IMAGE2D, 1100, 1200), {1100, 1200, 1}},
          Kind{Desc(CL_MEM_OBJECT_IMAGE2D_ARRAY, 300, 200, 0, 20), {300, 200, 20}},
          Kind{Desc(CL_MEM_OBJECT_IMAGE3D, 300, 200, 25), {300, 200, 25}}}) {
      const std::vector<uint64_t>& whole = kind.whole;
      const std::string bytes = TexelPattern(4 * whole[0] * whole[1] * whole[2]);
      const uint64_t image = MakeImage(context_, kind.desc, bytes);
      EXPECT_TRUE(Read(image, {0, 0, 0}, whole) == bytes) << kind.desc.image_type();
      const std::string other = TexelPattern(bytes.size() + 1).substr(1);
      EXPECT_EQ(Write(image, {0, 0, 0}, whole, other), CL_COMPLETE);
      EXPECT_TRUE(Read(image, {0, 0, 0}, whole) == other) << kind.desc.image_type();
      EXPECT_EQ(Write(image, {1, 0, 0}, {2, 1, 1}, "12345678"), CL_COMPLETE);
      EXPECT_EQ(Read(image, {0, 0, 0}, {4, 1, 1}),
                other.substr(0, 4) + "12345678" + other.substr(12, 4));
      EXPECT_EQ(Feed(WriteInitial(image), bytes).status(), CL_COMPLETE);
      EXPECT_TRUE(Read(image, {0, 0, 0}, whole) == bytes) << kind.desc.image_type();
    }
  }
}

// New images are zero, and told with their element size and pitches.
TEST_F(ImageLoopbackTest, NewImagesAreZero) {
  for (const uint64_t device : {kGpu, kCpu}) {
    Use(device);
    const pb::Command command = Create(Desc(CL_MEM_OBJECT_IMAGE2D, 8, 8));
    const pb::Answer answer = client_->Call(command);
    EXPECT_EQ(answer.memory().element_size(), 4u);
    EXPECT_EQ(answer.memory().row_pitch(), 32u);
    EXPECT_EQ(answer.memory().in_heap(), device == kCpu);
    EXPECT_EQ(Read(command.create_image().mem_id(), {0, 0, 0}, {8, 8, 1}), std::string(256, '\0'));
  }
}

// On a CPU an image is the heap span that the answer names, in rows and slices without gaps: what
// the client writes there, the driver has, and a map moves nothing.
TEST_F(ImageLoopbackTest, CpuImageLiesInTheHeap) {
  Use(kCpu, CL_QUEUE_PROFILING_ENABLE);  // Nothing passes the driver by.
  const pb::Command command = Create(Desc(CL_MEM_OBJECT_IMAGE3D, 8, 5, 3));
  const uint64_t image = command.create_image().mem_id();
  const pb::MemoryPlacement placement = client_->Call(command).memory();
  ASSERT_TRUE(placement.in_heap());
  EXPECT_EQ(placement.row_pitch(), 32u);
  EXPECT_EQ(placement.slice_pitch(), 160u);
  EXPECT_EQ(fake_->Last("clCreateImage").values[1],
            cl_mem_flags{CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR});
  uint8_t* const memory = client_->Map({placement.segment(), placement.offset(), 480});
  ASSERT_NE(memory, nullptr);
  memory[2 * 160 + 4 * 32 + 7 * 4] = 77;
  EXPECT_EQ(Read(image, {7, 4, 2}, {1, 1, 1}), std::string("\x4d\0\0\0", 4));
  EXPECT_EQ(Completed(MapShared(image, 1, {1, 2, 0}, {3, 1, 2})).status(), CL_COMPLETE);
  EXPECT_EQ(fake_->Last("clEnqueueMapImage").arrays["origin"], (std::vector<uint64_t>{1, 2, 0}));
  EXPECT_EQ(fake_->Last("clEnqueueMapImage").arrays["region"], (std::vector<uint64_t>{3, 1, 2}));
  memory[2 * 32 + 4] = 78;
  pb::Command unmap;
  const uint64_t event = On(unmap.mutable_enqueue_unmap_shared()->mutable_on(), queue_);
  unmap.mutable_enqueue_unmap_shared()->set_mem_id(image);
  unmap.mutable_enqueue_unmap_shared()->set_map_id(1);
  client_->Send(unmap);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  EXPECT_EQ(Read(image, {1, 2, 0}, {1, 1, 1}), std::string("\x4e\0\0\0", 4));
}

// A small read or write of an image in the heap asks nothing of the driver while nothing is
// pending, and waits its turn while something is.
TEST_F(ImageLoopbackTest, SmallTransfersInTheHeapTakeTheirTurn) {
  Use(kCpu);
  const uint64_t image = MakeImage(context_, Desc(CL_MEM_OBJECT_IMAGE2D, 4, 4), TexelPattern(64));
  const size_t before = fake_->Count("clEnqueueWriteImage");
  EXPECT_EQ(Write(image, {1, 1, 0}, {2, 2, 1}, "abcdefghijklmnop"), CL_COMPLETE);
  EXPECT_EQ(Read(image, {1, 1, 0}, {2, 2, 1}), "abcdefghijklmnop");
  EXPECT_EQ(fake_->Count("clEnqueueWriteImage"), before);
  fake_->HoldCommands();
  pb::Command fill;
  pb::EnqueueFillImage& body = *fill.mutable_enqueue_fill_image();
  On(body.mutable_on(), queue_);
  body.set_mem_id(image);
  body.set_color(std::string(16, 'x'));
  Set(body.mutable_region(), {4, 4, 1});
  client_->Send(fill);
  pb::Command read;
  const uint64_t event = On(read.mutable_enqueue_read_image()->mutable_on(), queue_);
  read.mutable_enqueue_read_image()->set_mem_id(image);
  Set(read.mutable_enqueue_read_image()->mutable_origin(), {0, 0, 0});
  Set(read.mutable_enqueue_read_image()->mutable_region(), {1, 1, 1});
  client_->Send(read);
  client_->Sync();
  EXPECT_TRUE(client_->TakeAll().empty());
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  EXPECT_EQ(fake_->Count("clEnqueueReadImage"), 2u);  // One was the trial of the type.
}

// A driver that does not take our memory for an image, or lays it out otherwise, keeps the image:
// its elements travel by commands.
TEST_F(ImageLoopbackTest, RefusedMemoryFallsBack) {
  Use(kCpu);
  MakeImage(context_, Desc(CL_MEM_OBJECT_IMAGE2D, 4, 4));  // The type's trial.
  const uint64_t used = client_->session().heap().used_bytes();
  fake_->FailNext("clCreateImage", CL_INVALID_HOST_PTR);
  pb::Command command = Create(Desc(CL_MEM_OBJECT_IMAGE2D, 4, 4));
  const std::string bytes = TexelPattern(64);
  EXPECT_FALSE(client_->Call(command, bytes).memory().in_heap());
  EXPECT_EQ(client_->session().heap().used_bytes(), used);
  EXPECT_EQ(Read(command.create_image().mem_id(), {0, 0, 0}, {4, 4, 1}), bytes);
  // The trial of another type fails.
  fake_->FailNext("clEnqueueMapImage", CL_INVALID_OPERATION);
  for (int i = 0; i < 2; ++i) {
    command = Create(Desc(CL_MEM_OBJECT_IMAGE1D, 16));
    EXPECT_FALSE(client_->Call(command, bytes).memory().in_heap());
    EXPECT_EQ(Read(command.create_image().mem_id(), {0, 0, 0}, {16, 1, 1}), bytes);
  }
}

// The driver's own answer to an image that cannot be made is the one that the client gets.
TEST_F(ImageLoopbackTest, RefusalsAreTheDrivers) {
  Use(kCpu);
  pb::Command command = Create(Desc(CL_MEM_OBJECT_IMAGE2D, 1 << 16, 1 << 16));
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_IMAGE_SIZE);
  command = Create(Desc(CL_MEM_OBJECT_IMAGE2D, 4, 4));
  command.mutable_create_image()->mutable_format()->set_channel_data_type(0x7777);
  EXPECT_EQ(client_->Call(command).status(), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  EXPECT_EQ(client_->session().heap().used_bytes(), 0u);
}

// The span of a released image waits for the driver, as a buffer's does, and images count against
// the session's memory.
TEST_F(ImageLoopbackTest, SpansAndQuota) {
  SessionOptions options;
  options.limits.memory_bytes = 10000;
  Start(options);
  Use(kCpu);
  const uint64_t image = MakeImage(context_, Desc(CL_MEM_OBJECT_IMAGE2D, 32, 64));
  EXPECT_EQ(client_->Call(Create(Desc(CL_MEM_OBJECT_IMAGE2D, 32, 64))).status(),
            CL_MEM_OBJECT_ALLOCATION_FAILURE);
  fake_->HoldCommands();
  pb::Command fill;
  const uint64_t event = On(fill.mutable_enqueue_fill_image()->mutable_on(), queue_);
  fill.mutable_enqueue_fill_image()->set_mem_id(image);
  Set(fill.mutable_enqueue_fill_image()->mutable_region(), {1, 1, 1});
  client_->Send(fill);
  pb::Command release;
  release.mutable_release_object()->set_id(image);
  client_->Send(release);
  client_->Sync();
  EXPECT_EQ(client_->session().heap().used_bytes(), 8192u);
  fake_->ReleaseCommands();
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  client_->WaitUntil([&] { return client_->session().heap().used_bytes() == 0; });
  EXPECT_EQ(client_->Call(Create(Desc(CL_MEM_OBJECT_IMAGE2D, 32, 64))).status(), CL_SUCCESS);
}

// Values that an application leaves in extents that its image's type does not have change nothing.
TEST_F(ImageLoopbackTest, ExtentsOfOtherTypesDoNotCount) {
  const std::string bytes = TexelPattern(4 * 6 * 5);
  const uint64_t image = MakeImage(context_, Desc(CL_MEM_OBJECT_IMAGE2D, 6, 5, 77, 88), bytes);
  EXPECT_EQ(Read(image, {0, 0, 0}, {6, 5, 1}), bytes);
}

// An image of a buffer shows the buffer's bytes.
TEST_F(ImageLoopbackTest, ImageOfABuffer) {
  const std::string bytes = TexelPattern(256);
  pb::ImageDesc desc = Desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, 64);
  desc.set_parent_id(MakeBuffer(context_, 256, bytes));
  EXPECT_EQ(Read(MakeImage(context_, desc), {0, 0, 0}, {64, 1, 1}), bytes);
}

// An image of a buffer in the heap lies there too, with the buffer's row pitch, and goes when both
// are released.
TEST_F(ImageLoopbackTest, ImageOfACpuBuffer) {
  Use(kCpu);
  const std::string bytes = TexelPattern(256);
  const uint64_t buffer = MakeBuffer(context_, 256, bytes);
  pb::ImageDesc desc = Desc(CL_MEM_OBJECT_IMAGE2D, 3, 4);
  desc.set_parent_id(buffer);
  desc.set_row_pitch(64);
  const pb::Command command = Create(desc);
  const uint64_t image = command.create_image().mem_id();
  const pb::MemoryPlacement placement = client_->Call(command).memory();
  EXPECT_TRUE(placement.in_heap());
  EXPECT_EQ(placement.row_pitch(), 64u);
  EXPECT_EQ(Read(image, {1, 2, 0}, {2, 2, 1}), bytes.substr(132, 8) + bytes.substr(196, 8));
  EXPECT_EQ(Completed(MapShared(image, 1, {0, 0, 0}, {3, 4, 1})).status(), CL_COMPLETE);
  for (const uint64_t id : {buffer, image}) {
    pb::Command release;
    release.mutable_release_object()->set_id(id);
    client_->Send(release);
  }
  client_->WaitUntil([&] { return client_->session().heap().used_bytes() == 0; });
}

// Copies forward origins, region and offset, in all three directions.
TEST_F(ImageLoopbackTest, CopiesForwardTheirGeometry) {
  const std::string bytes = TexelPattern(4 * 16 * 16);
  const uint64_t from = MakeImage(context_, Desc(CL_MEM_OBJECT_IMAGE2D, 16, 16), bytes);
  const uint64_t to = MakeImage(context_, Desc(CL_MEM_OBJECT_IMAGE2D, 16, 16));
  const uint64_t buffer = MakeBuffer(context_, 4096);
  pb::Command copy;
  pb::EnqueueCopyImage& body = *copy.mutable_enqueue_copy_image();
  uint64_t event = On(body.mutable_on(), queue_);
  body.set_source_id(from);
  body.set_destination_id(to);
  Set(body.mutable_source_origin(), {1, 2, 0});
  Set(body.mutable_destination_origin(), {3, 4, 0});
  Set(body.mutable_region(), {5, 1, 1});
  client_->Send(copy);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  EXPECT_EQ(Read(to, {3, 4, 0}, {5, 1, 1}), bytes.substr(4 * (2 * 16 + 1), 20));
  pb::Command out;
  event = On(out.mutable_enqueue_copy_image_to_buffer()->mutable_on(), queue_);
  out.mutable_enqueue_copy_image_to_buffer()->set_image_id(from);
  out.mutable_enqueue_copy_image_to_buffer()->set_buffer_id(buffer);
  Set(out.mutable_enqueue_copy_image_to_buffer()->mutable_origin(), {0, 3, 0});
  Set(out.mutable_enqueue_copy_image_to_buffer()->mutable_region(), {16, 2, 1});
  out.mutable_enqueue_copy_image_to_buffer()->set_buffer_offset(100);
  client_->Send(out);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  EXPECT_EQ(fake_->Last("clEnqueueCopyImageToBuffer").values[5], 100u);
  pb::Command in;
  event = On(in.mutable_enqueue_copy_buffer_to_image()->mutable_on(), queue_);
  in.mutable_enqueue_copy_buffer_to_image()->set_buffer_id(buffer);
  in.mutable_enqueue_copy_buffer_to_image()->set_image_id(to);
  in.mutable_enqueue_copy_buffer_to_image()->set_buffer_offset(100);
  Set(in.mutable_enqueue_copy_buffer_to_image()->mutable_origin(), {0, 0, 0});
  Set(in.mutable_enqueue_copy_buffer_to_image()->mutable_region(), {16, 2, 1});
  client_->Send(in);
  EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
  EXPECT_EQ(Read(to, {0, 0, 0}, {16, 2, 1}), bytes.substr(4 * 3 * 16, 128));
}

// A fill forwards all sixteen bytes of the color, and fewer never make it read beyond them.
TEST_F(ImageLoopbackTest, FillForwardsTheColor) {
  const uint64_t image = MakeImage(context_, Desc(CL_MEM_OBJECT_IMAGE2D, 4, 4));
  for (const std::string color : {"0123456789abcdef", "01234567", ""}) {
    pb::Command command;
    pb::EnqueueFillImage& body = *command.mutable_enqueue_fill_image();
    const uint64_t event = On(body.mutable_on(), queue_);
    body.set_mem_id(image);
    body.set_color(color);
    Set(body.mutable_origin(), {0, 0, 0});
    Set(body.mutable_region(), {4, 4, 1});
    client_->Send(command);
    EXPECT_EQ(Completed(event).status(), CL_COMPLETE);
    EXPECT_EQ(fake_->Last("clEnqueueFillImage").bytes, color + std::string(16 - color.size(), 0));
  }
}

// NVIDIA's driver does not return from the fill of a volume before all that it comes after has
// ended: it is given one only then, and what comes after the fill waits for it.
TEST_F(ImageLoopbackTest, VolumesAreFilledWhenReady) {
  Start({}, kNvidia);
  for (const cl_command_queue_properties flags :
       {cl_command_queue_properties{0},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    Use(kGpu, flags);
    const uint64_t image = MakeImage(context_, Desc(CL_MEM_OBJECT_IMAGE3D, 4, 4, 2));
    const size_t before = fake_->Count("clEnqueueFillImage");
    const uint64_t gate = MakeUserEvent(context_);
    pb::Command fill;
    pb::EnqueueFillImage& body = *fill.mutable_enqueue_fill_image();
    const uint64_t filled = On(body.mutable_on(), queue_, {gate});
    body.set_mem_id(image);
    body.set_color("abcdefghijklmnop");
    Set(body.mutable_origin(), {1, 1, 0});
    Set(body.mutable_region(), {2, 2, 2});
    client_->Send(fill);
    pb::Command read;
    const uint64_t taken = On(read.mutable_enqueue_read_image()->mutable_on(), queue_, {filled});
    read.mutable_enqueue_read_image()->set_mem_id(image);
    Set(read.mutable_enqueue_read_image()->mutable_origin(), {0, 1, 1});
    Set(read.mutable_enqueue_read_image()->mutable_region(), {4, 1, 1});
    client_->Send(read);
    client_->Sync();
    EXPECT_EQ(fake_->Count("clEnqueueFillImage"), before);
    SetUserEvent(gate, CL_COMPLETE);
    EXPECT_EQ(Completed(filled).status(), CL_COMPLETE);
    std::string row;
    EXPECT_EQ(client_->WaitForCompletion(taken, &row).status(), CL_COMPLETE);
    EXPECT_EQ(row, std::string(4, 0) + "abcdabcd" + std::string(4, 0));
    EXPECT_EQ(fake_->Last("clEnqueueFillImage").bytes, "abcdefghijklmnop");
  }
}

// Formats come as the driver lists them, in pairs.
TEST_F(ImageLoopbackTest, SupportedFormats) {
  pb::Command command;
  command.mutable_get_supported_image_formats()->set_context_id(context_);
  command.mutable_get_supported_image_formats()->set_image_type(CL_MEM_OBJECT_IMAGE2D);
  EXPECT_EQ(client_->Call(command).data().size(), 16u);
}

// Reads of what is no image, or of nothing, are refused.
TEST_F(ImageLoopbackTest, BadReadsAreRefused) {
  const uint64_t image = MakeImage(context_, Desc(CL_MEM_OBJECT_IMAGE2D, 4, 4));
  struct Case {
    uint64_t mem;
    std::vector<uint64_t> region;
    cl_int status;
  };
  for (const Case& c :
       {Case{image, {0, 1, 1}, CL_INVALID_VALUE}, Case{image, {5, 1, 1}, CL_INVALID_VALUE},
        Case{image, {UINT64_MAX, UINT64_MAX, 2}, CL_INVALID_VALUE},
        Case{MakeBuffer(context_, 64), {1, 1, 1}, CL_INVALID_VALUE},
        Case{queue_, {1, 1, 1}, CL_INVALID_MEM_OBJECT}}) {
    pb::Command command;
    pb::EnqueueReadImage& body = *command.mutable_enqueue_read_image();
    const uint64_t event = On(body.mutable_on(), queue_);
    body.set_mem_id(c.mem);
    Set(body.mutable_origin(), {0, 0, 0});
    Set(body.mutable_region(), c.region);
    client_->Send(command);
    EXPECT_EQ(Completed(event).status(), c.status);
  }
}

// Levels and samples, which are neither charged nor set to zero, are refused: section 5.3.1.2 has
// none, and no client of ours asks for them.
TEST_F(ImageLoopbackTest, MipLevelsAndSamplesAreRefused) {
  for (const bool samples : {false, true}) {
    pb::Command command = Create(Desc(CL_MEM_OBJECT_IMAGE2D, 8, 8));
    pb::ImageDesc& desc = *command.mutable_create_image()->mutable_desc();
    samples ? desc.set_num_samples(4) : desc.set_num_mip_levels(4);
    EXPECT_EQ(client_->Call(command).status(), CL_INVALID_IMAGE_DESCRIPTOR);
  }
  EXPECT_EQ(fake_->Count("clCreateImage"), 0u);
}

}  // namespace
}  // namespace sluice::worker
