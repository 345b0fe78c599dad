#include "cohort/keras/layers/embedding.h"

#include <ATen/ops/embedding.h>

#include <utility>

#include "cohort/core/composite.h"
#include "cohort/core/ragged_tensor.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

class EmbeddingImpl final : public Layer {
 public:
  EmbeddingImpl(int64_t input_dim, int64_t output_dim, EmbeddingOptions options)
      : Layer("Embedding", {.name = options.name, .dtype = options.dtype}),
        input_dim_(input_dim),
        output_dim_(output_dim),
        options_(std::move(options)) {
    if (input_dim < 1 || output_dim < 1) {
      throw InvalidArgumentError(str("Embedding: input_dim is ", input_dim, " and output_dim is ",
                                     output_dim, "; both must be 1 or more"));
    }
  }

 protected:
  void build(const std::vector<Shape>&) override {
    embeddings_ = add_weight("embeddings", {input_dim_, output_dim_},
                             {.initializer = options_.embeddings_initializer,
                              .regularizer = options_.embeddings_regularizer});
  }

  // The rows of a RaggedTensor keep their lengths.
  Structure call(const Structure& inputs, const CallOptions& options) override {
    if (internal::composite_kind(inputs) != internal::Composite::kRagged) {
      return Layer::call(inputs, options);
    }
    const RaggedTensor ids = inputs;
    return ids.with_values(call(ids.values(), options));
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    Tensor ids = input;
    if (input.is_floating_point()) {
      check_range(input);  // here: what no integer holds would become any id
      ids = input.to(int64);
    } else {
      if (ids.scalar_type() != int32) ids = input.to(int64);
      check_range(ids);
    }
    // Its gradient has the looked-up rows only.
    return at::embedding(embeddings_.value(), ids, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false,
                         /*sparse=*/true);
  }

 private:
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
};

}  // namespace

Embedding::Embedding(int64_t input_dim, int64_t output_dim, EmbeddingOptions options)
    : LayerHandle(std::make_shared<EmbeddingImpl>(input_dim, output_dim, std::move(options))) {}

}  // namespace cohort::keras::layers
