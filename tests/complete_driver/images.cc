// SPDX-License-Identifier: Apache-2.0
// 2D images made from buffers and from other 2D images, which are PoCL's images over the same
// memory. Those in sRGB, whose elements are to PoCL those of the linear format. Those in CL_RG, of
// which PoCL only refuses the creation.
#include <malloc.h>

#include <algorithm>
#include <iterator>

#include "tests/complete_driver/complete_driver.h"

namespace sluice::complete_driver {
namespace {

template <typename T>
T InfoOf(cl_mem memory, cl_mem_info param) {
  T value{};
  Pocl().clGetMemObjectInfo(memory, param, sizeof(value), &value, nullptr);
  return value;
}

template <typename T>
T ImageInfoOf(cl_mem image, cl_image_info param) {
  T value{};
  Pocl().clGetImageInfo(image, param, sizeof(value), &value, nullptr);
  return value;
}

cl_image_format Linear(cl_image_format format) {
  if (format.image_channel_order == CL_sRGBA) format.image_channel_order = CL_RGBA;
  if (format.image_channel_order == CL_sBGRA) format.image_channel_order = CL_BGRA;
  return format;
}

// The fields of PoCL's memory object that say what an image is, in their order: its format and,
// behind that where alignment puts them, its sizes. The format lies elsewhere in PoCL 6.0 than in
// 3.1.
struct FormatFields {
  cl_channel_order order;
  cl_channel_type type;
};
struct SizeFields {
  size_t width, height, depth, layers;
  size_t row_pitch, slice_pitch;
  size_t channel_bytes, channels;
};
// PoCL's own element of as many bytes.
struct PairFormat {
  cl_channel_type type;
  cl_image_format as;
  size_t as_channels;
  size_t as_channel_bytes;
};
constexpr cl_image_format kTwoBytes = {CL_R, CL_UNSIGNED_INT16};
constexpr cl_image_format kFourBytes = {CL_R, CL_UNSIGNED_INT32};
constexpr cl_image_format kEightBytes = {CL_RGBA, CL_UNSIGNED_INT16};
constexpr PairFormat kPairFormats[] = {
    {CL_UNORM_INT8, kTwoBytes, 1, 2},      {CL_SNORM_INT8, kTwoBytes, 1, 2},
    {CL_UNSIGNED_INT8, kTwoBytes, 1, 2},   {CL_SIGNED_INT8, kTwoBytes, 1, 2},
    {CL_UNORM_INT16, kFourBytes, 1, 4},    {CL_SNORM_INT16, kFourBytes, 1, 4},
    {CL_UNSIGNED_INT16, kFourBytes, 1, 4}, {CL_SIGNED_INT16, kFourBytes, 1, 4},
    {CL_HALF_FLOAT, kFourBytes, 1, 4},     {CL_UNSIGNED_INT32, kEightBytes, 4, 2},
    {CL_SIGNED_INT32, kEightBytes, 4, 2},  {CL_FLOAT, kEightBytes, 4, 2},
};

// Null if it is another format.
const PairFormat* FindPair(const cl_image_format& format) {
  if (format.image_channel_order != CL_RG) return nullptr;
  const auto* const found = std::find_if(
      std::begin(kPairFormats), std::end(kPairFormats),
      [&](const PairFormat& one) { return one.type == format.image_channel_data_type; });
  return found == std::end(kPairFormats) ? nullptr : found;
}

// PoCL reads, writes, copies and fills by these fields alone; kernels may read such an image, but
// what they write there is always four channels.
bool BecomePair(cl_mem image, const PairFormat& pair, size_t width) {
  auto* const bytes = reinterpret_cast<unsigned char*>(image);
  const size_t room = ::malloc_usable_size(image);
  for (size_t at = 0; at + 2 * sizeof(FormatFields) + sizeof(SizeFields) <= room;
       at += alignof(FormatFields)) {
    FormatFields format;
    SizeFields sizes;
    const size_t behind =
        (at + sizeof(format) + alignof(SizeFields) - 1) & ~(alignof(SizeFields) - 1);
    std::memcpy(&format, bytes + at, sizeof(format));
    std::memcpy(&sizes, bytes + behind, sizeof(sizes));
    if (format.order != pair.as.image_channel_order ||
        format.type != pair.as.image_channel_data_type || sizes.width != width ||
        sizes.channel_bytes != pair.as_channel_bytes || sizes.channels != pair.as_channels)
      continue;
    format = {CL_RG, pair.type};
    sizes.channel_bytes = pair.as_channels * pair.as_channel_bytes / 2;
    sizes.channels = 2;
    std::memcpy(bytes + at, &format, sizeof(format));
    std::memcpy(bytes + behind, &sizes, sizeof(sizes));
    return true;
  }
  return false;
}

cl_mem RefuseImage(cl_int code, cl_int* error) { return static_cast<cl_mem>(Refuse(code, error)); }

// Sections 5.3.1 and 5.3.1.2: the rules for the pitch and the address of a buffer's rows.
cl_int CheckRows(cl_mem buffer, const cl_image_desc& desc, size_t pitch, size_t element_bytes) {
  if (pitch % (kPitchPixels * element_bytes) != 0) return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  const auto address = reinterpret_cast<uintptr_t>(InfoOf<void*>(buffer, CL_MEM_HOST_PTR));
  if (address % (kAddressPixels * element_bytes) != 0) return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  return pitch * desc.image_height > InfoOf<size_t>(buffer, CL_MEM_SIZE)
             ? CL_INVALID_IMAGE_DESCRIPTOR
             : CL_SUCCESS;
}

// "The image elements and channel data types must be the same" but for the order, and that only
// between a linear and its sRGB one.
cl_int CheckImages(cl_mem parent, const cl_image_format& format, const cl_image_desc& desc) {
  const auto theirs = Linear(ImageInfoOf<cl_image_format>(parent, CL_IMAGE_FORMAT));
  const cl_image_format ours = Linear(format);
  const bool same_format = theirs.image_channel_order == ours.image_channel_order &&
                           theirs.image_channel_data_type == ours.image_channel_data_type;
  const bool same_size = ImageInfoOf<size_t>(parent, CL_IMAGE_WIDTH) == desc.image_width &&
                         ImageInfoOf<size_t>(parent, CL_IMAGE_HEIGHT) == desc.image_height;
  const auto type = InfoOf<cl_mem_object_type>(parent, CL_MEM_TYPE);
  return same_format && same_size && type == CL_MEM_OBJECT_IMAGE2D
             ? CL_SUCCESS
             : CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
}

// Over memory that the worker keeps for as long as the image.
cl_mem CreateOver(cl_context context, cl_mem_flags flags, const cl_image_format& format,
                  const cl_image_desc& desc, cl_int* error) {
  const cl_image_format linear = Linear(format);
  cl_image_desc own = desc;
  own.mem_object = nullptr;
  const bool from_buffer =
      InfoOf<cl_mem_object_type>(desc.mem_object, CL_MEM_TYPE) == CL_MEM_OBJECT_BUFFER;
  cl_int status = CL_SUCCESS;
  if (from_buffer) {
    // One byte per channel: RGBA in 8 bits is all that tests make so.
    const size_t element_bytes = 4;
    if (own.image_row_pitch == 0) own.image_row_pitch = desc.image_width * element_bytes;
    status = CheckRows(desc.mem_object, desc, own.image_row_pitch, element_bytes);
  } else {
    own.image_row_pitch = ImageInfoOf<size_t>(desc.mem_object, CL_IMAGE_ROW_PITCH);
    status = CheckImages(desc.mem_object, format, desc);
  }
  if (status != CL_SUCCESS) return RefuseImage(status, error);
  void* const memory = InfoOf<void*>(desc.mem_object, CL_MEM_HOST_PTR);
  if (memory == nullptr) return RefuseImage(CL_OUT_OF_RESOURCES, error);
  return Pocl().clCreateImage(context, flags | CL_MEM_USE_HOST_PTR, &linear, &own, memory, error);
}

cl_mem CreatePair(cl_context context, cl_mem_flags flags, const PairFormat& pair,
                  const cl_image_desc& desc, void* host, cl_int* error) {
  const cl_mem image = Pocl().clCreateImage(context, flags, &pair.as, &desc, host, error);
  if (image == nullptr || BecomePair(image, pair, desc.image_width)) return image;
  Pocl().clReleaseMemObject(image);
  return RefuseImage(CL_IMAGE_FORMAT_NOT_SUPPORTED, error);
}

cl_mem CL_API_CALL CreateImage(cl_context context, cl_mem_flags flags,
                               const cl_image_format* format, const cl_image_desc* desc, void* host,
                               cl_int* error) {
  if (format == nullptr || desc == nullptr)
    return Pocl().clCreateImage(context, flags, format, desc, host, error);
  if (desc->image_type == CL_MEM_OBJECT_IMAGE2D && desc->mem_object != nullptr)
    return CreateOver(context, flags, *format, *desc, error);
  if (const PairFormat* const pair = FindPair(*format))
    return CreatePair(context, flags, *pair, *desc, host, error);
  const cl_image_format linear = Linear(*format);
  return Pocl().clCreateImage(context, flags, &linear, desc, host, error);
}

cl_int CL_API_CALL GetFormats(cl_context context, cl_mem_flags flags, cl_mem_object_type type,
                              cl_uint room, cl_image_format* formats, cl_uint* count) {
  cl_uint pocls = 0;
  const cl_int status =
      Pocl().clGetSupportedImageFormats(context, flags, type, room, formats, &pocls);
  if (status != CL_SUCCESS) return status;
  std::vector<cl_image_format> ours;
  for (const PairFormat& one : kPairFormats) ours.push_back({CL_RG, one.type});
  if (type == CL_MEM_OBJECT_IMAGE2D) ours.push_back({CL_sRGBA, CL_UNORM_INT8});
  if (formats != nullptr && room > pocls)
    std::copy_n(ours.begin(), std::min<size_t>(room - pocls, ours.size()), formats + pocls);
  if (count != nullptr) *count = pocls + static_cast<cl_uint>(ours.size());
  return CL_SUCCESS;
}

}  // namespace

void ReplaceImageFunctions(cl_icd_dispatch* table) {
  table->clCreateImage = &CreateImage;
  table->clGetSupportedImageFormats = &GetFormats;
}

}  // namespace sluice::complete_driver
