// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using QueueTest = WithContext;

cl_uint ReferencesOf(cl_command_queue queue) {
  cl_uint count = 0;
  EXPECT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(count), &count, nullptr),
            CL_SUCCESS);
  return count;
}

// A device that can make queues on the device says how large they may be.
bool HasDeviceQueues(cl_device_id device) {
  return DeviceValue<cl_uint>(device, CL_DEVICE_MAX_ON_DEVICE_QUEUES) > 0;
}

// Queues with every property that the device has can be made, the old way and the new.
TEST_F(QueueTest, IsCreated) {
  MAKE("clCreateCommandQueue.in_order", clCreateCommandQueue(context(), device(), 0, error));
  MAKE("clCreateCommandQueue.profiling",
       clCreateCommandQueue(context(), device(), CL_QUEUE_PROFILING_ENABLE, error));
  MAKE("clCreateCommandQueueWithProperties.no_properties",
       clCreateCommandQueueWithProperties(context(), device(), nullptr, error));
  const cl_queue_properties empty[] = {0};
  MAKE("clCreateCommandQueueWithProperties.empty_properties",
       clCreateCommandQueueWithProperties(context(), device(), empty, error));
  const cl_queue_properties profiling[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  MAKE("clCreateCommandQueueWithProperties.profiling",
       clCreateCommandQueueWithProperties(context(), device(), profiling, error));
  if (!HasOutOfOrder()) GTEST_SKIP() << "the device has no out-of-order queues";
  MAKE("clCreateCommandQueue.out_of_order",
       clCreateCommandQueue(context(), device(), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, error));
  const cl_queue_properties both[] = {
      CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE, 0};
  MAKE("clCreateCommandQueueWithProperties.out_of_order",
       clCreateCommandQueueWithProperties(context(), device(), both, error));
}

// Each wrong argument of the two create functions has its code.
TEST_F(QueueTest, CreateRefusals) {
  EXPECT_CREATE("clCreateCommandQueue.null_context", CL_INVALID_CONTEXT,
                clCreateCommandQueue(nullptr, device(), 0, error));
  EXPECT_CREATE("clCreateCommandQueueWithProperties.null_context", CL_INVALID_CONTEXT,
                clCreateCommandQueueWithProperties(nullptr, device(), nullptr, error));
  EXPECT_CREATE("clCreateCommandQueue.null_device", CL_INVALID_DEVICE,
                clCreateCommandQueue(context(), nullptr, 0, error));
  EXPECT_CREATE("clCreateCommandQueueWithProperties.null_device", CL_INVALID_DEVICE,
                clCreateCommandQueueWithProperties(context(), nullptr, nullptr, error));
  EXPECT_CREATE(
      "clCreateCommandQueue.unknown_bits", CL_INVALID_VALUE,
      clCreateCommandQueue(context(), device(), cl_command_queue_properties{1} << 40, error));
  const cl_queue_properties unknown_name[] = {0x7ffe, 1, 0};
  EXPECT_CREATE("clCreateCommandQueueWithProperties.unknown_property", CL_INVALID_VALUE,
                clCreateCommandQueueWithProperties(context(), device(), unknown_name, error));
  const cl_queue_properties unknown_bits[] = {CL_QUEUE_PROPERTIES, cl_queue_properties{1} << 40, 0};
  EXPECT_CREATE("clCreateCommandQueueWithProperties.unknown_bits", CL_INVALID_VALUE,
                clCreateCommandQueueWithProperties(context(), device(), unknown_bits, error));
  // A size is for device queues alone, and those are out of order.
  const cl_queue_properties sized_host[] = {CL_QUEUE_SIZE, 1024, 0};
  EXPECT_CREATE("clCreateCommandQueueWithProperties.size_of_host_queue", CL_INVALID_VALUE,
                clCreateCommandQueueWithProperties(context(), device(), sized_host, error));
  const cl_queue_properties in_order_device[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE, 0};
  EXPECT_CREATE("clCreateCommandQueueWithProperties.device_queue_in_order",
                (AnyOf{CL_INVALID_VALUE, CL_INVALID_QUEUE_PROPERTIES}),
                clCreateCommandQueueWithProperties(context(), device(), in_order_device, error));
  if (!HasDeviceQueues(device())) {
    const cl_queue_properties on_device[] = {
        CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    EXPECT_CREATE("clCreateCommandQueueWithProperties.device_queue_unsupported",
                  CL_INVALID_QUEUE_PROPERTIES,
                  clCreateCommandQueueWithProperties(context(), device(), on_device, error));
  }
}

// A queue answers queries of its properties.
TEST_F(QueueTest, InfoTellsWhatItWasMadeOf) {
  const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  const Own<cl_command_queue> queue =
      MAKE("clCreateCommandQueueWithProperties.for_info",
           clCreateCommandQueueWithProperties(context(), device(), list, error));
  cl_context seen_context = nullptr;
  size_t bytes = 0;
  EXPECT_CL(
      "clGetCommandQueueInfo.context", CL_SUCCESS,
      clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(seen_context), &seen_context, &bytes));
  EXPECT_EQ(seen_context, context());
  EXPECT_EQ(bytes, sizeof(cl_context));
  cl_device_id seen_device = nullptr;
  EXPECT_CL(
      "clGetCommandQueueInfo.device", CL_SUCCESS,
      clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(seen_device), &seen_device, nullptr));
  EXPECT_EQ(seen_device, device());
  cl_command_queue_properties properties = 0;
  EXPECT_CL(
      "clGetCommandQueueInfo.properties", CL_SUCCESS,
      clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties, nullptr));
  EXPECT_EQ(properties, static_cast<cl_command_queue_properties>(CL_QUEUE_PROFILING_ENABLE));
  cl_queue_properties back[8] = {};
  EXPECT_CL("clGetCommandQueueInfo.properties_array", CL_SUCCESS,
            clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, sizeof(back), back, &bytes));
  ASSERT_EQ(bytes, sizeof(list));
  EXPECT_TRUE(std::equal(std::begin(list), std::end(list), back));

  const Own<cl_command_queue> old =
      MAKE("clCreateCommandQueue.for_info", clCreateCommandQueue(context(), device(), 0, error));
  EXPECT_CL("clGetCommandQueueInfo.no_properties_array", CL_SUCCESS,
            clGetCommandQueueInfo(old, CL_QUEUE_PROPERTIES_ARRAY, sizeof(back), back, &bytes));
  EXPECT_EQ(bytes, 0u) << "clCreateCommandQueue takes no property list";
}

