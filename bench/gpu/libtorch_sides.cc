#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <utility>
#include <vector>

#include "sides.h"

namespace bench {
namespace {

using at::Tensor;

// The optimizer, by torch::optim or by one fused operation for all parameters.
class Update {
 public:
  Update(const GpuWork& work, std::vector<Tensor> parameters)
      : adam_(uses_adam(work)), fused_(work.side != "loop"), parameters_(std::move(parameters)) {
    using namespace torch::optim;
    if (!fused_ && adam_) {
      optimizer_ = std::make_unique<Adam>(parameters_, AdamOptions(1e-3));
    } else if (!fused_) {
      optimizer_ = std::make_unique<SGD>(parameters_, SGDOptions(0.01).momentum(0.9));
    }
    for (const Tensor& parameter : parameters_) {
      first_.push_back(at::zeros_like(parameter.detach()));
      second_.push_back(at::zeros_like(parameter.detach()));
      steps_.push_back(at::zeros({}, parameter.options().requires_grad(false)));
    }
  }

  void forget_gradients() {
    for (Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  }

  void apply() {
    if (optimizer_) {
      optimizer_->step();
      return;
    }
    const at::NoGradGuard no_grad;
    std::vector<Tensor> values, gradients;
    for (const Tensor& parameter : parameters_) {
      values.push_back(parameter.detach());
      gradients.push_back(parameter.grad());
    }
    if (adam_) {
      at::_foreach_add_(steps_, 1);
      at::_fused_adam_(values, gradients, first_, second_, {}, steps_, 1e-3, 0.9, 0.999, 0, 1e-8,
                       /*amsgrad=*/false, /*maximize=*/false);
    } else {
      at::_fused_sgd_(values, gradients, first_, 0, 0.9, 0.01, 0, /*nesterov=*/false,
                      /*maximize=*/false, /*is_first_step=*/false);
    }
  }

 private:
  const bool adam_;
  const bool fused_;
  std::vector<Tensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<Tensor> first_, second_, steps_;
};

class LibtorchTraining final : public GpuTraining {
 public:
  explicit LibtorchTraining(const GpuWork& work)
      : work_(work),
        device_(gpu_or_cpu()),
        model_(make(work, device_)),
        update_(work, model_->parameters()) {
    for (int64_t i = 0; i < kDeviceBatches; ++i) {
      auto [inputs, labels] = make_gpu_data(work, 1);
      if (!work.has("host")) {
        batches_.emplace_back(inputs.to(device_), labels.to(device_));
      } else if (device_.is_cuda()) {
        batches_.emplace_back(inputs.pin_memory(), labels.pin_memory());
      } else {
        batches_.emplace_back(inputs, labels);
      }
    }
    if (work.side == "graph" && device_.is_cuda()) capture();
  }

  void run(int64_t count) override {
    for (int64_t i = 0; i < count; ++i) step(batches_[next_++ % batches_.size()]);
    wait_for_gpu();
  }
  double loss() const override { return last_; }

 private:
  static std::shared_ptr<Classifier> make(const GpuWork& work, c10::Device device) {
    const auto model = make_gpu_classifier(work);
    model->to(device);
    model->train();
    return model;
  }

  Tensor loss_of(const Tensor& inputs, const Tensor& labels) {
    if (!work_.has("bf16")) return at::cross_entropy_loss(model_->forward(inputs), labels);
    at::autocast::set_autocast_enabled(device_.type(), true);
    at::autocast::set_autocast_dtype(device_.type(), at::kBFloat16);
    const Tensor scores = model_->forward(inputs).to(at::kFloat);
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_.type(), false);
    return at::cross_entropy_loss(scores, labels);
  }

  Tensor train_on(const Tensor& inputs, const Tensor& labels) {
    update_.forget_gradients();
    const Tensor loss = loss_of(inputs, labels);
    loss.backward();
    update_.apply();
    return loss.detach();
  }

  // A stream other than the default one, as CUDA demands it.
  void capture() {
    inputs_ = batches_[0].first.to(device_, /*non_blocking=*/false, /*copy=*/true);
    labels_ = batches_[0].second.to(device_, /*non_blocking=*/false, /*copy=*/true);
    wait_for_gpu();
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
    for (int i = 0; i < 3; ++i) train_on(inputs_, labels_);
    wait_for_gpu();
    graph_ = std::make_unique<at::cuda::CUDAGraph>();
    graph_->capture_begin();
    captured_loss_ = train_on(inputs_, labels_);
    graph_->capture_end();
  }

  void step(const std::pair<Tensor, Tensor>& batch) {
    if (!graph_) {
      last_ = train_on(batch.first.to(device_, /*non_blocking=*/true),
                       batch.second.to(device_, /*non_blocking=*/true))
                  .item<double>();
      return;
    }
    inputs_.copy_(batch.first, /*non_blocking=*/true);
    labels_.copy_(batch.second, /*non_blocking=*/true);
    graph_->replay();
    last_ = captured_loss_.item<double>();
  }

  const GpuWork work_;
  const c10::Device device_;
  const std::shared_ptr<Classifier> model_;
  Update update_;
  std::vector<std::pair<Tensor, Tensor>> batches_;
  Tensor inputs_, labels_, captured_loss_;  // of the graph
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
  size_t next_ = 0;
  double last_ = 0;
};

}  // namespace

std::unique_ptr<GpuTraining> train_with_libtorch(const GpuWork& work) {
  if (work.side != "loop" && work.side != "fused" && work.side != "graph") return nullptr;
  return std::make_unique<LibtorchTraining>(work);
}

}  // namespace bench
