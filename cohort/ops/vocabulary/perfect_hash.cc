#include "cohort/ops/vocabulary/perfect_hash.h"

#include <algorithm>
#include <cmath>

namespace cohort::internal {
namespace {

constexpr uint64_t kKeysPerPart = 60'000;  // whose slots, a bit each, fit into 8 KiB
constexpr uint32_t kKeysPerBucket = 3;
constexpr double kFull = 0.97;
constexpr uint32_t kMostKeysOfBucket = 64;  // of keys that hash well none has a third as many

}  // namespace

PerfectHash PerfectHash::for_keys(uint64_t keys, uint64_t seed) {
  PerfectHash function;
  function.seed = seed;
  function.parts = std::max<uint64_t>(1, (keys + kKeysPerPart - 1) / kKeysPerPart);
  const double mean = static_cast<double>(keys) / static_cast<double>(function.parts);
  // Sizes of parts spread by the square root of their mean: eight times that is met by none.
  const double most = function.parts == 1 ? mean : mean + 8 * std::sqrt(mean);
  function.slots_per_part = static_cast<uint32_t>(most / kFull) + 1;
  function.buckets_per_part = static_cast<uint32_t>(mean) / kKeysPerBucket + 1;
  return function;
}

uint32_t PerfectHash::most_keys_of_part() const {
  const auto keys = static_cast<uint32_t>(static_cast<double>(slots_per_part) * kFull);
  return parts == 1 ? slots_per_part : keys;
}

PilotSearch::PilotSearch(const PerfectHash& function)
    : function_(function),
      buckets_(function.buckets_per_part),
      ordered_(function.buckets_per_part),
      taken_(function.slots_per_part / 64 + 1) {}

bool PilotSearch::find(std::span<const uint64_t> mixed, uint16_t* pilots) {
  std::fill(taken_.begin(), taken_.end(), 0);
  std::fill(pilots, pilots + function_.buckets_per_part, uint16_t{0});
  for (uint32_t i = 0; i < buckets_.size(); ++i) buckets_[i] = {0, 0, i};
  uint32_t of_size[kMostKeysOfBucket + 1] = {};
  for (uint32_t i = 0; i < mixed.size(); ++i) {
    Bucket& bucket =
        buckets_[function_.place_of_mixed(mixed[i]).bucket % function_.buckets_per_part];
    if (bucket.size == 0) bucket.begin = i;
    if (++bucket.size > kMostKeysOfBucket) return false;
  }
  for (const Bucket& bucket : buckets_) ++of_size[bucket.size];
  uint32_t next[kMostKeysOfBucket + 1] = {};  // the largest first
  for (uint32_t size = kMostKeysOfBucket; size > 0; --size) {
    next[size - 1] = next[size] + of_size[size];
  }
  for (const Bucket& bucket : buckets_) ordered_[next[bucket.size]++] = bucket;
  for (const Bucket& bucket : ordered_) {
    if (bucket.size == 0) break;
    if (!place(mixed.subspan(bucket.begin, bucket.size), &pilots[bucket.number])) return false;
  }
  return true;
}

bool PilotSearch::place(std::span<const uint64_t> keys, uint16_t* pilot) {
  uint32_t slots[kMostKeysOfBucket];
  const auto taken = [&](size_t key, uint32_t candidate) {
    const uint32_t slot = function_.slot_in_part(keys[key], static_cast<uint16_t>(candidate));
    slots[key] = slot;
    return taken_[slot / 64] >> (slot % 64) & 1;
  };
  for (uint32_t candidate = 0; candidate <= UINT16_MAX; ++candidate) {
    // Two keys at once: whether one is in the way nobody can foretell, the processor included.
    const size_t pair = std::min<size_t>(2, keys.size());
    if ((taken(0, candidate) | taken(pair - 1, candidate)) != 0) continue;
    size_t found = pair;
    while (found < keys.size() && taken(found, candidate) == 0) ++found;
    if (found < keys.size() || !take(slots, found)) continue;
    *pilot = static_cast<uint16_t>(candidate);
    return true;
  }
  return false;
}

// Takes all of these free slots, or none: two keys may want the same one.
bool PilotSearch::take(const uint32_t* slots, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bit = uint64_t{1} << (slots[i] % 64);
    if ((taken_[slots[i] / 64] & bit) == 0) {
      taken_[slots[i] / 64] |= bit;
      continue;
    }
    for (size_t j = 0; j < i; ++j) taken_[slots[j] / 64] &= ~(uint64_t{1} << (slots[j] % 64));
    return false;
  }
  return true;
}

}  // namespace cohort::internal
