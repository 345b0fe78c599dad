// What callbacks take from the logs by name.
#pragma once

#include <string>

namespace cohort::internal {

struct LogRead {
  std::string name;  // "val_loss"
  std::string use;   // "file name 'run/{val_loss}'"
  // Among the logs after steps, which have numbers of training alone; else among an epoch's.
  bool after_steps = false;
  // The callback fails without it; else it does nothing, and says so.
  bool is_required = false;
};

}  // namespace cohort::internal
