#include "cohort/core/structure/device.h"

#include <ATen/Context.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <ostream>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"

namespace cohort {
namespace {

using internal::quoted;
using internal::str;
using internal::upper;

// Guarded by gpus_mutex.
std::optional<internal::Gpus> gpus_of_test;
std::mutex gpus_mutex;
std::atomic<bool> are_gpus_simulated = false;

internal::Gpus gpus() {
  std::lock_guard lock(gpus_mutex);
  if (gpus_of_test) return *gpus_of_test;
  return {.type = c10::kCUDA, .count = at::hasCUDA() ? static_cast<int>(at::getNumGPUs()) : 0};
}

// libtorch knows the machine's CPU as one device, whatever the number of cores and sockets.
int num_physical(std::string_view type) {
  if (type == "CPU") return 1;
  return type == "GPU" ? gpus().count : 0;
}

// In the order in which devices are listed.
constexpr std::string_view kDeviceTypes[] = {"CPU", "GPU"};

bool is_wanted(std::string_view wanted, std::string_view type) {
  return wanted.empty() || upper(wanted) == type;
}

// The settings that the functions of config:: make.
// Thread safety: any thread.
class DeviceContext {
 public:
  void split(const std::string& type, int count) {
    std::lock_guard lock(mutex_);
    if (split_of(type) == count) return;
    if (in_use_) {
      throw FailedPreconditionError(
          str("the logical devices are in use, as ", split_of(type), " for each ", type,
              ", and can no longer be split into ", count,
              ": call set_logical_device_configuration before the first strategy"));
    }
    splits_[type] = count;
  }

  // The number of logical devices of a type. Fixes the configuration.
  int num_logical(const std::string& type) {
    std::lock_guard lock(mutex_);
    in_use_ = true;
    return num_physical(type) * split_of(type);
  }

  // The physical device behind logical device `index` of a type.
  int physical_of(const std::string& type, int index) {
    std::lock_guard lock(mutex_);
    return index / split_of(type);
  }

  void reset() {
    std::lock_guard lock(mutex_);
    splits_.clear();
    in_use_ = false;
  }

 private:
  int split_of(const std::string& type) const {
    const auto found = splits_.find(type);
    return found == splits_.end() ? 1 : found->second;
  }

