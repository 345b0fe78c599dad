// LSTM and GRU: each lane takes its examples through all steps. What a pass keeps lies step by
// step, [steps, batch, ..], so that a chunk's rows of a step lie side by side.
#include <algorithm>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/kernels/transposed_product.h"
#include "cohort/ops/plan/kernels.h"
#include "cohort/ops/plan/product.h"
#include "cohort/ops/plan/recurrent_kernels.h"
#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {
namespace {

struct SharedByRecurrent {
  Recurrent operation;
  RecurrentSizes sizes;
  int64_t steps = 0;
  int64_t width = vector_width();
  Chunks chunks{0, 1};
  bool records = false;
  bool wants_input = false;
  // A kernel's gradient in parts, consecutive rows each, of one or two sizes.
  struct KernelGradient {
    std::vector<Part> parts;
    std::vector<Product> products;  // by size

    const Product& product(const Part& part) const {
      return products[parts[0].count == part.count ? 0 : 1];
    }
  };
  KernelGradient kernel;
  KernelGradient recurrent;  // empty where there is but one step

  bool is_lstm() const { return sizes.cell == Cell::kLstm; }
  // The place in a sequence of what is the input of step t.
  int64_t place(int64_t t) const { return operation.backwards ? steps - 1 - t : t; }
  int64_t in_size() const { return steps * sizes.features; }
  int64_t out_size() const { return (operation.sequences ? steps : 1) * sizes.units; }
  // Rows of what lies step by step: of step t, and ahead of it.
  int64_t row(int64_t t, const Chunk& chunk) const { return t * chunks.batch + chunk.first; }
};

class RecurrentForward final : public Forward {
 public:
  explicit RecurrentForward(const SharedByRecurrent& shared)
      : s_(shared),
        packed_(packed_size(s_.sizes, s_.width)),
        states_(rows() * s_.sizes.units),
        memories_(s_.is_lstm() ? rows() * s_.sizes.units : 0),
        kept_(s_.records ? rows() * kKept * s_.sizes.units : 0),
        memory_tanhs_(s_.records && s_.is_lstm() ? rows() * s_.sizes.units : 0) {}

  void begin(const float* const* parameters) override {
    pack(s_.sizes, s_.width, parameters[0], parameters[1],
         s_.operation.bias ? parameters[2] : nullptr, packed_.data());
  }

  void run(const Chunk& chunk, const float* in, float* out) override {
    const int64_t units = s_.sizes.units;
    ForwardStep step{
        .rows = chunk.count, .input_distance = s_.in_size(), .output_distance = s_.out_size()};
    for (int64_t t = 0; t < s_.steps; ++t) {
      const int64_t row = own_row(t, chunk);
      step.input = in + s_.place(t) * s_.sizes.features;
      step.new_state = states_.data() + row * units;
      if (s_.is_lstm()) step.new_memory = memories_.data() + row * units;
      if (s_.records) {
        step.kept = kept_.data() + row * kKept * units;
        if (s_.is_lstm()) step.memory_tanh = memory_tanhs_.data() + row * units;
      }
      if (s_.operation.sequences) {
        step.output = out + t * units;
      } else if (t + 1 == s_.steps) {
        step.output = out;
      }
      run_step(s_.sizes, s_.width, packed_.data(), step);
      step.state = step.new_state;
      step.memory = step.new_memory;
    }
  }

  // The states of a recorded pass, by row.
  const float* states() const { return states_.data(); }
  const float* memories() const { return memories_.data(); }
  const float* kept() const { return kept_.data(); }
  const float* memory_tanhs() const { return memory_tanhs_.data(); }

 private:
  // Two steps of the examples that are under way are enough if there is no gradient.
  int64_t rows() const {
    if (s_.records) return s_.steps * s_.chunks.batch;
    return 2 * s_.chunks.largest * static_cast<int64_t>(s_.chunks.lanes.size());
  }
  int64_t own_row(int64_t t, const Chunk& chunk) const {
    return s_.records ? s_.row(t, chunk) : (2 * chunk.lane + t % 2) * s_.chunks.largest;
  }

  const SharedByRecurrent& s_;
  Buffer<float> packed_;
  Buffer<float> states_;
  Buffer<float> memories_;
  Buffer<float> kept_;
  Buffer<float> memory_tanhs_;
};

class RecurrentBackward final : public Backward {
 public:
  explicit RecurrentBackward(const SharedByRecurrent& shared)
      : s_(shared),
        kernel_(shared.kernel),
        recurrent_(shared.recurrent),
        packed_recurrent_(transposed_size(columns(), s_.sizes.units, s_.width)),
        packed_kernel_(s_.wants_input ? transposed_size(columns(), s_.sizes.features, s_.width)
                                      : 0),
        inputs_(rows() * s_.sizes.features),
        sums_(rows() * columns()),
        state_sums_(s_.is_lstm() ? 0 : rows() * columns()),
        carried_(s_.chunks.batch * s_.sizes.units),
        from_sums_(s_.chunks.batch * s_.sizes.units),
        bias_sums_(static_cast<size_t>(columns())) {}

