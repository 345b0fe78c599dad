#include "cohort/distribute/known_values.h"

#include <ATen/ops/full.h>
#include <c10/util/accumulate.h>

#include "cohort/core/error.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

using distribute::KnownValues;

// Each element takes one word of the stream.
bool has_known_random_values(DType dtype) {
  return dtype == DType::Float || dtype == DType::Half || dtype == DType::BFloat16;
}

Tensor make_known_values(const KnownValues& values, const std::vector<int64_t>& shape,
                         int64_t first, DType dtype) {
  if (values.kind == KnownValues::Kind::kConstant) return at::full(shape, values.first, dtype);
  if (!has_known_random_values(dtype)) {
    throw InvalidArgumentError(
        str("known random values are made for 32 and 16 bits, not ", dtype_name(dtype)));
  }
  const bool normal = values.kind == KnownValues::Kind::kNormal;
  // Normal values come in pairs.
  const int64_t before = normal ? first % 2 : 0;
  const auto generator = random::RandomGenerator::from_seed(values.seed, values.stream);
  generator.restore({.seed = values.seed,
                     .stream = values.stream,
                     .position = values.position + static_cast<uint64_t>(first - before)});
  if (!normal) {
    return generator.uniform(shape,
                             {.minval = values.first, .maxval = values.second, .dtype = dtype});
  }
  const int64_t count = c10::multiply_integers(shape);
  const Tensor drawn = generator.normal(
      {before + count}, {.mean = values.first, .stddev = values.second, .dtype = dtype});
  return drawn.narrow(0, before, count).reshape(shape).contiguous();
}

}  // namespace cohort::internal
