// SPDX-License-Identifier: Apache-2.0
#include "broker/os/file_access.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>

namespace sluice::os {
namespace {

class FileAccessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FileConfinementVersion() == 0) GTEST_SKIP() << "this kernel has no landlock";
    std::string pattern = ::testing::TempDir() + "/file_access_test.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    for (const char* folder : {"seen", "own", "hidden"}) {
      std::filesystem::create_directory(root_ + "/" + folder);
      std::ofstream(root_ + "/" + folder + "/file") << "text";
    }
    access_.readable = {root_ + "/seen", root_ + "/not there"};
    access_.writable = {root_ + "/own"};
    access_.devices = {"/dev/null"};
  }
  void TearDown() override {
    if (!root_.empty()) std::filesystem::remove_all(root_);
  }

  // Confines a child and has it look; the number of the first check that failed, 0 if none did.
  int InConfinedChild(const std::function<int()>& look) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(ConfineFiles(access_).ok() ? look() : 100);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
  }
  bool Opens(const std::string& path, int flags) const {
    const int fd = ::open((path[0] == '/' ? path : root_ + "/" + path).c_str(), flags, 0600);
    if (fd >= 0) ::close(fd);
    return fd >= 0;
  }

  std::string root_;
  FileAccess access_;
};

// A readable file can be read and not written, a writable one both, and the rest neither, by
// whatever path it is named.
TEST_F(FileAccessTest, OnlyWhatIsAllowed) {
  EXPECT_EQ(InConfinedChild([this] {
              if (!Opens("seen/file", O_RDONLY)) return 1;
              if (Opens("seen/file", O_WRONLY)) return 2;
              if (Opens("seen/new", O_WRONLY | O_CREAT)) return 3;
              if (!Opens("own/file", O_RDWR | O_TRUNC)) return 4;
              if (!Opens("own/new", O_RDWR | O_CREAT)) return 5;
              if (Opens("hidden/file", O_RDONLY)) return 6;
              if (Opens("seen/../hidden/file", O_RDONLY)) return 7;
              if (Opens("/etc/passwd", O_RDONLY)) return 8;
              if (::symlink((root_ + "/hidden/file").c_str(), (root_ + "/own/link").c_str()) != 0)
                return 9;
              if (Opens("own/link", O_RDONLY)) return 10;
              if (!Opens("/dev/null", O_RDWR)) return 11;
              return 0;
            }),
            0);
}

// Below a writable folder may lie anything that an earlier process put there. A link in that place
// opens nothing, whichever of the two is named first or is read only. Neither the folder nor other
// permissions are lost by it.
TEST_F(FileAccessTest, LinksOfOthersOpenNothing) {
  for (const char* target : {"/", "/hidden", "/", "/hidden/file"}) {
    const std::string to = (std::string(target) == "/" ? "" : root_) + target;
    for (const char* name : {"below", "deep/er", "read"}) {
      std::filesystem::create_directories(root_ + "/own/deep");
      std::filesystem::remove(root_ + "/own/" + name);
      std::filesystem::create_symlink(to, root_ + "/own/" + name);
    }
    access_.readable.push_back(root_ + "/own/read");
    access_.writable = {root_ + "/own/below", root_ + "/own/deep/er", root_ + "/own",
                        root_ + "/own/deep/er/not there"};
    EXPECT_EQ(InConfinedChild([this] {
                if (Opens("hidden/file", O_RDONLY)) return 1;
                if (Opens("own/below/hidden/file", O_RDONLY)) return 2;
                if (Opens("/etc/passwd", O_RDONLY)) return 3;
                if (!Opens("seen/file", O_RDONLY)) return 4;
                if (!Opens("own/new", O_RDWR | O_CREAT)) return 5;
                return 0;
              }),
              0)
        << target;
  }
}

