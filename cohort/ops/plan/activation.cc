// Activations that follow no convolution or product, or whose gradients need what they were given.
#include "cohort/ops/plan/activation_kernels.h"
#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {
namespace {

class ActivationForward final : public Forward {
 public:
  ActivationForward(const Activation& activation, int64_t size)
      : activation_(activation), size_(size) {}
  void begin(const float* const*) override {}
  void run(const Chunk& chunk, const float* in, float* out) override {
    activate(activation_, in, chunk.count * size_, out);
  }

 private:
  Activation activation_;
  int64_t size_;
};

class ActivationBackward final : public Backward {
 public:
  ActivationBackward(const Activation& activation, int64_t size)
      : activation_(activation), size_(size) {}
  void begin(Forward&, const Values& values, const float* const*, float* const*) override {
    values_ = values;
  }
  void run(const Chunk& chunk) override {
    if (values_.in_gradient == nullptr) return;
    const int64_t first = chunk.first * size_;
    const float* const value = reads_input(activation_.function) ? values_.in : values_.out;
    activation_gradient(activation_, value + first, values_.out_gradient + first,
                        chunk.count * size_, values_.in_gradient + first);
  }
  void end(Parallel) override {}

 private:
  Activation activation_;
  int64_t size_;
  Values values_;
};

class ActivationUnit final : public Unit {
 public:
  ActivationUnit(const Activation& activation, int64_t size)
      : activation_(activation), size_(size) {}
  int64_t in_size() const override { return size_; }
  int64_t out_size() const override { return size_; }
  size_t num_parameters() const override { return 0; }
  int64_t work() const override {
    constexpr int64_t kPower = 16;  // e^x
    return activation_.function == Function::kRelu ? size_ : kPower * size_;
  }
  int64_t widest() const override { return size_; }
  bool reads_output() const override { return !reads_input(activation_.function); }
  std::string describe() const override { return plan::describe(activation_); }
  void prepare(const Chunks&, bool, bool) override {}
  std::unique_ptr<Forward> make_forward() const override {
    return std::make_unique<ActivationForward>(activation_, size_);
  }
  std::unique_ptr<Backward> make_backward() const override {
    return std::make_unique<ActivationBackward>(activation_, size_);
  }

 private:
  Activation activation_;
  int64_t size_;
};

}  // namespace

std::unique_ptr<Unit> make_activation(const Activation& activation, int64_t size) {
  return std::make_unique<ActivationUnit>(activation, size);
}

}  // namespace cohort::internal::plan
