// SPDX-License-Identifier: Apache-2.0
//
// The default socket that clients come by: the service manager's, or one of our own, whose file and
// old place go with us.
//
// Owner: the Broker. Main thread, before and after the loop runs; `address` any time.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "broker/config/config.h"
#include "broker/os/scoped_handle.h"

namespace sluice::broker {

class ClientSocket {
 public:
  // `*listener` is the socket that listens.
  static absl::StatusOr<std::unique_ptr<ClientSocket>> Open(const Config& config,
                                                            os::UniqueFd* listener);
  ~ClientSocket();  // Removes the file of our own.

  // A link to it from where the default socket was, while that place is served.
  void LinkOldPlace();

  // The path at which applications reach it.
  const std::string& address() const { return address_; }

 private:
  ClientSocket(const Config& config, std::string address, bool owns_file)
      : config_(config), address_(std::move(address)), owns_file_(owns_file) {}

  const Config config_;  // Of the start: a reload leaves sockets alone.
  const std::string address_;
  const bool owns_file_;
  bool linked_ = false;
};

}  // namespace sluice::broker
