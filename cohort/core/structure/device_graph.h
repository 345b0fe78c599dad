// A device's work, recorded once and launched again and again.
#pragma once

#include <c10/core/Device.h>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// CUDA's graphs, or those of simulated devices. It owns the memory that the recorded work takes.
// Thread safety: none; one recording of a device at a time.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Calls `work` as `record` will, but what it asks of the device is done.
  // Errors: those of `work`.
  virtual void rehearse(FunctionRef<void()> work) = 0;
  // Calls `work`, and notes what it asks of the device instead of doing it; the same from threads
  // of the backward pass.
  // Errors: those of `work`, also the device's own where a graph cannot hold what it asks. The
  // graph is then of no use.
  virtual void record(FunctionRef<void()> work) = 0;
  // Lets the device do what was recorded, in order with its other work. The host does not wait.
  virtual void replay() = 0;
};

}  // namespace cohort::internal
