// Products of rows with a kernel [features, units], with the bias and activation that follow.
// Kernels and their gradients stay in the layout of variables.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "cohort/ops/plan/activation_kernels.h"
#include "cohort/ops/plan/kernels.h"
#include "cohort/ops/plan/product.h"
#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {
namespace {

// A product in parts of one of its axes, of one or two sizes.
struct DividedProduct {
  bool by_features = true;
  std::vector<Part> parts;
  std::vector<Product> products;  // by size of part

  size_t index_of(const Part& part) const { return parts[0].count == part.count ? 0 : 1; }
};

struct SharedByDense {
  Dense operation;
  std::optional<Activation> activation;
  int64_t features = 0;
  Chunks chunks{0, 1};
  bool records = false;
  bool wants_input = false;
  std::vector<Product> forward;  // by size of chunk
  // The gradients of the whole batch. By examples each part of the input's would read the whole
  // kernel, which the update has just written on several cores: so both are divided by features,
  // where there are enough. Otherwise the kernel's is by units, the input's by examples.
  DividedProduct kernel;
  DividedProduct data;

  size_t index_of(const Chunk& chunk) const { return chunks.sizes[0] == chunk.count ? 0 : 1; }
};

class DenseForward final : public Forward {
 public:
  explicit DenseForward(const SharedByDense& shared)
      : s_(shared), lanes_(shared.chunks.lanes.size()) {
    for_one_thread([&] {
      for (Lane& lane : lanes_) {
        for (const Product& product : s_.forward) {
          lane.multiply.emplace_back(product, lane.scratch);
        }
      }
    });
  }

  void begin(const float* const* parameters) override {
    kernel_ = parameters[0];
    bias_ = s_.operation.bias ? parameters[1] : nullptr;
  }

  void run(const Chunk& chunk, const float* in, float* out) override {
    Lane& lane = lanes_[static_cast<size_t>(chunk.lane)];
    lane.multiply[s_.index_of(chunk)](in, kernel_, out, bias_);
    if (s_.activation) activate(*s_.activation, out, chunk.count * s_.operation.units, out);
  }

 private:
  struct Lane {
    Scratch scratch;
    std::vector<Multiplication> multiply;
  };

  const SharedByDense& s_;
  std::vector<Lane> lanes_;
  const float* kernel_ = nullptr;
  const float* bias_ = nullptr;
};

class DenseBackward final : public Backward {
 public:
  explicit DenseBackward(const SharedByDense& shared)
      : s_(shared),
        kernel_parts_(shared.kernel.parts.size()),
        data_parts_(shared.data.parts.size()),
        gradient_(shared.activation ? shared.chunks.batch * shared.operation.units : 0),
        bias_sums_(static_cast<size_t>(shared.operation.units)) {
    for_one_thread([&] {
      make(s_.kernel, kernel_parts_);
      make(s_.data, data_parts_);
    });
  }

  void begin(Forward&, const Values& values, const float* const* parameters,
             float* const* gradients) override {
    values_ = values;
    kernel_ = parameters[0];
    kernel_gradient_ = gradients[0];
    bias_gradient_ = s_.operation.bias ? gradients[1] : nullptr;
    product_gradient_ = s_.activation ? gradient_.data() : values.out_gradient;
  }

  void run(const Chunk& chunk) override {
    if (!s_.activation) return;
    const int64_t first = chunk.first * s_.operation.units;
    activation_gradient(*s_.activation, values_.out + first, values_.out_gradient + first,
                        chunk.count * s_.operation.units, gradient_.data() + first);
  }

  void end(Parallel parallel) override {
    if (bias_gradient_ != nullptr) {
      std::fill(bias_sums_.begin(), bias_sums_.end(), 0.);
      add_column_sums(product_gradient_, s_.chunks.batch, s_.operation.units, bias_sums_.data());
      narrow(bias_sums_.data(), s_.operation.units, bias_gradient_);
    }
    const size_t kernels = kernel_gradient_ == nullptr ? 0 : kernel_parts_.size();
    const size_t data = values_.in_gradient == nullptr ? 0 : data_parts_.size();
    const size_t count = std::max(kernels, data);
    // Each thread's parts of both are those of the same features.
    parallel(static_cast<int64_t>(count), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      for (size_t k = at * kernels / count; k < (at + 1) * kernels / count; ++k) run_kernel(k);
      for (size_t d = at * data / count; d < (at + 1) * data / count; ++d) run_data(d);
    });
  }

 private:
  struct RunningPart {
    Scratch scratch;
    Multiplication multiply;
  };

