// SPDX-License-Identifier: Apache-2.0
// Section 5.14: all times of a device's events are values of its one time counter. So they can be
// compared with each other, whatever moves the bytes of a command, and with nothing else.
#include <algorithm>
#include <chrono>
#include <deque>

#include "tests/conformance/harness/image_helpers.h"

namespace sluice::conformance {
namespace {

using HostClock = std::chrono::steady_clock;

struct Times {
  cl_ulong queued = 0, submit = 0, start = 0, end = 0;
  cl_ulong ran() const { return end - start; }
};

Times TimesOf(cl_event event) {
  Times times;
  const std::pair<cl_profiling_info, cl_ulong*> all[] = {
      {CL_PROFILING_COMMAND_QUEUED, &times.queued},
      {CL_PROFILING_COMMAND_SUBMIT, &times.submit},
      {CL_PROFILING_COMMAND_START, &times.start},
      {CL_PROFILING_COMMAND_END, &times.end}};
  for (const auto& [param, value] : all) {
    EXPECT_CL("clGetEventProfilingInfo.of_every_command", CL_SUCCESS,
              clGetEventProfilingInfo(event, param, sizeof(*value), value, nullptr));
  }
  EXPECT_LE(times.queued, times.submit);
  EXPECT_LE(times.submit, times.start);
  EXPECT_LE(times.start, times.end);
  return times;
}

// The shortest that moving so many bytes takes on anything: a terabyte in a second.
cl_ulong LeastNs(size_t bytes) { return bytes / 1000; }

// The commands of one queue in order, what each is called, and the host's time around them.
class Timeline {
 public:
  explicit Timeline(cl_command_queue queue) : queue_(queue) { Mark("before"); }

  // For the command's event. `moves`: at least so many bytes, to or from the host.
  cl_event* Next(const char* name, size_t moves = 0) {
    commands_.push_back({name, moves, nullptr, {}});
    return commands_.back().event.Out();
  }
  // The same, with a name in the table of differences where the times are not to be compared.
  cl_event* NextUnless(const char* differs, const char* name) {
    commands_.push_back({name, 0, differs, {}});
    return commands_.back().event.Out();
  }

  // Ends it, and checks everything.
  void Check() {
    Mark("after");
    const auto host = HostClock::now() - began_;
    const Times* before = nullptr;
    std::deque<Times> all;
    for (const Command& command : commands_) {
      SCOPED_TRACE(command.name);
      ASSERT_NE(command.event.get(), nullptr);
      const Times times = TimesOf(command.event);
      if (command.differs != nullptr && Differs(command.differs)) continue;
      all.push_back(times);
      EXPECT_GE(times.ran(), LeastNs(command.moves));
      // Not before that of the command before it: NVIDIA's stamps a command that is held back (by a
      // user event, which Sluice's transfers are to the driver) when it lets it go.
      EXPECT_GE(times.queued, all.front().queued);
      if (before != nullptr) {
        EXPECT_GE(times.start, before->end) << "starts before the command before it has ended";
      }
      before = &all.back();
    }
    // The counters of host and device need not run at quite the same rate.
    const auto host_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(host).count();
    EXPECT_LE(all.back().end - all.front().end, static_cast<cl_ulong>(host_ns + host_ns / 100));
  }

 private:
  struct Command {
    const char* name;
    size_t moves;
    const char* differs;
    Own<cl_event> event;
  };

  void Mark(const char* name) {
    cl_event* const event = Next(name);
    ASSERT_EQ(clEnqueueMarkerWithWaitList(queue_, 0, nullptr, event), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, event), CL_SUCCESS);
  }

  const cl_command_queue queue_;
  const HostClock::time_point began_ = HostClock::now();
  std::deque<Command> commands_;
};

class ProfilingTest : public WithProgram, public testing::WithParamInterface<size_t> {
 protected:
  Timeline NewTimeline() const { return Timeline(queue()); }

