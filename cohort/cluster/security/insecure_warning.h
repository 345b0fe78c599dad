// Warns every minute that a server does not check who its callers are.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace cohort::internal::security {

// Thread safety: none.
class InsecureWarning {
 public:
  // `whose`: "/job:ps/task:0 at 0.0.0.0:2222". Errors: ResourceExhausted (no thread).
  explicit InsecureWarning(const std::string& whose,
                           std::chrono::milliseconds period = std::chrono::minutes(1));
  ~InsecureWarning();

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace cohort::internal::security
