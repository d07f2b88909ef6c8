// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/containers/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "broker/os/file.h"
#include "proto/status_macros.h"

namespace sluice::ctl {
namespace {

constexpr size_t kMaxElfBytes = size_t{1} << 30;
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxEntries = 4096;  // Of each list; a file that has more is damaged.

absl::Status Damaged(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("a damaged ELF file: ", what));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<ElfFile> Read();

 private:
  // A copy of the structure at that offset; nothing if the file ends before its end.
  template <typename T>
  std::optional<T> At(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  std::optional<uint64_t> OffsetOf(uint64_t address) const;
  std::string Text(uint64_t offset) const;
  std::string Name(uint64_t index) const { return Text(strings_ + index); }
  absl::Status ReadHeaders();
  absl::Status ReadDynamic();
  absl::Status ReadNeeds();
  absl::Status ReadVersions();

  const std::string_view bytes_;
  std::vector<Elf64_Phdr> segments_;
  uint64_t dynamic_ = 0;
  uint64_t strings_ = 0;
  uint64_t needs_ = 0;
  uint64_t need_count_ = 0;
  uint64_t versions_ = 0;
  uint64_t version_count_ = 0;
  ElfFile file_;
};

// The text up to its NUL, as it may be shown to a person; "" where the file has none.
std::string Reader::Text(uint64_t offset) const {
  if (offset >= bytes_.size()) return "";
  const size_t end = bytes_.find('\0', offset);
  if (end == std::string_view::npos) return "";
  std::string text(bytes_.substr(offset, std::min(end - offset, kMaxNameBytes)));
  for (char& c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

std::optional<uint64_t> Reader::OffsetOf(uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const uint64_t within = address - segment.p_vaddr;
    if (within < segment.p_filesz && segment.p_offset < bytes_.size() &&
        within < bytes_.size() - segment.p_offset) {
      return segment.p_offset + within;
    }
  }
  return std::nullopt;
}

absl::Status Reader::ReadHeaders() {
  const std::optional<Elf64_Ehdr> header = At<Elf64_Ehdr>(0);
  if (!header.has_value() || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return absl::InvalidArgumentError("no ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return absl::InvalidArgumentError("an ELF file of another kind of machine");
  file_.machine = header->e_machine;
  for (uint64_t i = 0; i < header->e_phnum && i < kMaxEntries; ++i) {
    const std::optional<Elf64_Phdr> segment =
        At<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment.has_value()) return Damaged("its segments lie behind its end");
    if (segment->p_type == PT_INTERP) file_.interpreter = Text(segment->p_offset);
    if (segment->p_type == PT_DYNAMIC) dynamic_ = segment->p_offset;
    segments_.push_back(*segment);
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadDynamic() {
  std::vector<uint64_t> names;
  uint64_t strings = 0;
  uint64_t needs = 0;
  uint64_t versions = 0;
  for (uint64_t i = 0;; ++i) {
    const std::optional<Elf64_Dyn> entry = At<Elf64_Dyn>(dynamic_ + i * sizeof(Elf64_Dyn));
    if (!entry.has_value() || i >= kMaxEntries) return Damaged("its dynamic section has no end");
    if (entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_NEEDED) names.push_back(entry->d_un.d_val);
    if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
    if (entry->d_tag == DT_VERNEED) needs = entry->d_un.d_ptr;
    if (entry->d_tag == DT_VERNEEDNUM) need_count_ = entry->d_un.d_val;
    if (entry->d_tag == DT_VERDEF) versions = entry->d_un.d_ptr;
    if (entry->d_tag == DT_VERDEFNUM) version_count_ = entry->d_un.d_val;
  }
  const std::optional<uint64_t> table = OffsetOf(strings);
  if (!table.has_value()) return Damaged("its names lie behind its end");
  strings_ = *table;
  needs_ = OffsetOf(needs).value_or(0);
  versions_ = OffsetOf(versions).value_or(0);
  for (const uint64_t name : names) file_.needed.push_back(Name(name));
  return absl::OkStatus();
}

absl::Status Reader::ReadNeeds() {
  uint64_t at = needs_;
  for (uint64_t i = 0; at != 0 && i < need_count_ && i < kMaxEntries; ++i) {
    const std::optional<Elf64_Verneed> need = At<Elf64_Verneed>(at);
    if (!need.has_value()) return Damaged("its needed versions lie behind its end");
    uint64_t detail = at + need->vn_aux;
    for (uint64_t k = 0; k < need->vn_cnt && k < kMaxEntries; ++k) {
      const std::optional<Elf64_Vernaux> version = At<Elf64_Vernaux>(detail);
      if (!version.has_value() || file_.version_needs.size() >= kMaxEntries)
        return Damaged("its needed versions lie behind its end");
      file_.version_needs.push_back({Name(need->vn_file), Name(version->vna_name)});
      if (version->vna_next == 0) break;
      detail += version->vna_next;
    }
    if (need->vn_next == 0) break;
    at += need->vn_next;
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadVersions() {
  uint64_t at = versions_;
  for (uint64_t i = 0; at != 0 && i < version_count_ && i < kMaxEntries; ++i) {
    const std::optional<Elf64_Verdef> version = At<Elf64_Verdef>(at);
    const std::optional<Elf64_Verdaux> name =
        version.has_value() ? At<Elf64_Verdaux>(at + version->vd_aux) : std::nullopt;
    if (!name.has_value()) return Damaged("its versions lie behind its end");
    file_.versions.push_back(Name(name->vda_name));
    if (version->vd_next == 0) break;
    at += version->vd_next;
  }
  return absl::OkStatus();
}

absl::StatusOr<ElfFile> Reader::Read() {
  RETURN_IF_ERROR(ReadHeaders());
  if (dynamic_ == 0) return file_;  // A static program.
  RETURN_IF_ERROR(ReadDynamic());
  RETURN_IF_ERROR(ReadNeeds());
  RETURN_IF_ERROR(ReadVersions());
  return file_;
}

// The newest "GLIBC_x.y" of a list; GLIBC_PRIVATE and GLIBC_ABI_* are none.
void TakeNewest(const std::string& name, std::string* newest) {
  absl::string_view version = name;
  if (!absl::ConsumePrefix(&version, "GLIBC_") || version.empty() || version[0] != '2') return;
  if (newest->empty() || IsNewerVersion(std::string(version), *newest))
    *newest = std::string(version);
}

}  // namespace

absl::StatusOr<ElfFile> ParseElf(std::string_view bytes) { return Reader(bytes).Read(); }

absl::StatusOr<ElfFile> ReadElf(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "fstat");
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("no regular file");
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return absl::InvalidArgumentError("an empty file");
  if (size > kMaxElfBytes) return absl::InvalidArgumentError("too large for a library");
  // Read, not mapped: a file that shrinks meanwhile would raise SIGBUS.
  ASSIGN_OR_RETURN(const std::string bytes, os::ReadToEnd(fd, kMaxElfBytes));
  return ParseElf(bytes);
}

absl::StatusOr<ElfFile> ReadElfAt(const std::string& path) {
  const os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  absl::StatusOr<ElfFile> file = ReadElf(fd.get());
  if (file.ok()) return file;
  return absl::Status(file.status().code(), absl::StrCat(path, ": ", file.status().message()));
}

bool IsGlibcLibrary(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "libc.so.6",    "libm.so.6",      "libdl.so.2",  "libpthread.so.0", "librt.so.1",
      "libutil.so.1", "libresolv.so.2", "libanl.so.1", "libmvec.so.1",    "libBrokenLocale.so.1"};
  return name.starts_with("ld-linux") ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::vector<std::string> NeededBesideGlibc(const ElfFile& file) {
  std::vector<std::string> more;
  for (const std::string& name : file.needed) {
    if (!IsGlibcLibrary(name)) more.push_back(name);
  }
  return more;
}

std::string NewestGlibcNeeded(const ElfFile& file) {
  std::string newest;
  for (const ElfFile::VersionNeed& need : file.version_needs) TakeNewest(need.version, &newest);
  return newest;
}

std::string NewestGlibcDefined(const ElfFile& libc) {
  std::string newest;
  for (const std::string& version : libc.versions) TakeNewest(version, &newest);
  return newest;
}

bool IsNewerVersion(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = absl::StrSplit(a, '.');
  const std::vector<std::string> right = absl::StrSplit(b, '.');
  for (size_t i = 0; i < left.size() || i < right.size(); ++i) {
    uint32_t l = 0;
    uint32_t r = 0;
    if (i < left.size() && !absl::SimpleAtoi(left[i], &l)) l = 0;
    if (i < right.size() && !absl::SimpleAtoi(right[i], &r)) r = 0;
    if (l != r) return l > r;
  }
  return false;
}

}  // namespace sluice::ctl
