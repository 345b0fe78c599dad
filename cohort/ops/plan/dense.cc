// Products of rows with a kernel [features, units], with the bias and activation that follow. Kernels and
// their gradients stay in the layout of variables.
#include <algorithm>
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
  std::vector<Product> data;
  // The kernel's gradient in parts, consecutive features each, of one or two sizes.
  std::vector<Part> parts;
  std::vector<Product> kernel;  // by size of part

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
        lanes_(shared.chunks.lanes.size()),
        parts_(shared.parts.size()),
        gradient_(shared.activation ? shared.chunks.batch * shared.operation.units : 0),
        bias_sums_(static_cast<size_t>(shared.operation.units)) {
    const std::vector<int> arguments{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    for_one_thread([&] {
      for (Lane& lane : lanes_) {
        for (const Product& product : s_.data) {
          lane.data.emplace_back(product, arguments, lane.scratch);
        }
      }
      for (size_t i = 0; i < parts_.size(); ++i) {
        parts_[i].multiply =
            Primitive(s_.kernel[s_.index_of(s_.parts[i])], arguments, parts_[i].scratch);
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
    const int64_t first = chunk.first * s_.operation.units;
    if (s_.activation) {
      activation_gradient(*s_.activation, values_.out + first, values_.out_gradient + first,
                          chunk.count * s_.operation.units, gradient_.data() + first);
    }
    if (values_.in_gradient == nullptr) return;
    lanes_[static_cast<size_t>(chunk.lane)].data[s_.index_of(chunk)](
        {product_gradient_ + first, kernel_, values_.in_gradient + chunk.first * s_.features});
  }

  void end(Parallel parallel) override {
    if (bias_gradient_ != nullptr) {
      std::fill(bias_sums_.begin(), bias_sums_.end(), 0.);
      add_column_sums(product_gradient_, s_.chunks.batch, s_.operation.units, bias_sums_.data());
      narrow(bias_sums_.data(), s_.operation.units, bias_gradient_);
    }
    if (kernel_gradient_ == nullptr) return;
    parallel(static_cast<int64_t>(parts_.size()), [&](int64_t i) {
      const Part& part = s_.parts[static_cast<size_t>(i)];
      parts_[static_cast<size_t>(i)].multiply({values_.in + part.first, product_gradient_,
                                               kernel_gradient_ + part.first * s_.operation.units});
    });
  }

 private:
  struct Lane {
    Scratch scratch;
    std::vector<Primitive> data;
  };
  struct KernelPart {
    Scratch scratch;
    Primitive multiply;
  };

  const SharedByDense& s_;
  std::vector<Lane> lanes_;
  std::vector<KernelPart> parts_;
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
      if (!s_.wants_input) continue;
      s_.data.push_back(
          describe_product({count, units, features}, {units}, {1, units}, /*adds_bias=*/false));
    }
    if (!s_.records) return;
    // A part is worth a thread: some 20 us of work.
    constexpr int64_t kPart = int64_t{1} << 21;
    const int64_t batch = s_.chunks.batch;
    const int64_t wanted = std::min(batch * features * units / kPart, features / 64);
    s_.parts = divide(features, std::clamp<int64_t>(wanted, 1, 8));
    for (const Part& part : s_.parts) {
      if (!s_.kernel.empty() && s_.index_of(part) < s_.kernel.size()) continue;
      s_.kernel.push_back(
          describe_product({part.count, batch, units}, {1, features}, {units}, false));
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
