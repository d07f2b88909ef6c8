// SPDX-License-Identifier: Apache-2.0
// The function that libsluice_remote.so exports as `sluice_remote_describe`: asks a daemon on the
// network for its platform snapshot (a serialised PlatformSnapshot) and calls `deliver` once with
// its bytes. For the driver and for sluicectl, which must see the same. Only standard C types, so
// that the library may carry another protobuf. Any thread; bounded by `timeout_ms`.
#pragma once

#include <cstdint>

extern "C" {
// `endpoint` is HOST:PORT or dns:///NAME:PORT. False: why is in `said`, terminated. True: the
// daemon's version is there, if it tells one.
using SluiceRemoteDescribe = bool(const char* endpoint, uint32_t timeout_ms,
                                  void (*deliver)(void* to, const char* data, uint64_t bytes),
                                  void* to, char* said, uint64_t said_bytes);
// `sluice_remote_silence_grpc`: gRPC writes nothing more on stderr, unless GRPC_VERBOSITY or
// SLUICE_LOG asks for it. It does so for the whole process, so that only who brought gRPC into the
// process may call it, before the others.
using SluiceRemoteSilenceGrpc = void();
}
