// SPDX-License-Identifier: Apache-2.0
//
// The front's side of TLS, with OpenSSL: TlsContext has the settings of a [[network]] entry,
// TlsStream is one connection. TLS 1.2 and 1.3, HTTP/2 by ALPN, no renegotiation, no resumption (a
// certificate that was revoked must not live on in a ticket), and short chains.
//
// Owner: the front; each connection. TlsContext: immutable. TlsStream: thread-compatible. The
// peer's bytes are hostile; OpenSSL judges them.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/gateway/front/front.h"

namespace sluice::gateway {

class TlsContext {
 public:
  // An error begins with the key of [[network]] that it is about.
  static absl::StatusOr<std::shared_ptr<const TlsContext>> Create(const TlsFiles& files);

  SSL_CTX* get() const { return context_.get(); }
  bool asks_for_certificate() const { return asks_for_certificate_; }
  // OK if the certificate that the peer of `ssl` has shown is good by these files, too.
  absl::Status CheckAgain(SSL* ssl) const;

 private:
  using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
  TlsContext(Context context, bool asks_for_certificate)
      : context_(std::move(context)), asks_for_certificate_(asks_for_certificate) {}

  const Context context_;
  const bool asks_for_certificate_;
};

class TlsStream {
 public:
  enum class Step { kDone, kWait, kEnd };  // kEnd: the connection is over.

  // Reads from `socket`, which stays the caller's. Null: no memory.
  static std::unique_ptr<TlsStream> Create(const TlsContext& context, int socket);

  // kDone: the peer is authenticated. Whatever it returns, Outgoing may have grown.
  Step Handshake();
  // kDone: `*size` bytes, at least one.
  Step Read(char* out, size_t room, size_t* size);
  // Encrypts all bytes into Outgoing.
  bool Write(std::string_view bytes);
  void Close();

  // The bytes to send to the peer, until the caller has taken them.
  std::string_view Outgoing() const;
  void TookOutgoing();

  // After kEnd: the peer's error; empty: it has left.
  const std::string& error() const { return error_; }
  void Describe(AdmittedPeer* peer) const;
  SSL* get() const { return ssl_.get(); }

 private:
  explicit TlsStream(SSL* ssl) : ssl_(ssl, &SSL_free) {}
  Step Failed(int result);

  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::string error_;
};

}  // namespace sluice::gateway
