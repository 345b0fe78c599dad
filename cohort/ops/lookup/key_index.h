// Numbers distinct keys in the order in which they come, and finds them again: the hash table under
// lookup tables and layers.
//
//   KeyIndex<std::string_view> index;
//   index.insert("a");   // {0, true}
//   index.insert("b");   // {1, true}
//   index.find("b");     // 1
//   index.find("c");     // -1
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/error.h"

namespace cohort::internal {

inline uint64_t hash_key(std::string_view key) { return fingerprint64(key); }
inline uint64_t hash_key(int64_t key) {
  auto x = static_cast<uint64_t>(key);
  for (const uint64_t factor : {0xff51afd7ed558ccdu, 0xc4ceb9fe1a85ec53u}) {
    x ^= x >> 33;
    x *= factor;
  }
  return x ^ (x >> 33);
}

// Open addressing with linear probing. A slot holds a number and 32 bits of the hash, so that of
// the keys that are passed over almost none is read.
// Key is std::string_view (whoever inserts keeps the bytes) or int64_t.
// Thread safety: as std::vector; any number of threads may find, without a lock.
template <class Key>
class KeyIndex {
 public:
  // Takes memory for `expected` keys at once.
  explicit KeyIndex(size_t expected = 0) {
    keys_.reserve(expected);
    size_t slots = kMinSlots;
    while (!fits(expected, slots)) slots *= 2;
    slots_.resize(slots);
  }

  // The number of `key`; -1: there is none.
  int64_t find(Key key) const { return find(key, hash_key(key)); }
  int64_t find(Key key, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t i = first_slot(hash);; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.number == kEmpty) return -1;
      if (slot.tag == static_cast<uint32_t>(hash) && keys_[slot.number] == key) return slot.number;
    }
  }

  // find() of each of `count` keys. Memory that one lookup waits for is on its way for the next
  // ones.
  void find_all(const Key* keys, int64_t count, int64_t* numbers) const {
    constexpr size_t kCachedSlots = 4096;  // a small index stays in the cache as it is
    if (slots_.size() <= kCachedSlots) {
      for (int64_t i = 0; i < count; ++i) numbers[i] = find(keys[i]);
      return;
    }
    constexpr int64_t kBlock = 16;
    uint64_t hashes[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t n = std::min(kBlock, count - begin);
      for (int64_t i = 0; i < n; ++i) {
        hashes[i] = hash_key(keys[begin + i]);
        __builtin_prefetch(&slots_[first_slot(hashes[i])]);
      }
      for (int64_t i = 0; i < n; ++i) {
        if (const Key* key = likely_key(hashes[i])) __builtin_prefetch(key);
      }
      if constexpr (std::is_same_v<Key, std::string_view>) {
        for (int64_t i = 0; i < n; ++i) {
          if (const Key* key = likely_key(hashes[i])) __builtin_prefetch(key->data());
        }
      }
      for (int64_t i = 0; i < n; ++i) numbers[begin + i] = find(keys[begin + i], hashes[i]);
    }
  }

  // The number of `key`, and whether it is new. Errors: ResourceExhausted (2^32 - 1 keys).
  std::pair<int64_t, bool> insert(Key key) { return insert(key, hash_key(key)); }
  std::pair<int64_t, bool> insert(Key key, uint64_t hash) {
    if (const int64_t number = find(key, hash); number >= 0) return {number, false};
    if (keys_.size() >= kEmpty) {
      throw ResourceExhaustedError(str("a lookup table holds at most ", kEmpty, " keys"));
    }
    if (!fits(keys_.size() + 1, slots_.size())) grow();
    keys_.push_back(key);
    place(static_cast<uint32_t>(keys_.size() - 1), hash);
    return {static_cast<int64_t>(keys_.size() - 1), true};
  }

  int64_t size() const { return static_cast<int64_t>(keys_.size()); }
  // Key `i` has number `i`.
  const std::vector<Key>& keys() const { return keys_; }

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  static constexpr size_t kMinSlots = 16;
  struct Slot {
    uint32_t tag = 0;  // the hash's lower half; its upper half says which slot
    uint32_t number = kEmpty;
  };

  // Three quarters full at most.
  static bool fits(size_t keys, size_t slots) { return keys <= slots / 4 * 3; }
  // The key of the first slot, if its part of the hash agrees.
  const Key* likely_key(uint64_t hash) const {
    const Slot& slot = slots_[first_slot(hash)];
    const bool fits = slot.number != kEmpty && slot.tag == static_cast<uint32_t>(hash);
    return fits ? &keys_[slot.number] : nullptr;
  }
  size_t first_slot(uint64_t hash) const { return (hash >> 32) & (slots_.size() - 1); }

  void place(uint32_t number, uint64_t hash) {
    size_t i = first_slot(hash);
    while (slots_[i].number != kEmpty) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {static_cast<uint32_t>(hash), number};
  }
  void grow() {
    std::vector<Slot>(slots_.size() * 2).swap(slots_);
    for (size_t i = 0; i < keys_.size(); ++i) {
      place(static_cast<uint32_t>(i), hash_key(keys_[i]));
    }
  }

  std::vector<Key> keys_;
  std::vector<Slot> slots_;  // a power of two
};

}  // namespace cohort::internal
