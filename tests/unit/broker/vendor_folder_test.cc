// SPDX-License-Identifier: Apache-2.0
#include "broker/vendor_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace sluice::broker {
namespace {

namespace fs = std::filesystem;

class VendorFolderTest : public testing::Test {
 protected:
  VendorFolderTest() {
    char path[] = "/tmp/sluice-test-XXXXXX";
    directory_ = ::mkdtemp(path);
    fs::create_directory(directory_ / "host");
    environment_["OCL_ICD_VENDORS"] = directory_ / "host";
  }
  ~VendorFolderTest() override { fs::remove_all(directory_); }

  void WriteIcd(const std::string& name, const std::string& library) {
    std::ofstream(directory_ / "host" / name) << library << "\n";
  }

  std::set<std::string> Offered() {
    const absl::StatusOr<std::string> folder = FillVendorFolder(socket(), environment_);
    EXPECT_TRUE(folder.ok()) << folder.status();
    EXPECT_TRUE(folder->ends_with('/'))
        << *folder << ": CUDA's loader puts a file's name behind it";
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(*folder)) names.insert(entry.path().filename());
    return names;
  }

  std::string socket() const { return directory_ / "clients/broker.sock"; }
  fs::path folder() const { return directory_ / "broker.sock.vendors"; }

  fs::path directory_;
  std::map<std::string, std::string> environment_;
};

// Every driver of the host is offered but Sluice's own, wherever that is installed.
TEST_F(VendorFolderTest, OwnDriverIsHidden) {
  WriteIcd("pocl.icd", "libpocl.so.2");
  WriteIcd("sluice.icd", "/usr/lib/libsluice_icd.so");
  WriteIcd("renamed.icd", "/opt/x/libsluice_icd.so");
  WriteIcd("notes.txt", "libpocl.so.2");
  EXPECT_EQ(Offered(), std::set<std::string>{"pocl.icd"});
}

// Files that have come or gone since are seen the next time.
TEST_F(VendorFolderTest, IsBroughtUpToDate) {
  WriteIcd("a.icd", "liba.so");
  WriteIcd("b.icd", "libb.so");
  EXPECT_EQ(Offered(), (std::set<std::string>{"a.icd", "b.icd"}));
  fs::remove(directory_ / "host" / "a.icd");
  WriteIcd("c.icd", "libc.so");
  WriteIcd("b.icd", "/usr/lib/libsluice_icd.so");
  EXPECT_EQ(Offered(), std::set<std::string>{"c.icd"});
}

// Of the daemon's own environment, Sluice's driver alone is no choice: the system's are offered.
TEST_F(VendorFolderTest, OwnDriverAloneIsNoChoice) {
  WriteIcd("sluice.icd", "/usr/lib/libsluice_icd.so");
  std::set<std::string> of_system;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/etc/OpenCL/vendors", error)) {
    if (entry.path().extension() == ".icd" && entry.path().filename() != "sluice.icd")
      of_system.insert(entry.path().filename());
  }
  ASSERT_FALSE(of_system.empty()) << "this machine has no OpenCL driver: pocl-opencl-icd";
  environment_.clear();
  for (const fs::path& named : {directory_ / "host", directory_ / "host" / "sluice.icd"}) {
    ::setenv("OCL_ICD_VENDORS", named.c_str(), 1);
    EXPECT_EQ(Offered(), of_system) << named;
  }
  WriteIcd("pocl.icd", "libpocl.so.2");
  ::setenv("OCL_ICD_VENDORS", (directory_ / "host").c_str(), 1);
  EXPECT_EQ(Offered(), std::set<std::string>{"pocl.icd"});
  ::unsetenv("OCL_ICD_VENDORS");
}

// A host without such a folder has nothing to hide, and the daemon's end leaves nothing.
TEST_F(VendorFolderTest, NothingIsLeft) {
  (void)Offered();
  RemoveVendorFolder(socket());
  EXPECT_FALSE(fs::exists(folder()));
  environment_["OCL_ICD_VENDORS"] = directory_ / "nowhere";
  const absl::StatusOr<std::string> folder = FillVendorFolder(socket(), environment_);
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(*folder, "");
}

// Its files' drivers are loaded into every worker: it is the daemon's own, or there is none, and a
// folder in its place stays.
TEST_F(VendorFolderTest, NothingElseIsTakenForIt) {
  WriteIcd("pocl.icd", "libpocl.so.2");
  const fs::path folder = this->folder();
  const auto refused = [this] {
    const absl::StatusOr<std::string> filled = FillVendorFolder(socket(), environment_);
    EXPECT_EQ(filled.status().code(), absl::StatusCode::kFailedPrecondition) << filled.status();
    return !filled.ok();
  };
  const fs::path victim = directory_ / "victim";
  fs::create_directory(victim);
  std::ofstream(victim / "file") << "precious";
  fs::create_symlink(victim, folder);
  EXPECT_TRUE(refused());
  EXPECT_TRUE(fs::exists(victim / "file"));
  fs::remove(folder);
  std::ofstream(folder.string()) << "a file";
  EXPECT_TRUE(refused());
  fs::remove(folder);
  fs::create_directory(folder);
  std::ofstream(folder / "own.icd") << "libown.so";
  EXPECT_TRUE(refused());
  EXPECT_TRUE(fs::exists(folder / "own.icd"));
  if (::geteuid() == 0) {
    fs::remove(folder / "own.icd");
    ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
    EXPECT_TRUE(refused());
  }
  fs::remove_all(folder);
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_TRUE(refused());
}

// Workers run as other users.
TEST_F(VendorFolderTest, UmaskDoesNotCloseIt) {
  WriteIcd("pocl.icd", "libpocl.so.2");
  const mode_t before = ::umask(077);
  EXPECT_EQ(Offered(), std::set<std::string>{"pocl.icd"});
  ::umask(before);
  struct stat info;
  ASSERT_EQ(::stat(folder().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
}

}  // namespace
}  // namespace sluice::broker
