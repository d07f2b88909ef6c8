// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/gateway/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

constexpr long kMostChainBytes = 32 * 1024;
constexpr int kMostChainLength = 8;
constexpr size_t kReadAheadBytes = 64 * 1024;
constexpr unsigned char kHttp2[] = {2, 'h', '2'};
// As gRPC's own server: forward secrecy, authenticated encryption.
constexpr char kTls12Ciphers[] =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:"
    "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305";

Bio Over(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

Certificate NextCertificate(BIO* bio) {
  return {PEM_read_bio_X509(bio, nullptr, nullptr, nullptr), &X509_free};
}

std::string Reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "OpenSSL does not say why";
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : absl::StrCat("OpenSSL error ", absl::Hex(code));
}

absl::Status Bad(const char* key) {
  return absl::InvalidArgumentError(absl::StrCat(key, ": ", Reason()));
}

absl::Status UseIdentity(SSL_CTX* context, const TlsFiles& files) {
  const Bio chain = Over(files.certificate);
  const Certificate own = NextCertificate(chain.get());
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) return Bad("certificate");
  for (Certificate next = NextCertificate(chain.get()); next != nullptr;
       next = NextCertificate(chain.get())) {
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return Bad("certificate");
  }
  ERR_clear_error();  // The end of the file.
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(Over(files.key).get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
  if (key == nullptr || SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Bad("key");
  }
  return absl::OkStatus();
}

absl::Status AskForCertificate(SSL_CTX* context, const TlsFiles& files) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  const Bio authorities = Over(files.client_ca);
  int count = 0;
  for (Certificate next = NextCertificate(authorities.get()); next != nullptr;
       next = NextCertificate(authorities.get()), ++count) {
    if (X509_STORE_add_cert(store, next.get()) != 1) return Bad("client_ca");
    SSL_CTX_add_client_CA(context, next.get());
  }
  if (count == 0) return Bad("client_ca");
  ERR_clear_error();
  unsigned long flags = X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST;
  if (!files.client_crl.empty()) {
    const Bio lists = Over(files.client_crl);
    int lists_read = 0;
    while (X509_CRL* const list = PEM_read_bio_X509_CRL(lists.get(), nullptr, nullptr, nullptr)) {
      const bool added = X509_STORE_add_crl(store, list) == 1;
      X509_CRL_free(list);
      if (!added) return Bad("client_crl");
      ++lists_read;
    }
    if (lists_read == 0) return Bad("client_crl");
    ERR_clear_error();
    flags |= X509_V_FLAG_CRL_CHECK;
  }
  X509_STORE_set_flags(store, flags);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(context, kMostChainLength);
  return absl::OkStatus();
}

// Accepts HTTP/2 only: gRPC's clients ask for it.
int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp2, sizeof(kHttp2), offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

std::string NameText(const X509_NAME* name) {
  const Bio out(BIO_new(BIO_s_mem()), &BIO_free);
  if (name == nullptr || X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253) < 0) return "";
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

std::string Text(const ASN1_STRING* string) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, string);
  if (size < 0) return "";
  std::string text(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return text;
}

std::string OtherName(const GENERAL_NAME& name) {
  switch (name.type) {
    case GEN_DNS:
      return Text(name.d.dNSName);
    case GEN_URI:
      return Text(name.d.uniformResourceIdentifier);
    case GEN_EMAIL:
      return Text(name.d.rfc822Name);
    case GEN_IPADD: {
      const int size = ASN1_STRING_length(name.d.iPAddress);
      char text[INET6_ADDRSTRLEN] = "";
      if (size != 4 && size != 16) return "";
      ::inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name.d.iPAddress), text,
                  sizeof(text));
      return text;
    }
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Create(const TlsFiles& files) {
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  if (context == nullptr) return absl::ResourceExhaustedError(Reason());
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                               SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_max_cert_list(raw, kMostChainBytes);
  SSL_CTX_set_read_ahead(raw, 1);
  SSL_CTX_set_default_read_buffer_len(raw, kReadAheadBytes);
  SSL_CTX_set_cipher_list(raw, kTls12Ciphers);
  SSL_CTX_set_alpn_select_cb(raw, &ChooseProtocol, nullptr);
  RETURN_IF_ERROR(UseIdentity(raw, files));
  if (!files.client_ca.empty()) RETURN_IF_ERROR(AskForCertificate(raw, files));
  return std::shared_ptr<const TlsContext>(
      new TlsContext(std::move(context), !files.client_ca.empty()));
}

