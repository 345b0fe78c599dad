// Random tensors, the same on every machine and for any number of threads.
//
//   tf::random::set_seed(42);
//   Tensor noise = tf::random::normal({2, 3}, {.stddev = 0.1});   // in a step: the replica's own
//   auto generator = tf::random::RandomGenerator::from_seed(1);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/ops/random_options.h"

namespace cohort::random {
class RandomGenerator;
}
namespace cohort::internal {
class GeneratorStreams;
// Errors: FailedPrecondition (moved from).
GeneratorStreams& streams_of(const random::RandomGenerator& generator);
random::RandomGenerator make_stream(uint64_t seed, uint64_t stream);
}  // namespace cohort::internal

namespace cohort::random {

// A stream of random tensors. A handle: copies draw from the same stream.
//
// Made in a strategy's scope (or in merge_call), it has a stream for each replica: replica r of the
// sync group draws numbers that follow from the seed and r alone, whatever the others draw; where
// tasks are no group, but each runs steps of its own, from its task's index, too. Draws across
// replicas are then from a stream of their own, the same in every task of a group, and its
// replicas' streams pass over as many words. Made anywhere else, it is one stream, from which
// replicas draw as they come.
// Thread safety: each call is atomic; calls from several threads draw in the order in which they
// happen. Replicas with streams of their own do not wait for each other.
class COHORT_API RandomGenerator {
 public:
  static RandomGenerator from_seed(uint64_t seed, uint64_t stream = 0);
  // Seeded by the operating system.
  static RandomGenerator from_non_deterministic_state();

  // Shape: `shape`. Errors: InvalidArgument (a negative size; a dtype that is neither floating nor,
  // for uniform, integer; minval not below maxval, or either not finite, or not a whole number that
  // an integer dtype can hold; a mean or stddev that is not finite, a stddev below 0).
  Tensor uniform(at::IntArrayRef shape, UniformOptions options = {}) const;
  Tensor normal(at::IntArrayRef shape, NormalOptions options = {}) const;
  // Normal, redrawn where further than two standard deviations from the mean.
  Tensor truncated_normal(at::IntArrayRef shape, NormalOptions options = {}) const;
  // Integers, every value of the dtype as likely as another.
  // Shape: `shape`. Errors: InvalidArgument (a negative size; dtype not integer).
  Tensor uniform_full_int(at::IntArrayRef shape, DType dtype = int64) const;
  uint64_t next_u64() const;

  // Passes over `count` 32-bit words, as uniform({count}) of float32 does.
  void skip(uint64_t count) const;
  // `count` generators with seeds that are drawn from this one; as from_seed of the calling
  // context.
  // Errors: InvalidArgument (count below 0).
  std::vector<RandomGenerator> split(int64_t count = 1) const;
  // Seeds in the form of TensorFlow's stateless operations: row 0 is drawn, row 1 is 0.
  // Shape: [2, count], int64. Errors: InvalidArgument (count below 0).
  Tensor make_seeds(int64_t count = 1) const;

  // The state of the stream that the calling thread draws from. Restored across replicas, those of
  // all replicas begin anew from it.
  using State = GeneratorState;
  State state() const;
  void restore(const State& state) const;

 private:
  friend internal::GeneratorStreams& internal::streams_of(const RandomGenerator& generator);
  friend RandomGenerator internal::make_stream(uint64_t seed, uint64_t stream);
  explicit RandomGenerator(std::shared_ptr<internal::GeneratorStreams> streams);
  internal::Handle<internal::GeneratorStreams, "RandomGenerator"> streams_;
};
// TensorFlow's name, and that of version 0.1; data::Generator<T> is something else.
using Generator = RandomGenerator;

// Seeds the global generator, and everything made afterwards without a seed of its own: initial
// values, shuffles, replica generators. Without it all of them are seeded by the operating system.
// For the whole process: tasks of one process share the seed, and draw from it in the order in
// which they make things. Give what must not depend on that order a seed of its own.
COHORT_API void set_seed(uint64_t seed);
COHORT_API std::optional<uint64_t> get_seed();

// The generator of the calling context: in a replica its own, else the global one.
COHORT_API RandomGenerator get_global_generator();
COHORT_API Tensor uniform(at::IntArrayRef shape, UniformOptions options = {});
COHORT_API Tensor normal(at::IntArrayRef shape, NormalOptions options = {});
COHORT_API Tensor truncated_normal(at::IntArrayRef shape, NormalOptions options = {});

}  // namespace cohort::random

namespace cohort::internal {

// A generator of one stream, wherever it is made: for what the library draws from by itself.
random::RandomGenerator make_stream(uint64_t seed, uint64_t stream = 0);

// A seed for the next object without a seed of its own: the k-th call after set_seed always returns
// the same value.
// Thread safety: any thread.
uint64_t next_seed();

// During its lifetime, the calling thread's next_seed returns the numbers that follow from `seed`:
// for functions whose results must be reproducible.
class COHORT_API SeedScope {
 public:
  explicit SeedScope(uint64_t seed);
  ~SeedScope();
  SeedScope(const SeedScope&) = delete;
  SeedScope& operator=(const SeedScope&) = delete;

 private:
  friend uint64_t next_seed();
  const uint64_t seed_;
  uint64_t given_ = 0;
  SeedScope* const outer_;
};

// The number of calls of set_seed. Objects whose generators were seeded by next_seed create them
// again when it has changed.
// Thread safety: any thread.
uint64_t seed_epoch();

// Makes `generator` the calling thread's get_global_generator() for its lifetime.
class COHORT_API ScopedGenerator {
 public:
  explicit ScopedGenerator(const random::RandomGenerator& generator);
  ~ScopedGenerator();
  ScopedGenerator(const ScopedGenerator&) = delete;
  ScopedGenerator& operator=(const ScopedGenerator&) = delete;

 private:
  const random::RandomGenerator* previous_;
};

}  // namespace cohort::internal
