#include "cohort/transform/output/transform_features_layer.h"

#include <utility>

#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/placement.h"

namespace cohort::internal {
namespace {

// The first device on which there is one of the tensors; the host if all are there.
c10::Device device_of(const Structure& inputs) {
  c10::Device device("cpu");
  inputs.for_each([&](const Leaf& leaf) {
    if (device.is_cpu() && leaf.is_tensor()) device = leaf.tensor().device();
  });
  return device;
}

class TransformFeaturesLayer final : public keras::layers::Layer {
 public:
  TransformFeaturesLayer(std::shared_ptr<const AppliedTransform> transform, std::string name)
      : Layer("TransformFeaturesLayer",
              {.name = std::move(name), .trainable = false, .autocast = false}),
        transform_(std::move(transform)) {}

  std::optional<keras::Config> get_config() const override {
    return layer_config(*this, [this](FieldWriter& field) {
      field("directory", transform_->directory());
      field("checksum", static_cast<int64_t>(transform_->checksum()));
    });
  }

 protected:
  Structure call(const Structure& inputs, const keras::CallOptions&) override {
    // Tables lie on the host, and strings with them.
    const c10::Device device = device_of(inputs);
    if (device.is_cpu()) return transform_->apply(inputs);
    const Structure on_host = inputs.map(
        [](const Leaf& leaf) { return leaf.is_strings() ? leaf : Leaf(leaf.tensor().cpu()); });
    return copied_to_device(transform_->apply(on_host), device);
  }

 private:
  const std::shared_ptr<const AppliedTransform> transform_;
};

}  // namespace

keras::layers::LayerHandle make_transform_features_layer(
    std::shared_ptr<const AppliedTransform> transform, const std::string& name) {
  return std::make_shared<TransformFeaturesLayer>(std::move(transform), name);
}

}  // namespace cohort::internal
