#include "cohort/testing/device/simulated_gpus.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "cohort/core/error.h"
#include "cohort/core/recording/device_graphs.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"
#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/device_recording.h"

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

}  // namespace

SimulatedGpus::SimulatedGpus(int count) {
  if (count < 1 || count > kMost) {
    throw InvalidArgumentError(
        internal::str("from 1 to ", kMost, " GPUs can be simulated, not ", count));
  }
  internal::reset_devices_for_testing();
  internal::set_gpus_for_testing(internal::Gpus{.type = kSimulated, .count = count});
  internal::set_device_graphs_for_testing(kSimulated, make_simulated_graph);
}

SimulatedGpus::~SimulatedGpus() {
  internal::set_device_graphs_for_testing(kSimulated, nullptr);
  internal::set_gpus_for_testing(std::nullopt);
  internal::reset_devices_for_testing();
}

}  // namespace cohort::testing
