// SPDX-License-Identifier: Apache-2.0
// Names of cl_khr_external_memory that some versions of the Khronos headers lack. Older ones
// (Debian 12) call CL_MEM_DEVICE_HANDLE_LIST_KHR CL_DEVICE_HANDLE_LIST_KHR; newer ones (Debian 13)
// have no name for Direct3D 11 textures any more, which drivers still know.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>

#ifndef CL_MEM_DEVICE_HANDLE_LIST_KHR
#define CL_MEM_DEVICE_HANDLE_LIST_KHR 0x2051
#define CL_MEM_DEVICE_HANDLE_LIST_END_KHR 0
#endif
#ifndef CL_EXTERNAL_MEMORY_HANDLE_D3D11_TEXTURE_KHR
#define CL_EXTERNAL_MEMORY_HANDLE_D3D11_TEXTURE_KHR 0x2063
#endif
