// Fills tensors with numbers from a Philox stream: the arithmetic behind random::RandomGenerator.
#pragma once

#include <cstdint>

#include "cohort/core/structure/tensor.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random_options.h"

namespace cohort::internal {

// The dtypes that can be filled.
bool is_random_float(DType dtype);
bool is_random_integer(DType dtype);

// `out` is dense on the CPU, of a dtype above (fill_normal's: floating), and is filled in row-major
// order by the calling thread alone. The words drawn depend on nothing but the number of elements
// and the dtype (fill_truncated_normal and integers: and on the words).
// Errors: InvalidArgument (fill_uniform: bounds that an integer dtype cannot hold).
void fill_uniform(Philox& random, const Tensor& out, const random::UniformOptions& options);
void fill_normal(Philox& random, const Tensor& out, const random::NormalOptions& options);
void fill_truncated_normal(Philox& random, const Tensor& out, const random::NormalOptions& options);

// Passes over the first `count` values that fill_truncated_normal would draw, in a tenth of its
// time and without memory. Returns how many of them are left to be drawn: numbers come in pairs,
// and where a pair begins with the last of these values and goes on with the next one, the stream
// stands before it.
uint64_t pass_truncated_normals(Philox& random, uint64_t count);

}  // namespace cohort::internal