// Wrong queries of a queue are refused; the size is for device queues only.
TEST_F(QueueTest, InfoRefusals) {
  const Own<cl_command_queue> queue = Queue();
  char value[8];
  cl_uint size = 0;
  EXPECT_CL("clGetCommandQueueInfo.unknown", CL_INVALID_VALUE,
            clGetCommandQueueInfo(queue, 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetCommandQueueInfo.too_small", CL_INVALID_VALUE,
            clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, 1, value, nullptr));
  EXPECT_CL("clGetCommandQueueInfo.null_queue", CL_INVALID_COMMAND_QUEUE,
            clGetCommandQueueInfo(nullptr, CL_QUEUE_CONTEXT, sizeof(value), value, nullptr));
  EXPECT_CL("clGetCommandQueueInfo.size_of_host_queue", CL_INVALID_COMMAND_QUEUE,
            clGetCommandQueueInfo(queue, CL_QUEUE_SIZE, sizeof(size), &size, nullptr));
}

// A device without a default queue says so with a null handle.
TEST_F(QueueTest, DefaultDeviceQueueIsNull) {
  const Own<cl_command_queue> queue = Queue();
  cl_command_queue seen = queue.get();
  EXPECT_CL("clGetCommandQueueInfo.device_default", CL_SUCCESS,
            clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE_DEFAULT, sizeof(seen), &seen, nullptr));
  if (!Differs("clGetCommandQueueInfo.device_default_value")) {
    EXPECT_EQ(seen, nullptr);
  }
}

