// SPDX-License-Identifier: Apache-2.0
#include "broker/gateway/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Over(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

absl::StatusOr<Certificate> ReadCertificate(const char* what, const std::string& pem) {
  Certificate certificate(PEM_read_bio_X509(Over(pem).get(), nullptr, nullptr, nullptr),
                          &X509_free);
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("\"", what, "\" holds no certificate (PEM)"));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the certificate in \"", what, "\" has expired"));
  }
  return certificate;
}

// No prompt for a pass phrase: there is nobody at a daemon's terminal.
int NoPassPhrase(char*, int, int, void*) { return 0; }

}  // namespace

absl::Status CheckTlsFiles(const std::string& certificate, const std::string& key,
                           const std::string& client_ca) {
  ASSIGN_OR_RETURN(const Certificate own, ReadCertificate("certificate", certificate));
  const Key private_key(PEM_read_bio_PrivateKey(Over(key).get(), nullptr, &NoPassPhrase, nullptr),
                        &EVP_PKEY_free);
  if (private_key == nullptr) {
    return absl::InvalidArgumentError(
        "\"key\" holds no private key (PEM), or one under a pass phrase, which sluiced cannot "
        "give");
  }
  if (X509_check_private_key(own.get(), private_key.get()) != 1) {
    return absl::InvalidArgumentError("\"certificate\" and \"key\" do not belong together");
  }
  if (!client_ca.empty()) RETURN_IF_ERROR(ReadCertificate("client_ca", client_ca).status());
  ERR_clear_error();
  return absl::OkStatus();
}

}  // namespace sluice
