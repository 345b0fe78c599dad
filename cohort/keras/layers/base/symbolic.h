// Tensors that do not exist yet: what a functional model is described with.
//
//   SymbolicTensor image = keras::Input({28, 28, 1}, {.name = "image"});
//   SymbolicTensor size = keras::Input({1});
//   auto features = layers::Flatten()(image);
//   auto output = layers::Dense(10)(layers::Concatenate()({features, size}));
//   keras::Functional model({image, size}, output);
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/leaf_type.h"
#include "cohort/core/structure/spec.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort {
namespace internal {
struct SymbolicNode;
}

namespace keras {

// An output of a layer's call, or an input of a model. A handle; it keeps alive what it is made of.
// Thread safety: immutable.
class COHORT_API SymbolicTensor {
 public:
  SymbolicTensor(std::shared_ptr<const internal::SymbolicNode> node, size_t index)
      : node_(std::move(node)), index_(index) {}

  // Dimension 0 (the batch) is kUnknownDim.
  const TensorSpec& spec() const;
  Shape shape() const;
  DType dtype() const { return spec().dtype(); }
  // The layer that makes it.
  const layers::LayerHandle& layer() const;
  // The layer of an Input, so that one can stand first in a Sequential.
  // Errors: InvalidArgument (it is no Input).
  operator layers::LayerHandle() const;

  bool operator==(const SymbolicTensor&) const = default;
  const std::shared_ptr<const internal::SymbolicNode>& node() const { return node_.pointer(); }
  size_t index() const { return index_; }

 private:
  internal::Handle<const internal::SymbolicNode, "SymbolicTensor"> node_;
  size_t index_;
};

// A tree of them, as Structure is one of tensors. Thread safety: immutable.
class COHORT_API SymbolicStructure {
 public:
  using Dict = std::vector<std::pair<std::string, SymbolicStructure>>;

  SymbolicStructure(const SymbolicTensor& tensor);
  // A tuple.
  SymbolicStructure(std::initializer_list<SymbolicStructure> members);
  // A dict: {{"image", image}, {"size", size}}.
  SymbolicStructure(std::initializer_list<std::pair<std::string, SymbolicStructure>> members)
      : SymbolicStructure(make_dict(Dict(members.begin(), members.end()))) {}
  static SymbolicStructure make_tuple(const std::vector<SymbolicStructure>& members);
  static SymbolicStructure make_dict(const Dict& members);
  // A tree of the form of `spec` over leaves in its order.
  SymbolicStructure(StructureSpec spec, std::vector<SymbolicTensor> leaves);

  bool is_leaf() const { return spec_.is_leaf(); }
  const StructureSpec& spec() const { return spec_; }
  const std::vector<SymbolicTensor>& leaves() const { return leaves_; }
  // Errors: InvalidArgument (not a leaf).
  operator const SymbolicTensor&() const;
  // Errors: InvalidArgument (not a tuple / dict), OutOfRange, NotFound.
  SymbolicStructure operator[](size_t i) const;
  SymbolicStructure operator[](int i) const { return (*this)[static_cast<size_t>(i)]; }
  SymbolicStructure operator[](std::string_view key) const;
  SymbolicStructure operator[](const char* key) const { return (*this)[std::string_view(key)]; }

 private:
  SymbolicStructure member(size_t first_leaf, const StructureSpec& spec) const;

  StructureSpec spec_;
  std::vector<SymbolicTensor> leaves_;
};

struct InputOptions {
  // Written to files, for Keras; batches of other sizes are taken, too, as by Keras.
  std::optional<int64_t> batch_size = std::nullopt;
  std::string name = "";
  std::optional<LeafType> dtype = std::nullopt;  // or cohort::string; missing: backend::floatx()
};

// `shape` is that of one example; kUnknownDim where a dimension is open.
// Errors: InvalidArgument (a size below kUnknownDim; a batch size below 1).
COHORT_API SymbolicTensor Input(const Shape& shape, const InputOptions& options = {});

namespace layers {

struct InputLayerOptions {
  std::optional<int64_t> batch_size = std::nullopt;  // as of an Input
  std::string name = "";
  std::optional<LeafType> dtype = std::nullopt;
};

// Tells a Sequential the shape of an example, so that it is built at once.
class COHORT_API InputLayer : public LayerHandle {
 public:
  explicit InputLayer(const Shape& shape, const InputLayerOptions& options = {});
};

}  // namespace layers
}  // namespace keras

namespace internal {

// One call of a layer on symbolic inputs; an Input where there are none.
struct SymbolicNode {
  keras::layers::LayerHandle layer;
  std::optional<keras::SymbolicStructure> inputs;
  keras::CallOptions options;
  std::vector<TensorSpec> outputs;
};

// What an InputLayer stands for; nullptr for any other layer.
const TensorSpec* input_layer_spec(const keras::layers::Layer& layer);
keras::SymbolicTensor symbolic_input(const keras::layers::LayerHandle& input_layer);

// What an InputLayer of this name and spec writes of itself.
keras::Config input_layer_config(const std::string& name, const TensorSpec& spec,
                                 std::optional<int64_t> batch_size = std::nullopt);

// The specs of what `layer` returns for inputs of `inputs`, found by calling it on zeros for two
// batch sizes: what differs between them depends on an unknown dimension.
StructureSpec infer_outputs(const keras::layers::LayerHandle& layer, const StructureSpec& inputs,
                            const keras::CallOptions& options);

}  // namespace internal
}  // namespace cohort
