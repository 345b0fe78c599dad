// Means of windows of images, and of whole ones.
#include <algorithm>
#include <utility>

#include "cohort/ops/plan/kernels.h"
#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {
namespace {

int64_t in_size(const Averaging& a) { return a.height * a.width * a.channels; }
int64_t out_size(const Averaging& a) { return a.rows.count * a.columns.count * a.channels; }

class AverageForward final : public Forward {
 public:
  explicit AverageForward(const Averaging& averaging) : averaging_(averaging) {}
  void begin(const float* const*) override {}
  void run(const Chunk& chunk, const float* in, float* out) override {
    average(averaging_, chunk.count, in, out);
  }

 private:
  const Averaging averaging_;
};

class AverageBackward final : public Backward {
 public:
  explicit AverageBackward(const Averaging& averaging) : averaging_(averaging) {}
  void begin(Forward&, const Values& values, const float* const*, float* const*) override {
    values_ = values;
  }
  void run(const Chunk& chunk) override {
    if (values_.in_gradient == nullptr) return;
    average_gradient(averaging_, chunk.count,
                     values_.out_gradient + chunk.first * out_size(averaging_),
                     values_.in_gradient + chunk.first * in_size(averaging_));
  }
  void end(Parallel) override {}

 private:
  const Averaging averaging_;
  Values values_;
};

class AverageUnit final : public Unit {
 public:
  AverageUnit(const Averaging& averaging, std::string text)
      : averaging_(averaging), text_(std::move(text)) {}
  int64_t in_size() const override { return plan::in_size(averaging_); }
  int64_t out_size() const override { return plan::out_size(averaging_); }
  size_t num_parameters() const override { return 0; }
  int64_t work() const override { return out_size() * averaging_.size[0] * averaging_.size[1]; }
  int64_t widest() const override { return std::max(in_size(), out_size()); }
  bool reads_output() const override { return false; }
  std::string describe() const override { return text_; }
  void prepare(const Chunks&, bool, bool) override {}
  std::unique_ptr<Forward> make_forward() const override {
    return std::make_unique<AverageForward>(averaging_);
  }
  std::unique_ptr<Backward> make_backward() const override {
    return std::make_unique<AverageBackward>(averaging_);
  }

 private:
  const Averaging averaging_;
  const std::string text_;
};

}  // namespace

std::unique_ptr<Unit> make_average(const AveragePooling& o, const Image& image) {
  const Averaging averaging{.height = image.height,
                            .width = image.width,
                            .channels = image.channels,
                            .size = o.size,
                            .strides = o.strides,
                            .rows = windows(image.height, o.size[0], o.strides[0], 1, o.same),
                            .columns = windows(image.width, o.size[1], o.strides[1], 1, o.same)};
  return std::make_unique<AverageUnit>(averaging, plan::describe(Operation(o)));
}

std::unique_ptr<Unit> make_global_average(const Image& image) {
  const Size whole{image.height, image.width};
  const Averaging averaging{.height = image.height,
                            .width = image.width,
                            .channels = image.channels,
                            .size = whole,
                            .strides = whole,
                            .rows = {.count = 1},
                            .columns = {.count = 1}};
  return std::make_unique<AverageUnit>(averaging, plan::describe(Operation(GlobalAverage{})));
}

}  // namespace cohort::internal::plan
