#include "cohort/core/structure/device_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>
#include <utility>

namespace cohort::internal {

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream copy_stream(c10::Device device) {
  static std::mutex mutex;
  static auto* const streams = new std::map<std::pair<c10::DeviceType, int>, c10::Stream>;
  const std::lock_guard lock(mutex);
  const std::pair key(device.type(), static_cast<int>(device.index()));
  auto found = streams->find(key);
  if (found == streams->end()) {
    const c10::impl::VirtualGuardImpl devices(device.type());
    found = streams->emplace(key, devices.getStreamFromGlobalPool(device)).first;
  }
  return found->second;
}

void keep_until_done(const Tensor& tensor, c10::Stream stream) {
  c10::impl::VirtualGuardImpl(stream.device_type())
      .recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

}  // namespace cohort::internal
