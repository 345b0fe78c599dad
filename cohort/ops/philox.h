// Philox 4x32-10, the counter-based generator (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", 2011), with distributions of our own: std:: distributions differ between libraries, and
// these must give the same numbers everywhere and for ever.
//
//   Philox random(/*seed=*/1, /*stream=*/replica_id);
//   uint64_t i = random.below(n);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::internal {

// A position in one of 2^64 independent streams of a seed. Copyable; 48 bytes.
// Thread safety: none; give each thread its own stream.
class Philox {
 public:
  explicit Philox(uint64_t seed = 0, uint64_t stream = 0);

  uint32_t next_u32();
  uint64_t next_u64();
  // Uniform in [0, n), without bias (Lemire's rejection). n must not be 0.
  uint64_t below(uint64_t n);
  // Uniform in [0, 1) with 53 random bits, and with 24.
  double next_double();
  float next_float();
  // Standard normal, by Box and Muller, who make two at a time; next_normal drops the second, so
  // that position() is the whole state.
  double next_normal();
  std::array<double, 2> next_normals();
  // The next words.size() words: next_u32 over and over, but faster.
  void fill(std::span<uint32_t> words);

  // How many 32-bit words were drawn; seek(position()) continues exactly.
  uint64_t position() const { return position_; }
  void seek(uint64_t position);
  uint64_t seed() const { return seed_; }
  uint64_t stream() const { return stream_; }

  // The block of four words at `counter`: what everything above is made of.
  static std::array<uint32_t, 4> block(uint64_t seed, uint64_t stream, uint64_t counter);
  // Two independent standard normals from uniform u in (0, 1] and v in [0, 1).
  static std::array<double, 2> normals_of(double u, double v);

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t position_ = 0;
  std::array<uint32_t, 4> words_{};
  uint64_t cached_counter_ = ~uint64_t{0};
};

// Mixes two numbers into a seed (splitmix64's finaliser): derived streams without collisions.
uint64_t mix_seeds(uint64_t a, uint64_t b);

}  // namespace cohort::internal
