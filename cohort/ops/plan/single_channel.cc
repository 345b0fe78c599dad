// A convolution of images of one channel with two by two max-pooling, by loops of our own.
#include "cohort/ops/plan/single_channel.h"

#include <algorithm>
#include <vector>

#include "cohort/ops/kernels/single_channel_kernels.h"
#include "cohort/ops/plan/buffer.h"
#include "cohort/ops/plan/kernels.h"

namespace cohort::internal::plan {
namespace {

struct SharedBySingleChannel {
  Convolution operation;
  SingleChannel shape;
  int64_t image_size = 0;
  Chunks chunks{0, 1};
  bool records = false;

  int64_t pooled_size() const { return shape.pooled_height * shape.pooled_width * shape.filters; }
  int64_t kernel_size() const { return shape.size * shape.size * shape.filters; }
  int64_t kept_examples() const {
    return records ? chunks.batch : chunks.largest * static_cast<int64_t>(chunks.lanes.size());
  }
};

class SingleChannelForward final : public Forward {
 public:
  explicit SingleChannelForward(const SharedBySingleChannel& shared)
      : s_(shared), places_(shared.kept_examples() * shared.pooled_size()) {
    for (size_t i = 0; i < shared.chunks.lanes.size(); ++i) {
      scratch_.emplace_back(scratch_size(shared.shape));
    }
  }

  void begin(const float* const* parameters) override {
    kernel_ = parameters[0];
    bias_ = s_.operation.bias ? parameters[1] : nullptr;
  }
  void run(const Chunk& chunk, const float* in, float* out) override {
    for (int64_t i = 0; i < chunk.count; ++i) {
      convolve_single_channel(s_.shape, in + i * s_.image_size, kernel_, bias_,
                              scratch_[static_cast<size_t>(chunk.lane)].data(),
                              out + i * s_.pooled_size(), places(chunk, i));
    }
  }

  uint8_t* places(const Chunk& chunk, int64_t example) const {
    const int64_t first = s_.records ? chunk.first : chunk.lane * s_.chunks.largest;
    return places_.data() + (first + example) * s_.pooled_size();
  }

 private:
  const SharedBySingleChannel& s_;
  Buffer<uint8_t> places_;
  std::vector<Buffer<float>> scratch_;  // by lane
  const float* kernel_ = nullptr;
  const float* bias_ = nullptr;
};

class SingleChannelBackward final : public Backward {
 public:
  explicit SingleChannelBackward(const SharedBySingleChannel& shared)
      : s_(shared), lanes_(shared.chunks.lanes.size()) {
    for (Lane& lane : lanes_) {
      lane.kernel.resize(static_cast<size_t>(s_.kernel_size()));
      lane.bias.resize(static_cast<size_t>(s_.shape.filters));
    }
  }

  void begin(Forward& forward, const Values& values, const float* const*,
             float* const* gradients) override {
    forward_ = static_cast<const SingleChannelForward*>(&forward);
    values_ = values;
    kernel_gradient_ = gradients[0];
    bias_gradient_ = s_.operation.bias ? gradients[1] : nullptr;
    for (Lane& lane : lanes_) {
      std::fill(lane.kernel.begin(), lane.kernel.end(), 0.f);
      std::fill(lane.bias.begin(), lane.bias.end(), 0.);
    }
  }
  void run(const Chunk& chunk) override {
    Lane& lane = lanes_[static_cast<size_t>(chunk.lane)];
    for (int64_t i = 0; i < chunk.count; ++i) {
      add_single_channel_gradients(s_.shape, values_.in + (chunk.first + i) * s_.image_size,
                                   values_.out_gradient + (chunk.first + i) * s_.pooled_size(),
                                   forward_->places(chunk, i), lane.kernel.data(),
                                   bias_gradient_ != nullptr ? lane.bias.data() : nullptr);
    }
  }
  void end(Parallel) override {
    for (size_t i = 1; i < lanes_.size(); ++i) {
      add(lanes_[i].kernel.data(), s_.kernel_size(), lanes_[0].kernel.data());
      for (size_t f = 0; f < lanes_[0].bias.size(); ++f) lanes_[0].bias[f] += lanes_[i].bias[f];
    }
    if (kernel_gradient_ != nullptr) {
      std::copy(lanes_[0].kernel.begin(), lanes_[0].kernel.end(), kernel_gradient_);
    }
    if (bias_gradient_ != nullptr) narrow(lanes_[0].bias.data(), s_.shape.filters, bias_gradient_);
  }

 private:
  struct Lane {
    std::vector<float> kernel;
    std::vector<double> bias;
  };

  const SharedBySingleChannel& s_;
  std::vector<Lane> lanes_;
  const SingleChannelForward* forward_ = nullptr;
  Values values_;
  float* kernel_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

class SingleChannelUnit final : public Unit {
 public:
  SingleChannelUnit(const Convolution& operation, const SingleChannel& shape, int64_t image_size) {
    s_.operation = operation;
    s_.shape = shape;
    s_.image_size = image_size;
  }

  int64_t in_size() const override { return s_.image_size; }
  int64_t out_size() const override { return s_.pooled_size(); }
  size_t num_parameters() const override { return plan::num_parameters(s_.operation); }
  int64_t work() const override { return 4 * s_.pooled_size() * s_.shape.size * s_.shape.size; }
  int64_t widest() const override { return s_.pooled_size(); }
  bool reads_output() const override { return false; }
  std::string describe() const override {
    std::string text = plan::describe(Operation(s_.operation));
    if (s_.operation.bias) text += " + bias";
    if (s_.shape.relu) text += " + relu";
    return text + " + 2x2 max-pooling in one pass";
  }

  void prepare(const Chunks& chunks, bool records, bool) override {
    s_.chunks = chunks;
    s_.records = records;
  }
  std::unique_ptr<Forward> make_forward() const override {
    return std::make_unique<SingleChannelForward>(s_);
  }
  std::unique_ptr<Backward> make_backward() const override {
    return std::make_unique<SingleChannelBackward>(s_);
  }

 private:
  SharedBySingleChannel s_;
};

}  // namespace

std::unique_ptr<Unit> make_single_channel(const Convolution& operation, const Fused& fused,
                                          const Image& image, const Image& result) {
  const bool plain = image.channels == 1 && !operation.same && operation.strides == Size{1, 1} &&
                     operation.dilation == Size{1, 1} && operation.size[0] == operation.size[1] &&
                     fused.tile == Size{2, 2};
  const SingleChannel shape{.width = image.width,
                            .size = operation.size[0],
                            .filters = operation.filters,
                            .pooled_height = result.height / 2,
                            .pooled_width = result.width / 2,
                            .relu = fused.relu()};
  if (!plain || !has_kernels(shape)) return nullptr;
  return std::make_unique<SingleChannelUnit>(operation, shape, image.size());
}

}  // namespace cohort::internal::plan
