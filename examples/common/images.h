// The guide's data: images in [0, 1] with a channel dimension.
#pragma once

#include <cohort/cohort.h>

#include <cstdint>
#include <string>

namespace examples {

struct ImageOptions {
  std::string data;  // folder with the four IDX files; empty: cache, download or drawings
  std::string dataset = "fashion_mnist";
  uint64_t seed = 2;  // of images that it draws itself
};

struct Images {
  cohort::Tensor images;  // float32 [n, 28, 28, 1]
  cohort::Tensor labels;  // uint8 [n]
};
struct TrainTestImages {
  Images train;
  Images test;
};

// From the folder, the cache or a download; where there is no network, images that it draws itself,
// which it says on stderr. Errors: those of load_data, but for the missing network's.
TrainTestImages load_images(const ImageOptions& options);

}  // namespace examples
