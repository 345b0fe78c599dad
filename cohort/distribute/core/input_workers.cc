#include "cohort/distribute/core/input_workers.h"

#include <ostream>

#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"

namespace cohort::distribute {

using internal::str;

InputWorkers::InputWorkers(const std::vector<InputWorker>& workers, InputWorkersOptions options) {
  if (workers.empty()) throw InvalidArgumentError("InputWorkers: there are no workers");
  const auto name_of = [&](const std::string& device) {
    return options.canonicalize_devices ? canonicalize(device)
                                        : canonicalize_without_job_and_task(device);
  };
  for (const auto& [input_device, fed] : workers) {
    if (fed.empty()) {
      throw InvalidArgumentError(str("InputWorkers: worker ", worker_devices_.size(), " on ",
                                     input_device, " has no compute devices to feed"));
    }
    worker_devices_.push_back(name_of(input_device));
    std::vector<std::string>& devices = compute_devices_.emplace_back();
    for (const std::string& device : fed) devices.push_back(name_of(device));
  }
}

const std::vector<std::string>& InputWorkers::compute_devices_for_worker(int worker) const {
  if (worker < 0 || worker >= num_workers()) {
    throw OutOfRangeError(str("input worker ", worker, " of ", num_workers()));
  }
  return compute_devices_[static_cast<size_t>(worker)];
}

std::vector<std::string> InputWorkers::compute_devices() const {
  std::vector<std::string> all;
  for (const auto& devices : compute_devices_)
    all.insert(all.end(), devices.begin(), devices.end());
  return all;
}

std::ostream& operator<<(std::ostream& out, const InputWorkers& workers) {
  out << "InputWorkers:{";
  for (int i = 0; i < workers.num_workers(); ++i) {
    out << (i > 0 ? ",\n  " : "\n  ") << i << ' '
        << workers.worker_devices()[static_cast<size_t>(i)] << ": (";
    const auto& devices = workers.compute_devices_for_worker(i);
    for (size_t d = 0; d < devices.size(); ++d) out << (d > 0 ? ", '" : "'") << devices[d] << "'";
    out << (devices.size() == 1 ? ",)" : ")");
  }
  return out << '}';
}

}  // namespace cohort::distribute
