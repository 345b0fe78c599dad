#include "cohort/keras/datasets/numpy_shuffle.h"

#include <numeric>
#include <random>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

// NumPy's random_interval: uniform in [0, most], by rejection under the least mask of ones.
uint64_t draw(std::mt19937& engine, uint64_t most) {
  uint64_t mask = most;
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  while (true) {
    uint64_t value = engine();
    if (most > UINT32_MAX) value = value << 32 | engine();  // the first is the upper half
    value &= mask;
    if (value <= most) return value;
  }
}

}  // namespace

std::vector<int64_t> numpy_shuffled(int64_t size, uint64_t seed) {
  if (seed > UINT32_MAX) {
    throw InvalidArgumentError(
        str("the seed is ", seed, "; where Keras's order is followed it is below 2^32"));
  }
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 engine(static_cast<uint32_t>(seed));  // whose numbers the standard fixes
  for (size_t i = order.size(); i-- > 1;) {
    std::swap(order[i], order[static_cast<size_t>(draw(engine, i))]);
  }
  return order;
}

}  // namespace cohort::internal
