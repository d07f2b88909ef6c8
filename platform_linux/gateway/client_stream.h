// SPDX-License-Identifier: Apache-2.0
//
// The client's bytes, by TLS or as they are, and what its socket has not taken yet.
//
// Owner: a Connection. Thread-compatible. The client is hostile.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "platform_linux/gateway/tls.h"

namespace sluice::gateway {

class ClientStream {
 public:
  enum class ReadResult { kBytes, kNothing, kEnd };

  // `socket` does not block, stays the caller's and outlives this.
  explicit ClientStream(int socket) : socket_(socket) {}

  // From now on its bytes are TLS's. False: no memory.
  bool StartTls(const TlsContext& context);
  // Null: no TLS.
  TlsStream* tls() { return tls_.get(); }

  // Of kBytes: `*size` of them, as many as there are up to `room`.
  ReadResult Read(char* out, size_t room, size_t* size);

  // Both send what the socket takes, and keep the rest. False: the connection is broken.
  bool Write(std::string_view bytes);
  bool Flush() { return Send({}); }
  // The last bytes have been written.
  bool Close();

  // The socket has not taken everything that was written.
  bool has_unsent() const { return !unsent_.empty(); }

 private:
  ReadResult ReadPlain(char* out, size_t room, size_t* size);
  bool Send(std::string_view bytes);

  const int socket_;
  std::unique_ptr<TlsStream> tls_;
  std::string unsent_;
  bool closed_ = false;
};

}  // namespace sluice::gateway
