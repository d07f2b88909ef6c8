// SPDX-License-Identifier: Apache-2.0
// Images as objects: creation in all its forms, queries, supported formats. Their elements travel
// in image_transfer.cc.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_icd/base/api.h"
#include "client_icd/objects/extensions.h"
#include "client_icd/objects/image_transfer.h"
#include "client_icd/objects/memory.h"
#include "proto/codec.h"

namespace sluice::client {
namespace {

// The dimensions that a type has must be there (section 5.3.1.2).
bool HasDimensions(const cl_image_desc& desc) {
  switch (desc.image_type) {
    case CL_MEM_OBJECT_IMAGE3D:
      return desc.image_width > 0 && desc.image_height > 0 && desc.image_depth > 0;
    case CL_MEM_OBJECT_IMAGE2D:
      return desc.image_width > 0 && desc.image_height > 0;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      return desc.image_width > 0 && desc.image_height > 0 && desc.image_array_size > 0;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      return desc.image_width > 0 && desc.image_array_size > 0;
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
      return desc.image_width > 0;
    default:
      return false;
  }
}

// The device's limits for the dimensions that the type has (section 5.3.1.2).
bool HoldsImage(const Device& device, const cl_image_desc& desc) {
  if (!device.image_support()) return false;
  const auto fits = [&device](size_t extent, cl_device_info limit) {
    return extent <= device.info().Scalar<size_t>(limit, SIZE_MAX);
  };
  const auto fits_2d = [&] {
    return fits(desc.image_width, CL_DEVICE_IMAGE2D_MAX_WIDTH) &&
           fits(desc.image_height, CL_DEVICE_IMAGE2D_MAX_HEIGHT);
  };
  switch (desc.image_type) {
    case CL_MEM_OBJECT_IMAGE3D:
      return fits(desc.image_width, CL_DEVICE_IMAGE3D_MAX_WIDTH) &&
             fits(desc.image_height, CL_DEVICE_IMAGE3D_MAX_HEIGHT) &&
             fits(desc.image_depth, CL_DEVICE_IMAGE3D_MAX_DEPTH);
    case CL_MEM_OBJECT_IMAGE2D:
      return fits_2d();
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      return fits_2d() && fits(desc.image_array_size, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE);
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      return fits(desc.image_width, CL_DEVICE_IMAGE2D_MAX_WIDTH) &&
             fits(desc.image_array_size, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE);
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
      return fits(desc.image_width, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE);
    default:
      return fits(desc.image_width, CL_DEVICE_IMAGE2D_MAX_WIDTH);
  }
}

// Section 5.3.1.2: a pitch must be 0 without host_ptr; with it, 0 or large enough, rows a multiple
// of the element size and slices of the row pitch. A 2D image made from a buffer has the buffer's
// row pitch.
bool PitchesAreValid(const cl_image_desc& desc, size_t element_bytes, bool has_host_ptr,
                     bool from_buffer) {
  const bool rows_of_buffer = from_buffer && desc.image_type == CL_MEM_OBJECT_IMAGE2D;
  if (!has_host_ptr && !rows_of_buffer)
    return desc.image_row_pitch == 0 && desc.image_slice_pitch == 0;
  uint64_t row_bytes = 0;
  if (!CheckedMultiply(desc.image_width, element_bytes, &row_bytes)) return false;
  if (desc.image_row_pitch != 0) {
    if (desc.image_row_pitch < row_bytes || desc.image_row_pitch % element_bytes != 0) return false;
    row_bytes = desc.image_row_pitch;
  }
  if (desc.image_slice_pitch == 0) return true;
  const bool rows_are_slices = desc.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
  uint64_t slice_bytes = 0;
  if (!CheckedMultiply(row_bytes, rows_are_slices ? 1 : desc.image_height, &slice_bytes))
    return false;
  if (desc.image_type == CL_MEM_OBJECT_IMAGE1D || desc.image_type == CL_MEM_OBJECT_IMAGE2D)
    return true;  // Ignored.
  return desc.image_slice_pitch >= slice_bytes && desc.image_slice_pitch % row_bytes == 0;
}

// Finds the object that the image is made from, which its type must allow:
// CL_INVALID_IMAGE_DESCRIPTOR.
cl_int FindParent(const Context& context, const cl_image_desc& desc, MemObject** parent) {
  *parent = nullptr;
  const bool is_image_buffer = desc.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
  if (desc.mem_object == nullptr) return is_image_buffer ? CL_INVALID_IMAGE_DESCRIPTOR : CL_SUCCESS;
  MemObject* memory = MemObject::From(desc.mem_object);
  if (memory == nullptr || memory->is_pipe() || &memory->context() != &context)
    return CL_INVALID_IMAGE_DESCRIPTOR;
  const bool suits =
      is_image_buffer ? memory->is_buffer() : desc.image_type == CL_MEM_OBJECT_IMAGE2D;
  if (!suits) return CL_INVALID_IMAGE_DESCRIPTOR;
  *parent = memory;
  return CL_SUCCESS;
}

// Everything of section 5.3.1 that does not need the driver.
cl_int CheckImage(const Context& context, cl_mem_flags* flags, const cl_image_format* format,
                  const cl_image_desc* desc, const void* host_ptr, MemObject** parent) {
  CL_RETURN_IF_ERROR(CheckMemFlags(*flags));
  // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if values specified in image_format are not valid or if
  // image_format is NULL.
  if (format == nullptr || wire::ElementBytes(*format) == 0)
    return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  // Extension specification, section 9.9.1: CL_DEPTH_STENCIL "can only be created using the
  // clCreateFromGLTexture API".
  if (format->image_channel_order == CL_DEPTH_STENCIL) return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  // CL_INVALID_IMAGE_DESCRIPTOR if values specified in image_desc are not valid or if image_desc is
  // NULL.
  if (desc == nullptr || !HasDimensions(*desc)) return CL_INVALID_IMAGE_DESCRIPTOR;
  // num_mip_levels and num_samples must be 0 (section 5.3.1.2).
  if (desc->num_mip_levels != 0 || desc->num_samples != 0) return CL_INVALID_IMAGE_DESCRIPTOR;
  CL_RETURN_IF_ERROR(FindParent(context, *desc, parent));
  // Section 5.3.1.2: an image of an image has its channel order, or one that goes with it; none
  // goes with that.
  if (*parent != nullptr && (*parent)->is_image() && (*parent)->image().seen_as)
    return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  const bool from_buffer = *parent != nullptr && (*parent)->is_buffer();
  if (!PitchesAreValid(*desc, wire::ElementBytes(*format), host_ptr != nullptr, from_buffer)) {
    return CL_INVALID_IMAGE_DESCRIPTOR;
  }
  // CL_INVALID_HOST_PTR if host_ptr and the *_HOST_PTR flags do not go together.
  CL_RETURN_IF_ERROR(CheckHostPtr(*flags, host_ptr));
  // For an image made from another object: CL_INVALID_VALUE if flags contradict that object's.
  if (*parent != nullptr) CL_RETURN_IF_ERROR(InheritMemFlags((*parent)->flags(), flags));
  // CL_INVALID_OPERATION if there are no devices in context that support images.
  if (!context.supports_images()) return CL_INVALID_OPERATION;
  // CL_INVALID_IMAGE_SIZE if image dimensions specified in image_desc exceed the maximum image
  // dimensions described in the Device Queries table for all devices in context.
  return HoldsImages(context, *desc) ? CL_SUCCESS : CL_INVALID_IMAGE_SIZE;
}

}  // namespace

bool HoldsImages(const Context& context, const cl_image_desc& desc) {
  return std::any_of(context.devices().begin(), context.devices().end(),
                     [&desc](const Device* device) { return HoldsImage(*device, desc); });
}

ImageShape MakeImageShape(const cl_image_format& format, const cl_image_desc& desc) {
  ImageShape shape;
  shape.format = format;
  shape.desc = desc;
  shape.desc.mem_object = nullptr;
  shape.element_bytes = wire::ElementBytes(format);
  shape.extent = wire::ExtentOf(desc);
  shape.row_pitch =
      desc.image_row_pitch != 0 ? desc.image_row_pitch : desc.image_width * shape.element_bytes;
  const bool rows_are_slices = desc.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
  if (shape.dimensions() == 3 || rows_are_slices) {
    const size_t plane = rows_are_slices ? shape.row_pitch : shape.row_pitch * desc.image_height;
    shape.slice_pitch = desc.image_slice_pitch != 0 ? desc.image_slice_pitch : plane;
  }
  return shape;
}

namespace {

// Packed. False if they cannot be counted.
bool CountBytes(const ImageShape& shape, uint64_t* bytes) {
  *bytes = shape.element_bytes;
  return std::all_of(std::begin(shape.extent.v), std::end(shape.extent.v),
                     [bytes](size_t extent) { return CheckedMultiply(*bytes, extent, bytes); });
}

// The driver says with the first image of each format, type and flags whether it takes them, and
// with each image that is made from another object.
Creation CreationOf(const MemObject& memory) {
  const ImageShape& shape = memory.image();
  Creation creation;
  if (!CountBytes(shape, &creation.memory_bytes)) creation.memory_bytes = UINT64_MAX;
  creation.kind = absl::StrCat("image ", shape.format.image_channel_order, " ",
                               shape.format.image_channel_data_type, " ", shape.desc.image_type,
                               " ", memory.flags());
  creation.needs_answer = memory.context().buffers_in_heap() || memory.parent() != nullptr;
  return creation;
}

}  // namespace

cl_int MakeImage(MemObject* memory, std::string_view contents) {
  const MemObject* parent = memory->parent();
  ScopedCommand command;
  pb::CreateImage& body = *command->mutable_create_image();
  body.set_mem_id(memory->id());
  body.set_context_id(memory->context().id());
  body.set_flags(WireMemFlags(memory->flags()) &
                 ~(parent != nullptr ? cl_mem_flags{CL_MEM_ALLOC_HOST_PTR} : 0));
  wire::EncodeImageFormat(memory->image().format, body.mutable_format());
  wire::EncodeImageDesc(memory->image().desc, parent != nullptr ? parent->id() : 0,
                        body.mutable_desc());
  body.set_staged(memory->is_staged());
  pb::Answer answer;
  CL_RETURN_IF_ERROR(memory->context().Create(*command, contents, CreationOf(*memory), &answer));
  return memory->SetMade(answer.memory());
}

namespace {

// With the contents at `host_ptr`, sent along if they are few.
cl_int MakeFilledImage(Context* context, const MemObject::Description& about, void* host_ptr,
                       Ref<MemObject>* out) {
  const ImageShape& shape = *about.image;
  uint64_t bytes = 0;
  if (!CountBytes(shape, &bytes)) return CL_INVALID_IMAGE_SIZE;
  const HostRegion contents =
      ImageHostRegion(shape, host_ptr, shape.extent.v, shape.row_pitch, shape.slice_pitch);
  *out = Ref<MemObject>::Adopt(new MemObject(Ref<Context>(context), about));
  if (FillsLater(*context, bytes)) {
    CL_RETURN_IF_ERROR(MakeImage(out->get(), {}));
    return FillNew(out->get(), contents);
  }
  std::string packed(bytes, '\0');
  contents.Gather(0, bytes, reinterpret_cast<uint8_t*>(packed.data()));
  return MakeImage(out->get(), packed);
}

cl_mem CreateImage(cl_context context_handle, const cl_mem_properties* properties,
                   cl_mem_flags flags, const cl_image_format* format, const cl_image_desc* desc,
                   void* host_ptr, cl_int* errcode_ret) {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  MemObject::Description about;
  // Section 5.3.1: CL_INVALID_PROPERTY if a property name in properties is not a supported property
  // name. None is.
  if (!ReadProperties(properties, &about.properties) || !about.properties.words.empty()) {
    return Fail(errcode_ret, CL_INVALID_PROPERTY);
  }
  MemObject* parent = nullptr;
  cl_int status = CheckImage(*context, &flags, format, desc, host_ptr, &parent);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  about.type = desc->image_type;
  about.flags = flags;
  about.image = MakeImageShape(*format, *desc);
  // The rows of an image that is made from another one are that one's.
  if (parent != nullptr && parent->is_image()) about.image->row_pitch = parent->image().row_pitch;
  about.parent = Ref<MemObject>(parent);
  if ((flags & CL_MEM_USE_HOST_PTR) != 0)
    about.host_ptr = parent != nullptr ? parent->host_ptr() : host_ptr;
  Ref<MemObject> memory;
  if (host_ptr != nullptr) {
    status = MakeFilledImage(context, about, host_ptr, &memory);
  } else {
    memory = Ref<MemObject>::Adopt(new MemObject(Ref<Context>(context), std::move(about)));
    status = MakeImage(memory.get(), {});
  }
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

}  // namespace

cl_int MemObject::GetImageInfo(cl_image_info param_name, const InfoSink& sink) {
  const ImageShape shape =
      image().seen_as ? MakeImageShape(*image().seen_as, image().desc) : image();
  const cl_mem_object_type type = shape.desc.image_type;
  const bool is_3d = type == CL_MEM_OBJECT_IMAGE3D;
  const bool is_2d = type == CL_MEM_OBJECT_IMAGE2D || type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
  const bool is_array = type == CL_MEM_OBJECT_IMAGE1D_ARRAY || type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
  // Section 5.3.7; dimensions that the type has not are 0.
  switch (param_name) {
    case CL_IMAGE_FORMAT:
      return sink.Value<cl_image_format>(shape.format);
    case CL_IMAGE_ELEMENT_SIZE:
      return sink.Value<size_t>(shape.element_bytes);
    case CL_IMAGE_ROW_PITCH:
      return sink.Value<size_t>(shape.row_pitch);
    case CL_IMAGE_SLICE_PITCH:
      return sink.Value<size_t>(shape.slice_pitch);
    case CL_IMAGE_WIDTH:
      return sink.Value<size_t>(shape.desc.image_width);
    case CL_IMAGE_HEIGHT:
      return sink.Value<size_t>(is_2d || is_3d ? shape.desc.image_height : 0);
    case CL_IMAGE_DEPTH:
      return sink.Value<size_t>(is_3d ? shape.desc.image_depth : 0);
    case CL_IMAGE_ARRAY_SIZE:
      return sink.Value<size_t>(is_array ? shape.desc.image_array_size : 0);
    case CL_IMAGE_BUFFER:
      return sink.Value<cl_mem>(parent() != nullptr && parent()->is_buffer() ? parent_handle()
                                                                             : nullptr);
    case CL_IMAGE_NUM_MIP_LEVELS:
      return sink.Value<cl_uint>(shape.desc.num_mip_levels);
    case CL_IMAGE_NUM_SAMPLES:
      return sink.Value<cl_uint>(shape.desc.num_samples);
    default:
      if (const std::optional<cl_int> answer = GetSharedImageInfo(param_name, sink)) return *answer;
      return WireInfo(session(), {pb::GetInfo::IMAGE, id(), param_name}, sink);
  }
}

namespace {

// Extension specification, section 9.12.1: "only queries, retain and release operations can be
// performed" on a terminated context. Its worker has gone; another context of its devices, which
// are no sub-devices, has the same formats.
cl_int AskAnotherContext(const Context& terminated, cl_mem_flags flags, cl_mem_object_type type,
                         cl_uint room, cl_image_format* formats, cl_uint* count) {
  std::vector<cl_device_id> devices;
  for (Device* device : terminated.devices()) devices.push_back(device->handle());
  cl_int status = CL_SUCCESS;
  const cl_context other = api::clCreateContext(nullptr, static_cast<cl_uint>(devices.size()),
                                                devices.data(), nullptr, nullptr, &status);
  if (status != CL_SUCCESS) return status;
  status = api::clGetSupportedImageFormats(other, flags, type, room, formats, count);
  api::clReleaseContext(other);
  return status;
}

}  // namespace

namespace api {

cl_mem CL_API_CALL clCreateImage(cl_context context, cl_mem_flags flags,
                                 const cl_image_format* image_format,
                                 const cl_image_desc* image_desc, void* host_ptr,
                                 cl_int* errcode_ret) noexcept {
  return CreateImage(context, nullptr, flags, image_format, image_desc, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL clCreateImageWithProperties(cl_context context,
                                               const cl_mem_properties* properties,
                                               cl_mem_flags flags,
                                               const cl_image_format* image_format,
                                               const cl_image_desc* image_desc, void* host_ptr,
                                               cl_int* errcode_ret) noexcept {
  return CreateImage(context, properties, flags, image_format, image_desc, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags flags,
                                   const cl_image_format* image_format, size_t image_width,
                                   size_t image_height, size_t image_row_pitch, void* host_ptr,
                                   cl_int* errcode_ret) noexcept {
  // OpenCL 1.1 section 5.3.1: CL_INVALID_IMAGE_SIZE if image_width or image_height are 0.
  if (Context::From(context) != nullptr && (image_width == 0 || image_height == 0)) {
    return Fail(errcode_ret, CL_INVALID_IMAGE_SIZE);
  }
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = image_width;
  desc.image_height = image_height;
  desc.image_row_pitch = image_row_pitch;
  cl_int status = CL_SUCCESS;
  const cl_mem image = CreateImage(context, nullptr, flags, image_format, &desc, host_ptr, &status);
  // A pitch that does not follow the rules was an image size to that version.
  if (errcode_ret != nullptr)
    *errcode_ret = status == CL_INVALID_IMAGE_DESCRIPTOR ? CL_INVALID_IMAGE_SIZE : status;
  return image;
}

cl_mem CL_API_CALL clCreateImage3D(cl_context context, cl_mem_flags flags,
                                   const cl_image_format* image_format, size_t image_width,
                                   size_t image_height, size_t image_depth, size_t image_row_pitch,
                                   size_t image_slice_pitch, void* host_ptr,
                                   cl_int* errcode_ret) noexcept {
  // OpenCL 1.1 section 5.3.1: CL_INVALID_IMAGE_SIZE if image_width, image_height are 0 or if
  // image_depth <= 1.
  if (Context::From(context) != nullptr &&
      (image_width == 0 || image_height == 0 || image_depth <= 1)) {
    return Fail(errcode_ret, CL_INVALID_IMAGE_SIZE);
  }
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE3D;
  desc.image_width = image_width;
  desc.image_height = image_height;
  desc.image_depth = image_depth;
  desc.image_row_pitch = image_row_pitch;
  desc.image_slice_pitch = image_slice_pitch;
  cl_int status = CL_SUCCESS;
  const cl_mem image = CreateImage(context, nullptr, flags, image_format, &desc, host_ptr, &status);
  if (errcode_ret != nullptr)
    *errcode_ret = status == CL_INVALID_IMAGE_DESCRIPTOR ? CL_INVALID_IMAGE_SIZE : status;
  return image;
}

cl_int CL_API_CALL clGetImageInfo(cl_mem image_handle, cl_image_info param_name,
                                  size_t param_value_size, void* param_value,
                                  size_t* param_value_size_ret) noexcept {
  MemObject* image = MemObject::FromImage(image_handle);
  if (image == nullptr) return CL_INVALID_MEM_OBJECT;
  return image->GetImageInfo(param_name,
                             InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clGetSupportedImageFormats(cl_context context_handle, cl_mem_flags flags,
                                              cl_mem_object_type image_type, cl_uint num_entries,
                                              cl_image_format* image_formats,
                                              cl_uint* num_image_formats) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return CL_INVALID_CONTEXT;
  // Section 5.3.2: CL_INVALID_VALUE if flags or image_type are not valid, or if num_entries is 0
  // and image_formats is not NULL.
  CL_RETURN_IF_ERROR(CheckMemFlags(flags));
  if (wire::ImageDimensions(image_type) == 0) return CL_INVALID_VALUE;
  if (num_entries == 0 && image_formats != nullptr) return CL_INVALID_VALUE;
  const std::string* known = context->ImageFormats(flags, image_type);
  pb::Answer answer;
  if (known == nullptr) {
    ScopedCommand command;
    pb::GetSupportedImageFormats& body = *command->mutable_get_supported_image_formats();
    body.set_context_id(context->id());
    body.set_flags(flags);
    body.set_image_type(image_type);
    const cl_int status = context->stream().Call(*command, {}, &answer);
    if (status == CL_CONTEXT_TERMINATED_KHR)
      return AskAnotherContext(*context, flags, image_type, num_entries, image_formats,
                               num_image_formats);
    CL_RETURN_IF_ERROR(status);
    known = &answer.data();
  } else if (context->session().lost() && !context->session().terminated()) {
    return context->session().lost_code();
  }
  static_assert(sizeof(cl_image_format) == 2 * sizeof(uint32_t));
  std::vector<cl_image_format> formats(known->size() / sizeof(cl_image_format));
  known->copy(reinterpret_cast<char*>(formats.data()), formats.size() * sizeof(cl_image_format));
  for (const InteropExtension* one : InteropExtensions()) {
    if (one->add_image_formats != nullptr) one->add_image_formats(*context, &formats);
  }
  if (image_formats != nullptr)
    std::copy_n(formats.begin(), std::min<size_t>(formats.size(), num_entries), image_formats);
  if (num_image_formats != nullptr) *num_image_formats = static_cast<cl_uint>(formats.size());
  return CL_SUCCESS;
}

}  // namespace api
}  // namespace sluice::client