  void begin(Forward& forward, const Values& values, const float* const* parameters,
             float* const* gradients) override {
    forward_ = static_cast<const RecurrentForward*>(&forward);
    values_ = values;
    kernel_gradient_ = gradients[0];
    recurrent_gradient_ = gradients[1];
    bias_gradient_ = s_.operation.bias ? gradients[2] : nullptr;
    pack_transposed(columns(), s_.sizes.units, s_.width, parameters[1], packed_recurrent_.data());
    if (values.in_gradient == nullptr) return;
    pack_transposed(columns(), s_.sizes.features, s_.width, parameters[0], packed_kernel_.data());
  }

  void run(const Chunk& chunk) override {
    std::fill_n(carried_.data() + chunk.first * s_.sizes.units, chunk.count * s_.sizes.units, 0.f);
    for (int64_t t = s_.steps; t-- > 0;) run_step_back(t, chunk);
    if (kernel_gradient_ != nullptr) keep_inputs(chunk);
  }

  void end(Parallel parallel) override {
    add_bias_gradient();
    const int64_t units = s_.sizes.units, skipped = s_.chunks.batch;  // the first step has no state
    if (recurrent_gradient_ != nullptr && s_.steps == 1) {
      std::fill_n(recurrent_gradient_, units * columns(), 0.f);
    }
    const int64_t of_kernel = kernel_gradient_ == nullptr ? 0 : kernel_.size();
    const int64_t of_recurrent = recurrent_gradient_ == nullptr ? 0 : recurrent_.size();
    parallel(of_kernel + of_recurrent, [&](int64_t i) {
      if (i < of_kernel) {
        kernel_.multiply(i, inputs_.data(), sums_.data(), columns(), kernel_gradient_);
      } else {
        recurrent_.multiply(i - of_kernel, forward_->states(), state_sums() + skipped * columns(),
                            columns(), recurrent_gradient_);
      }
    });
  }

 private:
  // The products of a kernel's gradient.
  class KernelParts {
   public:
    explicit KernelParts(const SharedByRecurrent::KernelGradient& gradient)
        : parts_(gradient.parts), products_(gradient.parts.size()) {
      for_one_thread([&] {
        for (size_t i = 0; i < parts_.size(); ++i) {
          products_[i].multiply = Multiplication(gradient.product(parts_[i]), products_[i].scratch);
        }
      });
    }
    int64_t size() const { return static_cast<int64_t>(parts_.size()); }
    void multiply(int64_t i, const float* left, const float* sums, int64_t columns,
                  float* gradient) {
      const int64_t first = parts_[static_cast<size_t>(i)].first;
      products_[static_cast<size_t>(i)].multiply(left + first, sums, gradient + first * columns);
    }

   private:
    struct Own {
      Scratch scratch;
      Multiplication multiply;
    };
    const std::vector<Part>& parts_;
    std::vector<Own> products_;
  };

  int64_t columns() const { return s_.sizes.columns(); }
  int64_t rows() const { return s_.steps * s_.chunks.batch; }
  float* state_sums() { return s_.is_lstm() ? sums_.data() : state_sums_.data(); }

  void run_step_back(int64_t t, const Chunk& chunk) {
    const int64_t units = s_.sizes.units, row = s_.row(t, chunk), first = chunk.first * units;
    BackwardStep step{.rows = chunk.count,
                      .kept = forward_->kept() + row * kKept * units,
                      .from_outputs_distance = s_.out_size(),
                      .carried = carried_.data() + first,
                      .sums = sums_.data() + row * columns()};
    const bool is_last = t + 1 == s_.steps;
    if (t > 0) step.state = forward_->states() + s_.row(t - 1, chunk) * units;
    if (s_.is_lstm()) {
      if (t > 0) step.memory = forward_->memories() + s_.row(t - 1, chunk) * units;
      step.memory_tanh = forward_->memory_tanhs() + row * units;
    } else {
      step.state_sums = state_sums_.data() + row * columns();
    }
    if (!is_last) step.from_sums = from_sums_.data() + first;
    if (is_last || s_.operation.sequences) {
      step.from_outputs = values_.out_gradient + chunk.first * s_.out_size() +
                          (s_.operation.sequences ? t * units : 0);
    }
    run_gradient_step(s_.sizes, s_.width, step);

    TransposedProduct product{.inner = columns(), .rows = chunk.count};
    if (t > 0) {
      product.columns = units;
      product.left = state_sums() + row * columns();
      product.result = from_sums_.data() + first;
      product.result_distance = units;
      multiply_transposed(s_.width, packed_recurrent_.data(), product);
    }
    if (values_.in_gradient == nullptr) return;
    product.columns = s_.sizes.features;
    product.left = step.sums;
    product.result =
        values_.in_gradient + chunk.first * s_.in_size() + s_.place(t) * s_.sizes.features;
    product.result_distance = s_.in_size();
    multiply_transposed(s_.width, packed_kernel_.data(), product);
  }

