// For tests: a communicator around one of GPUs, which brings values of the host there and back.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/communicator.h"
#include "cohort/collective/forwarding_communicator.h"
#include "cohort/collective/gathered_bytes.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::collective {

inline Buffer buffer_on_gpu(const Tensor& tensor) {
  const c10::impl::VirtualGuardImpl guard(tensor.device().type());
  return {tensor.data_ptr(), tensor.numel(), tensor.scalar_type(),
          guard.getStream(tensor.device())};
}

// The buffers of a call, one after another on `devices`.
class GpuCommunicator final : public ForwardingCommunicator {
 public:
  GpuCommunicator(std::shared_ptr<Communicator> gpus, std::vector<c10::Device> devices)
      : ForwardingCommunicator(gpus), gpus_(std::move(gpus)), devices_(std::move(devices)) {}

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    return on_gpus(buffers, options, [&](std::span<const Buffer> there) {
      return gpus_->all_reduce(there, options);
    });
  }
  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    return on_gpus(buffers, options, [&](std::span<const Buffer> there) {
      return gpus_->reduce_scatter(there, counts, options);
    });
  }
  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    return on_gpus(buffers, options, [&](std::span<const Buffer> there) {
      return gpus_->all_gather(there, counts, options);
    });
  }
  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    return on_gpus(buffers, options, [&](std::span<const Buffer> there) {
      return gpus_->broadcast(there, root, options);
    });
  }

 private:
  void before(CallOptions&, int64_t) override {}

  template <class Call>
  std::unique_ptr<Work> on_gpus(std::span<const Buffer> buffers, const CallOptions& options,
                                Call call) {
    // NCCL has no such integers: the host adds them.
    if (buffers[0].dtype == DType::Short) return call(buffers);
    const auto deadline =
        std::chrono::steady_clock::now() + internal::bounded_wait(options.timeout);
    std::vector<Tensor> host, gpu;
    std::vector<Buffer> there;
    for (size_t i = 0; i < buffers.size(); ++i) {
      host.push_back(
          at::from_blob(buffers[i].data, {buffers[i].count}, at::dtype(buffers[i].dtype)));
      gpu.push_back(host[i].to(devices_.at(i)));
      there.push_back(buffer_on_gpu(gpu[i]));
    }
    call(there)->wait(deadline);
    for (size_t i = 0; i < buffers.size(); ++i) host[i].copy_(gpu[i]);
    return done_work();
  }

  const std::shared_ptr<Communicator> gpus_;
  const std::vector<c10::Device> devices_;
};

}  // namespace cohort::collective
