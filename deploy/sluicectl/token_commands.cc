// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/token_commands.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "broker/config/config.h"
#include "broker/config/config_keys.h"
#include "broker/os/file.h"
#include "deploy/sluicectl/admin_call.h"
#include "deploy/sluicectl/exit_codes.h"
#include "proto/network/signed_token.h"
#include "proto/status_macros.h"

namespace sluice::ctl {
namespace {

constexpr size_t kMostKeyBytes = 64 << 10;

struct TokenFlags {
  std::string command;
  std::string file;
  std::string tenant;
  uint32_t share = 100;
  uint64_t max_sessions = 0;
  std::string memory;
  int64_t seconds = 3600;
};

TokenFlags& TheTokenFlags() {
  static auto* flags = new TokenFlags;
  return *flags;
}

CLI::App* DefineToken(CLI::App* token, const std::string& name, const std::string& help,
                      CommonFlags* common) {
  CLI::App* sub = token->add_subcommand(name, help);
  sub->add_flag("--json", common->json, "Print JSON, for scripts");
  sub->parse_complete_callback([name] { TheTokenFlags().command = name; });
  return sub;
}

// If something fails, the new file is removed again.
absl::Status WriteNewFile(const std::string& path, os::NewFile kind, const std::string& text) {
  ASSIGN_OR_RETURN(const os::UniqueFd file, os::CreateNewFile(path, kind));
  absl::Status written = os::WriteWhole(file.get(), text);
  if (written.ok()) return written;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write ", path, ": ", written.message()));
}

absl::Status WriteKeys(const std::string& path, const std::string& open_path) {
  ASSIGN_OR_RETURN(const wire::TokenKeyPair keys, wire::MakeTokenKeys());
  RETURN_IF_ERROR(WriteNewFile(path, os::NewFile::kPrivate, keys.private_key));
  absl::Status written = WriteNewFile(open_path, os::NewFile::kForAll, keys.public_key);
  if (written.ok()) return written;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // Nobody has seen its other half.
  return written;
}

int Keygen(const TokenFlags& flags, const CommonFlags& common) {
  const std::string open = flags.file + ".pub";
  const absl::Status written = WriteKeys(flags.file, open);
  if (!written.ok()) return Fail(common, kExitFailed, std::string(written.message()));
  if (common.json) {
    PrintJson({{"private_key", flags.file}, {"public_key", open}});
  } else {
    Print(absl::StrCat("the private key, by which tokens are signed, is in ", flags.file,
                       "\nthe public key, for token_key in [[network]], is in ", open, "\n"));
  }
  return kExitOk;
}

int Sign(const TokenFlags& flags, const CommonFlags& common) {
  const absl::StatusOr<std::string> key = os::ReadNamedFile(flags.file, kMostKeyBytes);
  if (!key.ok()) return Fail(common, kExitFailed, std::string(key.status().message()));
  const std::string readers = broker::OtherReaders(flags.file);
  if (!readers.empty())
    std::fprintf(stderr, "sluicectl: warning: %s %s\n", flags.file.c_str(), readers.c_str());
  wire::TokenTerms terms;
  terms.tenant = flags.tenant;
  terms.share = flags.share;
  terms.max_sessions = flags.max_sessions;
  if (!flags.memory.empty()) {
    const std::optional<uint64_t> bytes = broker::ParseByteSize(flags.memory);
    if (!bytes.has_value()) {
      return Fail(
          common, kExitUsage,
          absl::StrCat("--memory: \"", flags.memory, "\" is no number of bytes, such as 4GiB"));
    }
    terms.memory_bytes = *bytes;
  }
  terms.expires = static_cast<int64_t>(std::time(nullptr)) + flags.seconds;
  const absl::StatusOr<std::string> token = wire::SignToken(terms, *key);
  if (!token.ok()) return Fail(common, kExitFailed, std::string(token.status().message()));
  if (common.json) {
    PrintJson({{"token", *token}, {"tenant", terms.tenant}, {"expires", terms.expires}});
  } else {
    Print(*token + "\n");
  }
  return kExitOk;
}

}  // namespace

void DefineTokenCommands(CLI::App* app, CommonFlags* common) {
  TokenFlags* flags = &TheTokenFlags();
  CLI::App* token = app->add_subcommand(
      "token", "Make keys, and sign tokens by which a tenant comes in over the network");
  token->require_subcommand(1);
  CLI::App* keygen =
      DefineToken(token, "keygen", "Make a pair of keys: FILE, and FILE.pub for daemons", common);
  keygen->add_option("file", flags->file, "The private key's file, which must not be there")
      ->required()
      ->type_name("FILE");
  CLI::App* sign = DefineToken(token, "sign", "Sign a token for a tenant, and print it", common);
  sign->add_option("tenant", flags->tenant, "The tenant's name: a to z, 0 to 9 and \"-\"")
      ->required();
  sign->add_option("--key", flags->file, "The private key's file")->required()->type_name("FILE");
  sign->add_option("--share", flags->share,
                   "The tenant's share of a device's time; others have 100")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str()
      ->type_name("WEIGHT");
  sign->add_option("--max-sessions", flags->max_sessions,
                   "Sessions at once; default: the daemon's max_sessions_per_user")
      ->type_name("COUNT");
  sign->add_option("--memory", flags->memory,
                   "Memory of each session, such as 4GiB; default: as the daemon's other sessions")
      ->type_name("BYTES");
  sign->add_option("--seconds", flags->seconds, "How long the token opens sessions")
      ->check(CLI::Range(int64_t{1}, int64_t{315'360'000}))
      ->capture_default_str()
      ->type_name("SECONDS");
}

int RunTokenCommand(const CommonFlags& common) {
  const TokenFlags& flags = TheTokenFlags();
  return flags.command == "keygen" ? Keygen(flags, common) : Sign(flags, common);
}

}  // namespace sluice::ctl
