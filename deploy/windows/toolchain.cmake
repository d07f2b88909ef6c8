# SPDX-License-Identifier: Apache-2.0
# Debian's mingw-w64 with POSIX threads. SLUICE_MINGW_PREFIX holds the libraries that make-deps.sh makes.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_DLLTOOL x86_64-w64-mingw32-dlltool)

if(NOT SLUICE_MINGW_PREFIX AND DEFINED ENV{SLUICE_MINGW_PREFIX})
  set(SLUICE_MINGW_PREFIX $ENV{SLUICE_MINGW_PREFIX})
endif()
set(SLUICE_MINGW_PREFIX "${SLUICE_MINGW_PREFIX}" CACHE PATH "Libraries built for Windows: deploy/windows/make-deps.sh")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SLUICE_MINGW_PREFIX)

# Libraries, headers and packages of the target only; programs (protoc) of this machine only.
set(CMAKE_FIND_ROOT_PATH ${SLUICE_MINGW_PREFIX} /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# No DLL beside the system's: the compiler's runtime is linked in.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-static")