  // Copies inputs into the order of the sums, for the product of both.
  void keep_inputs(const Chunk& chunk) {
    const int64_t features = s_.sizes.features;
    for (int64_t t = 0; t < s_.steps; ++t) {
      const float* from = values_.in + chunk.first * s_.in_size() + s_.place(t) * features;
      float* to = inputs_.data() + s_.row(t, chunk) * features;
      for (int64_t i = 0; i < chunk.count; ++i, from += s_.in_size()) {
        to = std::copy_n(from, features, to);
      }
    }
  }

  void add_bias_gradient() {
    if (bias_gradient_ == nullptr) return;
    const auto add_up = [&](const float* sums, float* to) {
      std::fill(bias_sums_.begin(), bias_sums_.end(), 0.);
      add_column_sums(sums, rows(), columns(), bias_sums_.data());
      narrow(bias_sums_.data(), columns(), to);
    };
    add_up(sums_.data(), bias_gradient_);
    if (!s_.is_lstm()) add_up(state_sums_.data(), bias_gradient_ + columns());
  }

  const SharedByRecurrent& s_;
  KernelParts kernel_;
  KernelParts recurrent_;
  Buffer<float> packed_recurrent_;
  Buffer<float> packed_kernel_;
  Buffer<float> inputs_;      // by row
  Buffer<float> sums_;        // gradients, by row
  Buffer<float> state_sums_;  // a GRU's
  Buffer<float> carried_;     // by example
  Buffer<float> from_sums_;
  std::vector<double> bias_sums_;
  Values values_;
  const RecurrentForward* forward_ = nullptr;
  float* kernel_gradient_ = nullptr;
  float* recurrent_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

class RecurrentUnit final : public Unit {
 public:
  RecurrentUnit(const Recurrent& operation, int64_t steps, int64_t features) {
    s_.operation = operation;
    s_.sizes = {operation.cell, features, operation.units};
    s_.steps = steps;
  }

  int64_t in_size() const override { return s_.in_size(); }
  int64_t out_size() const override { return s_.out_size(); }
  size_t num_parameters() const override { return plan::num_parameters(s_.operation); }
  size_t num_kernels() const override { return 2; }
  int64_t work() const override {
    return s_.steps * (s_.sizes.features + s_.sizes.units) * s_.sizes.columns();
  }
  int64_t widest() const override { return s_.sizes.features + kKept * s_.sizes.units; }
  // Each step reads the kernels as often as there are chunks.
  int64_t together() const override { return 16; }
  bool reads_output() const override { return false; }
  std::string describe() const override {
    return str(plan::describe(Operation(s_.operation)), " of ", s_.sizes.units, " units over ",
               s_.steps, " steps");
  }

  void prepare(const Chunks& chunks, bool records, bool wants_input) override {
    s_.chunks = chunks;
    s_.records = records;
    s_.wants_input = records && wants_input;
    if (!records) return;
    for_one_thread([&] {
      describe_gradient(s_.sizes.features, s_.steps, s_.kernel);
      if (s_.steps > 1) describe_gradient(s_.sizes.units, s_.steps - 1, s_.recurrent);
    });
  }

  std::unique_ptr<Forward> make_forward() const override {
    return std::make_unique<RecurrentForward>(s_);
  }
  std::unique_ptr<Backward> make_backward() const override {
    return std::make_unique<RecurrentBackward>(s_);
  }

 private:
  // The kernel has so many rows, and takes part in so many steps.
  void describe_gradient(int64_t rows, int64_t steps, SharedByRecurrent::KernelGradient& gradient) {
    // A part is worth a thread: some 20 us of work.
    constexpr int64_t kPart = int64_t{1} << 21;
    const int64_t inner = steps * s_.chunks.batch, columns = s_.sizes.columns();
    const int64_t wanted = std::min(inner * rows * columns / kPart, rows / 32);
    gradient.parts = divide(rows, std::clamp<int64_t>(wanted, 1, 8));
    for (const Part& part : gradient.parts) {
      if (!gradient.products.empty() &&
          (part.count == gradient.parts[0].count || gradient.products.size() == 2)) {
        continue;
      }
      gradient.products.push_back(
          describe_product({part.count, inner, columns}, {1, rows}, {columns}, false));
    }
  }

  SharedByRecurrent s_;
};

}  // namespace

std::unique_ptr<Unit> make_recurrent(const Recurrent& operation, int64_t steps, int64_t features) {
  return std::make_unique<RecurrentUnit>(operation, steps, features);
}

}  // namespace cohort::internal::plan
