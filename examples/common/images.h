// The guide's data: images in [0, 1] with a channel dimension.
#pragma once

#include <cohort/cohort.h>

#include "options.h"

namespace custom_training {

struct Images {
  cohort::Tensor images;  // float32 [n, 28, 28, 1]
  cohort::Tensor labels;  // uint8 [n]
};
struct TrainTestImages {
  Images train;
  Images test;
};

// From --data, the cache or a download; where there is no network, images that it draws itself,
// which it says on stderr. Errors: those of load_data, but for the missing network's.
TrainTestImages load_images(const Options& options);

}  // namespace custom_training
