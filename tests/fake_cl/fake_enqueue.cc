// SPDX-License-Identifier: Apache-2.0
// Commands: checked when enqueued, done on plain memory when they may run.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/fake_cl/fake_objects.h"

namespace sluice::fake {
namespace {

// Keeps the objects of a command until it has ended.
struct Keep {
  explicit Keep(cl_mem a, cl_mem b = nullptr) : first(a), second(b) {
    const std::lock_guard lock(g_runtime->mu);
    Ref(first);
    Ref(second);
  }
  ~Keep() {
    {
      const std::lock_guard lock(g_runtime->mu);
      Drop(first);
      Drop(second);
    }
    g_runtime->changed.notify_all();
  }
  cl_mem const first;
  cl_mem const second;
};
std::shared_ptr<Keep> KeepAlive(cl_mem a, cl_mem b = nullptr) {
  return std::make_shared<Keep>(a, b);
}

// A box in memory with pitches.
struct Box {
  uint8_t* data = nullptr;
  size_t row_pitch = 0;
  size_t slice_pitch = 0;
};

void CopyBox(const Box& to, const Box& from, size_t row_bytes, size_t rows, size_t slices) {
  for (size_t z = 0; z < slices; ++z) {
    for (size_t y = 0; y < rows; ++y) {
      std::memcpy(to.data + z * to.slice_pitch + y * to.row_pitch,
                  from.data + z * from.slice_pitch + y * from.row_pitch, row_bytes);
    }
  }
}

// The box of a buffer that a rect names; false if any of it lies outside.
bool BufferBox(cl_mem memory, const size_t* origin, const size_t* region, size_t row_pitch,
               size_t slice_pitch, Box* out) {
  if (region[0] == 0 || region[1] == 0 || region[2] == 0) return false;
  if (row_pitch == 0) row_pitch = region[0];
  if (slice_pitch == 0) slice_pitch = row_pitch * region[1];
  if (row_pitch < region[0] || slice_pitch < row_pitch || slice_pitch % row_pitch != 0)
    return false;
  const auto wide = [](size_t a) { return static_cast<unsigned __int128>(a); };
  const unsigned __int128 first =
      wide(origin[2]) * slice_pitch + wide(origin[1]) * row_pitch + origin[0];
  const unsigned __int128 end =
      first + wide(region[2] - 1) * slice_pitch + wide(region[1] - 1) * row_pitch + region[0];
  if (end > memory->size) return false;
  *out = {memory->data + static_cast<size_t>(first), row_pitch, slice_pitch};
  return true;
}

bool ImageBox(cl_mem image, const size_t* origin, const size_t* region, Box* out) {
  if (image->element == 0) return false;
  for (int i = 0; i < 3; ++i) {
    if (region[i] == 0 || !Fits(origin[i], region[i], image->extent[i])) return false;
  }
  const size_t row_pitch = image->row_pitch;
  const size_t slice_pitch = row_pitch * image->extent[1];
  *out = {
      image->data + origin[2] * slice_pitch + origin[1] * row_pitch + origin[0] * image->element,
      row_pitch, slice_pitch};
  return true;
}

// The place of the host's side of an image transfer; section 5.3.3 gives the pitches their meaning.
Box HostBox(cl_mem image, void* host, const size_t* region, size_t row_pitch, size_t slice_pitch) {
  if (row_pitch == 0) row_pitch = region[0] * image->element;
  if (image->type == CL_MEM_OBJECT_IMAGE1D_ARRAY) {
    if (slice_pitch == 0) slice_pitch = row_pitch;
    return {static_cast<uint8_t*>(host), slice_pitch, slice_pitch};  // Rows are the layers.
  }
  if (slice_pitch == 0) slice_pitch = row_pitch * region[1];
  return {static_cast<uint8_t*>(host), row_pitch, slice_pitch};
}

void NoteBox(const size_t* origin, const size_t* region) {
  Note("origin", origin, 3);
  Note("region", region, 3);
}

cl_int TransferRect(cl_command_queue queue, cl_mem memory, bool write, const size_t* origin,
                    const size_t* host_origin, const size_t* region, const size_t (&pitches)[4],
                    void* host, cl_uint waits, const cl_event* list, cl_event* event) {
  NoteBox(origin, region);
  Note("host_origin", host_origin, 3);
  Note("pitches", pitches, 4);
  Box buffer;
  if (!BufferBox(memory, origin, region, pitches[0], pitches[1], &buffer)) return CL_INVALID_VALUE;
  const Box outside = {static_cast<uint8_t*>(host), pitches[2], pitches[3]};
  const size_t row = region[0], rows = region[1], slices = region[2];
  return Submit(queue, write ? CL_COMMAND_WRITE_BUFFER_RECT : CL_COMMAND_READ_BUFFER_RECT, waits,
                list, event, [=, keep = KeepAlive(memory)] {
                  write ? CopyBox(buffer, outside, row, rows, slices)
                        : CopyBox(outside, buffer, row, rows, slices);
                  return CL_COMPLETE;
                });
}

cl_int TransferImage(cl_command_queue queue, cl_mem image, bool write, const size_t* origin,
                     const size_t* region, size_t row_pitch, size_t slice_pitch, void* host,
                     cl_uint waits, const cl_event* list, cl_event* event) {
  NoteBox(origin, region);
  Box inside;
  if (!ImageBox(image, origin, region, &inside)) return CL_INVALID_VALUE;
  const Box outside = HostBox(image, host, region, row_pitch, slice_pitch);
  const size_t row = region[0] * image->element, rows = region[1], slices = region[2];
  return Submit(queue, write ? CL_COMMAND_WRITE_IMAGE : CL_COMMAND_READ_IMAGE, waits, list, event,
                [=, keep = KeepAlive(image)] {
                  write ? CopyBox(inside, outside, row, rows, slices)
                        : CopyBox(outside, inside, row, rows, slices);
                  return CL_COMPLETE;
                });
}

}  // namespace

cl_int CL_API_CALL fake_clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                            size_t offset, size_t size, void* host, cl_uint waits,
                                            const cl_event* list, cl_event* event) {
  if (memory->type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
  if (size == 0 || !Fits(offset, size, memory->size)) return CL_INVALID_VALUE;
  const cl_int status =
      Submit(queue, CL_COMMAND_READ_BUFFER, waits, list, event, [=, keep = KeepAlive(memory)] {
        std::memcpy(host, memory->data + offset, size);
        return CL_COMPLETE;
      });
  return status == CL_SUCCESS && blocking ? fake_clFinish(queue) : status;
}

cl_int CL_API_CALL fake_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool,
                                             size_t offset, size_t size, const void* host,
                                             cl_uint waits, const cl_event* list, cl_event* event) {
  if (memory->type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
  if (size == 0 || !Fits(offset, size, memory->size)) return CL_INVALID_VALUE;
  if ((memory->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)) != 0)
    return CL_INVALID_OPERATION;
  NoteBytes(host, size < 1024 ? size : 1024);
  return Submit(queue, CL_COMMAND_WRITE_BUFFER, waits, list, event, [=, keep = KeepAlive(memory)] {
    std::memcpy(memory->data + offset, host, size);
    return CL_COMPLETE;
  });
}

