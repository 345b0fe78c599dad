// Batch normalization, by the mean and variance of a whole batch or by given
// ones.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cohort/ops/kernels/batch_norm_kernels.h"
#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {
namespace {

struct SharedByNormalization {
  Normalization operation;
  int64_t size = 0;  // elements of an example
  int64_t channels = 0;
  Chunks chunks{0, 1};

  int64_t rows(int64_t examples) const { return examples * size / channels; }
};

void run_lanes(const Chunks& chunks, Parallel parallel, FunctionRef<void(const Chunk&)> body) {
  parallel(static_cast<int64_t>(chunks.lanes.size()), [&](int64_t lane) {
    for (const Chunk& chunk : chunks.lanes[static_cast<size_t>(lane)]) body(chunk);
  });
}

class NormalizationForward final : public Forward {
 public:
  explicit NormalizationForward(const SharedByNormalization& shared)
      : s_(shared),
        moments_(shared.chunks.lanes.size(), Moments(shared.channels)),
        statistics_(static_cast<size_t>(2 * shared.channels)),
        scale_(static_cast<size_t>(shared.channels)),
        offset_(static_cast<size_t>(shared.channels)),
        reciprocals_(static_cast<size_t>(shared.channels)) {}

  void begin(const float* const* parameters) override {
    gamma_ = s_.operation.scale ? *parameters++ : nullptr;
    const float* const beta = s_.operation.center ? *parameters++ : nullptr;
    if (beta != nullptr) std::copy_n(beta, s_.channels, offset_.begin());
    if (s_.operation.by_batch) return;
    std::copy_n(parameters[0], s_.channels, statistics_.begin());
    std::copy_n(parameters[1], s_.channels, statistics_.begin() + s_.channels);
    for (size_t c = 0; c < scale_.size(); ++c) set_scale(c, parameters[1][c]);
  }

  void look(const float* in, Parallel parallel) override {
    for (Moments& moments : moments_) {
      moments.rows = 0;
      std::fill(moments.mean.begin(), moments.mean.end(), 0.);
      std::fill(moments.squares.begin(), moments.squares.end(), 0.);
    }
    run_lanes(s_.chunks, parallel, [&](const Chunk& chunk) {
      add_moments(in + chunk.first * s_.size, s_.rows(chunk.count), s_.channels,
                  moments_[static_cast<size_t>(chunk.lane)]);
    });
    Moments& all = moments_[0];
    for (size_t lane = 1; lane < moments_.size(); ++lane) merge_moments(moments_[lane], all);
    const auto rows = static_cast<double>(s_.rows(s_.chunks.batch));
    for (size_t c = 0; c < scale_.size(); ++c) {
      const double variance = all.squares[c] / rows;
      statistics_[c] = static_cast<float>(all.mean[c]);
      statistics_[scale_.size() + c] = static_cast<float>(variance);
      set_scale(c, variance);
    }
  }

  void run(const Chunk& chunk, const float* in, float* out) override {
    const Normalizer by{mean(), scale_.data(), offset_.data()};
    normalize_rows(by, in, s_.rows(chunk.count), s_.channels, out);
  }

  const float* statistics() const override { return statistics_.data(); }
  const float* mean() const { return statistics_.data(); }
  // gamma over the standard deviation; and 1 over that.
  const std::vector<float>& scale() const { return scale_; }
  const std::vector<double>& reciprocals() const { return reciprocals_; }

 private:
  void set_scale(size_t channel, double variance) {
    reciprocals_[channel] = 1 / std::sqrt(variance + s_.operation.epsilon);
    scale_[channel] =
        static_cast<float>(reciprocals_[channel] * (gamma_ != nullptr ? gamma_[channel] : 1));
  }

  const SharedByNormalization& s_;
  std::vector<Moments> moments_;   // by lane
  std::vector<float> statistics_;  // means, variances
  std::vector<float> scale_;
  std::vector<float> offset_;
  std::vector<double> reciprocals_;
  const float* gamma_ = nullptr;
};

class NormalizationBackward final : public Backward {
 public:
  explicit NormalizationBackward(const SharedByNormalization& shared)
      : s_(shared), lanes_(shared.chunks.lanes.size()) {
    const auto channels = static_cast<size_t>(shared.channels);
    for (Lane& lane : lanes_) {
      lane.sums.resize(channels);
      lane.products.resize(channels);
    }
    constants_.resize(channels);
    slopes_.resize(channels);
  }

