// How the commands end.
#pragma once

#include "cohort/core/error.h"

namespace cohort::tools {

inline constexpr int kExitOk = 0;
inline constexpr int kExitDifferent = 1;  // of diff, as of diff(1)
inline constexpr int kExitFailed = 1;
inline constexpr int kExitNotCompared = 2;  // where 1 says that there are differences
inline constexpr int kExitUsage = 64;
inline constexpr int kExitBadData = 65;
inline constexpr int kExitUnreachable = 138;  // as of a program that has lost a peer

inline int exit_code(const Error& error) {
  switch (error.code()) {
    case Code::kDataLoss:
    case Code::kInvalidArgument:
      return kExitBadData;
    default:
      return kExitFailed;
  }
}

}  // namespace cohort::tools