absl::Status TlsContext::CheckAgain(SSL* ssl) const {
  if (!asks_for_certificate_) return absl::OkStatus();
  const Certificate shown(SSL_get1_peer_certificate(ssl), &X509_free);
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(X509_STORE_CTX_new(),
                                                                              &X509_STORE_CTX_free);
  if (shown == nullptr || check == nullptr) return absl::UnauthenticatedError("no certificate");
  if (X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context_.get()), shown.get(),
                          SSL_get_peer_cert_chain(ssl)) != 1 ||
      X509_STORE_CTX_set_default(check.get(), "ssl_client") != 1) {
    return absl::InternalError(Reason());
  }
  const bool good = X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  if (good) return absl::OkStatus();
  return absl::UnauthenticatedError(
      X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get())));
}

std::unique_ptr<TlsStream> TlsStream::Create(const TlsContext& context, int socket) {
  SSL* const ssl = SSL_new(context.get());
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<TlsStream> stream(new TlsStream(ssl));
  BIO* const in = BIO_new_socket(socket, BIO_NOCLOSE);
  BIO* const out = BIO_new(BIO_s_mem());
  if (in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    return nullptr;
  }
  SSL_set_bio(ssl, in, out);
  SSL_set_accept_state(ssl);
  return stream;
}

TlsStream::Step TlsStream::Failed(int result) {
  const int system_error = errno;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return Step::kWait;
    case SSL_ERROR_ZERO_RETURN:
      break;
    case SSL_ERROR_SYSCALL:
      if (system_error != 0) error_ = std::strerror(system_error);
      break;
    default: {
      const long verified = SSL_get_verify_result(ssl_.get());
      const unsigned long code = ERR_peek_last_error();
      if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) break;
      error_ = Reason();
      if (verified != X509_V_OK)
        error_ = absl::StrCat("its certificate: ", X509_verify_cert_error_string(verified));
    }
  }
  ERR_clear_error();
  return Step::kEnd;
}

TlsStream::Step TlsStream::Handshake() {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl_.get());
  return result == 1 ? Step::kDone : Failed(result);
}

TlsStream::Step TlsStream::Read(char* out, size_t room, size_t* size) {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_read_ex(ssl_.get(), out, room, size);
  return result == 1 ? Step::kDone : Failed(result);
}

bool TlsStream::Write(std::string_view bytes) {
  ERR_clear_error();
  size_t written = 0;
  return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) == 1 &&
         written == bytes.size();
}

void TlsStream::Close() {
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::string_view TlsStream::Outgoing() const {
  char* text = nullptr;
  const long size = BIO_get_mem_data(SSL_get_wbio(ssl_.get()), &text);
  return size <= 0 ? std::string_view() : std::string_view(text, static_cast<size_t>(size));
}

void TlsStream::TookOutgoing() { (void)BIO_reset(SSL_get_wbio(ssl_.get())); }

void TlsStream::Describe(AdmittedPeer* peer) const {
  const Certificate shown(SSL_get1_peer_certificate(ssl_.get()), &X509_free);
  if (shown == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return;
  peer->verified = true;
  X509_NAME* const subject = X509_get_subject_name(shown.get());
  peer->subject = NameText(subject);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) peer->common_name = Text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(shown.get(), NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    std::string name = OtherName(*sk_GENERAL_NAME_value(names, i));
    if (!name.empty()) peer->alternative_names.push_back(std::move(name));
  }
  GENERAL_NAMES_free(names);
}

}  // namespace sluice::gateway
