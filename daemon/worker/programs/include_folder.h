// SPDX-License-Identifier: Apache-2.0
// The files that a program includes by paths of the application's host, under a folder of our own
// for the time of a build. Paths come from the client: absolute, normalised, without any `..`; what
// is not is a violation, and nothing outside the folder is ever written or read for it. So are its
// links, each of which leads to such a path below the folder.
// Thread-compatible; made by the session thread, dropped by the build thread.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "broker/os/scoped_handle.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/command.pb.h"
#include "proto/status_macros.h"

namespace sluice::worker {

namespace pb = v1;

class IncludeFolder {
 public:
  IncludeFolder() = default;
  ~IncludeFolder();  // Removes the folder.
  // Removes the folders of workers that ended without that: killed, or with their client.
  static void SweepAbandoned();
  IncludeFolder(const IncludeFolder&) = delete;
  IncludeFolder& operator=(const IncludeFolder&) = delete;

  // Lays out all that a BuildProgram or CompileProgram brings; `options` get its options, changed
  // to lead there.
  template <typename Body>
  absl::Status LayOut(const Body& body, std::string* options) {
    RETURN_IF_ERROR(MakeSteps(body.include_steps()));
    RETURN_IF_ERROR(Write(body.include_files()));
    RETURN_IF_ERROR(MakeDirectories(body.include_directories()));
    *options = RewriteOptions(body.options(), body.include_directories());
    return absl::OkStatus();
  }

  // The links and folders that lead to files; to be made before these.
  absl::Status MakeSteps(const google::protobuf::RepeatedPtrField<pb::IncludeStep>& steps);
  absl::Status Write(const google::protobuf::RepeatedPtrField<pb::IncludeFile>& files);

  // Folders that the options name, be there a file in them or not: they must not be looked for on
  // this host. One whose path has a blank gets a second name without one, where links to folders
  // can be made: there are compilers that take no quotes off.
  absl::Status MakeDirectories(const google::protobuf::RepeatedPtrField<std::string>& directories);

  // The build options with each of `directories`, where it stands as a path of its own, moved under
  // the folder; a second name needs no quotes.
  std::string RewriteOptions(
      const std::string& options,
      const google::protobuf::RepeatedPtrField<std::string>& directories) const;

 private:
  bool MakeRoot();

  std::string root_;   // Empty while there are no files.
  os::UniqueFd held_;  // The root, locked for as long as it is in use.
  bool host_is_link_ = false;
  std::map<std::string, std::string> second_names_;  // By the directory; below the root.
};

}  // namespace sluice::worker
