// Products of rows with a kernel [features, units], with the bias and activation that follow. Kernels and
// their gradients stay in the layout of variables.
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

struct SharedByDense {
  Dense operation;
  std::optional<Activation> activation;
  int64_t features = 0;
  Chunks chunks{0, 1};
  bool records = false;
  bool wants_input = false;
  std::vector<Product> forward;  // by size of chunk
  // The gradients in parts, consecutive features each, of one or two sizes. By examples each chunk would read
  // the whole kernel, which the update has just written on several cores.
  std::vector<Part> parts;
  std::vector<Product> data;  // by size of part
  std::vector<Product> kernel;

  size_t index_of(const Chunk& chunk) const { return chunks.sizes[0] == chunk.count ? 0 : 1; }
  size_t index_of(const Part& part) const { return parts[0].count == part.count ? 0 : 1; }
};

class DenseForward final : public Forward {
 public:
  explicit DenseForward(const SharedByDense& shared)
      : s_(shared), lanes_(shared.chunks.lanes.size()) {
    std::vector<int> arguments{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    if (s_.operation.bias) arguments.push_back(DNNL_ARG_BIAS);
    for_one_thread([&] {
      for (Lane& lane : lanes_) {
        for (const Product& product : s_.forward) {
          lane.multiply.emplace_back(product, arguments, lane.scratch);
        }
      }
    });
  }

  void begin(const float* const* parameters) override {
    kernel_ = parameters[0];
    bias_ = s_.operation.bias ? parameters[1] : nullptr;
  }

  void run(const Chunk& chunk, const float* in, float* out) override {
    Primitive& multiply = lanes_[static_cast<size_t>(chunk.lane)].multiply[s_.index_of(chunk)];
    if (s_.operation.bias) {
      multiply({in, kernel_, out, bias_});
    } else {
      multiply({in, kernel_, out});
    }
    if (s_.activation) activate(*s_.activation, out, chunk.count * s_.operation.units, out);
  }

 private:
  struct Lane {
    Scratch scratch;
    std::vector<Primitive> multiply;
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
        parts_(shared.parts.size()),
        gradient_(shared.activation ? shared.chunks.batch * shared.operation.units : 0),
        bias_sums_(static_cast<size_t>(shared.operation.units)) {
    const std::vector<int> arguments{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    for_one_thread([&] {
      for (size_t i = 0; i < parts_.size(); ++i) {
        const size_t size = s_.index_of(s_.parts[i]);
        parts_[i].kernel = Primitive(s_.kernel[size], arguments, parts_[i].scratch);
        if (s_.wants_input) {
          parts_[i].data = Primitive(s_.data[size], arguments, parts_[i].scratch);
        }
      }
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
    if (kernel_gradient_ == nullptr && values_.in_gradient == nullptr) return;
    parallel(static_cast<int64_t>(parts_.size()), [&](int64_t i) {
      const int64_t first = s_.parts[static_cast<size_t>(i)].first;
      const int64_t kernel_first = first * s_.operation.units;
      GradientPart& part = parts_[static_cast<size_t>(i)];
      if (kernel_gradient_ != nullptr) {
        part.kernel({values_.in + first, product_gradient_, kernel_gradient_ + kernel_first});
      }
      if (values_.in_gradient != nullptr) {
        part.data({product_gradient_, kernel_ + kernel_first, values_.in_gradient + first});
      }
    });
  }

 private:
  struct GradientPart {
    Scratch scratch;
    Primitive kernel;
    Primitive data;
  };

  const SharedByDense& s_;
  std::vector<GradientPart> parts_;
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
    if (!s_.records) return;
    const int64_t batch = s_.chunks.batch;
    const int64_t products = batch * features * units * (s_.wants_input ? 2 : 1);
    constexpr int64_t kPart = 3 << 18;  // is worth a thread: some 20 us
    const int64_t wanted = std::min(products / kPart, features / 64);
    // Powers of two: as many parts for each thread.
    s_.parts = divide(features, static_cast<int64_t>(std::bit_floor(
                                    static_cast<uint64_t>(std::clamp<int64_t>(wanted, 1, 8)))));
    for (const Part& part : s_.parts) {
      if (!s_.kernel.empty() && s_.index_of(part) < s_.kernel.size()) continue;
      s_.kernel.push_back(describe_product({part.count, batch, units}, {1, features}, {units},
                                           /*adds_bias=*/false));
      if (!s_.wants_input) continue;
      s_.data.push_back(describe_product({batch, units, part.count}, {units}, {1, units},
                                         /*adds_bias=*/false, /*result_row=*/features));
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
