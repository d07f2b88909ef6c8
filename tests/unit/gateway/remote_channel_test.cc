// SPDX-License-Identifier: Apache-2.0
#include "client_icd/remote/remote_channel.h"

#include <grpc/support/log.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/os/scoped_handle.h"
#include "tests/unit/gateway/certificates.h"

namespace sluice::gateway {
namespace {

class RemoteChannelTest : public testing::Test {
 protected:
  absl::StatusOr<client::RemoteSecurity> Choose(const std::string& endpoint) {
    return client::ChooseSecurity(endpoint, [this](const char* name) -> std::optional<std::string> {
      const auto it = environment_.find(name);
      return it == environment_.end() ? std::nullopt : std::optional(it->second);
    });
  }
  std::string File(const std::string& name, const std::string& content) {
    const std::string path = testing::TempDir() + "remote_channel_" + name;
    std::ofstream(path) << content;
    return path;
  }

  std::map<std::string, std::string> environment_;
};

// A listening socket that nobody looks at: the kernel takes the first connections, and no more.
class MuteListener {
 public:
  MuteListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(fd_.get(), 0) != 0 ||
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::abort();
    }
    address_ = address;
  }
  // Afterwards nobody gets a connection.
  void Fill() {
    pollfd connected = {-1, POLLOUT, 0};
    do {
      taken_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      connected.fd = taken_.back().get();
      static_cast<void>(
          ::connect(connected.fd, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)));
    } while (::poll(&connected, 1, 200) == 1);
  }
  std::string endpoint() const { return absl::StrCat("127.0.0.1:", ntohs(address_.sin_port)); }

 private:
  const os::UniqueFd fd_;
  sockaddr_in address_ = {};
  std::vector<os::UniqueFd> taken_;
};

// A peer that takes no connection is not there, and nobody waits long for it. One that has taken it
// may be busy, and has all the time that the caller has.
TEST_F(RemoteChannelTest, BusyIsNotAbsent) {
  ::setenv("SLUICE_CONNECT_TIMEOUT_MS", "100", 1);
  MuteListener listener;
  const auto start = std::chrono::steady_clock::now();
  const auto busy =
      client::DescribePlatforms(listener.endpoint(), std::chrono::milliseconds(1'000));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1'000));
  EXPECT_TRUE(absl::StrContains(busy.status().message(), "within 1000 ms")) << busy.status();
  listener.Fill();
  const auto absent = client::DescribePlatforms(listener.endpoint(), std::chrono::hours(1));
  EXPECT_EQ(absent.status().message(), "no connection within 100 ms");
  ::unsetenv("SLUICE_CONNECT_TIMEOUT_MS");
}

std::atomic<int> application_lines{0};

// A program that has gRPC keeps the log function that it set, whatever is asked of the network.
TEST_F(RemoteChannelTest, LeavesTheApplicationsLogAlone) {
  gpr_set_log_function([](gpr_log_func_args*) { ++application_lines; });
  EXPECT_FALSE(client::DescribePlatforms("127.0.0.1:1", std::chrono::milliseconds(200)).ok());
  const int before = application_lines;
  gpr_log(GPR_ERROR, "the application's own line");
  EXPECT_EQ(application_lines, before + 1);
  gpr_set_log_function(nullptr);
}

// This machine is reached without TLS; another one only if the user says that this is all right.
TEST_F(RemoteChannelTest, PlaintextOnlyToLoopback) {
  EXPECT_FALSE(Choose("127.0.0.1:7466")->tls);
  EXPECT_FALSE(Choose("localhost:7466")->tls);
  const absl::StatusOr<client::RemoteSecurity> remote = Choose("192.0.2.1:7466");
  EXPECT_TRUE(!remote.ok() || remote->tls);  // An error where the system has no authorities.
  environment_["SLUICE_ALLOW_PLAINTEXT"] = "0";
  const absl::StatusOr<client::RemoteSecurity> refused = Choose("192.0.2.1:7466");
  EXPECT_TRUE(!refused.ok() || refused->tls);
  environment_["SLUICE_ALLOW_PLAINTEXT"] = "1";
  ASSERT_TRUE(Choose("192.0.2.1:7466").ok());
  EXPECT_FALSE(Choose("192.0.2.1:7466")->tls);
}

// An authority or a certificate asks for TLS, to loopback too, and allowing plaintext does not undo
// it.
TEST_F(RemoteChannelTest, FilesAskForTls) {
  const TestAuthority authority("remote_channel");
  environment_["SLUICE_TLS_CA"] = authority.certificate_file();
  environment_["SLUICE_ALLOW_PLAINTEXT"] = "1";
  const absl::StatusOr<client::RemoteSecurity> security = Choose("127.0.0.1:7466");
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_TRUE(security->tls);
  EXPECT_EQ(security->roots, ReadWholeFile(authority.certificate_file()));
}

