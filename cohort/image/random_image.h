// Images that are changed at random, for training.
//
//   Tensor flipped = tf::image::random_flip_left_right(image);
//   Tensor same = tf::image::stateless_random_brightness(image, 0.2, {7, step});
//
// stateless_*: what follows from the seed alone, TensorFlow's numbers. The others draw a seed from
// `generator`, by default the calling context's, in a replica its own. A map gives the generator
// that its function asks for (docs/data.md, "Random maps"): its draws are the same after a resume,
// and for any number of threads. Gradients flow through. Errors of all: as the operations
// themselves, and InvalidArgument (a range that is none). Thread safety: any thread.
#pragma once

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/ops/random.h"
#include "cohort/ops/sampling/stateless_random.h"

namespace cohort::image {

using Seed = random::StatelessSeed;

// One of two, each image of a batch by itself.
COHORT_API Tensor stateless_random_flip_left_right(const Tensor& images, const Seed& seed);
COHORT_API Tensor stateless_random_flip_up_down(const Tensor& images, const Seed& seed);
// A part of `size`, one number a dimension. Errors: InvalidArgument (larger than `value`).
COHORT_API Tensor stateless_random_crop(const Tensor& value, at::IntArrayRef size,
                                        const Seed& seed);
// Adds a delta in [-max_delta, max_delta).
COHORT_API Tensor stateless_random_brightness(const Tensor& images, double max_delta,
                                              const Seed& seed);
// The factor lies in [lower, upper).
COHORT_API Tensor stateless_random_contrast(const Tensor& images, double lower, double upper,
                                            const Seed& seed);
// The delta lies in [-max_delta, max_delta); max_delta is 0.5 at most.
COHORT_API Tensor stateless_random_hue(const Tensor& images, double max_delta, const Seed& seed);
COHORT_API Tensor stateless_random_saturation(const Tensor& images, double lower, double upper,
                                              const Seed& seed);

COHORT_API Tensor
random_flip_left_right(const Tensor& images,
                       const random::RandomGenerator& generator = random::get_global_generator());
COHORT_API Tensor
random_flip_up_down(const Tensor& images,
                    const random::RandomGenerator& generator = random::get_global_generator());
COHORT_API Tensor
random_crop(const Tensor& value, at::IntArrayRef size,
            const random::RandomGenerator& generator = random::get_global_generator());
COHORT_API Tensor
random_brightness(const Tensor& images, double max_delta,
                  const random::RandomGenerator& generator = random::get_global_generator());
COHORT_API Tensor
random_contrast(const Tensor& images, double lower, double upper,
                const random::RandomGenerator& generator = random::get_global_generator());
COHORT_API Tensor
random_hue(const Tensor& images, double max_delta,
           const random::RandomGenerator& generator = random::get_global_generator());
COHORT_API Tensor
random_saturation(const Tensor& images, double lower, double upper,
                  const random::RandomGenerator& generator = random::get_global_generator());

}  // namespace cohort::image