cl_int CL_API_CALL fake_clEnqueueReadBufferRect(cl_command_queue queue, cl_mem memory, cl_bool,
                                                const size_t* origin, const size_t* host_origin,
                                                const size_t* region, size_t row_pitch,
                                                size_t slice_pitch, size_t host_row_pitch,
                                                size_t host_slice_pitch, void* host, cl_uint waits,
                                                const cl_event* list, cl_event* event) {
  return TransferRect(queue, memory, false, origin, host_origin, region,
                      {row_pitch, slice_pitch, host_row_pitch, host_slice_pitch}, host, waits, list,
                      event);
}

cl_int CL_API_CALL fake_clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem memory, cl_bool,
                                                 const size_t* origin, const size_t* host_origin,
                                                 const size_t* region, size_t row_pitch,
                                                 size_t slice_pitch, size_t host_row_pitch,
                                                 size_t host_slice_pitch, const void* host,
                                                 cl_uint waits, const cl_event* list,
                                                 cl_event* event) {
  return TransferRect(queue, memory, true, origin, host_origin, region,
                      {row_pitch, slice_pitch, host_row_pitch, host_slice_pitch},
                      const_cast<void*>(host), waits, list, event);
}

cl_int CL_API_CALL fake_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                            size_t from_offset, size_t to_offset, size_t size,
                                            cl_uint waits, const cl_event* list, cl_event* event) {
  if (size == 0 || !Fits(from_offset, size, from->size) || !Fits(to_offset, size, to->size)) {
    return CL_INVALID_VALUE;
  }
  if (from->data == nullptr || to->data == nullptr) return CL_INVALID_MEM_OBJECT;
  return Submit(queue, CL_COMMAND_COPY_BUFFER, waits, list, event, [=, keep = KeepAlive(from, to)] {
    std::memmove(to->data + to_offset, from->data + from_offset, size);
    return CL_COMPLETE;
  });
}

