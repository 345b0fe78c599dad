#include "cohort/keras/layers/base/symbolic.h"

#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "cohort/core/profiler/tracing.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/placement.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort {
namespace internal {
namespace {

using keras::Shape;

// The most elements of one example. A model is called once with zeros of that size, to learn the
// shapes of its layers' outputs.
constexpr int64_t kMostInputElements = int64_t{1} << 40;

}  // namespace

keras::Config input_layer_config(const std::string& name, const TensorSpec& spec,
                                 std::optional<int64_t> batch_size) {
  Json shape = Json::array();
  for (const int64_t size : *spec.shape()) {
    shape.push_back(size == kUnknownDim ? Json(nullptr) : Json(size));
  }
  if (batch_size) shape[0] = *batch_size;
  return ConfigData::config_of({{"batch_input_shape", std::move(shape)},
                                {"dtype", spec.is_string() ? "string" : dtype_name(spec.dtype())},
                                {"sparse", false},
                                {"ragged", false},
                                {"name", name}});
}

namespace {

class InputLayerImpl final : public keras::layers::Layer {
 public:
  InputLayerImpl(TensorSpec spec, std::optional<int64_t> batch_size, std::string name)
      : Layer("Input", {.name = std::move(name), .autocast = false}),
        spec_(std::move(spec)),
        batch_size_(batch_size) {}
  const TensorSpec& spec() const { return spec_; }

  std::optional<keras::Config> get_config() const override {
    return input_layer_config(name(), spec_, batch_size_);
  }

 protected:
  Structure call(const Structure& input, const keras::CallOptions&) override { return input; }

 private:
  TensorSpec spec_;
  std::optional<int64_t> batch_size_;
};

keras::layers::LayerHandle make_input_layer(const Shape& shape, std::optional<int64_t> batch_size,
                                            std::string name, std::optional<LeafType> type) {
  if (batch_size && *batch_size < 1) {
    throw InvalidArgumentError(
        str("Input: batch_size is ", *batch_size, ", below 1; leave it out where batches differ"));
  }
  int64_t elements = 1;
  for (const int64_t size : shape) {
    const bool fits = size >= kUnknownDim &&
                      !__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements);
    if (fits && elements <= kMostInputElements) continue;
    throw InvalidArgumentError(str("Input: an example cannot have the shape ", shape_str(shape),
                                   "; sizes are 0 or more, or unknown, of at most ",
                                   kMostInputElements, " elements"));
  }
  Shape batch_shape{kUnknownDim};
  batch_shape.insert(batch_shape.end(), shape.begin(), shape.end());
  const bool is_string = type && type->is_string();
  TensorSpec spec =
      is_string ? TensorSpec::strings(std::move(batch_shape), name)
                : TensorSpec(std::move(batch_shape), type ? type->dtype() : keras_floatx(), name);
  return std::make_shared<InputLayerImpl>(std::move(spec), batch_size, std::move(name));
}

// Zeros of `spec`, with sizes for what is unknown: two probes must differ in each of them.
Leaf probe_leaf(const TensorSpec& spec, bool second) {
  if (!spec.shape()) throw InvalidArgumentError("an input of unknown rank cannot be traced");
  constexpr int64_t kSpatialSize = 64;  // large enough for a few convolutions and poolings
  Shape shape = *spec.shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == kUnknownDim) shape[i] = (i == 0 ? 1 : kSpatialSize) + (second ? 1 : 0);
  }
  if (!spec.is_string()) {
    return at::zeros(shape, at::dtype(spec.dtype()).device(computing_device()));
  }
  const auto count = static_cast<size_t>(c10::multiply_integers(shape));
  return StringTensor(std::vector<std::string>(count), shape);
}

