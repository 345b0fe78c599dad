// Fills tensors with the numbers that TensorFlow makes of a Philox key and counter: how words
// become numbers is TensorFlow's choice, and another one than that of random_fill.h.
#pragma once

#include "cohort/core/structure/tensor.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random_options.h"

namespace cohort::random {
class StatelessSeed;
}

namespace cohort::internal {

// The words of a seed, from their start. TensorFlow scrambles seeds, so that those that differ in
// one bit give streams without likeness.
Philox philox_of(const random::StatelessSeed& seed);

// `out` is dense on the CPU, of a dtype that random_fill.h can fill. `random` stands at its start.
// Errors: InvalidArgument (fill_stateless_uniform: bounds that an integer dtype cannot hold).
void fill_stateless_uniform(Philox random, const Tensor& out,
                            const random::UniformOptions& options);
void fill_stateless_full_int(Philox random, const Tensor& out);
void fill_stateless_normal(Philox random, const Tensor& out, const random::NormalOptions& options);
void fill_stateless_truncated_normal(Philox random, const Tensor& out,
                                     const random::NormalOptions& options);

}  // namespace cohort::internal