cl_int CL_API_CALL fake_clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem from, cl_mem to,
                                                const size_t* from_origin, const size_t* to_origin,
                                                const size_t* region, size_t from_row,
                                                size_t from_slice, size_t to_row, size_t to_slice,
                                                cl_uint waits, const cl_event* list,
                                                cl_event* event) {
  Note("from_origin", from_origin, 3);
  Note("to_origin", to_origin, 3);
  Note("region", region, 3);
  const size_t pitches[] = {from_row, from_slice, to_row, to_slice};
  Note("pitches", pitches, 4);
  Box source;
  Box target;
  if (from == to) return CL_MEM_COPY_OVERLAP;
  if (!BufferBox(from, from_origin, region, from_row, from_slice, &source) ||
      !BufferBox(to, to_origin, region, to_row, to_slice, &target)) {
    return CL_INVALID_VALUE;
  }
  const size_t row = region[0], rows = region[1], slices = region[2];
  return Submit(queue, CL_COMMAND_COPY_BUFFER_RECT, waits, list, event,
                [=, keep = KeepAlive(from, to)] {
                  CopyBox(target, source, row, rows, slices);
                  return CL_COMPLETE;
                });
}

cl_int CL_API_CALL fake_clEnqueueFillBuffer(cl_command_queue queue, cl_mem memory,
                                            const void* pattern, size_t pattern_size, size_t offset,
                                            size_t size, cl_uint waits, const cl_event* list,
                                            cl_event* event) {
  NoteBytes(pattern, pattern_size);
  if (pattern_size == 0 || pattern_size > 128 || size % pattern_size != 0 ||
      memory->data == nullptr || !Fits(offset, size, memory->size)) {
    return CL_INVALID_VALUE;
  }
  const std::string copy(static_cast<const char*>(pattern), pattern_size);
  return Submit(queue, CL_COMMAND_FILL_BUFFER, waits, list, event, [=, keep = KeepAlive(memory)] {
    for (size_t at = 0; at < size; at += copy.size()) {
      std::memcpy(memory->data + offset + at, copy.data(), copy.size());
    }
    return CL_COMPLETE;
  });
}

void* CL_API_CALL fake_clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory, cl_bool,
                                          cl_map_flags, size_t offset, size_t size, cl_uint waits,
                                          const cl_event* list, cl_event* event, cl_int* status) {
  *status = CL_INVALID_VALUE;
  if (size == 0 || memory->data == nullptr || !Fits(offset, size, memory->size)) return nullptr;
  *status = Submit(queue, CL_COMMAND_MAP_BUFFER, waits, list, event,
                   [keep = KeepAlive(memory)] { return CL_COMPLETE; });
  return *status == CL_SUCCESS ? memory->data + offset : nullptr;
}

void* CL_API_CALL fake_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                         cl_map_flags, const size_t* origin, const size_t* region,
                                         size_t* row_pitch, size_t* slice_pitch, cl_uint waits,
                                         const cl_event* list, cl_event* event, cl_int* status) {
  NoteBox(origin, region);
  Box box;
  *status = CL_INVALID_VALUE;
  if (!ImageBox(image, origin, region, &box)) return nullptr;
  *row_pitch = box.row_pitch;
  *slice_pitch = box.slice_pitch;
  *status = Submit(queue, CL_COMMAND_MAP_IMAGE, waits, list, event,
                   [keep = KeepAlive(image)] { return CL_COMPLETE; });
  if (*status == CL_SUCCESS && blocking) *status = fake_clFinish(queue);
  return *status == CL_SUCCESS ? box.data : nullptr;
}

cl_int CL_API_CALL fake_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void*,
                                                cl_uint waits, const cl_event* list,
                                                cl_event* event) {
  return Submit(queue, CL_COMMAND_UNMAP_MEM_OBJECT, waits, list, event,
                [keep = KeepAlive(memory)] { return CL_COMPLETE; });
}

