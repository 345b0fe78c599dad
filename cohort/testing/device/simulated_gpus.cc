#include "cohort/testing/device/simulated_gpus.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"
#include "cohort/testing/device/device_memory.h"

namespace cohort::testing {
namespace {

// Kernels run when they are called: every event has happened, and all streams are one.
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
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return SimulatedGpus::kMost; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(COHORT_SIMULATED_DEVICE, DeviceGuard);

#if TORCH_VERSION_MAJOR >= 2
// libtorch's autograd asks for these.
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  at::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
};
[[maybe_unused]] const bool is_registered = [] {
  c10::register_privateuse1_backend("simulated");
  at::RegisterPrivateUse1HooksInterface(new Hooks);  // for ever
  return true;
}();
#endif

}  // namespace

SimulatedGpus::SimulatedGpus(int count) {
  if (count < 1 || count > kMost) {
    throw InvalidArgumentError(
        internal::str("from 1 to ", kMost, " GPUs can be simulated, not ", count));
  }
  internal::reset_devices_for_testing();
  internal::set_gpus_for_testing(internal::Gpus{.type = kSimulated, .count = count});
}

SimulatedGpus::~SimulatedGpus() {
  internal::set_gpus_for_testing(std::nullopt);
  internal::reset_devices_for_testing();
}

}  // namespace cohort::testing
