# SPDX-License-Identifier: Apache-2.0
# Compiler options that hold for all of our own code.

# A warning of a compiler that we have not met must not end a user's build; it ends ours and CI's.
option(SLUICE_WERROR "Let compiler warnings end the build (developers, CI)" OFF)
add_compile_options(-Wall -Wextra)
if(SLUICE_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict)  # GCC 12 sees overlaps in std::string that are none (GCC bug 105651).
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (WIN32 OR CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13))
  # GCC 14, and 12 for Windows, see uninitialised elements where an empty absl::InlinedVector is moved.
  add_compile_options(-Wno-maybe-uninitialized)
endif()
add_compile_definitions(CL_TARGET_OPENCL_VERSION=300 CL_USE_DEPRECATED_OPENCL_1_0_APIS
  CL_USE_DEPRECATED_OPENCL_1_1_APIS CL_USE_DEPRECATED_OPENCL_1_2_APIS CL_USE_DEPRECATED_OPENCL_2_0_APIS
  CL_USE_DEPRECATED_OPENCL_2_1_APIS CL_USE_DEPRECATED_OPENCL_2_2_APIS)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Each is a lock that is not held, which no test may ever meet: an end of every build.
  add_compile_options(-Wthread-safety -Werror=thread-safety)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 19)
    # A getter says that it is called on the thread that owns what it gives out (broker/os/thread_checker.h), which this
    # takes for a lock that is let go.
    add_compile_options(-Wno-thread-safety-reference-return)
  endif()
endif()
# A library that lacks a symbol ends the build.
set(SLUICE_LINK_WHOLE -Wl,-z,defs)
if(SLUICE_SANITIZE)
  add_compile_definitions(SLUICE_CHECK_THREADS)  # broker/os/thread_checker.h, as in debug builds.
  string(REPLACE ";" "," sluice_sanitize_list "${SLUICE_SANITIZE}")
  add_compile_options(-fsanitize=${sluice_sanitize_list} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${sluice_sanitize_list})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It sees uninitialised members of the library's that are none (the manual, -fsanitize: "increase the rate of false
    # positive warnings").
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
if(SLUICE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(SLUICE_LINK_WHOLE "")  # The sanitizer's symbols are in the program alone.
  # Names that GCC defines by itself.
  foreach(sanitizer ADDRESS THREAD)
    string(TOLOWER ${sanitizer} name)
    if(SLUICE_SANITIZE MATCHES ${name})
      add_compile_definitions(__SANITIZE_${sanitizer}__)
    endif()
  endforeach()
endif()
if(SLUICE_SANITIZE MATCHES "thread")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It does not follow fences. Ours order atomics among themselves; no data is handed over by one.
    add_compile_options(-Wno-tsan)
  endif()
  include_directories(${CMAKE_SOURCE_DIR})
  add_subdirectory(tests/sanitizers)  # Before the options that it must not have itself.
  # Before every other library of a program, also before those that its targets bring along.
  add_link_options(-Wl,--no-as-needed $<TARGET_FILE:sluice_tsan>)
  link_libraries(sluice_tsan)
endif()