cl_int CL_API_CALL fake_clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count,
                                                   const cl_mem* objects, cl_mem_migration_flags,
                                                   cl_uint waits, const cl_event* list,
                                                   cl_event* event) {
  if (count == 0) return CL_INVALID_VALUE;
  Note("objects", reinterpret_cast<const size_t*>(objects), count);
  // As NVIDIA's driver: the caller's list is read when the command runs.
  const std::vector<cl_mem> named(objects, objects + count);
  return Submit(queue, CL_COMMAND_MIGRATE_MEM_OBJECTS, waits, list, event, [=] {
    return std::equal(named.begin(), named.end(), objects) ? CL_COMPLETE : CL_INVALID_MEM_OBJECT;
  });
}

cl_int CL_API_CALL fake_clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                           const size_t* origin, const size_t* region,
                                           size_t row_pitch, size_t slice_pitch, void* host,
                                           cl_uint waits, const cl_event* list, cl_event* event) {
  const cl_int status = TransferImage(queue, image, false, origin, region, row_pitch, slice_pitch,
                                      host, waits, list, event);
  return status == CL_SUCCESS && blocking ? fake_clFinish(queue) : status;
}

cl_int CL_API_CALL fake_clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                            const size_t* origin, const size_t* region,
                                            size_t row_pitch, size_t slice_pitch, const void* host,
                                            cl_uint waits, const cl_event* list, cl_event* event) {
  const cl_int status = TransferImage(queue, image, true, origin, region, row_pitch, slice_pitch,
                                      const_cast<void*>(host), waits, list, event);
  return status == CL_SUCCESS && blocking ? fake_clFinish(queue) : status;
}

cl_int CL_API_CALL fake_clEnqueueCopyImage(cl_command_queue queue, cl_mem from, cl_mem to,
                                           const size_t* from_origin, const size_t* to_origin,
                                           const size_t* region, cl_uint waits,
                                           const cl_event* list, cl_event* event) {
  Note("from_origin", from_origin, 3);
  Note("to_origin", to_origin, 3);
  Note("region", region, 3);
  Box source;
  Box target;
  if (from == to) return CL_MEM_COPY_OVERLAP;
  if (from->element != to->element || !ImageBox(from, from_origin, region, &source) ||
      !ImageBox(to, to_origin, region, &target)) {
    return CL_INVALID_VALUE;
  }
  const size_t row = region[0] * from->element, rows = region[1], slices = region[2];
  return Submit(queue, CL_COMMAND_COPY_IMAGE, waits, list, event, [=, keep = KeepAlive(from, to)] {
    CopyBox(target, source, row, rows, slices);
    return CL_COMPLETE;
  });
}

cl_int CL_API_CALL fake_clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image,
                                                   cl_mem buffer, const size_t* origin,
                                                   const size_t* region, size_t offset,
                                                   cl_uint waits, const cl_event* list,
                                                   cl_event* event) {
  NoteBox(origin, region);
  Box inside;
  if (buffer->type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
  if (!ImageBox(image, origin, region, &inside)) return CL_INVALID_VALUE;
  const size_t row = region[0] * image->element, rows = region[1], slices = region[2];
  if (!Fits(offset, row * rows * slices, buffer->size)) return CL_INVALID_VALUE;
  return Submit(queue, CL_COMMAND_COPY_IMAGE_TO_BUFFER, waits, list, event,
                [=, keep = KeepAlive(image, buffer)] {
                  CopyBox({buffer->data + offset, row, row * rows}, inside, row, rows, slices);
                  return CL_COMPLETE;
                });
}

cl_int CL_API_CALL fake_clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer,
                                                   cl_mem image, size_t offset,
                                                   const size_t* origin, const size_t* region,
                                                   cl_uint waits, const cl_event* list,
                                                   cl_event* event) {
  NoteBox(origin, region);
  Box inside;
  if (buffer->type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
  if (!ImageBox(image, origin, region, &inside)) return CL_INVALID_VALUE;
  const size_t row = region[0] * image->element, rows = region[1], slices = region[2];
  if (!Fits(offset, row * rows * slices, buffer->size)) return CL_INVALID_VALUE;
  return Submit(queue, CL_COMMAND_COPY_BUFFER_TO_IMAGE, waits, list, event,
                [=, keep = KeepAlive(image, buffer)] {
                  CopyBox(inside, {buffer->data + offset, row, row * rows}, row, rows, slices);
                  return CL_COMPLETE;
                });
}

cl_int CL_API_CALL fake_clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void* color,
                                           const size_t* origin, const size_t* region,
                                           cl_uint waits, const cl_event* list, cl_event* event) {
  NoteBox(origin, region);
  NoteBytes(color, 16);
  Box inside;
  if (!ImageBox(image, origin, region, &inside)) return CL_INVALID_VALUE;
  const std::string copy(static_cast<const char*>(color), 16);
  const size_t element = image->element, width = region[0], rows = region[1], slices = region[2];
  return Submit(queue, CL_COMMAND_FILL_IMAGE, waits, list, event, [=, keep = KeepAlive(image)] {
    for (size_t z = 0; z < slices; ++z) {
      for (size_t y = 0; y < rows; ++y) {
        uint8_t* const row = inside.data + z * inside.slice_pitch + y * inside.row_pitch;
        for (size_t x = 0; x < width; ++x) std::memcpy(row + x * element, copy.data(), element);
      }
    }
    return CL_COMPLETE;
  });
}

