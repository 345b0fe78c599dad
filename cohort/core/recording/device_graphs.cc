#include "cohort/core/recording/device_graphs.h"

#include <mutex>

#ifdef COHORT_CUDA_GRAPHS
#include "cohort/core/recording/cuda/cuda_graph.h"
#endif

namespace cohort::internal {
namespace {

std::mutex mutex;
// Guarded by mutex.
c10::DeviceType type_of_test = c10::kCPU;
DeviceGraphMaker maker_of_test = nullptr;

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device) {
#ifdef COHORT_CUDA_GRAPHS
  if (device.is_cuda()) return make_cuda_graph(device);
#endif
  const std::lock_guard lock(mutex);
  if (maker_of_test == nullptr || device.type() != type_of_test) return nullptr;
  return maker_of_test(device);
}

void set_device_graphs_for_testing(c10::DeviceType type, DeviceGraphMaker maker) {
  const std::lock_guard lock(mutex);
  type_of_test = type;
  maker_of_test = maker;
}

}  // namespace cohort::internal
