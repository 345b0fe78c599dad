#include "cohort/keras/layers/embedding.h"

#include <ATen/ops/zeros.h>

#include <memory>
#include <optional>
#include <utility>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/base/range_watch.h"
#include "cohort/keras/layers/base/fusion.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/parameter_server/store/row_ids.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

template <class Fields, class Dim, class Options>
void embedding_fields(Fields& field, Dim& input_dim, Dim& output_dim, Options& options) {
  field("input_dim", input_dim);
  field("output_dim", output_dim);
  field("embeddings_initializer", options.embeddings_initializer);
  field("embeddings_regularizer", options.embeddings_regularizer);
  field.always("activity_regularizer", nullptr);
  field("embeddings_constraint", options.embeddings_constraint);
  field("mask_zero", options.mask_zero);
  field.without_effect("input_length", nullptr);
}

class EmbeddingImpl final : public Layer, public internal::LooksUpRows {
 public:
  EmbeddingImpl(int64_t input_dim, int64_t output_dim, EmbeddingOptions options)
      : Layer("Embedding", {.name = options.name, .dtype = options.dtype, .autocast = false}),
        input_dim_(input_dim),
        output_dim_(output_dim),
        options_(std::move(options)) {
    if (input_dim < 1 || output_dim < 1) {
      throw InvalidArgumentError(str("Embedding: input_dim is ", input_dim, " and output_dim is ",
                                     output_dim, "; both must be 1 or more"));
    }
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { embedding_fields(field, input_dim_, output_dim_, options_); });
  }

 protected:
  void build(const std::vector<Shape>&) override {
    embeddings_ = add_weight("embeddings", {input_dim_, output_dim_},
                             {.initializer = options_.embeddings_initializer,
                              .regularizer = options_.embeddings_regularizer,
                              .constraint = options_.embeddings_constraint});
    watch_ = std::make_unique<internal::RangeWatch>(
        str("layer '", name(), "': the id"), "; that step took the nearest rows for such ids");
  }

  // The rows of a RaggedTensor keep their lengths.
  Structure call(const Structure& inputs, const CallOptions& options) override {
    if (internal::composite_kind(inputs) != internal::Composite::kRagged) {
      return Layer::call(inputs, options);
    }
    const RaggedTensor ids = inputs;
    return ids.with_values(call(ids.values(), options));
  }

  Tensor call(const Tensor& input, const CallOptions&) override { return look_up(input); }

 public:
  // A product with how often each distinct row comes: the rows of a batch lie in memory once, and
  // so do their gradients.
  std::optional<internal::Product> mean_of_rows(const Tensor& input) override {
    constexpr int64_t kMostRowsPerLength = 4;
    const bool is_wide = compute_dtype() == float32 || compute_dtype() == float64;
    if (options_.mask_zero || !is_wide || !input.is_cpu()) return std::nullopt;
    const Tensor ids = checked_ids(input).to(at::kCPU, int64).contiguous();
    const int64_t batch = ids.size(0), length = ids.size(1);
    if (ids.numel() == 0) return std::nullopt;
    const internal::DistinctRows distinct = internal::distinct_rows(ids.view({-1}));
    const int64_t count = distinct.ids.numel();
    if (count > kMostRowsPerLength * length) return std::nullopt;
    Tensor shares = at::zeros({batch, count}, float64);
    const int64_t* position = distinct.positions.data_ptr<int64_t>();
    double* const share = shares.data_ptr<double>();
    for (int64_t i = 0; i < batch * length; ++i) {
      share[i / length * count + position[i]] += 1. / static_cast<double>(length);
    }
    // Memory of its own: the caller may change his before the gradient is taken.
    const Tensor own = distinct.ids.is_alias_of(input) ? distinct.ids.clone() : distinct.ids;
    const Tensor rows = embeddings_.impl().read_ascending_rows(own);
    return internal::Product{shares.to(rows.device(), rows.scalar_type()), rows};
  }

  Tensor look_up(const Tensor& input) override {
    // Its gradient has the looked-up rows only, and so has what a worker pulls from ps tasks.
    const Tensor ids = checked_ids(input);
    const Tensor rows = in_compute_dtype(embeddings_.impl().read_rows(ids));
    return options_.mask_zero ? internal::with_mask(rows, ids != 0) : rows;
  }

 private:
  Tensor checked_ids(const Tensor& input) const {
    if (!input.is_cpu()) return watched_ids(input);
    Tensor ids = input;
    if (input.is_floating_point()) {
      check_range(input);  // here: what no integer holds would become any id
      ids = input.to(int64);
    } else {
      if (ids.scalar_type() != int32) ids = input.to(int64);
      check_range(ids);
    }
    return ids;
  }

  // The host does not wait for ids of a device.
  Tensor watched_ids(const Tensor& input) const {
    constexpr double kFar = 1e15;  // what no integer holds, and not-a-number, is out of range
    Tensor ids = input;
    if (input.is_floating_point()) {
      ids = input.to(float64).nan_to_num(-kFar, kFar, -kFar).clamp(-kFar, kFar);
    }
    if (ids.scalar_type() != int32) ids = ids.to(int64);
    return watch_->look(ids, input_dim_);
  }

  void check_range(const Tensor& ids) const {
    const NoGradient no_gradient;
    const Tensor inside = (ids > -1).logical_and_(ids < input_dim_);  // not-a-number is not
    if (inside.all().item<bool>()) return;
    const Tensor position = inside.logical_not().nonzero().select(0, 0);
    Tensor id = ids;
    std::vector<int64_t> indices;
    for (int64_t d = 0; d < ids.dim(); ++d) {
      indices.push_back(position.select(0, d).item<int64_t>());
      id = id.select(0, indices.back());
    }
    const std::string text =
        ids.is_floating_point() ? str(id.item<double>()) : str(id.item<int64_t>());
    throw InvalidArgumentError(str("layer '", name(), "': the id ", text, " at position ",
                                   internal::shape_str(indices), " of ", internal::describe(ids),
                                   " is outside [0, ", input_dim_, ")"));
  }

  int64_t input_dim_;
  int64_t output_dim_;
  EmbeddingOptions options_;
  Variable embeddings_;
  std::unique_ptr<internal::RangeWatch> watch_;  // of ids on devices; made by build
};

}  // namespace

Embedding::Embedding(int64_t input_dim, int64_t output_dim, EmbeddingOptions options)
    : LayerHandle(std::make_shared<EmbeddingImpl>(input_dim, output_dim, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_embedding(FieldReader& field) {
  int64_t input_dim = 0;
  int64_t output_dim = 0;
  layers::EmbeddingOptions options;
  field.common(options);
  layers::embedding_fields(field, input_dim, output_dim, options);
  return layers::Embedding(input_dim, output_dim, std::move(options));
}

}  // namespace cohort::internal
