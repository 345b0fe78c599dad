#include "cohort/keras/layers/preprocessing/category_encoding.h"

#include <utility>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/preprocessing/category_leaf.h"
#include "cohort/keras/layers/preprocessing/output_mode.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {
namespace {

using internal::OutputMode;
using internal::str;

constexpr OutputMode kEncodingModes[] = {OutputMode::kOneHot, OutputMode::kMultiHot,
                                         OutputMode::kCount};

class CategoryEncodingImpl final : public Layer {
 public:
  CategoryEncodingImpl(int64_t num_tokens, const CategoryEncodingOptions& options)
      : Layer("CategoryEncoding", {.name = options.name, .autocast = false}) {
    encoding_.mode = internal::output_mode_of(options.output_mode, where(), kEncodingModes);
    encoding_.dtype = internal::output_dtype_of(encoding_.mode, options.dtype, where());
    encoding_.depth = num_tokens;
    if (num_tokens < 1) {
      throw InvalidArgumentError(
          str(where(), ": num_tokens is ", num_tokens, "; it must be above 0"));
    }
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      field("dtype", encoding_.dtype);
      field("num_tokens", encoding_.depth);
      field("output_mode", internal::output_mode_name(encoding_.mode));
      field.always("sparse", false);
    });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    const NoGradient no_gradient;
    const auto indices_of = [this](const Leaf& leaf) { return indices(leaf); };
    if (!inputs.is_tuple() || inputs.members().size() != 2) {
      return internal::encode_inputs(inputs, encoding_, where(), indices_of);
    }
    if (encoding_.mode != OutputMode::kCount) {
      throw InvalidArgumentError(str(where(), ": weights are for output_mode 'count', but it is ",
                                     quoted(internal::output_mode_name(encoding_.mode))));
    }
    return internal::encode_inputs(inputs[0], encoding_, where(), indices_of,
                                   weights(inputs[0], inputs[1]));
  }

 private:
  std::string where() const { return str("layer '", name(), "'"); }

  Tensor indices(const Leaf& leaf) const {
    const bool is_number =
        leaf.is_tensor() && (at::isIntegralType(leaf.tensor().scalar_type(), false) ||
                             at::isFloatingType(leaf.tensor().scalar_type()));
    if (!is_number) {
      throw InvalidArgumentError(
          str(where(), " takes integers, but got ", internal::describe_leaves(Structure(leaf))));
    }
    const Tensor numbers = leaf.tensor().detach();
    // Floating numbers are checked ahead of rounding: what no integer holds would become any.
    const Tensor wide = numbers.is_floating_point() ? numbers : numbers.to(int64);
    const Tensor outside = (wide >= 0).logical_and_(wide < encoding_.depth).logical_not_();
    if (outside.any().item<bool>()) {
      const Tensor first = wide.masked_select(outside).select(0, 0);
      throw InvalidArgumentError(str(
          where(), " takes integers from 0 to num_tokens - 1, which is ", encoding_.depth - 1,
          ", but got ",
          numbers.is_floating_point() ? str(first.item<double>()) : str(first.item<int64_t>())));
    }
    return wide.to(int64).contiguous();
  }

  // In the form in which their indices come.
  Tensor weights(const Structure& inputs, const Structure& weights) const {
    const auto fail = [&] {
      throw InvalidArgumentError(str(where(), ": weights have the shape of the integers, but got ",
                                     internal::describe_leaves(inputs), " and weights ",
                                     internal::describe_leaves(weights)));
    };
    const auto kind = internal::composite_kind(inputs);
    if (kind != internal::composite_kind(weights)) fail();
    if (kind == internal::Composite::kRagged) {
      const RaggedTensor rows = inputs;
      const RaggedTensor given = weights;
      internal::singly_ragged(rows, where());
      internal::singly_ragged(given, where());
      if (!given.flat_values().is_tensor() || !given.row_splits().equal(rows.row_splits())) fail();
      return given.values().detach();
    }
    if (!inputs.is_leaf() || !weights.is_leaf() || !weights.leaf().is_tensor() ||
        weights.leaf().sizes() != inputs.leaf().sizes()) {
      fail();
    }
    return weights.tensor().detach();
  }

  internal::Encoding encoding_;
};

}  // namespace

CategoryEncoding::CategoryEncoding(int64_t num_tokens, CategoryEncodingOptions options)
    : LayerHandle(std::make_shared<CategoryEncodingImpl>(num_tokens, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_category_encoding(FieldReader& field) {
  keras::layers::CategoryEncodingOptions options;
  int64_t num_tokens = 0;
  read_category_options(field, options);
  field("num_tokens", num_tokens);
  return keras::layers::CategoryEncoding(num_tokens, std::move(options));
}

}  // namespace cohort::internal
