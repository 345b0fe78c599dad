#include "cohort/keras/model/sequential.h"

#include <memory>
#include <utility>

#include "cohort/core/threads/lazy.h"
#include "cohort/keras/layers/base/segments.h"
#include "cohort/keras/model/model_config.h"

namespace cohort::keras {
namespace {

using internal::str;
using layers::LayerHandle;

class SequentialImpl final : public Model {
 public:
  explicit SequentialImpl(const ModelOptions& options)
      : Model("Sequential", {.name = options.name, .autocast = false}) {}

  void add(const LayerHandle& layer) {
    const TensorSpec* input = internal::input_layer_spec(*layer.get());
    if (input != nullptr && (!children().empty() || !outputs_.empty())) {
      throw InvalidArgumentError(str("model '", name(), "': the input '", layer.name(),
                                     "' must be the first that is added"));
    }
    for (const Child& child : children()) {
      if (child.layer->name() == layer.name()) {
        throw InvalidArgumentError(str("model '", name(), "' has a layer named '", layer.name(),
                                       "' already; layers need names of their own (.name)"));
      }
    }
    if (input != nullptr) {
      outputs_.push_back(internal::symbolic_input(layer));
      return;
    }
    if (!outputs_.empty()) outputs_.push_back(layer(outputs_.back()));
    track(str("layer-", children().size()), layer);
    layers_changed();
  }

  void pop() {
    if (children().empty()) {
      throw FailedPreconditionError(str("model '", name(), "' has no layer to remove"));
    }
    pop_child();
    layers_changed();
    if (!outputs_.empty()) outputs_.pop_back();
  }

  // Marks the model itself as built where the input is known.
  void build_from_input(const LayerHandle& self) {
    if (!outputs_.empty() && !children().empty() && !built()) {
      internal::infer_outputs(self, outputs_[0].spec(), {});
    }
  }

  std::optional<Config> get_config() const override {
    const Layer* input_layer = outputs_.empty() ? nullptr : outputs_[0].layer().get();
    std::optional<TensorSpec> input;
    if (const StructureSpec* spec = first_input_.get_if(); spec != nullptr && spec->is_leaf()) {
      input = spec->flatten()[0];
    }
    return internal::sequential_config(*this, input_layer, input);
  }

  std::string explain() const override {
    return segments_->get([&] { return make_segments(); }).explain();
  }

  std::vector<std::string> output_names(size_t count) const override {
    if (count != 1 || children().empty()) return Model::output_names(count);
    return {children().back().layer->name()};
  }

  std::vector<train::TrackableChild> checkpoint_children() override {
    std::vector<Layer*> layers;
    for (const Child& child : children()) layers.push_back(child.layer);
    return internal::number_layers(layers);
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions& options) override {
    first_input_.get([&] { return of_any_batch(inputs); });
    return segments_->get([&] { return make_segments(); })(inputs, options);
  }

 private:
  void layers_changed() { segments_ = std::make_unique<internal::Lazy<internal::Segments>>(); }
  internal::Segments make_segments() const {
    std::vector<Layer*> layers;
    for (const Child& child : children()) layers.push_back(child.layer);
    return internal::Segments(layers);
  }

  // The spec with the batch size left open.
  static StructureSpec of_any_batch(const Structure& inputs) {
    return StructureSpec::of(inputs).map([](const TensorSpec& spec) {
      if (!spec.shape() || spec.shape()->empty()) return spec;
      Shape shape = *spec.shape();
      shape[0] = kUnknownDim;
      return spec.is_string() ? TensorSpec::strings(std::move(shape))
                              : TensorSpec(std::move(shape), spec.dtype());
    });
  }

  // The spec of the first call.
  internal::Lazy<StructureSpec> first_input_;
  std::unique_ptr<internal::Lazy<internal::Segments>> segments_ =
      std::make_unique<internal::Lazy<internal::Segments>>();
  // The input, if it is known, and the output of each layer.
  std::vector<SymbolicTensor> outputs_;
};

SequentialImpl& impl(const Sequential& model) { return static_cast<SequentialImpl&>(*model.get()); }

}  // namespace

Sequential::Sequential()
    : ModelHandle(Unnamed(), std::make_shared<SequentialImpl>(ModelOptions{})) {}

Sequential::Sequential(std::initializer_list<LayerHandle> layers, const ModelOptions& options)
    : Sequential(std::vector<LayerHandle>(layers), options) {}

Sequential::Sequential(const std::vector<LayerHandle>& layers, const ModelOptions& options)
    : ModelHandle(std::make_shared<SequentialImpl>(options)) {
  for (const LayerHandle& layer : layers) impl(*this).add(layer);
  impl(*this).build_from_input(*this);
}

void Sequential::add(const LayerHandle& layer) const {
  impl(*this).add(layer);
  impl(*this).build_from_input(*this);
}

void Sequential::pop() const { impl(*this).pop(); }

}  // namespace cohort::keras