// The system's authorities are where the first of the systems keeps them that has any; who has none
// is told where they were looked for, and what to do.
TEST_F(RemoteChannelTest, FindsTheSystemsAuthorities) {
  const auto nothing = [](const char*) { return std::nullopt; };
  std::map<std::string, std::string> files;
  const client::SystemFile read = [&files](const char* path) -> absl::StatusOr<std::string> {
    const auto it = files.find(path);
    if (it == files.end()) return absl::NotFoundError("no such file");
    if (it->second == "locked") return absl::PermissionDeniedError("cannot open it");
    return it->second;
  };
  const auto roots = [&]() { return client::ChooseSecurity("192.0.2.1:7466", nothing, read); };
  files["/etc/ssl/certs/ca-certificates.crt"] = "locked";
  const std::string refusal(roots().status().message());
  for (const char* words : {"192.0.2.1:7466", "cannot open it", "SLUICE_TLS_CA",
                            "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"}) {
    EXPECT_TRUE(absl::StrContains(refusal, words)) << words << ": " << refusal;
  }
  files["/etc/pki/tls/certs/ca-bundle.crt"] = "Fedora's";
  ASSERT_TRUE(roots().ok()) << roots().status();
  EXPECT_EQ(roots()->roots, "Fedora's");
  EXPECT_EQ(roots()->roots_file, "/etc/pki/tls/certs/ca-bundle.crt");
  files["/etc/ssl/certs/ca-certificates.crt"] = "Debian's";
  EXPECT_EQ(roots()->roots, "Debian's");
  files.clear();
  files["/etc/ssl/certs/ca-certificates.crt"] = "";
  EXPECT_TRUE(absl::StrContains(roots().status().message(), "ca-certificates.crt is empty"));
}

// A file that cannot be read, or half of a pair, is an error that names the variable.
TEST_F(RemoteChannelTest, NamesTheVariable) {
  environment_["SLUICE_TLS_CA"] = testing::TempDir() + "no_such_file";
  absl::StatusOr<client::RemoteSecurity> security = Choose("127.0.0.1:7466");
  ASSERT_FALSE(security.ok());
  EXPECT_NE(security.status().message().find("SLUICE_TLS_CA"), absl::string_view::npos);
  environment_.clear();
  environment_["SLUICE_TLS_KEY"] = File("key", "key");
  security = Choose("127.0.0.1:7466");
  ASSERT_FALSE(security.ok());
  EXPECT_NE(security.status().message().find("SLUICE_TLS_CERT"), absl::string_view::npos);
}

// A pipe is read when somebody writes into it, and not waited for without an end.
TEST_F(RemoteChannelTest, PipesAreAwaitedForAWhile) {
  const std::string path = testing::TempDir() + "remote_channel_pipe_" + std::to_string(::getpid());
  environment_["SLUICE_TOKEN_FILE"] = path;
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  {
    std::thread writer([&path] { std::ofstream(path) << "the-token-of-a-pipe\n"; });
    const absl::StatusOr<client::RemoteSecurity> security = Choose("127.0.0.1:7466");
    writer.join();
    EXPECT_TRUE(security.ok()) << security.status();
  }
  const absl::StatusOr<client::RemoteSecurity> security = Choose("127.0.0.1:7466");
  ASSERT_FALSE(security.ok());
  EXPECT_EQ(security.status().message(), "SLUICE_TOKEN_FILE: cannot read " + path +
                                             ": nothing has been written into it for 5 s");
  ::unlink(path.c_str());
}

// A file without an end is read up to a limit, which is told.
TEST_F(RemoteChannelTest, ReadsOnlySoMuch) {
  environment_["SLUICE_TOKEN_FILE"] = File("long", "token\n" + std::string(5 << 20, 'x'));
  const absl::StatusOr<client::RemoteSecurity> security = Choose("127.0.0.1:7466");
  ASSERT_FALSE(security.ok());
  EXPECT_EQ(security.status().message(),
            "SLUICE_TOKEN_FILE: cannot read " + environment_["SLUICE_TOKEN_FILE"] +
                ": it is longer than 4194304 bytes, the most that is taken");
}

