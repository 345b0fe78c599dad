#include "cohort/transform/output/transform_features_layer.h"

#include <utility>

#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::internal {
namespace {

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
    return transform_->apply(inputs);
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
