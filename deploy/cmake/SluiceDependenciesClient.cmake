# SPDX-License-Identifier: Apache-2.0
# SluiceDependencies for the portable client: the same names, found in the prefix that deploy/portable/make-deps.sh makes.
# Only headers of OpenGL and EGL come from this machine's packages.

# The generators, too, are the prefix's: what they write belongs to its headers.
find_program(SLUICE_PROTOC protoc PATHS ${SLUICE_CLIENT_PREFIX}/bin NO_DEFAULT_PATH)
find_program(SLUICE_GRPC_PLUGIN grpc_cpp_plugin PATHS ${SLUICE_CLIENT_PREFIX}/bin NO_DEFAULT_PATH)
if(SLUICE_PROTOC AND SLUICE_GRPC_PLUGIN AND EXISTS ${SLUICE_CLIENT_PREFIX}/lib/libgrpc++.a)
  set(SLUICE_PREFIX_FOUND TRUE)
endif()
sluice_need(SLUICE_PREFIX_FOUND "the client's libraries in SLUICE_CLIENT_PREFIX (${SLUICE_CLIENT_PREFIX})"
  "nothing; run deploy/portable/build.sh, which makes them")
find_path(SLUICE_EGL_INCLUDE EGL/egl.h)
sluice_need(SLUICE_EGL_INCLUDE "EGL headers" libegl-dev)
find_path(SLUICE_GL_INCLUDE GL/glcorearb.h)
sluice_need(SLUICE_GL_INCLUDE "OpenGL headers" libgl-dev)
if(SLUICE_MISSING)
  return()
endif()

list(PREPEND CMAKE_PREFIX_PATH ${SLUICE_CLIENT_PREFIX})
set(OPENSSL_ROOT_DIR ${SLUICE_CLIENT_PREFIX})
set(OPENSSL_USE_STATIC_LIBS ON)
find_package(Threads REQUIRED)
find_package(absl CONFIG REQUIRED PATHS ${SLUICE_CLIENT_PREFIX} NO_DEFAULT_PATH)
find_package(OpenSSL REQUIRED)
set(SLUICE_OPENCL_INCLUDE ${SLUICE_CLIENT_PREFIX}/include)
set(Protobuf_INCLUDE_DIRS ${SLUICE_CLIENT_PREFIX}/include)
set(GRPCPP_INCLUDE_DIRS ${SLUICE_CLIENT_PREFIX}/include)

# protobuf-lite: as a file, since the full runtime's configuration would bring more than the client uses.
add_library(protobuf-lite STATIC IMPORTED GLOBAL)
set_target_properties(protobuf-lite PROPERTIES IMPORTED_LOCATION ${SLUICE_CLIENT_PREFIX}/lib/libprotobuf-lite.a
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${SLUICE_CLIENT_PREFIX}/include)

# gRPC and all that it is built on, as one group: the linker takes what is called, in whatever order.
set(SLUICE_GRPC_ARCHIVES "")
foreach(name grpc++ grpc gpr upb address_sorting cares re2 ssl crypto z protobuf-lite)
  list(APPEND SLUICE_GRPC_ARCHIVES ${SLUICE_CLIENT_PREFIX}/lib/lib${name}.a)
endforeach()
file(GLOB SLUICE_ABSL_ARCHIVES ${SLUICE_CLIENT_PREFIX}/lib/libabsl_*.a)
add_library(PkgConfig::GRPCPP INTERFACE IMPORTED GLOBAL)
set_target_properties(PkgConfig::GRPCPP PROPERTIES
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${SLUICE_CLIENT_PREFIX}/include)
add_library(sluice_older_glibc STATIC ${CMAKE_SOURCE_DIR}/deploy/portable/older_glibc.c
  ${CMAKE_SOURCE_DIR}/deploy/portable/thread_keys.c)
# Every file has abseil inside, and what abseil uses stands behind it.
set_property(TARGET absl::base APPEND PROPERTY INTERFACE_LINK_LIBRARIES sluice_older_glibc)
add_link_options(-Wl,--wrap=exp,--wrap=log,--wrap=log2,--wrap=pow
  -Wl,--wrap=pthread_key_create,--wrap=pthread_key_delete,--wrap=pthread_getspecific,--wrap=pthread_setspecific)
target_link_libraries(PkgConfig::GRPCPP INTERFACE
  -Wl,--start-group ${SLUICE_GRPC_ARCHIVES} ${SLUICE_ABSL_ARCHIVES} -Wl,--end-group
  sluice_older_glibc m Threads::Threads ${CMAKE_DL_LIBS})

# Messages name a file, not the folder that it was built in.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -ffile-prefix-map=${SLUICE_CLIENT_PREFIX}/include/=)
# The compiler's runtime is inside, too: an older system's is older.
add_link_options(-static-libstdc++ -static-libgcc)
