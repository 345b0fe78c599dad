#include "cohort/testing/device/simulated_gpus.h"

#include <ATen/Context.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

#include <cstdlib>
#include <limits>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/recording/device_graphs.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/structure/device_settings.h"
#include "cohort/core/text.h"
#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/device_order.h"
#include "cohort/testing/device/device_recording.h"

namespace cohort::testing {
namespace {

// Kernels run when they are called: every event has happened. device_order.h knows what streams
// would do.
class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kSimulated; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kSimulated, current_device()}; }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) set_current_device(device.index());
  }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return stream_of_thread(device);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return stream_from_pool(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return set_stream_of_thread(stream);
  }
  c10::DeviceIndex deviceCount() const noexcept override { return SimulatedGpus::kMost; }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = new StreamClock();
    *static_cast<StreamClock*>(*event) = moment_of(stream);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) order_after(stream, *static_cast<StreamClock*>(event));
  }
  bool queryEvent(void* event) const override {
    if (event != nullptr) host_waited_for(*static_cast<StreamClock*>(event));
    return true;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<StreamClock*>(event);
  }
  bool queryStream(const c10::Stream& stream) const override {
    host_waited_for(moment_of(stream));
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    host_waited_for(moment_of(stream));
  }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    keep_memory(memory.get(), stream);
  }
};

C10_REGISTER_GUARD_IMPL(COHORT_SIMULATED_DEVICE, DeviceGuard);

enum class Kind { kSimulated, kReal, kCpu };

Kind kind_of_test_gpus() {
  const char* const kind = std::getenv("COHORT_TEST_GPUS");
  const std::string name = kind != nullptr ? kind : "";
  if (name.empty() || name == "simulated") return Kind::kSimulated;
  if (name == "real") return Kind::kReal;
  if (name == "cpu") return Kind::kCpu;
  throw InvalidArgumentError(internal::str("COHORT_TEST_GPUS is ", internal::quoted(name),
                                           "; it may be simulated, real or cpu"));
}

#if TORCH_VERSION_MAJOR >= 2
// libtorch's autograd asks for these.
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  at::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
};
// Beside real GPUs there is none: libtorch takes streams of one kind of device in a program.
[[maybe_unused]] const bool is_registered = [] {
  if (kind_of_test_gpus() != Kind::kSimulated) return false;
  c10::register_privateuse1_backend("simulated");
  at::RegisterPrivateUse1HooksInterface(new Hooks);  // for ever
  return true;
}();
#endif

// The machine's own: split, where a test wants more than there are.
void take_real_gpus(int count) {
  const int there = at::hasCUDA() ? static_cast<int>(at::getNumGPUs()) : 0;
  if (there == 0) {
    throw FailedPreconditionError("COHORT_TEST_GPUS is real, and libtorch sees no GPU");
  }
  // What is compared with the CPU keeps float32's digits.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  if (count > there) config::set_logical_device_configuration("GPU", (count + there - 1) / there);
}

}  // namespace

SimulatedGpus::SimulatedGpus(int count) {
  if (count < 1 || count > kMost) {
    throw InvalidArgumentError(
        internal::str("from 1 to ", kMost, " GPUs can be simulated, not ", count));
  }
  internal::reset_devices_for_testing();
  const Kind kind = kind_of_test_gpus();
  if (kind == Kind::kReal) {
    take_real_gpus(count);
    return;
  }
  internal::set_memory_counter_for_testing({.count = memory_in_use, .reset = reset_peak});
  internal::set_gpus_for_testing(
      internal::Gpus{.type = kind == Kind::kCpu ? c10::kCPU : kSimulated, .count = count});
  if (kind == Kind::kSimulated) {
    internal::set_device_graphs_for_testing(kSimulated, make_simulated_graph);
  }
}

SimulatedGpus::~SimulatedGpus() {
  internal::set_device_graphs_for_testing(kSimulated, nullptr);
  internal::set_gpus_for_testing(std::nullopt);
  internal::reset_devices_for_testing();
}

MemoryLimit::MemoryLimit(int64_t bytes) { set_memory_limit(bytes); }

MemoryLimit::~MemoryLimit() { set_memory_limit(std::numeric_limits<int64_t>::max()); }

double SimulatedGpus::tolerance() { return kind_of_test_gpus() == Kind::kReal ? 2e-3 : 0; }

}  // namespace cohort::testing