// A default device queue can be set where the device has such queues, and is refused where it has
// not.
TEST_F(QueueTest, SetsDefaultDeviceQueue) {
  const Own<cl_command_queue> host_queue = Queue();
  EXPECT_CL("clSetDefaultDeviceCommandQueue.null_context", CL_INVALID_CONTEXT,
            clSetDefaultDeviceCommandQueue(nullptr, device(), host_queue));
  EXPECT_CL("clSetDefaultDeviceCommandQueue.null_device", CL_INVALID_DEVICE,
            clSetDefaultDeviceCommandQueue(context(), nullptr, host_queue));
  EXPECT_CL("clSetDefaultDeviceCommandQueue.null_queue",
            (AnyOf{CL_INVALID_COMMAND_QUEUE, CL_INVALID_OPERATION}),
            clSetDefaultDeviceCommandQueue(context(), device(), nullptr));
  if (!HasDeviceQueues(device())) {
    EXPECT_CL("clSetDefaultDeviceCommandQueue.unsupported", CL_INVALID_OPERATION,
              clSetDefaultDeviceCommandQueue(context(), device(), host_queue));
    GTEST_SKIP() << "the device has no device queues";
  }
  EXPECT_CL("clSetDefaultDeviceCommandQueue.host_queue", CL_INVALID_COMMAND_QUEUE,
            clSetDefaultDeviceCommandQueue(context(), device(), host_queue));
  const cl_queue_properties list[] = {
      CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
  const Own<cl_command_queue> on_device =
      MAKE("clCreateCommandQueueWithProperties.device_queue",
           clCreateCommandQueueWithProperties(context(), device(), list, error));
  EXPECT_CL("clSetDefaultDeviceCommandQueue.plain", CL_SUCCESS,
            clSetDefaultDeviceCommandQueue(context(), device(), on_device));
}

// A queue on the device is of the size and kind that it was asked for with, one of them is the
// device's default, and the host enqueues nothing to any.
TEST_F(QueueTest, DeviceQueues) {
  if (!HasDeviceQueues(device())) GTEST_SKIP() << "the device has no device queues";
  const auto largest = DeviceValue<cl_uint>(device(), CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE);
  const cl_queue_properties kind = CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  const auto make = [&](cl_queue_properties flags, cl_uint bytes, cl_int* error) {
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, flags, CL_QUEUE_SIZE, bytes, 0};
    return clCreateCommandQueueWithProperties(context(), device(), list, error);
  };
  const Own<cl_command_queue> queue =
      MAKE("clCreateCommandQueueWithProperties.device_queue_sized", make(kind, largest, error));
  cl_uint size = 0;
  EXPECT_CL("clGetCommandQueueInfo.size", CL_SUCCESS,
            clGetCommandQueueInfo(queue, CL_QUEUE_SIZE, sizeof(size), &size, nullptr));
  EXPECT_EQ(size, largest);
  cl_command_queue_properties flags = 0;
  EXPECT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(flags), &flags, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(flags, kind);
  EXPECT_CREATE("clCreateCommandQueueWithProperties.device_queue_too_large",
                CL_INVALID_QUEUE_PROPERTIES, make(kind, largest + 1, error));
  const Own<cl_command_queue> by_default =
      MAKE("clCreateCommandQueueWithProperties.default",
           make(kind | CL_QUEUE_ON_DEVICE_DEFAULT, largest, error));
  cl_command_queue seen = nullptr;
  EXPECT_CL("clGetCommandQueueInfo.default_of_device", CL_SUCCESS,
            clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE_DEFAULT, sizeof(seen), &seen, nullptr));
  EXPECT_EQ(seen, by_default.get());
  EXPECT_EQ(clSetDefaultDeviceCommandQueue(context(), device(), queue), CL_SUCCESS);
  EXPECT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE_DEFAULT, sizeof(seen), &seen, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(seen, queue.get());
  if (!TheHarness().IsSluice()) return;  // A native driver may take it for a host queue.
  EXPECT_CL("clEnqueueMarkerWithWaitList.device_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueMarkerWithWaitList(queue, 0, nullptr, nullptr));
  EXPECT_CL("clFinish.device_queue", CL_INVALID_COMMAND_QUEUE, clFinish(queue));
}

