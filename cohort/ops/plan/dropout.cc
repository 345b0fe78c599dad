#include "cohort/ops/plan/kernels.h"
#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {
namespace {

struct Dropped {
  int64_t size = 0;  // elements of an example
  float share = 1;   // of what is kept
};

class DropoutForward final : public Forward {
 public:
  explicit DropoutForward(const Dropped& dropped) : dropped_(dropped) {}
  void begin(const float* const* parameters) override { kept_ = parameters[0]; }
  void run(const Chunk& chunk, const float* in, float* out) override {
    drop(in, kept_ + chunk.first * dropped_.size, dropped_.share, chunk.count * dropped_.size, out);
  }

 private:
  const Dropped dropped_;
  const float* kept_ = nullptr;
};

class DropoutBackward final : public Backward {
 public:
  explicit DropoutBackward(const Dropped& dropped) : dropped_(dropped) {}
  void begin(Forward&, const Values& values, const float* const* parameters,
             float* const* gradients) override {
    values_ = values;
    kept_ = parameters[0];
    kept_gradient_ = gradients[0];
  }
  void run(const Chunk& chunk) override {
    const int64_t first = chunk.first * dropped_.size;
    const int64_t count = chunk.count * dropped_.size;
    const float* const gradient = values_.out_gradient + first;
    if (values_.in_gradient != nullptr) {
      drop(gradient, kept_ + first, dropped_.share, count, values_.in_gradient + first);
    }
    if (kept_gradient_ != nullptr) {
      drop(gradient, values_.in + first, dropped_.share, count, kept_gradient_ + first);
    }
  }
  void end(Parallel) override {}

 private:
  const Dropped dropped_;
  Values values_;
  const float* kept_ = nullptr;
  float* kept_gradient_ = nullptr;
};

class DropoutUnit final : public Unit {
 public:
  explicit DropoutUnit(const Dropped& dropped) : dropped_(dropped) {}
  int64_t in_size() const override { return dropped_.size; }
  int64_t out_size() const override { return dropped_.size; }
  size_t num_parameters() const override { return 1; }
  int64_t work() const override { return dropped_.size; }
  int64_t widest() const override { return dropped_.size; }
  bool reads_output() const override { return false; }
  std::string describe() const override { return plan::describe(Dropout{}); }
  void prepare(const Chunks&, bool, bool) override {}
  std::unique_ptr<Forward> make_forward() const override {
    return std::make_unique<DropoutForward>(dropped_);
  }
  std::unique_ptr<Backward> make_backward() const override {
    return std::make_unique<DropoutBackward>(dropped_);
  }

 private:
  const Dropped dropped_;
};

}  // namespace

std::unique_ptr<Unit> make_dropout(const Dropout& operation, int64_t size) {
  return std::make_unique<DropoutUnit>(Dropped{size, static_cast<float>(1 - operation.rate)});
}

}  // namespace cohort::internal::plan
