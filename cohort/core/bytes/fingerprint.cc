// FarmHash (Geoff Pike, 2014) has one way of mixing for each range of lengths; the longer ones read
// overlapping words from both ends, so that no length needs a loop over single bytes.
#include "cohort/core/bytes/fingerprint.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

namespace cohort::internal {
namespace {

// Primes between 2^63 and 2^64.
constexpr uint64_t kA = 0xc3a5c85c97cb3127;
constexpr uint64_t kB = 0xb492b66fbe98f273;
constexpr uint64_t kC = 0x9ae16a3b2f90404f;

template <class Word>
uint64_t load(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}
uint64_t word64(const char* bytes) { return load<uint64_t>(bytes); }
uint64_t word32(const char* bytes) { return load<uint32_t>(bytes); }

uint64_t fold(uint64_t x) { return x ^ (x >> 47); }

// Two words to one, as Murmur does it.
uint64_t merge(uint64_t u, uint64_t v, uint64_t factor) {
  return fold((v ^ fold((u ^ v) * factor)) * factor) * factor;
}

uint64_t factor_of(size_t length) { return kC + 2 * length; }

uint64_t hash_up_to_16(const char* s, size_t length) {
  if (length >= 8) {
    const uint64_t factor = factor_of(length);
    const uint64_t first = word64(s) + kC;
    const uint64_t last = word64(s + length - 8);
    return merge(std::rotr(last, 37) * factor + first, (std::rotr(first, 25) + last) * factor,
                 factor);
  }
  if (length >= 4) {
    return merge(length + (word32(s) << 3), word32(s + length - 4), factor_of(length));
  }
  if (length == 0) return kC;
  const auto byte = [s](size_t i) { return uint64_t{static_cast<unsigned char>(s[i])}; };
  const uint64_t y = byte(0) + (byte(length / 2) << 8);
  const uint64_t z = length + (byte(length - 1) << 2);
  return fold(y * kC ^ z * kA) * kC;
}

uint64_t hash_up_to_32(const char* s, size_t length) {
  const uint64_t factor = factor_of(length);
  const uint64_t a = word64(s) * kB;
  const uint64_t b = word64(s + 8);
  const uint64_t c = word64(s + length - 8) * factor;
  const uint64_t d = word64(s + length - 16) * kC;
  return merge(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + kC, 18) + c, factor);
}

uint64_t hash_up_to_64(const char* s, size_t length) {
  const uint64_t factor = factor_of(length);
  const uint64_t a = word64(s) * kC;
  const uint64_t b = word64(s + 8);
  const uint64_t c = word64(s + length - 8) * factor;
  const uint64_t d = word64(s + length - 16) * kC;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = merge(y, a + std::rotr(b + kC, 18) + c, factor);
  const uint64_t e = word64(s + 16) * factor;
  const uint64_t f = word64(s + 24);
  const uint64_t g = (y + word64(s + length - 32)) * factor;
  const uint64_t h = (z + word64(s + length - 24)) * factor;
  return merge(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, factor);
}

struct Pair {
  uint64_t first = 0;
  uint64_t second = 0;
};

// 32 bytes and two seeds to two words.
Pair mix_32(const char* s, uint64_t a, uint64_t b) {
  a += word64(s);
  b = std::rotr(b + a + word64(s + 24), 21);
  const uint64_t seed = a;
  a += word64(s + 8) + word64(s + 16);
  b += std::rotr(a, 44);
  return {a + word64(s + 24), b + seed};
}

// The state that one block of 64 bytes passes to the next.
struct LongState {
  uint64_t x, y, z;
  Pair v, w;

  // `weight` is 1 for all blocks but the last.
  void add_block(const char* s, uint64_t factor, uint64_t weight) {
    x = std::rotr(x + y + v.first + word64(s + 8), 37) * factor;
    y = std::rotr(y + v.second + word64(s + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + word64(s + 40);
    z = std::rotr(z + w.first, 33) * factor;
    v = mix_32(s, v.second * factor, x + w.first);
    w = mix_32(s + 32, z + w.second, y + word64(s + 16));
    std::swap(z, x);
  }
};

uint64_t hash_long(const char* s, size_t length) {
  constexpr uint64_t kSeed = 81;
  LongState state{};
  state.x = kSeed * kC + word64(s);
  state.y = kSeed * kB + 113;
  state.z = fold(state.y * kC + 113) * kC;
  const size_t tail = (length - 1) % 64;  // bytes of the last block that no other has, less one
  const char* const end = s + (length - 1 - tail);
  const char* const last = end + tail - 63;
  for (; s != end; s += 64) state.add_block(s, kB, 1);
  const uint64_t factor = kB + ((state.z & 0xff) << 1);
  state.w.first += tail;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.add_block(last, factor, 9);
  return merge(merge(state.v.first, state.w.first, factor) + fold(state.y) * kA + state.z,
               merge(state.v.second, state.w.second, factor) + state.x, factor);
}

}  // namespace

uint64_t fingerprint64(std::string_view bytes) {
  const char* s = bytes.data();
  const size_t length = bytes.size();
  if (length <= 16) return hash_up_to_16(s, length);
  if (length <= 32) return hash_up_to_32(s, length);
  if (length <= 64) return hash_up_to_64(s, length);
  return hash_long(s, length);
}

uint64_t joined_fingerprint64(uint64_t first, uint64_t second) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;  // Murmur's
  const uint64_t both = (first ^ kFactor) ^ fold(second * kFactor) * kFactor;
  return fold(fold(both * kFactor) * kFactor);
}

}  // namespace cohort::internal
