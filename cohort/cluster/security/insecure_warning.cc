#include "cohort/cluster/security/insecure_warning.h"

#include "cohort/core/observe/logging.h"
#include "cohort/core/program/start_thread.h"

namespace cohort::internal::security {

InsecureWarning::InsecureWarning(const std::string& whose, std::chrono::milliseconds period) {
  thread_ = start_thread("to warn with", [this, whose, period] {
    std::unique_lock lock(mutex_);
    do {
      log_warning(whose, " runs insecure: whoever reaches it may act as any task of the cluster, ",
                  "and read what tasks exchange. `cohort cluster certificates` makes credentials");
    } while (!ended_.wait_for(lock, period, [this] { return end_; }));
  });
}

InsecureWarning::~InsecureWarning() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

}  // namespace cohort::internal::security
