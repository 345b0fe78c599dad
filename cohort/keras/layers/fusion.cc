#include "cohort/keras/layers/fusion.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/util/SmallVector.h>

#include <algorithm>

#include "cohort/keras/layers/layer_state.h"

namespace cohort::internal {
namespace {

using keras::CallOptions;
using keras::layers::Layer;
using keras::layers::Size2D;

const Tensor& only_tensor(const Layer& layer, const Structure& inputs) {
  if (!inputs.is_leaf()) {
    throw InvalidArgumentError(
        str("layer '", layer.name(), "' takes one tensor, but got ", inputs));
  }
  return inputs.tensor();
}

bool can_average_rows(const Layer& first, const Layer& second) {
  return dynamic_cast<const LooksUpRows*>(&first) != nullptr &&
         dynamic_cast<const AveragesSequences*>(&second) != nullptr;
}

// Whether what `averaging` gives need not be computed for `next`.
bool can_multiply_on(const Layer& averaging, const Layer& next) {
  return dynamic_cast<const MultipliesInput*>(&next) != nullptr &&
         !averaging.has_activity_regularizer();
}

// Of chain[k], where those from there on average rows: with the layer that multiplies the means, or without.
size_t num_averaging(std::span<Layer* const> chain, size_t k) {
  if (k + 1 >= chain.size() || !can_average_rows(*chain[k], *chain[k + 1])) return 0;
  return k + 2 < chain.size() && can_multiply_on(*chain[k + 1], *chain[k + 2]) ? 3 : 2;
}

bool can_fuse(const Layer& first, const Layer& second) {
  if (can_average_rows(first, second)) return !first.has_activity_regularizer();
  const auto* source = dynamic_cast<const HasEpilogue*>(&first);
  const auto* sink = dynamic_cast<const TakesEpilogue*>(&second);
  return source != nullptr && sink != nullptr && !first.has_activity_regularizer() &&
         sink->commutes_with(source->final_activation());
}

// The image sizes between the layers of a chain.
struct ChainSizes {
  c10::SmallVector<Size2D, 8> natural;  // natural[k]: what layer k gives by itself
  c10::SmallVector<Size2D, 8> read;     // read[k]: the part of layer k's input that is read
};

// Rows and columns at the end of an image often fill no window of the layer after the next: to
// compute them is to throw them away. Missing where sizes cannot be told.
std::optional<ChainSizes> read_sizes(std::span<Layer* const> chain, const Tensor& images) {
  if (images.dim() != 4) return std::nullopt;
  ChainSizes sizes;
  c10::SmallVector<Window, 8> windows;
  Size2D size{images.size(1), images.size(2)};
  for (Layer* layer : chain) {
    const auto* sliding = dynamic_cast<SlidesWindow*>(layer);
    const std::optional<Window> window = sliding ? sliding->inner_window() : std::nullopt;
    if (!window || layer->has_activity_regularizer()) return std::nullopt;
    size = num_windows(size, *window);
    if (size.height < 1 || size.width < 1) return std::nullopt;
    windows.push_back(*window);
    sizes.natural.push_back(size);
  }
  sizes.read.assign(chain.size(), size);
  for (size_t k = chain.size(); k-- > 0;) {
    size = span_of_windows(size, windows[k]);
    sizes.read[k] = size;
  }
  return sizes;
}

Tensor crop(const Tensor& images, const Size2D& size) {
  if (images.size(1) == size.height && images.size(2) == size.width) return images;
  return images.slice(1, 0, size.height).slice(2, 0, size.width);
}

// Of a value's form, for layers that look at nothing else; its elements are one.
Tensor formed_as(const Tensor& value, at::IntArrayRef sizes) {
  return at::zeros({}, value.options().requires_grad(false)).expand(sizes);
}

// The layers see the means as if each were all rows of its sequence; a third one gets them as a product.
// run(layer, inputs, body): as by operator(), with `body` for its call.
template <class Run>
Structure average_rows(std::span<Layer* const> layers, const Structure& inputs,
                       const CallOptions& options, const Run& run) {
  std::optional<Product> mean;
  const bool are_sequences =
      inputs.is_leaf() && inputs.leaf().is_tensor() && inputs.tensor().dim() == 2;
  Structure values = inputs;
  if (are_sequences) {
    auto& lookup = dynamic_cast<LooksUpRows&>(*layers[0]);
    const Tensor& ids = inputs.tensor();
    values = run(*layers[0], inputs, [&](const CallOptions&) {
      mean = lookup.mean_of_rows(ids);
      if (!mean) return Structure(lookup.look_up(ids));
      return Structure(formed_as(mean->right, {ids.size(0), ids.size(1), mean->right.size(1)}));
    });
  }
  if (!mean) {
    for (Layer* layer : layers.subspan(are_sequences ? 1 : 0)) values = (*layer)(values, options);
    return values;
  }
  const bool is_multiplied = layers.size() == 3;
  values = run(*layers[1], values, [&](const CallOptions&) {
    return Structure(is_multiplied
                         ? formed_as(mean->right, {mean->left.size(0), mean->right.size(1)})
                         : mean->value());
  });
  if (!is_multiplied) return values;
  return run(*layers[2], values, [&](const CallOptions&) {
    return Structure(dynamic_cast<MultipliesInput&>(*layers[2]).call_on_product(*mean));
  });
}

}  // namespace

Tensor Product::value() const { return at::mm(left, right); }

size_t fused_chain(std::span<Layer* const> layers) {
  size_t length = 0;
  while (length + 1 < layers.size() && can_fuse(*layers[length], *layers[length + 1])) {
    length += std::max<size_t>(num_averaging(layers, length), 2);
  }
  return length;
}

Structure call_chain(std::span<Layer* const> chain, const Structure& inputs,
                     const CallOptions& options) {
  const std::optional<ChainSizes> sizes = inputs.is_leaf() && inputs.leaf().is_tensor()
                                              ? read_sizes(chain, inputs.tensor())
                                              : std::nullopt;
  const auto natural = [&](size_t k) { return sizes ? &sizes->natural[k] : nullptr; };
  Structure values = sizes ? Structure(crop(inputs.tensor(), sizes->read[0])) : inputs;
  for (size_t k = 0; k < chain.size(); k += 2) {
    if (const size_t count = num_averaging(chain, k); count > 0) {
      const auto run = [&](Layer& layer, const Structure& given, const auto& body) {
        return layer.state_->run(given, options, body);
      };
      values = average_rows(chain.subspan(k, count), values, options, run);
      k += count - 2;
      continue;
    }
    Layer& first = *chain[k];
    Layer& second = *chain[k + 1];
    auto& source = dynamic_cast<HasEpilogue&>(first);
    auto& sink = dynamic_cast<TakesEpilogue&>(second);
    values = first.state_->run(
        k == 0 ? inputs : values, options,  // an error names what the caller passed
        [&](const CallOptions&) {
          return Structure(source.call_without_epilogue(only_tensor(first, values)));
        },
        natural(k));
    values = second.state_->run(
        values, options,
        [&](const CallOptions&) {
          return Structure(sink.call_with_epilogue(only_tensor(second, values), source.epilogue()));
        },
        natural(k + 1));
  }
  return values;
}

}  // namespace cohort::internal
