#include "cohort/train/bundle/box_cover.h"

#include <random>

namespace cohort::internal {
namespace {

// Weights are numbers modulo this prime.
constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

__extension__ using Wide = unsigned __int128;

uint64_t times(uint64_t a, uint64_t b) { return static_cast<uint64_t>(Wide{a} * b % kPrime); }

// Steele's splitmix64.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

uint64_t random_seed() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

}  // namespace

BoxCover::BoxCover(std::vector<int64_t> shape) : shape_(std::move(shape)), seed_(random_seed()) {}

// The sum of the weights of all places before this one.
uint64_t BoxCover::place_sum(size_t dimension, int64_t place) const {
  return mix(mix(seed_ + dimension) ^ static_cast<uint64_t>(place)) % kPrime;
}

uint64_t BoxCover::weight(const train::TensorSlice& box) const {
  uint64_t product = 1;
  for (size_t d = 0; d < shape_.size(); ++d) {
    const uint64_t begin = place_sum(d, box.start[d]);
    const uint64_t end = place_sum(d, box.start[d] + box.length[d]);
    product = times(product, (end + kPrime - begin) % kPrime);
  }
  return product;
}

void BoxCover::add(const train::TensorSlice& box) { total_ = (total_ + weight(box)) % kPrime; }

bool BoxCover::is_exact() const {
  return total_ == weight({std::vector<int64_t>(shape_.size(), 0), shape_});
}

}  // namespace cohort::internal
