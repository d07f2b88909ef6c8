// SPDX-License-Identifier: Apache-2.0
//
// For the main function of a process that parses peers' messages. Protobuf reports a message that
// it cannot parse (a string that is no UTF-8) on stderr, a line for each, in a format of its own. A
// peer would write our log with that. The call that parses fails, and whoever made it says what
// there is to say.
#pragma once

#include <google/protobuf/stubs/logging.h>

#include <cstdio>
#include <string>

namespace sluice::wire {

inline void LetParsersBeQuiet() {
  google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel level, const char*, int, const std::string& message) {
        if (level != google::protobuf::LOGLEVEL_FATAL) return;
        std::fprintf(stderr, "protobuf: %s\n", message.c_str());  // A bug of ours; it aborts.
      });
}

}  // namespace sluice::wire