  static void make(const DividedProduct& divided, std::vector<RunningPart>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].multiply =
          Multiplication(divided.products[divided.index_of(divided.parts[i])], parts[i].scratch);
    }
  }

  void run_kernel(size_t part) {
    const int64_t first = s_.kernel.parts[part].first;
    if (s_.kernel.by_features) {
      kernel_parts_[part].multiply(values_.in + first, product_gradient_,
                                   kernel_gradient_ + first * s_.operation.units);
    } else {
      kernel_parts_[part].multiply(values_.in, product_gradient_ + first, kernel_gradient_ + first);
    }
  }

  void run_data(size_t part) {
    const int64_t first = s_.data.parts[part].first;
    if (s_.data.by_features) {
      data_parts_[part].multiply(product_gradient_, kernel_ + first * s_.operation.units,
                                 values_.in_gradient + first);
    } else {
      data_parts_[part].multiply(product_gradient_ + first * s_.operation.units, kernel_,
                                 values_.in_gradient + first * s_.features);
    }
  }

  const SharedByDense& s_;
  std::vector<RunningPart> kernel_parts_;
  std::vector<RunningPart> data_parts_;
  Buffer<float> gradient_;  // of the product, ahead of the activation
  std::vector<double> bias_sums_;
  Values values_;
  const float* product_gradient_ = nullptr;
  const float* kernel_ = nullptr;
  float* kernel_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

class DenseUnit final : public Unit {
 public:
  DenseUnit(const Dense& operation, const Fused& fused, int64_t features) : fused_(fused) {
    s_.operation = operation;
    s_.activation = fused.activation;
    s_.features = features;
  }

  int64_t in_size() const override { return s_.features; }
  int64_t out_size() const override { return s_.operation.units; }
  size_t num_parameters() const override { return plan::num_parameters(s_.operation); }
  int64_t work() const override { return s_.features * s_.operation.units; }
  int64_t gradient_work() const override { return s_.operation.units; }
  int64_t widest() const override { return std::max(s_.features, s_.operation.units); }
  bool reads_output() const override { return s_.activation.has_value(); }
  std::string describe() const override {
    std::string text = plan::describe(Operation(s_.operation));
    if (s_.operation.bias) text += " + bias";
    return text + fused_.describe_activation();
  }

  void prepare(const Chunks& chunks, bool records, bool wants_input) override {
    s_.chunks = chunks;
    s_.records = records;
    s_.wants_input = records && wants_input;
    for_one_thread([&] { describe_all(); });
  }

  std::unique_ptr<Forward> make_forward() const override {
    return std::make_unique<DenseForward>(s_);
  }
  std::unique_ptr<Backward> make_backward() const override {
    return std::make_unique<DenseBackward>(s_);
  }

 private:
  void describe_all() {
    const int64_t features = s_.features, units = s_.operation.units;
    for (const int64_t count : s_.chunks.sizes) {
      s_.forward.push_back(
          describe_product({count, features, units}, {features}, {units}, s_.operation.bias));
    }
    if (s_.records) describe_gradients();
  }

  void describe_gradients() {
    const int64_t batch = s_.chunks.batch, features = s_.features, units = s_.operation.units;
    constexpr int64_t kPart = 3 << 18;  // products: worth a thread, some 20 us
    constexpr int64_t kLeast = 64;      // numbers of an axis in a part
    const int64_t products = batch * features * units * (s_.wants_input ? 2 : 1);
    const int64_t wanted = std::clamp<int64_t>(products / kPart, 1, 8);
    const auto divide_axis = [&](int64_t other) {
      const bool by_features = features / kLeast >= wanted || features >= other;
      const int64_t axis = by_features ? features : other;
      // A power of two, so that each thread has as many parts; by shapes alone.
      const auto parts =
          std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(axis / kLeast, 1, wanted)));
      return DividedProduct{by_features, divide(axis, static_cast<int64_t>(parts)), {}};
    };
    s_.kernel = divide_axis(units);
    for_each_size(s_.kernel, [&](int64_t count) {
      return s_.kernel.by_features
                 ? describe_product({count, batch, units}, {1, features}, {units}, false)
                 : describe_product({features, batch, count}, {1, features}, {units}, false, units);
    });
    if (!s_.wants_input) return;
    s_.data = divide_axis(batch);
    for_each_size(s_.data, [&](int64_t count) {
      return s_.data.by_features
                 ? describe_product({batch, units, count}, {units}, {1, units}, false, features)
                 : describe_product({count, units, features}, {units}, {1, units}, false);
    });
  }

  template <class Describe>
  static void for_each_size(DividedProduct& divided, const Describe& describe) {
    for (const Part& part : divided.parts) {
      if (divided.index_of(part) < divided.products.size()) continue;
      divided.products.push_back(describe(part.count));
    }
  }

  const Fused fused_;
  SharedByDense s_;
};

}  // namespace

std::unique_ptr<Unit> make_dense(const Dense& operation, const Fused& fused, int64_t features) {
  return std::make_unique<DenseUnit>(operation, fused, features);
}

}  // namespace cohort::internal::plan