cl_int CL_API_CALL fake_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                               cl_uint dims, const size_t* offset,
                                               const size_t* global, const size_t* local,
                                               cl_uint waits, const cl_event* list,
                                               cl_event* event) {
  Note("offset", offset, dims);
  Note("global", global, dims);
  Note("local", local, dims);
  return Submit(queue, CL_COMMAND_NDRANGE_KERNEL, waits, list, event, [name = kernel->name] {
    std::function<void(const std::string&)> on_kernel;
    {
      const std::lock_guard lock(g_runtime->mu);
      on_kernel = g_runtime->on_kernel;
    }
    if (on_kernel) on_kernel(name);
    return CL_COMPLETE;
  });
}

cl_int CL_API_CALL fake_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits,
                                                    const cl_event* list, cl_event* event) {
  return Submit(queue, CL_COMMAND_MARKER, waits, list, event, nullptr, /*waits_for_all=*/true);
}

cl_int CL_API_CALL fake_clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint waits,
                                                     const cl_event* list, cl_event* event) {
  return Submit(queue, CL_COMMAND_BARRIER, waits, list, event, nullptr, /*waits_for_all=*/true,
                /*is_barrier=*/true);
}

cl_int CL_API_CALL fake_clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool, void* to,
                                           const void* from, size_t size, cl_uint waits,
                                           const cl_event* list, cl_event* event) {
  return Submit(queue, CL_COMMAND_SVM_MEMCPY, waits, list, event, [=] {
    std::memmove(to, from, size);
    return CL_COMPLETE;
  });
}

cl_int CL_API_CALL fake_clEnqueueSVMMemFill(cl_command_queue queue, void* to, const void* pattern,
                                            size_t pattern_size, size_t size, cl_uint waits,
                                            const cl_event* list, cl_event* event) {
  NoteBytes(pattern, pattern_size);
  if (pattern_size == 0 || size % pattern_size != 0) return CL_INVALID_VALUE;
  const std::string copy(static_cast<const char*>(pattern), pattern_size);
  return Submit(queue, CL_COMMAND_SVM_MEMFILL, waits, list, event, [=] {
    for (size_t at = 0; at < size; at += copy.size()) {
      std::memcpy(static_cast<char*>(to) + at, copy.data(), copy.size());
    }
    return CL_COMPLETE;
  });
}

cl_int CL_API_CALL fake_clEnqueueSVMMap(cl_command_queue queue, cl_bool, cl_map_flags, void*,
                                        size_t, cl_uint waits, const cl_event* list,
                                        cl_event* event) {
  return Submit(queue, CL_COMMAND_SVM_MAP, waits, list, event, nullptr);
}

cl_int CL_API_CALL fake_clEnqueueSVMUnmap(cl_command_queue queue, void*, cl_uint waits,
                                          const cl_event* list, cl_event* event) {
  return Submit(queue, CL_COMMAND_SVM_UNMAP, waits, list, event, nullptr);
}

cl_int CL_API_CALL fake_clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count,
                                               const void** pointers, const size_t* sizes,
                                               cl_mem_migration_flags, cl_uint waits,
                                               const cl_event* list, cl_event* event) {
  if (count == 0 || pointers == nullptr) return CL_INVALID_VALUE;
  Note("sizes", sizes, count);
  return Submit(queue, CL_COMMAND_SVM_MIGRATE_MEM, waits, list, event, nullptr);
}

}  // namespace sluice::fake