  void MapAndUnmap(Timeline* line, cl_mem buffer, cl_bool blocking, cl_map_flags flags) const {
    cl_int status = CL_SUCCESS;
    void* const pointer = clEnqueueMapBuffer(
        queue(), buffer, blocking, flags, 0, GetParam(), 0, nullptr,
        blocking == CL_TRUE ? line->NextUnless("clEnqueueMapBuffer.blocking_times", "blocking map")
                            : line->Next("map"),
        &status);
    ASSERT_EQ(status, CL_SUCCESS);
    ASSERT_EQ(clEnqueueUnmapMemObject(queue(), buffer, pointer, 0, nullptr, line->Next("unmap")),
              CL_SUCCESS);
  }

  void RunBufferPipeline(cl_mem buffer) const {
    const size_t bytes = GetParam();
    const Own<cl_mem> other = Buffer(bytes);
    const Own<cl_kernel> kernel = Kernel("add_one");
    cl_mem argument = buffer;
    SetArg(kernel, 0, argument);
    std::vector<char> host(bytes, 1), back(bytes), again(bytes);
    const cl_int pattern = 3;
    Timeline line = NewTimeline();
    // Nothing waits before the pipeline's first blocking command.
    EXPECT_EQ(clEnqueueWriteBuffer(queue(), buffer, CL_FALSE, 0, bytes, host.data(), 0, nullptr,
                                   line.Next("write", bytes)),
              CL_SUCCESS);
    EXPECT_EQ(Launch(queue(), kernel, bytes / sizeof(cl_int), line.Next("kernel")), CL_SUCCESS);
    EXPECT_EQ(clEnqueueReadBuffer(queue(), buffer, CL_FALSE, 0, bytes, back.data(), 0, nullptr,
                                  line.Next("read", bytes)),
              CL_SUCCESS);
    MapAndUnmap(&line, buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE);
    EXPECT_EQ(clEnqueueFillBuffer(queue(), buffer, &pattern, sizeof(pattern), 0, bytes, 0, nullptr,
                                  line.Next("fill")),
              CL_SUCCESS);
    EXPECT_EQ(
        clEnqueueCopyBuffer(queue(), buffer, other, 0, 0, bytes, 0, nullptr, line.Next("copy")),
        CL_SUCCESS);
    EXPECT_EQ(
        clEnqueueBarrierWithWaitList(
            queue(), 0, nullptr, line.NextUnless("clEnqueueBarrierWithWaitList.times", "barrier")),
        CL_SUCCESS);
    EXPECT_EQ(clEnqueueReadBuffer(queue(), other, CL_TRUE, 0, bytes, again.data(), 0, nullptr,
                                  line.Next("blocking read", bytes)),
              CL_SUCCESS);
    EXPECT_EQ(clEnqueueWriteBuffer(queue(), buffer, CL_TRUE, 0, bytes, host.data(), 0, nullptr,
                                   line.Next("blocking write", bytes)),
              CL_SUCCESS);
    // The queue has nothing to do.
    MapAndUnmap(&line, buffer, CL_TRUE, CL_MAP_READ);
    MapAndUnmap(&line, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION);
    EXPECT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, line.Next("marker")), CL_SUCCESS);
    line.Check();
    EXPECT_EQ(back[0], 2);
    EXPECT_EQ(again[0], 3);
  }
};

// A pipeline of every kind of command, as "the time that it took" is usually measured: the END of
// its last less the START of its first.
TEST_P(ProfilingTest, TimesOfAPipelineFollowEachOther) { RunBufferPipeline(Buffer(GetParam())); }

// The same, of memory that the application hands over or asks the host for.
TEST_P(ProfilingTest, TimesOfHostMemoryFollowEachOther) {
  std::vector<char> host(GetParam() + 4096);
  void* const aligned =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(host.data()) + 4095) / 4096 * 4096);
  RunBufferPipeline(Buffer(GetParam(), CL_MEM_USE_HOST_PTR, aligned));
  RunBufferPipeline(Buffer(GetParam(), CL_MEM_ALLOC_HOST_PTR));
}

