#include <algorithm>
#include <vector>

#include "cohort/ops/plan/convolution.h"

namespace cohort::internal::plan {
namespace {

class DenseGradients final : public Backward {
 public:
  explicit DenseGradients(const SharedByConvolutions& shared)
      : s_(shared), lanes_(shared.chunks.lanes.size()) {
    const Layout gradient = s_.described[0].weights.diff_weights_desc();
    plain_ = std::make_unique<Relayout>(gradient, s_.plain_kernel());
    if (s_.wants_input) {
      kernel_ = std::make_unique<Relayout>(s_.plain_kernel(), s_.described[0].data.weights_desc());
    }
    kernel_size_ = elements(gradient);
    for_one_thread([&] {
      for (size_t i = 0; i < lanes_.size(); ++i) make(lanes_[i], s_.chunks.lanes[i].size() > 1);
    });
  }

  void begin(Forward& forward, const Values& values, const float* const* parameters,
             float* const* gradients) override {
    forward_ = static_cast<const ConvolutionForward*>(&forward);
    values_ = values;
    kernel_gradient_ = gradients[0];
    bias_gradient_ = s_.operation.bias ? gradients[1] : nullptr;
    if (values_.in_gradient != nullptr) blocked_ = (*kernel_)(parameters[0]);
    for (Lane& lane : lanes_) {
      lane.begun = false;
      std::fill(lane.bias.begin(), lane.bias.end(), 0.);
    }
  }

  void run(const Chunk& chunk) override {
    Lane& lane = lanes_[static_cast<size_t>(chunk.lane)];
    const size_t size = s_.index_of(chunk);
    const float* const gradient = ahead_of_fused(chunk, lane);
    if (kernel_gradient_ != nullptr) {
      float* const to = lane.begun ? lane.next.data() : lane.kernel.data();
      lane.weights[size]({input(chunk, lane), gradient, to});
      if (lane.begun) add(to, kernel_size_, lane.kernel.data());
      lane.begun = true;
    }
    if (values_.in_gradient != nullptr) {
      float* const to = values_.in_gradient + chunk.first * s_.image.size();
      const bool whole = s_.crop().keeps_all();
      lane.data[size]({gradient, blocked_, whole ? to : lane.cropped_gradient.data()});
      if (!whole) uncrop(s_.crop(), chunk.count, lane.cropped_gradient.data(), to);
    }
  }

  void end(Parallel) override {
    for (size_t i = 1; i < lanes_.size(); ++i) {
      if (kernel_gradient_ != nullptr) {
        add(lanes_[i].kernel.data(), kernel_size_, lanes_[0].kernel.data());
      }
      for (size_t c = 0; c < lanes_[0].bias.size(); ++c) lanes_[0].bias[c] += lanes_[i].bias[c];
    }
    if (kernel_gradient_ != nullptr) plain_->to(lanes_[0].kernel.data(), kernel_gradient_);
    if (bias_gradient_ != nullptr) {
      narrow(lanes_[0].bias.data(), s_.operation.filters, bias_gradient_);
    }
  }

 private:
  struct Lane {
    Scratch scratch;
    std::vector<Primitive> weights;  // by size of chunk
    std::vector<Primitive> data;
    Buffer<float> gradient;  // of the convolution's own result
    Buffer<float> cropped;
    Buffer<float> cropped_gradient;
    Buffer<float> kernel;  // its gradient over the lane's chunks
    Buffer<float> next;    // over the next chunk
    bool begun = false;
    std::vector<double> bias;
  };

  void make(Lane& lane, bool several) {
    for (const DescribedConvolution& described : s_.described) {
      lane.weights.emplace_back(
          described.weights,
          std::vector<int>{DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS}, lane.scratch);
      if (!s_.wants_input) continue;
      lane.data.emplace_back(
          described.data, std::vector<int>{DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
          lane.scratch);
    }
    const int64_t examples = s_.chunks.largest;
    if (s_.fused.activation || s_.fused.pools())
      lane.gradient = Buffer<float>(examples * s_.result.size());
    if (!s_.crop().keeps_all()) {
      lane.cropped = Buffer<float>(examples * s_.read.size());
      if (s_.wants_input) lane.cropped_gradient = Buffer<float>(examples * s_.read.size());
    }
    lane.kernel = Buffer<float>(kernel_size_);
    if (several) lane.next = Buffer<float>(kernel_size_);
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
  std::unique_ptr<Relayout> plain_;
  std::unique_ptr<Relayout> kernel_;
  std::vector<Lane> lanes_;
  int64_t kernel_size_ = 0;
  const ConvolutionForward* forward_ = nullptr;
  Values values_;
  const float* blocked_ = nullptr;
  float* kernel_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Backward> make_dense_gradients(const SharedByConvolutions& shared) {
  return std::make_unique<DenseGradients>(shared);
}

}  // namespace cohort::internal::plan
