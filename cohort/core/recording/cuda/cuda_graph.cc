#include "cohort/core/recording/cuda/cuda_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>
#include <map>
#include <mutex>

namespace cohort::internal {
namespace {

using c10::cuda::CUDAStream;

// Lets `later` begin where `earlier` stands now.
void order(const CUDAStream& earlier, const CUDAStream& later) {
  c10::Event event(c10::kCUDA);
  event.record(earlier.unwrap());
  event.block(later.unwrap());
}

// The stream in which all graphs of a device are recorded: libraries keep a workspace for each.
CUDAStream stream_of_graphs(c10::Device device) {
  static std::mutex mutex;
  static auto* const streams = new std::map<c10::DeviceIndex, CUDAStream>;
  const std::lock_guard lock(mutex);
  const auto found = streams->find(device.index());
  if (found != streams->end()) return found->second;
  const CUDAStream made = c10::cuda::getStreamFromPool(false, device.index());
  streams->emplace(device.index(), made);
  return made;
}

// Memory that the recorded work takes is of a pool of the graph's own: at a replay nothing else
// lies there. CUDA records no default stream, so that the work has a stream of its own from the
// first rehearsal on.
class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(c10::Device device) : device_(device), stream_(stream_of_graphs(device)) {}

  void rehearse(FunctionRef<void()> work) override {
    const CUDAStream outer = c10::cuda::getCurrentCUDAStream(device_.index());
    order(outer, stream_);
    const Join join{stream_, outer};  // also where `work` throws
    const c10::cuda::CUDAStreamGuard guard(stream_);
    work();
  }

  void record(FunctionRef<void()> work) override {
    const c10::cuda::CUDAGuard device(device_);
    c10::cuda::device_synchronize();  // nothing is under way that an allocator might ask for
    const c10::cuda::CUDAStreamGuard guard(stream_);
    // Other threads, such as those that read ahead, may go on with CUDA meanwhile.
    graph_.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      abandon();
      throw;
    }
    graph_.capture_end();
  }

  void replay() override {
    const c10::cuda::CUDAGuard device(device_);
    graph_.replay();
  }

 private:
  struct Join {
    const CUDAStream& own;
    const CUDAStream& outer;
    ~Join() { order(own, outer); }
  };

  // Ends the capture, which CUDA may have given up: it says so once more, and the allocator is to
  // leave the graph's pool all the same.
  void abandon() noexcept {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
      try {
        c10::cuda::CUDACachingAllocator::endAllocateToPool(device_.index(), pool_);
      } catch (const std::exception&) {  // it has left
      }
    }
  }

  const c10::Device device_;
  const CUDAStream stream_;
  const at::cuda::MempoolId_t pool_ = at::cuda::graph_pool_handle();
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<DeviceGraph> make_cuda_graph(c10::Device device) {
  return std::make_unique<CudaGraph>(device);
}

}  // namespace cohort::internal