// However a system words the end of a connection in its handshake, the hint says what to set.
TEST_F(RemoteChannelTest, HintsAtBrokenHandshakes) {
  client::RemoteSecurity security;
  security.tls = true;
  for (const char* end : {"Socket closed", "Connection reset by peer", "Endpoint read failed"}) {
    const std::string message = std::string("last error: UNAVAILABLE: ipv4:127.0.0.1:7466: ") + end;
    const std::string hint = client::TlsHint({grpc::StatusCode::UNAVAILABLE, message}, security);
    EXPECT_NE(hint.find("set SLUICE_TLS_CERT"), std::string::npos) << end;
  }
  EXPECT_EQ(client::TlsHint({grpc::StatusCode::UNAVAILABLE, "Connection refused"}, security), "");
}

// Windows' gRPC has one text for every connection that fails, which says nothing to a person.
TEST_F(RemoteChannelTest, ExplainsWindowsError) {
  const grpc::Status bare(grpc::StatusCode::UNAVAILABLE,
                          "failed to connect to all addresses; last error: UNKNOWN: "
                          "ipv4:127.0.0.1:1: WSA Error");
  EXPECT_NE(client::ConnectHint(bare).find("no daemon listens"), std::string::npos);
  EXPECT_EQ(client::ConnectHint({grpc::StatusCode::UNAVAILABLE, "Connection refused"}), "");
}

// So is a file that holds something else, which gRPC would only call an empty list of addresses.
TEST_F(RemoteChannelTest, NamesTheFileThatIsNoPem) {
  TestAuthority authority("remote_channel_pem");
  authority.Issue("one");
  authority.Issue("two");
  const std::string text = File("text", "no PEM");
  const auto error = [this] { return std::string(Choose("127.0.0.1:7466").status().message()); };
  environment_["SLUICE_TLS_CA"] = text;
  EXPECT_EQ(error(), "SLUICE_TLS_CA=" + text + ": it holds no certificate (PEM)");
  environment_["SLUICE_TLS_CA"] = authority.certificate_file();
  environment_["SLUICE_TLS_CERT"] = authority.CertificateOf("one");
  environment_["SLUICE_TLS_KEY"] = authority.KeyOf("one");
  EXPECT_EQ(error(), "");
  environment_["SLUICE_TLS_KEY"] = authority.KeyOf("two");
  EXPECT_TRUE(error().starts_with("SLUICE_TLS_KEY=" + authority.KeyOf("two"))) << error();
  environment_["SLUICE_TLS_CERT"] = text;
  EXPECT_TRUE(error().starts_with("SLUICE_TLS_CERT=" + text)) << error();
}

// The token is the file's first, by the daemon's rule: one file serves both sides. A file without
// one is an error, not no token.
TEST_F(RemoteChannelTest, ReadsToken) {
  environment_["SLUICE_TOKEN_FILE"] = File("huge", std::string(4097, 'x'));
  EXPECT_EQ(Choose("127.0.0.1:7466").status().message(),
            "SLUICE_TOKEN_FILE: " + environment_["SLUICE_TOKEN_FILE"] +
                ": line 1 is longer than 4096 bytes: no request can carry it");
  environment_["SLUICE_TOKEN_FILE"] = File("token", "  abcdef0123456789 \nsecond line\n");
  absl::StatusOr<client::RemoteSecurity> security = Choose("127.0.0.1:7466");
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_EQ(security->token, "abcdef0123456789");
  environment_["SLUICE_TOKEN_FILE"] = File("marked",
                                           "\xef\xbb\xbf"
                                           "abcdef0123456789\r\nsecond line\r\n");
  security = Choose("127.0.0.1:7466");
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_EQ(security->token, "abcdef0123456789");
  environment_["SLUICE_TOKEN_FILE"] = File("wide", std::string("\xff\xfe"
                                                               "a\0b\0",
                                                               6));
  EXPECT_NE(Choose("127.0.0.1:7466").status().message().find("UTF-16"), absl::string_view::npos);
  environment_["SLUICE_TOKEN_FILE"] = File("comment", "# made 2026-11\n\nabcdef0123456789\n#\n");
  security = Choose("127.0.0.1:7466");
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_EQ(security->token, "abcdef0123456789");
  environment_["SLUICE_TOKEN_FILE"] = File("weak", "# c\nsecret\n");
  EXPECT_NE(Choose("127.0.0.1:7466").status().message().find("line 2 has 6 characters"),
            absl::string_view::npos);
  for (const char* none : {"\n", "# made 2026-11\n"}) {
    environment_["SLUICE_TOKEN_FILE"] = File("none", none);
    EXPECT_NE(Choose("127.0.0.1:7466").status().message().find("it holds no token"),
              absl::string_view::npos);
  }
}

}  // namespace
}  // namespace sluice::gateway
