// Propagation of absl::Status, until our Abseil has its own macros.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define GROVE_RETURN_IF_ERROR(expr)                \
  do {                                             \
    absl::Status grove_status_ = (expr);           \
    if (!grove_status_.ok()) return grove_status_; \
  } while (false)

#define GROVE_CONCAT_INNER_(a, b) a##b
#define GROVE_CONCAT_(a, b) GROVE_CONCAT_INNER_(a, b)
#define GROVE_ASSIGN_OR_RETURN(lhs, expr) GROVE_ASSIGN_OR_RETURN_(GROVE_CONCAT_(grove_statusor_, __LINE__), lhs, expr)
#define GROVE_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return tmp.status();           \
  lhs = std::move(tmp).value()
