// Warns every minute that a server does not check who its callers are.
#pragma once

#include <chrono>
#include <string>

#include "cohort/core/host/polling_thread.h"

namespace cohort::internal::security {

// Thread safety: none.
class InsecureWarning {
 public:
  // `whose`: "/job:ps/task:0 at 0.0.0.0:2222". Errors: ResourceExhausted (no thread, no
  // descriptor).
  explicit InsecureWarning(const std::string& whose,
                           std::chrono::milliseconds period = std::chrono::minutes(1));

 private:
  PollingThread thread_;
};

}  // namespace cohort::internal::security
