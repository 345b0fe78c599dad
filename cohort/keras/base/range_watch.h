// Whole numbers on a device, such as labels and ids, that must lie in a range. The host does not
// wait for them: what is wrong with them is an error of a later call.
//
//   RangeWatch watch("label", ": the predictions have no more classes");  // a member of a loss
//   labels = watch.look(labels, classes);
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

class StrategyCore;

// The device keeps the least and the largest number that it has seen, with the number of the step,
// and writes them to memory of the host. Nothing is lost while the host runs ahead of the device.
// Thread safety: any thread; the numbers of each thread and device are watched by themselves.
class RangeWatch {
 public:
  // An error is `what`, the number, its step and the range, and then `advice`.
  explicit RangeWatch(std::string what, std::string advice = "");

  // Lets the device look at `numbers`: int32 or int64, not the host's. Returns them cut to
  // [0, end).
  // Errors: InvalidArgument (a number of an earlier call of this thread was outside of its range;
  // in a step that is recorded, each replay throws it).
  Tensor look(const Tensor& numbers, int64_t end);

  // Throws what is wrong with the steps of `core` so far, of all threads. Waits for the device
  // where it has not come to them yet. No step may be running.
  // Errors: InvalidArgument (as look).
  static void check(const StrategyCore& core);

 private:
  class Slot;  // of one thread, device and range

  std::shared_ptr<Slot> slot_of(c10::Device device, int64_t end);

  const std::string what_;
  const std::string advice_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Slot>> slots_;  // guarded by mutex_
};

}  // namespace cohort::internal
