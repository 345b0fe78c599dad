// Device names and logical devices.
//
//   config::set_logical_device_configuration("CPU", 2);   // this machine's CPU as two devices
//   canonicalize("/cpu:1") == "/job:localhost/replica:0/task:0/device:CPU:1";
#pragma once

#include <c10/core/Device.h>

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"

namespace cohort {

// "/job:worker/replica:0/task:1/device:GPU:0" in parts; a missing part is nullopt.
struct COHORT_API DeviceSpec {
  std::optional<std::string> job = std::nullopt;
  std::optional<int> replica = std::nullopt;
  std::optional<int> task = std::nullopt;
  std::optional<std::string> type = std::nullopt;  // upper case: "CPU", "GPU"
  std::optional<int> index = std::nullopt;

  // Takes full names and the short forms "cpu:0", "/gpu:1", "/device:CPU:0", "/job:worker/cpu:0",
  // "CPU" and "CPU:*" (index left open). Errors: InvalidArgument (names the part that cannot be
  // read).
  static DeviceSpec parse(std::string_view name);
  // This spec, with its missing parts taken from `defaults`.
  DeviceSpec merged_over(const DeviceSpec& defaults) const;
  std::string to_string() const;
  bool operator==(const DeviceSpec&) const = default;
};

// The full name of a device. Explicit parts have precedence over those of `defaults`, these over
// those of this task (see task.h; by default job localhost, replica 0, task 0), and these over
// CPU:0.
// Errors: InvalidArgument.
COHORT_API std::string canonicalize(std::string_view name, std::string_view defaults = "");
// The name without job and task ("/device:CPU:0"), which is valid on every task.
// Errors: InvalidArgument.
COHORT_API std::string canonicalize_without_job_and_task(std::string_view name);

namespace config {

struct PhysicalDevice {
  std::string name;         // "/physical_device:CPU:0"
  std::string device_type;  // "CPU", "GPU"
};
struct LogicalDevice {
  std::string name;  // canonical
  std::string device_type;
};

// The machine's CPU (as one device) and its GPUs; all types if `device_type` is empty.
COHORT_API std::vector<PhysicalDevice> list_physical_devices(std::string_view device_type = "");
// LogicalDevice(name='/device:CPU:0', device_type='CPU'); in a cluster with job and task.
COHORT_API std::ostream& operator<<(std::ostream& out, const PhysicalDevice& device);
COHORT_API std::ostream& operator<<(std::ostream& out, const LogicalDevice& device);
// CPUs, then GPUs. Fixes the configuration: it cannot be changed afterwards.
COHORT_API std::vector<LogicalDevice> list_logical_devices(std::string_view device_type = "");
// Splits each physical device of a type ("CPU", "GPU") into `count` logical ones. Repeating a call
// with the same values does nothing.
// Errors: InvalidArgument (count below 1, no such device), FailedPrecondition (the logical devices
// are in use: call it before the first strategy).
COHORT_API void set_logical_device_configuration(std::string_view device_type, int count);

}  // namespace config

namespace internal {
// libtorch's device behind a logical one. Errors: InvalidArgument (no such logical device; names
// those that exist), Unimplemented (another task's device).
c10::Device torch_device(std::string_view name);
// Whether libtorch has any device but the host.
bool has_gpus();
// The device of new tensors that the calling code makes: that of the replica whose step it runs,
// else the host.
c10::Device device_of_new_tensors();
class ScopedDeviceOfNewTensors {
 public:
  explicit ScopedDeviceOfNewTensors(c10::Device device);
  ~ScopedDeviceOfNewTensors();
  ScopedDeviceOfNewTensors(const ScopedDeviceOfNewTensors&) = delete;
  ScopedDeviceOfNewTensors& operator=(const ScopedDeviceOfNewTensors&) = delete;

 private:
  const c10::Device previous_;
};

// Logical devices back to the state at start-up. For tests.
void reset_devices_for_testing();

// The devices of libtorch that "GPU:i" means.
struct Gpus {
  c10::DeviceType type;
  int count;
};
// Takes these for CUDA's, or CUDA's again. For tests.
void set_gpus_for_testing(std::optional<Gpus> instead);
}  // namespace internal

}  // namespace cohort
