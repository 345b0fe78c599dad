#include "cohort/distribute/variables/known_values.h"

#include <ATen/ops/full.h>
#include <c10/util/accumulate.h>

#include "cohort/core/error.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"
#include "cohort/ops/random_fill.h"

namespace cohort::internal {

using distribute::KnownValues;
using Kind = KnownValues::Kind;

namespace {

// The place of the values from number `first` on, and how many before `first` are drawn with them.
struct Place {
  uint64_t position = 0;
  int64_t before = 0;
};

Place place_of(const KnownValues& values, int64_t first, DType dtype) {
  const uint64_t words = dtype == DType::Double ? 2 : 1;  // of one number
  if (values.kind == Kind::kTruncatedNormal) {
    Philox random(values.seed, values.stream);
    random.seek(values.position);
    const uint64_t before = pass_truncated_normals(random, static_cast<uint64_t>(first));
    return {random.position(), static_cast<int64_t>(before)};
  }
  const int64_t before = values.kind == Kind::kNormal ? first % 2 : 0;  // they come in pairs
  return {values.position + static_cast<uint64_t>(first - before) * words, before};
}

}  // namespace

bool has_known_random_values(DType dtype) { return is_random_float(dtype); }

Tensor make_known_values(const KnownValues& values, const std::vector<int64_t>& shape,
                         int64_t first, DType dtype) {
  if (values.kind == Kind::kConstant) return at::full(shape, values.first, dtype);
  if (!has_known_random_values(dtype)) {
    throw InvalidArgumentError(
        str("known random values are floating-point numbers, not of ", dtype_name(dtype)));
  }
  const Place place = place_of(values, first, dtype);
  const auto generator = make_stream(values.seed, values.stream);
  generator.restore({.seed = values.seed, .stream = values.stream, .position = place.position});
  if (values.kind == Kind::kUniform) {
    return generator.uniform(shape,
                             {.minval = values.first, .maxval = values.second, .dtype = dtype});
  }
  const int64_t count = c10::multiply_integers(shape);
  const random::NormalOptions options{
      .mean = values.first, .stddev = values.second, .dtype = dtype};
  const Tensor drawn = values.kind == Kind::kNormal
                           ? generator.normal({place.before + count}, options)
                           : generator.truncated_normal({place.before + count}, options);
  return drawn.narrow(0, place.before, count).reshape(shape).contiguous();
}

uint64_t position_after(const KnownValues& values, int64_t count, DType dtype) {
  if (values.kind == Kind::kConstant) return values.position;
  constexpr uint64_t kNumbersOfPair = 2;
  Place place = place_of(values, count, dtype);
  if (place.before == 0) return place.position;
  // The second number of the last pair is dropped.
  const uint64_t words = values.kind == Kind::kTruncatedNormal || dtype == DType::Double ? 2 : 1;
  return place.position + kNumbersOfPair * words;
}

}  // namespace cohort::internal
