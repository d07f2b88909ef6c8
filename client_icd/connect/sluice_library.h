// SPDX-License-Identifier: Apache-2.0
// libsluice (libsluice.so.0, sluice.dll), loaded the first time a shared resource is used: it
// brings gRPC, which other applications need not carry. It lies beside this driver's library. One
// connection per daemon serves all contexts of the process; a lost one is replaced at
// the next use.
//
// The library and its connections are never unloaded or ended before the process: threads may
// still use them. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client_icd/libsluice/sluice/sluice.h"

namespace sluice::client::sharing {

// Its functions, as sluice.h declares them.
struct SluiceFunctions {
  decltype(&sluice_error_text) error_text;
  decltype(&sluice_connect) connect;
  decltype(&sluice_disconnect) disconnect;
  decltype(&sluice_describe) describe;
  decltype(&sluice_export) export_handle;
  decltype(&sluice_handle_close) handle_close;
  decltype(&sluice_map) map;
  decltype(&sluice_unmap) unmap;
  decltype(&sluice_acquire) acquire;
  decltype(&sluice_release) release;
};

// Ended when the last object that uses it is gone.
struct SluiceConnection {
  SluiceConnection(const SluiceFunctions& functions, sluice_connection* connection)
      : functions(functions), raw(connection) {}
  ~SluiceConnection() { functions.disconnect(raw); }
  SluiceConnection(const SluiceConnection&) = delete;
  SluiceConnection& operator=(const SluiceConnection&) = delete;

  const SluiceFunctions& functions;
  sluice_connection* const raw;
};

// Its file is there: without it, a driver in a sandbox perhaps, resources are not offered.
bool HasSluiceLibrary();

// To the daemon whose socket is at `path`: one that is in use, or a new one.
absl::StatusOr<std::shared_ptr<SluiceConnection>> ConnectSluice(const std::string& path);

// It is lost: the next ConnectSluice makes another.
void ForgetSluiceConnection(const std::shared_ptr<SluiceConnection>& connection);

}  // namespace sluice::client::sharing