// Nor where the names do not tell that one lies below the other, because of the operator's own
// links, which lead to where they lead.
TEST_F(FileAccessTest, LinksOfTheOperatorAreFollowed) {
  std::filesystem::create_directory_symlink(root_ + "/own", root_ + "/by-name");
  std::filesystem::create_directory_symlink("by-name", root_ + "/by-link");
  std::filesystem::create_directory(root_ + "/own/tmp");
  access_.readable.push_back(root_ + "/own/../seen");
  access_.writable = {root_ + "/own/tmp", root_ + "/by-link"};
  const auto look = [this] {
    if (!Opens("by-link/new", O_RDWR | O_CREAT)) return 1;
    if (!Opens("own/tmp/new", O_RDWR | O_CREAT)) return 2;
    if (Opens("hidden/file", O_RDONLY)) return 3;
    return 0;
  };
  EXPECT_EQ(InConfinedChild(look), 0);
  std::filesystem::remove_all(root_ + "/own/tmp");
  for (const std::string& to : {root_ + "/hidden", root_, std::string("/")}) {
    std::filesystem::create_directory_symlink(to, root_ + "/own/tmp");
    EXPECT_EQ(InConfinedChild([this] { return Opens("hidden/file", O_RDONLY) ? 1 : 0; }), 0) << to;
    std::filesystem::remove(root_ + "/own/tmp");
  }
}

// A process that a confined one starts is confined as well.
TEST_F(FileAccessTest, HoldsForChildren) {
  EXPECT_EQ(InConfinedChild([this] {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(Opens("hidden/file", O_RDONLY) ? 1 : 0);
              int status = 0;
              ::waitpid(child, &status, 0);
              return WEXITSTATUS(status);
            }),
            0);
}

// Where the kernel can, no TCP connection is made and no process outside gets a signal.
TEST_F(FileAccessTest, NoNetworkAndNoSignals) {
  const int version = FileConfinementVersion();
  EXPECT_EQ(InConfinedChild([version] {
              const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
              sockaddr_in address = {};
              address.sin_family = AF_INET;
              address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
              address.sin_port = htons(9);
              ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address));
              if (version >= 4 && errno != EACCES) return 1;
              if (version >= 6 && ::kill(::getppid(), 0) == 0) return 2;
              return 0;
            }),
            0);
}

// Where the kernel can, TCP is there for the ports that are allowed, to listen on one and to
// connect to another, and for no others.
TEST_F(FileAccessTest, OnlyPortsThatAreAllowed) {
  if (FileConfinementVersion() < 4) GTEST_SKIP() << "this kernel's landlock knows no ports";
  const auto address_of = [](uint16_t port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  };
  // Two that are free, one of them open.
  uint16_t ports[2];
  int sockets[2];
  for (int i = 0; i < 2; ++i) {
    sockets[i] = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = address_of(0);
    socklen_t length = sizeof(address);
    ASSERT_EQ(::bind(sockets[i], reinterpret_cast<sockaddr*>(&address), length), 0);
    ASSERT_EQ(::getsockname(sockets[i], reinterpret_cast<sockaddr*>(&address), &length), 0);
    ports[i] = ntohs(address.sin_port);
  }
  ASSERT_EQ(::listen(sockets[1], 1), 0);
  ::close(sockets[0]);
  access_.listen_ports = {ports[0]};
  access_.connect_ports = {ports[1]};
  const auto tries = [&](int (*call)(int, const sockaddr*, socklen_t), uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = address_of(port);
    const bool good =
        call(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    const int error = good ? 0 : errno;
    ::close(socket);
    return error;
  };
  EXPECT_EQ(InConfinedChild([&] {
              if (tries(&::bind, ports[0]) != 0) return 1;
              if (tries(&::bind, ports[1]) != EACCES) return 2;
              if (tries(&::bind, 0) != EACCES) return 3;
              if (tries(&::connect, ports[1]) != 0) return 4;
              if (tries(&::connect, ports[0]) != EACCES) return 5;
              return 0;
            }),
            0);
  ::close(sockets[1]);
}

}  // namespace
}  // namespace sluice::os
