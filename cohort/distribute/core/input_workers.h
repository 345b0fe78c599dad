// Says which devices read the input, and for which devices of replicas.
//
//   const InputWorkers workers{{.input_device = "CPU:0", .compute_devices = {"CPU:0"}},
//                              {.input_device = "CPU:1", .compute_devices = {"CPU:1"}}};
//   auto dist_dataset = get_distributed_dataset(dataset, workers, strategy);
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#include "cohort/core/export.h"

namespace cohort::distribute {

struct InputWorker {
  std::string input_device;
  std::vector<std::string> compute_devices;  // those it feeds
};

struct InputWorkersOptions {
  // False removes job and task from the names, so that they are valid on every task.
  bool canonicalize_devices = true;
};

// Replicas are numbered in the order of the compute devices, worker by worker.
// Thread safety: immutable.
class COHORT_API InputWorkers {
 public:
  // Names as canonicalize() takes them.
  // Errors: InvalidArgument (no workers, a worker without compute devices, not a device name).
  explicit InputWorkers(const std::vector<InputWorker>& workers, InputWorkersOptions options = {});
  InputWorkers(std::initializer_list<InputWorker> workers)
      : InputWorkers(std::vector<InputWorker>(workers)) {}

  int num_workers() const { return static_cast<int>(worker_devices_.size()); }
  const std::vector<std::string>& worker_devices() const { return worker_devices_; }
  // Errors: OutOfRange.
  const std::vector<std::string>& compute_devices_for_worker(int worker) const;
  // The devices of all workers, in order.
  std::vector<std::string> compute_devices() const;

  bool operator==(const InputWorkers&) const = default;

 private:
  std::vector<std::string> worker_devices_;
  std::vector<std::vector<std::string>> compute_devices_;
};
// InputWorkers:{
//   0 /job:localhost/replica:0/task:0/device:CPU:0: ('/job:localhost/...',)}
COHORT_API std::ostream& operator<<(std::ostream& out, const InputWorkers& workers);

}  // namespace cohort::distribute
