#include "cohort/cluster/security/insecure_warning.h"

#include "cohort/core/observe/logging.h"

namespace cohort::internal::security {

InsecureWarning::InsecureWarning(const std::string& whose, std::chrono::milliseconds period) {
  thread_.start("to warn with", "cohort-warning", [this, whose, period] {
    do {
      log_warning(whose, " runs insecure: whoever reaches it may act as any task of the cluster, ",
                  "and read what tasks exchange. `cohort cluster certificates` makes credentials");
    } while (thread_.pause(period));
  });
}

}  // namespace cohort::internal::security
