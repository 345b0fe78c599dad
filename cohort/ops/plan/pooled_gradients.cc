#include <algorithm>
#include <vector>

#include "cohort/ops/plan/convolution.h"

namespace cohort::internal::plan {
namespace {

class PooledGradients final : public Backward {
 public:
  explicit PooledGradients(const SharedByConvolutions& shared)
      : s_(shared),
        shape_(shared.pooled_convolution()),
        window_size_(shape_.size * shape_.size * shape_.channels),
        by_filter_(shape_.filters * window_size_),
        lanes_(shared.chunks.lanes.size()) {
    for (Lane& lane : lanes_) {
      lane.kernel = Buffer<float>(shape_.filters * window_size_);
      lane.bias.resize(static_cast<size_t>(shape_.filters));
      kernel_gradients_.push_back(lane.kernel.data());
    }
  }

  void begin(Forward& forward, const Values& values, const float* const* parameters,
             float* const* gradients) override {
    forward_ = static_cast<const ConvolutionForward*>(&forward);
    values_ = values;
    kernel_gradient_ = gradients[0];
    bias_gradient_ = s_.operation.bias ? gradients[1] : nullptr;
    if (values_.in_gradient != nullptr) {
      sum_transposed({parameters, 1}, window_size_, shape_.filters, by_filter_.data());
    }
    for (Lane& lane : lanes_) {
      std::fill_n(lane.kernel.data(), shape_.filters * window_size_, 0.f);
      std::fill(lane.bias.begin(), lane.bias.end(), 0.);
    }
  }

  void run(const Chunk& chunk) override {
    Lane& lane = lanes_[static_cast<size_t>(chunk.lane)];
    const int64_t out_size = s_.pooled().size();
    const float* const gradients = values_.out_gradient + chunk.first * out_size;
    const uint8_t* const places = forward_->places(chunk);
    for (int64_t i = 0; i < chunk.count; ++i) {
      const int64_t image = (chunk.first + i) * s_.image.size();
      const float* const gradient = gradients + i * out_size;
      if (kernel_gradient_ != nullptr) {
        add_pooled_kernel_gradient(shape_, values_.in + image, gradient, places + i * out_size,
                                   lane.kernel.data());
      }
      if (values_.in_gradient != nullptr) {
        pooled_image_gradient(shape_, by_filter_.data(), gradient, places + i * out_size,
                              values_.in_gradient + image);
      }
    }
    if (bias_gradient_ != nullptr) {
      sum_placed(s_.tiles(chunk.count), gradients, places, lane.bias.data());
    }
  }

  void end(Parallel) override {
    for (size_t i = 1; i < lanes_.size(); ++i) {
      for (size_t f = 0; f < lanes_[0].bias.size(); ++f) lanes_[0].bias[f] += lanes_[i].bias[f];
    }
    if (kernel_gradient_ != nullptr) {
      sum_transposed(kernel_gradients_, shape_.filters, window_size_, kernel_gradient_);
    }
    if (bias_gradient_ != nullptr) narrow(lanes_[0].bias.data(), shape_.filters, bias_gradient_);
  }

 private:
  struct Lane {
    Buffer<float> kernel;
    std::vector<double> bias;
  };

  const SharedByConvolutions& s_;
  const PooledConvolution shape_;
  const int64_t window_size_;
  Buffer<float> by_filter_;  // the kernel, of a pass whose input wants a gradient
  std::vector<Lane> lanes_;
  std::vector<const float*> kernel_gradients_;  // by lane
  const ConvolutionForward* forward_ = nullptr;
  Values values_;
  float* kernel_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Backward> make_pooled_gradients(const SharedByConvolutions& shared) {
  return std::make_unique<PooledGradients>(shared);
}

}  // namespace cohort::internal::plan
