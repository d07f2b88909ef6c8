// SPDX-License-Identifier: Apache-2.0
// How the sharing extensions differ: their codes and command types, one row per API, all of them in
// api_rules.cc. The core (core.h) reads rows and knows no API by name. Thread-safe: constants.
#pragma once

#include <CL/cl.h>

namespace sluice::client::sharing {

enum class Api { kGl, kEgl, kGralloc, kD3d10, kD3d11, kDx9Media, kSluice };

struct ApiRules {
  Api api;
  const char* name;  // For log lines.
  const char* extension;
  // In a queue out of order, too, nothing later begins before an acquire has ended, and a release
  // waits for all before it.
  bool orders_queue = false;
  cl_command_type acquire_command;
  cl_command_type release_command;
  // A memory object in the list that was not made from an object of this API.
  cl_int invalid_object;
  // An object acquired that is acquired already. CL_SUCCESS: silently ignored.
  cl_int already_acquired;
  // An object released that is not acquired. CL_SUCCESS: silently ignored.
  cl_int release_not_acquired;
  // An object used by a command while it is not acquired.
  cl_int use_not_acquired;
  // A second memory object from the same (native object, subresource, plane), in whatever context.
  // CL_SUCCESS: allowed.
  cl_int created_twice;
  // A memory object of the list that belongs to another context than the queue.
  cl_int other_context;
  // The queue's context was not created for this API. CL_SUCCESS: any context will do.
  cl_int context_without_api;
  // Names of clGetMemObjectInfo and clGetImageInfo that only objects of this API answer, and the
  // code that others give. 0: none.
  cl_mem_info mem_param;
  cl_image_info image_param;
  cl_int no_param;
};

const ApiRules& RulesOf(Api api);

// The rules whose mem_param (image_param) this is; null if it is nobody's.
const ApiRules* RulesOfMemParam(cl_mem_info param);
const ApiRules* RulesOfImageParam(cl_image_info param);

}  // namespace sluice::client::sharing