// A rectangle of half the buffer's columns.
TEST_P(ProfilingTest, TimesOfRectanglesFollowEachOther) {
  const size_t bytes = GetParam(), rows = bytes < 4096 ? 1 : 1024, pitch = bytes / rows;
  const Own<cl_mem> buffer = Buffer(bytes);
  const size_t origin[3] = {0, 0, 0}, region[3] = {pitch / 2, rows, 1};
  std::vector<char> host(bytes);
  Timeline line = NewTimeline();
  for (const cl_bool blocking : {CL_FALSE, CL_TRUE}) {
    EXPECT_EQ(
        clEnqueueWriteBufferRect(queue(), buffer, blocking, origin, origin, region, pitch, 0, pitch,
                                 0, host.data(), 0, nullptr, line.Next("write rect", bytes / 2)),
        CL_SUCCESS);
    EXPECT_EQ(
        clEnqueueReadBufferRect(queue(), buffer, blocking, origin, origin, region, pitch, 0, pitch,
                                0, host.data(), 0, nullptr, line.Next("read rect", bytes / 2)),
        CL_SUCCESS);
  }
  line.Check();
}

// A command that waits for one of another queue of the device starts after its end.
TEST_P(ProfilingTest, StartsAfterWhatItWaitsFor) {
  const size_t bytes = GetParam();
  const Own<cl_command_queue> other = Queue(CL_QUEUE_PROFILING_ENABLE);
  const Own<cl_mem> buffer = Buffer(bytes);
  std::vector<char> host(bytes), back(bytes);
  Own<cl_event> gate = UserEvent(), written, read;
  ASSERT_EQ(clEnqueueWriteBuffer(queue(), buffer, CL_FALSE, 0, bytes, host.data(), 1, gate.AsList(),
                                 written.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueReadBuffer(other, buffer, CL_FALSE, 0, bytes, back.data(), 1, written.AsList(),
                                read.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  ASSERT_EQ(clFlush(other), CL_SUCCESS);
  // A third queue tells the time before the gate opens.
  const Own<cl_command_queue> third = Queue(CL_QUEUE_PROFILING_ENABLE);
  Own<cl_event> closed;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(third, 0, nullptr, closed.Out()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, closed.AsList()), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, read.AsList()), CL_SUCCESS);
  const Times first = TimesOf(written);
  EXPECT_GE(first.start, TimesOf(closed).end);
  EXPECT_GE(TimesOf(read).start, first.end);
}

INSTANTIATE_TEST_SUITE_P(Bytes, ProfilingTest,
                         testing::Values(size_t{4}, size_t{64} << 10, size_t{8} << 20,
                                         size_t{32} << 20));

class ProfilingOfImagesTest : public WithImages {};

TEST_F(ProfilingOfImagesTest, TimesFollowEachOther) {
  const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
  for (const size_t width : {size_t{16}, size_t{128}, size_t{2048}}) {
    SCOPED_TRACE(width);
    const ImageKind kind = {"2D", CL_MEM_OBJECT_IMAGE2D, width, width, 0, 0};
    const TestImage image = Make(kind, format), other = Make(kind, format);
    const size_t origin[3] = {0, 0, 0}, region[3] = {width, width, 1}, bytes = 4 * width * width;
    const Own<cl_mem> buffer = Buffer(bytes);
    const cl_uint color[4] = {1, 2, 3, 4};
    std::vector<char> host(bytes);
    Timeline line(queue());
    for (const cl_bool blocking : {CL_FALSE, CL_TRUE}) {
      EXPECT_EQ(clEnqueueWriteImage(queue(), image.memory, blocking, origin, region, 0, 0,
                                    host.data(), 0, nullptr, line.Next("write", bytes)),
                CL_SUCCESS);
      EXPECT_EQ(clEnqueueFillImage(queue(), image.memory, color, origin, region, 0, nullptr,
                                   line.Next("fill")),
                CL_SUCCESS);
      EXPECT_EQ(clEnqueueCopyImage(queue(), image.memory, other.memory, origin, origin, region, 0,
                                   nullptr, line.Next("copy")),
                CL_SUCCESS);
      EXPECT_EQ(clEnqueueCopyImageToBuffer(queue(), other.memory, buffer, origin, region, 0, 0,
                                           nullptr, line.Next("copy to buffer")),
                CL_SUCCESS);
      EXPECT_EQ(clEnqueueReadImage(queue(), other.memory, blocking, origin, region, 0, 0,
                                   host.data(), 0, nullptr, line.Next("read", bytes)),
                CL_SUCCESS);
      size_t pitch = 0;
      cl_int status = CL_SUCCESS;
      void* const pointer =
          clEnqueueMapImage(queue(), image.memory, blocking, CL_MAP_READ | CL_MAP_WRITE, origin,
                            region, &pitch, nullptr, 0, nullptr, line.Next("map"), &status);
      ASSERT_EQ(status, CL_SUCCESS);
      EXPECT_EQ(
          clEnqueueUnmapMemObject(queue(), image.memory, pointer, 0, nullptr, line.Next("unmap")),
          CL_SUCCESS);
    }
    line.Check();
  }
}

class ProfilingOfQueuesTest : public WithQueue {};

// A marker of a queue that is out of order, for what has long ended elsewhere, has times like any.
TEST_F(ProfilingOfQueuesTest, WhatEndsAtOnceHasTimes) {
  if (!HasOutOfOrder()) GTEST_SKIP() << "no queues out of order";
  const Own<cl_command_queue> plain = Queue();
  const Own<cl_command_queue> out_of_order =
      Queue(CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const Own<cl_mem> buffer = Buffer(64);
  char host[64];
  Own<cl_event> read, before, marker, barrier;
  ASSERT_EQ(
      clEnqueueReadBuffer(plain, buffer, CL_TRUE, 0, sizeof(host), host, 0, nullptr, read.Out()),
      CL_SUCCESS);
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, before.Out()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, before.AsList()), CL_SUCCESS);
  ASSERT_EQ(clEnqueueMarkerWithWaitList(out_of_order, 1, read.AsList(), marker.Out()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, marker.AsList()), CL_SUCCESS);
  ASSERT_EQ(clEnqueueBarrierWithWaitList(out_of_order, 1, read.AsList(), barrier.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, barrier.AsList()), CL_SUCCESS);
  const Times first = TimesOf(marker);
  if (Differs("clEnqueueMarkerWithWaitList.ended_list_times")) return;
  EXPECT_GE(first.start, TimesOf(before).end);
  const Times last = TimesOf(barrier);
  if (Differs("clEnqueueBarrierWithWaitList.times")) return;
  EXPECT_GE(last.start, first.end);
}

// Where there is a timer to be asked (section 4.2), it is the counter of the events.
TEST_F(ProfilingOfQueuesTest, TheDevicesTimerIsTheirClock) {
  cl_ulong device_time = 0, host_time = 0;
  if (clGetDeviceAndHostTimer(device(), &device_time, &host_time) == CL_INVALID_OPERATION)
    GTEST_SKIP() << "the device has no timer to be asked for";
  Own<cl_event> before, after;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, before.Out()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, before.AsList()), CL_SUCCESS);
  EXPECT_CL("clGetDeviceAndHostTimer.between_events", CL_SUCCESS,
            clGetDeviceAndHostTimer(device(), &device_time, &host_time));
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, after.Out()), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, after.AsList()), CL_SUCCESS);
  EXPECT_GE(device_time, TimesOf(before).end);
  EXPECT_LE(device_time, TimesOf(after).end);
}

}  // namespace
}  // namespace sluice::conformance