// The 1.0 property setter is refused by devices that are newer than 1.0.
TEST_F(QueueTest, PropertySetterIsGone) {
  const Own<cl_command_queue> queue = Queue();
  // OpenCL 1.1 and later: "CL_INVALID_OPERATION if no devices in the context associated with
  // command_queue support modifying the properties of a command-queue".
  EXPECT_CL("clSetCommandQueueProperty.gone", CL_INVALID_OPERATION,
            clSetCommandQueueProperty(queue, CL_QUEUE_PROFILING_ENABLE, CL_TRUE, nullptr));
  EXPECT_CL("clSetCommandQueueProperty.null_queue", CL_INVALID_COMMAND_QUEUE,
            clSetCommandQueueProperty(nullptr, CL_QUEUE_PROFILING_ENABLE, CL_TRUE, nullptr));
}

// Retain and release count.
TEST_F(QueueTest, IsCounted) {
  const Own<cl_command_queue> queue = Queue();
  EXPECT_EQ(ReferencesOf(queue), 1u);
  EXPECT_CL("clRetainCommandQueue.plain", CL_SUCCESS, clRetainCommandQueue(queue));
  EXPECT_EQ(ReferencesOf(queue), 2u);
  EXPECT_CL("clReleaseCommandQueue.plain", CL_SUCCESS, clReleaseCommandQueue(queue));
  EXPECT_EQ(ReferencesOf(queue), 1u);
  EXPECT_CL("clRetainCommandQueue.null", CL_INVALID_COMMAND_QUEUE, clRetainCommandQueue(nullptr));
  EXPECT_CL("clReleaseCommandQueue.null", CL_INVALID_COMMAND_QUEUE, clReleaseCommandQueue(nullptr));
}

// Flush and finish of an empty queue succeed; of no queue they are refused.
TEST_F(QueueTest, FlushAndFinish) {
  const Own<cl_command_queue> queue = Queue();
  EXPECT_CL("clFlush.empty", CL_SUCCESS, clFlush(queue));
  EXPECT_CL("clFinish.empty", CL_SUCCESS, clFinish(queue));
  EXPECT_CL("clFlush.null", CL_INVALID_COMMAND_QUEUE, clFlush(nullptr));
  EXPECT_CL("clFinish.null", CL_INVALID_COMMAND_QUEUE, clFinish(nullptr));
}

// Releasing a queue with work in it lets the work end.
TEST_F(QueueTest, WorkOutlivesTheQueue) {
  std::vector<cl_int> sent = Counting(4096);
  std::vector<cl_int> back(sent.size());
  const Own<cl_mem> buffer = Buffer(sent.size() * sizeof(cl_int));
  Own<cl_event> done;
  {
    const Own<cl_command_queue> queue = Queue();
    ASSERT_EQ(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sent.size() * sizeof(cl_int),
                                   sent.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, back.size() * sizeof(cl_int),
                                  back.data(), 0, nullptr, done.Out()),
              CL_SUCCESS);
    // "clReleaseCommandQueue performs an implicit flush".
  }
  ASSERT_CL("clWaitForEvents.after_queue_release", CL_SUCCESS, clWaitForEvents(1, done.AsList()));
  EXPECT_EQ(back, sent);
}

// A device of another context's device list is no device of this one: a sub-device is not in its
// parent's context.
TEST_F(QueueTest, DeviceOutsideTheContextIsRefused) {
  const cl_uint units = DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_COMPUTE_UNITS);
  const cl_device_partition_property by_counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1,
                                                    CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
  Own<cl_device_id> part;
  if (units < 2 || clCreateSubDevices(device(), by_counts, 1, part.Out(), nullptr) != CL_SUCCESS) {
    GTEST_SKIP() << "the device cannot be partitioned by counts";
  }
  EXPECT_CREATE("clCreateCommandQueue.foreign_device", CL_INVALID_DEVICE,
                clCreateCommandQueue(context(), part, 0, error));
  EXPECT_CREATE("clCreateCommandQueueWithProperties.foreign_device", CL_INVALID_DEVICE,
                clCreateCommandQueueWithProperties(context(), part, nullptr, error));
}

}  // namespace
}  // namespace sluice::conformance
