#include <algorithm>
#include <vector>

#include "cohort/ops/plan/convolution.h"

namespace cohort::internal::plan {
namespace {

class DenseGradients final : public Backward {
 public:
  explicit DenseGradients(const SharedByConvolutions& shared)
      : s_(shared), lanes_(shared.chunks.lanes.size()) {
    const bool fewer = s_.has_fewer_products();
    of_kernel_ = fewer ? make_winograd_kernel_gradient(s_) : make_direct_kernel_gradient(s_);
    if (s_.wants_input) {
      of_input_ = fewer ? make_winograd_input_gradient(s_) : make_direct_input_gradient(s_);
    }
    for (Lane& lane : lanes_) make(lane);
  }

  void begin(Forward& forward, const Values& values, const float* const* parameters,
             float* const* gradients) override {
    forward_ = static_cast<const ConvolutionForward*>(&forward);
    values_ = values;
    kernel_ = parameters[0];
    kernel_gradient_ = gradients[0];
    bias_gradient_ = s_.operation.bias ? gradients[1] : nullptr;
    for (Lane& lane : lanes_) std::fill(lane.bias.begin(), lane.bias.end(), 0.);
  }
  void make_ready(Parallel parallel) override {
    if (values_.in_gradient != nullptr) of_input_->begin(kernel_, parallel);
  }

  void run(const Chunk& chunk) override {
    Lane& lane = lanes_[static_cast<size_t>(chunk.lane)];
    const float* const gradient = ahead_of_fused(chunk, lane);
    if (kernel_gradient_ != nullptr) of_kernel_->run(chunk, input(chunk, lane), gradient);
    if (values_.in_gradient != nullptr) {
      float* const to = values_.in_gradient + chunk.first * s_.image.size();
      const bool whole = s_.crop().keeps_all();
      of_input_->run(chunk, gradient, nullptr, whole ? to : lane.cropped_gradient.data());
      if (!whole) uncrop(s_.crop(), chunk.count, lane.cropped_gradient.data(), to);
    }
  }

  void end(Parallel parallel) override {
    if (kernel_gradient_ != nullptr) of_kernel_->end(parallel, kernel_gradient_);
    if (bias_gradient_ == nullptr) return;
    for (size_t i = 1; i < lanes_.size(); ++i) {
      for (size_t c = 0; c < lanes_[0].bias.size(); ++c) lanes_[0].bias[c] += lanes_[i].bias[c];
    }
    narrow(lanes_[0].bias.data(), s_.operation.filters, bias_gradient_);
  }

 private:
  struct Lane {
    Buffer<float> gradient;  // of the convolution's own result
    Buffer<float> cropped;
    Buffer<float> cropped_gradient;
    std::vector<double> bias;
  };

  void make(Lane& lane) const {
    const int64_t examples = s_.chunks.largest;
    if (s_.fused.activation || s_.fused.pools())
      lane.gradient = Buffer<float>(examples * s_.result.size());
    if (!s_.crop().keeps_all()) {
      lane.cropped = Buffer<float>(examples * s_.read.size());
      if (s_.wants_input) lane.cropped_gradient = Buffer<float>(examples * s_.read.size());
    }
    lane.bias.resize(static_cast<size_t>(s_.operation.filters));
  }

  const float* input(const Chunk& chunk, Lane& lane) const {
    const float* const in = values_.in + chunk.first * s_.image.size();
    if (s_.crop().keeps_all()) return in;
    crop(s_.crop(), chunk.count, in, lane.cropped.data());
    return lane.cropped.data();
  }

  // The gradient of what pooling and activation were given; adds up that of the bias.
  const float* ahead_of_fused(const Chunk& chunk, Lane& lane) const {
    const Image out = s_.fused.pools() ? s_.pooled() : s_.result;
    const int64_t first = chunk.first * out.size();
    const float* gradient = values_.out_gradient + first;
    const bool wants_bias = bias_gradient_ != nullptr;
    if (s_.fused.pools()) {
      const TiledImages tiles = s_.tiles(chunk.count);
      const uint8_t* const places = forward_->places(chunk);
      unpool_rows<float>(tiles, 0, tiles.out_rows(), gradient, places, lane.gradient.data());
      if (wants_bias) sum_placed(tiles, gradient, places, lane.bias.data());
      return lane.gradient.data();
    }
    if (s_.fused.activation) {
      activation_gradient(*s_.fused.activation, values_.out + first, gradient,
                          chunk.count * out.size(), lane.gradient.data());
      gradient = lane.gradient.data();
    }
    if (wants_bias) {
      add_column_sums(gradient, chunk.count * out.height * out.width, out.channels,
                      lane.bias.data());
    }
    return gradient;
  }

  const SharedByConvolutions& s_;
  std::unique_ptr<KernelGradient> of_kernel_;
  std::unique_ptr<Convolver> of_input_;
  std::vector<Lane> lanes_;
  const ConvolutionForward* forward_ = nullptr;
  Values values_;
  const float* kernel_ = nullptr;
  float* kernel_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Backward> make_dense_gradients(const SharedByConvolutions& shared) {
  return std::make_unique<DenseGradients>(shared);
}

}  // namespace cohort::internal::plan