  void begin(Forward& forward, const Values& values, const float* const*,
             float* const* gradients) override {
    forward_ = static_cast<const NormalizationForward*>(&forward);
    values_ = values;
    gamma_ = s_.operation.scale ? *gradients++ : nullptr;
    beta_ = s_.operation.center ? *gradients++ : nullptr;
    mean_ = s_.operation.by_batch ? nullptr : gradients[0];
    variance_ = s_.operation.by_batch ? nullptr : gradients[1];
    for (Lane& lane : lanes_) {
      std::fill(lane.sums.begin(), lane.sums.end(), 0.);
      std::fill(lane.products.begin(), lane.products.end(), 0.);
    }
  }

  // Sums of the gradient of the result, and of its products with the input less the mean.
  void run(const Chunk& chunk) override {
    Lane& lane = lanes_[static_cast<size_t>(chunk.lane)];
    const int64_t first = chunk.first * s_.size;
    add_gradient_sums(values_.in + first, forward_->mean(), values_.out_gradient + first,
                      s_.rows(chunk.count), s_.channels, lane.sums.data(), lane.products.data());
  }

  void end(Parallel parallel) override {
    Lane& all = lanes_[0];
    for (size_t i = 1; i < lanes_.size(); ++i) {
      for (size_t c = 0; c < all.sums.size(); ++c) {
        all.sums[c] += lanes_[i].sums[c];
        all.products[c] += lanes_[i].products[c];
      }
    }
    give_parameter_gradients(all.sums, all.products);
    if (values_.in_gradient == nullptr) return;
    const auto rows = static_cast<double>(s_.rows(s_.chunks.batch));
    for (size_t c = 0; c < all.sums.size(); ++c) {
      // given mean and variance are none of the input's
      const double share = s_.operation.by_batch ? forward_->scale()[c] / rows : 0;
      const double reciprocal = forward_->reciprocals()[c];
      constants_[c] = static_cast<float>(share * all.sums[c]);
      slopes_[c] = static_cast<float>(share * all.products[c] * reciprocal * reciprocal);
    }
    const InputGradient terms{forward_->mean(), forward_->scale().data(), constants_.data(),
                              slopes_.data()};
    run_lanes(s_.chunks, parallel, [&](const Chunk& chunk) {
      const int64_t first = chunk.first * s_.size;
      normalization_gradient_rows(terms, values_.in + first, values_.out_gradient + first,
                                  s_.rows(chunk.count), s_.channels, values_.in_gradient + first);
    });
  }

 private:
  struct Lane {
    std::vector<double> sums;
    std::vector<double> products;
  };

  void give_parameter_gradients(const std::vector<double>& sums,
                                const std::vector<double>& products) const {
    for (size_t c = 0; c < sums.size(); ++c) {
      const double scale = forward_->scale()[c], reciprocal = forward_->reciprocals()[c];
      if (gamma_ != nullptr) gamma_[c] = static_cast<float>(products[c] * reciprocal);
      if (beta_ != nullptr) beta_[c] = static_cast<float>(sums[c]);
      if (mean_ != nullptr) mean_[c] = static_cast<float>(-scale * sums[c]);
      if (variance_ == nullptr) continue;
      variance_[c] = static_cast<float>(-0.5 * scale * reciprocal * reciprocal * products[c]);
    }
  }

  const SharedByNormalization& s_;
  std::vector<Lane> lanes_;
  std::vector<float> constants_;
  std::vector<float> slopes_;
  const NormalizationForward* forward_ = nullptr;
  Values values_;
  float* gamma_ = nullptr;  // the gradient of each, where it is wanted
  float* beta_ = nullptr;
  float* mean_ = nullptr;
  float* variance_ = nullptr;
};

class NormalizationUnit final : public Unit {
 public:
  NormalizationUnit(const Normalization& operation, int64_t size, int64_t channels) {
    s_.operation = operation;
    s_.size = size;
    s_.channels = channels;
  }

  int64_t in_size() const override { return s_.size; }
  int64_t out_size() const override { return s_.size; }
  size_t num_parameters() const override { return plan::num_parameters(s_.operation); }
  // The forward pass has kept what it took from them.
  size_t num_kernels() const override { return 0; }
  int64_t work() const override { return 4 * s_.size; }
  int64_t widest() const override { return s_.size; }
  bool reads_output() const override { return false; }
  bool looks_at_batch() const override { return s_.operation.by_batch; }
  std::string describe() const override { return plan::describe(s_.operation); }
  void prepare(const Chunks& chunks, bool, bool) override { s_.chunks = chunks; }
  std::unique_ptr<Forward> make_forward() const override {
    return std::make_unique<NormalizationForward>(s_);
  }
  std::unique_ptr<Backward> make_backward() const override {
    return std::make_unique<NormalizationBackward>(s_);
  }

 private:
  SharedByNormalization s_;
};

}  // namespace

std::unique_ptr<Unit> make_normalization(const Normalization& operation, int64_t size,
                                         int64_t channels) {
  return std::make_unique<NormalizationUnit>(operation, size, channels);
}

}  // namespace cohort::internal::plan
