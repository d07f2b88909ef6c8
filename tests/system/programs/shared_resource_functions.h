/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of cl_sluice_shared_resource, found on the platform under test.
 */
#ifndef SHARED_RESOURCE_FUNCTIONS_H
#define SHARED_RESOURCE_FUNCTIONS_H

#include <CL/cl_sluice.h>

#include "ocl.h"

static clCreateFromSharedResourceSLUICE_fn create;
static clEnqueueAcquireSharedResourcesSLUICE_fn acquire;
static clEnqueueReleaseSharedResourcesSLUICE_fn release;

static inline void find_functions(cl_platform_id platform) {
  create = (clCreateFromSharedResourceSLUICE_fn)clGetExtensionFunctionAddressForPlatform(
      platform, "clCreateFromSharedResourceSLUICE");
  acquire = (clEnqueueAcquireSharedResourcesSLUICE_fn)clGetExtensionFunctionAddressForPlatform(
      platform, "clEnqueueAcquireSharedResourcesSLUICE");
  release = (clEnqueueReleaseSharedResourcesSLUICE_fn)clGetExtensionFunctionAddressForPlatform(
      platform, "clEnqueueReleaseSharedResourcesSLUICE");
  if (create != NULL && acquire != NULL && release != NULL) return;
  fprintf(stderr, "the platform has no cl_sluice_shared_resource\n");
  exit(1);
}

#endif