  std::mutex mutex_;
  std::map<std::string, int> splits_;  // logical devices for each physical one; 1 where missing
  bool in_use_ = false;
};

// Made at first use, so that no start-up order matters; never destroyed, so that no end does.
DeviceContext& context() {
  static auto* const instance = new DeviceContext;
  return *instance;
}

// The default device of the task for which the calling code acts.
DeviceSpec default_device() {
  const internal::Task& task = internal::Task::current();
  return {.job = task.job(), .replica = 0, .task = task.index(), .type = "CPU", .index = 0};
}

DeviceSpec local_device(std::string_view type, int index) {
  return DeviceSpec{.type = std::string(type), .index = index}.merged_over(default_device());
}

std::string existing_devices() {
  std::string names;
  for (const auto& device : config::list_logical_devices()) {
    names += (names.empty() ? "" : ", ") + device.name;
  }
  return names;
}

// Advice for an error about a device that does not exist.
std::string advice_for(const std::string& type) {
  if (type == "GPU" && num_physical(type) == 0) {
    return "libtorch sees no GPU on this machine: it was built without CUDA, or the driver shows "
           "none (CUDA_VISIBLE_DEVICES?); name CPU devices, or use a libtorch with CUDA";
  }
  if (num_physical(type) == 0) return "devices are of type CPU or GPU";
  return str("config::set_logical_device_configuration(\"", type,
             "\", n), called before the first strategy, makes n of each");
}

DeviceSpec resolve(std::string_view name, std::string_view defaults) {
  return DeviceSpec::parse(name)
      .merged_over(DeviceSpec::parse(defaults))
      .merged_over(default_device());
}

}  // namespace

std::string canonicalize(std::string_view name, std::string_view defaults) {
  return resolve(name, defaults).to_string();
}

std::string canonicalize_without_job_and_task(std::string_view name) {
  const DeviceSpec spec = resolve(name, "");
  return DeviceSpec{.type = spec.type, .index = spec.index}.to_string();
}

namespace config {

std::vector<PhysicalDevice> list_physical_devices(std::string_view device_type) {
  std::vector<PhysicalDevice> devices;
  for (std::string_view type : kDeviceTypes) {
    if (!is_wanted(device_type, type)) continue;
    for (int i = 0; i < num_physical(type); ++i) {
      devices.push_back(
          {.name = str("/physical_device:", type, ":", i), .device_type = std::string(type)});
    }
  }
  return devices;
}

std::ostream& operator<<(std::ostream& out, const PhysicalDevice& device) {
  return out << "PhysicalDevice(name=" << internal::quoted(device.name)
             << ", device_type=" << internal::quoted(device.device_type) << ')';
}

std::ostream& operator<<(std::ostream& out, const LogicalDevice& device) {
  const bool local = DeviceSpec::parse(device.name).job == "localhost";
  const std::string name = local ? canonicalize_without_job_and_task(device.name) : device.name;
  return out << "LogicalDevice(name=" << internal::quoted(name)
             << ", device_type=" << internal::quoted(device.device_type) << ')';
}

std::vector<LogicalDevice> list_logical_devices(std::string_view device_type) {
  std::vector<LogicalDevice> devices;
  for (std::string_view type : kDeviceTypes) {
    if (!is_wanted(device_type, type)) continue;
    const int count = context().num_logical(std::string(type));
    for (int i = 0; i < count; ++i) {
      devices.push_back(
          {.name = local_device(type, i).to_string(), .device_type = std::string(type)});
    }
  }
  return devices;
}

void set_logical_device_configuration(std::string_view device_type, int count) {
  const std::string type = upper(device_type);
  if (count < 1) {
    throw InvalidArgumentError(
        str("a ", type, " cannot be split into ", count, " logical devices: at least 1 is needed"));
  }
  if (num_physical(type) == 0) {
    throw InvalidArgumentError(str("this machine has no device of type ", quoted(device_type),
                                   " to split: ", advice_for(type)));
  }
  context().split(type, count);
}

}  // namespace config

namespace internal {

c10::Device torch_device(std::string_view name) {
  const DeviceSpec spec = resolve(name, "");
  const DeviceSpec local = default_device();
  if (spec.job != local.job || spec.task != local.task) {
    throw UnimplementedError(str("the device ", spec.to_string(), " belongs to another task than ",
                                 "this one (", Task::current().to_string(),
                                 "): no tensor can be placed there from here"));
  }
  if (spec.replica != local.replica || *spec.index >= context().num_logical(*spec.type)) {
    throw InvalidArgumentError(str("there is no device ", spec.to_string(), "; there are ",
                                   existing_devices(), "; ", advice_for(*spec.type)));
  }
  if (*spec.type == "CPU") return c10::Device(c10::kCPU);
  return c10::Device(gpus().type,
                     static_cast<c10::DeviceIndex>(context().physical_of("GPU", *spec.index)));
}

bool has_gpus() {
  static const bool has_cuda = at::hasCUDA() && at::getNumGPUs() > 0;
  return has_cuda || are_gpus_simulated.load(std::memory_order_relaxed);
}

thread_local c10::Device current_device = c10::kCPU;

c10::Device device_of_new_tensors() { return current_device; }

ScopedDeviceOfNewTensors::ScopedDeviceOfNewTensors(c10::Device device)
    : previous_(std::exchange(current_device, device)) {}

ScopedDeviceOfNewTensors::~ScopedDeviceOfNewTensors() { current_device = previous_; }

void reset_devices_for_testing() { context().reset(); }

void set_gpus_for_testing(std::optional<Gpus> instead) {
  std::lock_guard lock(gpus_mutex);
  gpus_of_test = instead;
  are_gpus_simulated = instead.has_value();
}

}  // namespace internal

}  // namespace cohort
