// A perfect hash function: each of a fixed set of keys has a slot of its own, and finding it reads
// one number of 16 bits.
//
//   PerfectHash function = PerfectHash::for_keys(keys, /*seed=*/0);
//   const auto place = function.place(hash);
//   const uint64_t slot = function.slot(place, pilots[place.bucket]);
//
// The construction is "hash and displace" (Belazzougui, Botelho, Dietzfelbinger, 2009) with pilots
// as in PTHash (Pibiri, Trani, 2021), in parts that are built one by one: keys are cut into parts,
// a part into buckets of about three, and each bucket, the largest first, takes the first pilot
// that puts its keys into free slots. There are 3% more slots than keys, and some for the parts'
// uneven sizes, so that pilots of 16 bits suffice: 5.4 bits a key.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cohort::internal {

__extension__ using Wide = unsigned __int128;

// Thread safety: immutable.
struct PerfectHash {
  uint64_t seed = 0;
  uint64_t parts = 1;
  uint32_t slots_per_part = 1;
  uint32_t buckets_per_part = 1;

  static PerfectHash for_keys(uint64_t keys, uint64_t seed);

  uint64_t num_slots() const { return parts * slots_per_part; }
  uint64_t num_buckets() const { return parts * buckets_per_part; }
  // Keys that a part takes at most.
  uint32_t most_keys_of_part() const;

  struct Place {
    uint64_t mixed;   // the key's hash under this seed: distinct where the hashes are
    uint64_t bucket;  // among those of all parts; greater for greater `mixed`
    uint32_t part;
  };
  Place place(uint64_t hash) const {
    uint64_t mixed = (hash ^ seed) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
    return place_of_mixed(mixed);
  }
  Place place_of_mixed(uint64_t mixed) const {
    const Wide scaled = Wide{mixed} * parts;
    const auto part = static_cast<uint32_t>(scaled >> 64);
    const auto bucket =
        static_cast<uint64_t>(Wide{static_cast<uint64_t>(scaled)} * buckets_per_part >> 64);
    return {mixed, part * uint64_t{buckets_per_part} + bucket, part};
  }
  uint64_t slot(const Place& place, uint16_t pilot) const {
    return place.part * uint64_t{slots_per_part} + slot_in_part(place.mixed, pilot);
  }
  // The product carries the pilot's bits upwards, so that two keys which differ in low bits alone
  // come apart.
  uint32_t slot_in_part(uint64_t mixed, uint16_t pilot) const {
    const uint64_t x = (mixed ^ (pilot * 0xd6e8feb86659fd93u)) * 0xff51afd7ed558ccdu;
    return static_cast<uint32_t>(
        (uint64_t{static_cast<uint32_t>(x ^ (x >> 32))} * slots_per_part) >> 32);
  }
};

// Finds the pilots of a part. Thread safety: none; its memory serves part after part.
class PilotSearch {
 public:
  explicit PilotSearch(const PerfectHash& function);

  // `mixed`: the part's keys, ascending and distinct, most_keys_of_part() at most. Writes
  // buckets_per_part pilots. False where a bucket has no pilot: another seed will do.
  bool find(std::span<const uint64_t> mixed, uint16_t* pilots);

 private:
  struct Bucket {
    uint32_t begin = 0, size = 0, number = 0;
  };

  bool place(std::span<const uint64_t> keys, uint16_t* pilot);
  bool take(const uint32_t* slots, size_t count);

  const PerfectHash function_;
  std::vector<Bucket> buckets_;
  std::vector<Bucket> ordered_;
  std::vector<uint64_t> taken_;  // a bit a slot
};

}  // namespace cohort::internal