TensorSpec merge_probes(const TensorSpec& first, const TensorSpec& second) {
  Shape shape = *first.shape();
  if (shape.size() != second.shape()->size()) {
    throw InvalidArgumentError(
        str("the rank of an output depends on the batch size: ", first, " and ", second));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != (*second.shape())[i]) shape[i] = kUnknownDim;
  }
  if (first.is_string()) return TensorSpec::strings(std::move(shape));
  return TensorSpec(std::move(shape), first.dtype());
}

}  // namespace

keras::layers::LayerHandle read_input_layer(FieldReader& field) {
  const Json* shape = field.find("batch_input_shape");
  if (shape == nullptr || !shape->is_array() || shape->empty()) {
    throw InvalidArgumentError(str(quoted("batch_input_shape"), " is ",
                                   shape == nullptr ? "missing" : shown_json(*shape),
                                   "; it is a list that begins with the batch size, or with null"));
  }
  std::optional<int64_t> batch_size;
  read_field(shape->front(), batch_size, quoted("batch_input_shape"));
  Shape example;
  for (size_t i = 1; i < shape->size(); ++i) {
    int64_t& size = example.emplace_back(kUnknownDim);
    if (!(*shape)[i].is_null()) read_field((*shape)[i], size, quoted("batch_input_shape"));
  }
  std::string name;
  field("name", name);
  std::string type = "float32";
  field("dtype", type);
  field.always("sparse", false);
  field.always("ragged", false);
  if (type == "string")
    return make_input_layer(example, batch_size, std::move(name), cohort::string);
  DType dtype = float32;
  field("dtype", dtype);
  return make_input_layer(example, batch_size, std::move(name), dtype);
}

const TensorSpec* input_layer_spec(const keras::layers::Layer& layer) {
  const auto* input = dynamic_cast<const InputLayerImpl*>(&layer);
  return input == nullptr ? nullptr : &input->spec();
}

keras::SymbolicTensor symbolic_input(const keras::layers::LayerHandle& input_layer) {
  auto node = std::make_shared<SymbolicNode>(
      SymbolicNode{input_layer, std::nullopt, {}, {*input_layer_spec(*input_layer.get())}});
  return keras::SymbolicTensor(std::move(node), 0);
}

StructureSpec infer_outputs(const keras::layers::LayerHandle& layer, const StructureSpec& inputs,
                            const keras::CallOptions& options) {
  const NoGradient no_gradient;
  const Tracing tracing;
  const auto probe = [&](bool second) {
    const Structure values =
        inputs.make_structure([&](const TensorSpec& spec) { return probe_leaf(spec, second); });
    return StructureSpec::of(layer(values, {.training = options.training.value_or(false)}));
  };
  const StructureSpec first = probe(false);
  const std::vector<TensorSpec> second = probe(true).flatten();
  layer->clear_losses();
  if (first.flatten().size() != second.size()) {
    throw InvalidArgumentError(
        str("layer '", layer.name(), "': the number of outputs depends on the batch size"));
  }
  size_t i = 0;
  return first.map([&](const TensorSpec& spec) { return merge_probes(spec, second[i++]); });
}

}  // namespace internal

