// SPDX-License-Identifier: Apache-2.0
// Early return on absl::Status, which Debian 12's abseil does not carry.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define RETURN_IF_ERROR(expression)                           \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

#define SLUICE_CONCAT_INNER(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_INNER(a, b)
#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_IMPL(SLUICE_CONCAT(result_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) return result.status();                    \
  declaration = *std::move(result)
