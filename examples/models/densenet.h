// DenseNet-BC (Huang et al., 2017): each layer of a block reads what all layers before it have made.
#pragma once

#include <cstdint>
#include <vector>

#include "models/example.h"

namespace models {

struct DenseNetConfig {
  int64_t image_size = 16;                  // images are [image_size, image_size, 3]
  std::vector<int64_t> blocks = {2, 2, 2};  // layers in each dense block
  int64_t growth = 16;                      // channels that a layer adds
  double reduction = 0.5;                   // of channels, between two blocks
  int64_t classes = 8;
  // Whether batch normalization is by the batches of all replicas, so that their number is no matter.
  bool synchronized = true;
};

// float32 [batch, image_size, image_size, 3] -> logits [batch, classes].
cohort::keras::ModelHandle make_densenet(const DenseNetConfig& config);

// It learns the direction of gratings (gratings.h).
Example densenet_example(const DenseNetConfig& config);

}  // namespace models