namespace keras {

using internal::str;

const TensorSpec& SymbolicTensor::spec() const { return node_->outputs[index_]; }
Shape SymbolicTensor::shape() const { return *spec().shape(); }
const layers::LayerHandle& SymbolicTensor::layer() const { return node_->layer; }

SymbolicTensor::operator layers::LayerHandle() const {
  if (node_->inputs) {
    throw InvalidArgumentError(str("an output of layer '", layer().name(),
                                   "' was used as a layer; only a keras::Input can be"));
  }
  return layer();
}

SymbolicStructure::SymbolicStructure(const SymbolicTensor& tensor)
    : spec_(tensor.spec()), leaves_{tensor} {}

SymbolicStructure::SymbolicStructure(std::initializer_list<SymbolicStructure> members)
    : SymbolicStructure(make_tuple(std::vector<SymbolicStructure>(members))) {}

SymbolicStructure::SymbolicStructure(StructureSpec spec, std::vector<SymbolicTensor> leaves)
    : spec_(std::move(spec)), leaves_(std::move(leaves)) {}

SymbolicStructure SymbolicStructure::make_tuple(const std::vector<SymbolicStructure>& members) {
  std::vector<StructureSpec> specs;
  std::vector<SymbolicTensor> leaves;
  for (const SymbolicStructure& member : members) {
    specs.push_back(member.spec_);
    leaves.insert(leaves.end(), member.leaves_.begin(), member.leaves_.end());
  }
  return {StructureSpec::make_tuple(std::move(specs)), std::move(leaves)};
}

SymbolicStructure SymbolicStructure::make_dict(const Dict& members) {
  StructureSpec::Dict specs;
  std::vector<SymbolicTensor> leaves;
  for (const auto& [key, member] : members) {
    specs.emplace_back(key, member.spec_);
    leaves.insert(leaves.end(), member.leaves_.begin(), member.leaves_.end());
  }
  return {StructureSpec::make_dict(std::move(specs)), std::move(leaves)};
}

SymbolicStructure::operator const SymbolicTensor&() const {
  if (!is_leaf()) {
    throw InvalidArgumentError(str("one symbolic tensor was expected, but there are ", spec_));
  }
  return leaves_[0];
}

SymbolicStructure SymbolicStructure::member(size_t first_leaf, const StructureSpec& spec) const {
  const auto begin = leaves_.begin() + static_cast<int64_t>(first_leaf);
  const auto count = static_cast<int64_t>(spec.flatten().size());
  return {spec, std::vector<SymbolicTensor>(begin, begin + count)};
}

SymbolicStructure SymbolicStructure::operator[](size_t i) const {
  const std::vector<StructureSpec>& members = spec_.members();
  if (i >= members.size()) {
    throw OutOfRangeError(str("member ", i, " of a tuple of ", members.size()));
  }
  size_t first_leaf = 0;
  for (size_t j = 0; j < i; ++j) first_leaf += members[j].flatten().size();
  return member(first_leaf, members[i]);
}

SymbolicStructure SymbolicStructure::operator[](std::string_view key) const {
  size_t first_leaf = 0;
  for (const auto& [candidate, spec] : spec_.items()) {
    if (candidate == key) return member(first_leaf, spec);
    first_leaf += spec.flatten().size();
  }
  throw NotFoundError(str("no member is called ", internal::quoted(key), " in ", spec_));
}

SymbolicTensor Input(const Shape& shape, const InputOptions& options) {
  return internal::symbolic_input(
      internal::make_input_layer(shape, options.batch_size, options.name, options.dtype));
}

namespace layers {

InputLayer::InputLayer(const Shape& shape, const InputLayerOptions& options)
    : LayerHandle(
          internal::make_input_layer(shape, options.batch_size, options.name, options.dtype)) {}

SymbolicTensor LayerHandle::operator()(const SymbolicTensor& input,
                                       const CallOptions& options) const {
  const SymbolicStructure outputs = (*this)(SymbolicStructure(input), options);
  return outputs;
}

SymbolicStructure LayerHandle::operator()(const SymbolicStructure& inputs,
                                          const CallOptions& options) const {
  if (options.mask.defined()) {
    throw InvalidArgumentError(str("layer '", name(),
                                   "' was called with a mask for symbols; in a functional model a "
                                   "Masking or Embedding layer marks the steps that count"));
  }
  StructureSpec spec = internal::infer_outputs(*this, inputs.spec(), options);
  auto node = std::make_shared<internal::SymbolicNode>(
      internal::SymbolicNode{*this, inputs, options, spec.flatten()});
  std::vector<SymbolicTensor> leaves;
  for (size_t i = 0; i < node->outputs.size(); ++i) leaves.emplace_back(node, i);
  return {std::move(spec), std::move(leaves)};
}

}  // namespace layers
}  // namespace keras
}  // namespace cohort
