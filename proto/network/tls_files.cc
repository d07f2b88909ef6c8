// SPDX-License-Identifier: Apache-2.0
#include "proto/network/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"

namespace sluice::wire {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Over(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

absl::StatusOr<Certificate> ReadCertificate(const PemFile& file) {
  Certificate certificate(PEM_read_bio_X509(Over(file.content).get(), nullptr, nullptr, nullptr),
                          &X509_free);
  ERR_clear_error();
  if (certificate != nullptr) return certificate;
  return absl::InvalidArgumentError(absl::StrCat(file.name, ": it holds no certificate (PEM)"));
}

// No prompt for a pass phrase: nobody is there to answer.
int NoPassPhrase(char*, int, int, void*) { return 0; }

}  // namespace

absl::Status CheckIdentity(const PemFile& certificate, const PemFile& key) {
  ASSIGN_OR_RETURN(const Certificate own, ReadCertificate(certificate));
  if (X509_cmp_current_time(X509_get0_notAfter(own.get())) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(certificate.name, ": the certificate has expired"));
  }
  const Key private_key(
      PEM_read_bio_PrivateKey(Over(key.content).get(), nullptr, &NoPassPhrase, nullptr),
      &EVP_PKEY_free);
  const bool fits = private_key != nullptr && X509_check_private_key(own.get(), private_key.get());
  ERR_clear_error();
  if (private_key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        key.name,
        ": it holds no private key (PEM), or one under a pass phrase, for which nobody "
        "can be asked"));
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key.name, ": it is not the key of the certificate (", certificate.name, ")"));
}

absl::Status CheckAuthorities(const PemFile& authorities) {
  return ReadCertificate(authorities).status();
}

absl::Status CheckRevocations(const PemFile& lists) {
  const Bio bio = Over(lists.content);
  int count = 0;
  while (true) {
    const std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)> list(
        PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr), &X509_CRL_free);
    ERR_clear_error();
    if (list == nullptr) break;
    ++count;
    const ASN1_TIME* const next = X509_CRL_get0_nextUpdate(list.get());
    if (next == nullptr || X509_cmp_current_time(next) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        lists.name,
        ": a revocation list is over, so that no certificate would be taken: make a new "
        "one (openssl ca -gencrl)"));
  }
  if (count > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(lists.name, ": it holds no revocation list (PEM)"));
}

}  // namespace sluice::wire
