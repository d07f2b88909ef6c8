// SPDX-License-Identifier: Apache-2.0
//
// The peer of a connection: all that is known of it before a call says more. Made once per
// connection, where TLS ends. Plain data. The strings are the peer's own words; if `verified`, an
// authority of the entry's has signed for those of the certificate.
#pragma once

#include <string>
#include <vector>

namespace sluice::gateway {

struct AdmittedPeer {
  std::string address;  // "127.0.0.1", "[::1]": no port, which would make each connection another.
  // Of its certificate, as RFC 2253 writes it ("CN=alice,O=Example"); empty: it has none.
  std::string subject;
  std::string common_name;
  // Names, addresses and URIs, in the certificate's order ("alice.example", "spiffe://...").
  std::vector<std::string> alternative_names;
  bool verified = false;  // It has shown a certificate of one of the entry's authorities.
};

}  // namespace sluice::gateway
