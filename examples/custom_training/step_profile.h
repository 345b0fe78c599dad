// The time account of an epoch's training steps, where the command line asks for one.
#pragma once

#include "options.h"

namespace custom_training {

class StepProfile {
 public:
  // Starts the profiler with --profile, and in epoch 0 with --trace.
  StepProfile(const Options& options, int epoch);
  // Prints the account, writes the trace.
  void report() const;

 private:
  const Options& options_;
  bool trace_;
};

}  // namespace custom_training
