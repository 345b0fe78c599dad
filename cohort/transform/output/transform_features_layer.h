// A transform as a layer.
#pragma once

#include <memory>
#include <string>

#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/transform/output/applied_transform.h"

namespace cohort::internal {

keras::layers::LayerHandle make_transform_features_layer(
    std::shared_ptr<const AppliedTransform> transform, const std::string& name);

}  // namespace cohort::internal
