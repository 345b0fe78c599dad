// Random image layers in a pipeline.
//
//   layers::Augmentation augment(
//       keras::Sequential({layers::RandomFlip("horizontal"), layers::RandomRotation(0.1)}));
//   auto examples = dataset.map(augment, {.num_parallel_calls = AUTOTUNE}).batch(128);
#pragma once

#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {

// A function for Dataset::map that calls a layer or model as in training. What its random image
// layers draw follows from the map's seed, the pass over the data and the element's index in it,
// and from nothing else (docs/data.md, "Random maps"): neither from how many calls run at once nor
// from the replicas, and a pipeline that resumes goes on exactly. Seeds of the layers do not count.
// It stands above a shuffle, and ahead of batch(), so that each image has numbers of its own.
// Thread safety: any thread.
class COHORT_API Augmentation {
 public:
  explicit Augmentation(LayerHandle layer) : layer_(std::move(layer)) {}

  // An element is an image (or a batch), or a tuple whose first member is one; the others, labels
  // say, stay as they are.
  // Errors: InvalidArgument (another element), those of the layer.
  Structure operator()(random::RandomGenerator& random, const Structure& element) const;

 private:
  LayerHandle layer_;
};

}  // namespace cohort::keras::layers
