// What a variable is before it has a value: its shape, its dtype, how it is kept, and the function
// that makes its first value.
//
//   const VariableSpec spec{.shape = {1'000'000, 64}, .options = {.name = "table"}};
//   Variable table(spec, [](const ShardInfo& shard) { return at::zeros(shard.shape); });
//
// A strategy sees the spec first. So it can decide where the values are to be, and run the function
// there, perhaps for one shard at a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/tensor.h"

namespace cohort {
namespace distribute {

// How the components of a variable are kept together.
enum class VariableSynchronization {
  AUTO,      // ON_WRITE
  NONE,      // refused by strategies that mirror
  ON_WRITE,  // equal at all times: a write reaches every component (a mirrored variable)
  ON_READ,   // each replica writes its own; a cross-replica read aggregates (metrics, statistics)
};

// How per-replica values become one: those that replicas assign to an ON_WRITE variable, and the
// components of an ON_READ one when it is read.
enum class VariableAggregation { NONE, SUM, MEAN, ONLY_FIRST_REPLICA };

struct VariableOptions {
  std::string name = "Variable";
  // Whether layers list it as trainable and tapes record it; missing: unless ON_READ or not of a
  // floating dtype.
  std::optional<bool> trainable = std::nullopt;
  VariableSynchronization synchronization = VariableSynchronization::AUTO;
  VariableAggregation aggregation = VariableAggregation::NONE;
};

struct VariableSpec {
  std::vector<int64_t> shape = {};
  DType dtype = float32;
  VariableOptions options = {};
};

// Which part of a variable is to be made: the box of `shape` that begins at `offset`. Both have one
// number for each dimension.
struct ShardInfo {
  std::vector<int64_t> shape;
  std::vector<int64_t> offset;

  // All of a variable of this shape.
  static ShardInfo whole(std::vector<int64_t> shape);
  // This part of a tensor that has the variable's shape; shares its memory.
  Tensor of(const Tensor& whole) const;
};

// Makes a variable's first value. It has not run yet; a strategy runs it once for each shard,
// whatever the number of replicas. Where the strategy keeps values in this process, there is one
// shard, and it runs on the thread that creates the variable, before its creation returns.
//
// A checkpoint that was restored earlier may hold the value already. The function then is skipped
// if it says how (`skip`), else it runs all the same: it may draw random numbers that others draw,
// too, and those must not change.
//
// A handle: copies share the function. Thread safety: that of the function.
class VariableInitializer {
 public:
  // Shape: shard.shape, of the spec's dtype.
  using Make = std::function<Tensor(const ShardInfo& shard)>;
  // Leaves random streams where `make` would have left them. Need not make anything for that: a
  // stream that nobody else draws from may catch up when it is drawn from next.
  using Skip = std::function<void()>;

  template <class Fn>
  requires(std::is_invocable_r_v<Tensor, const Fn&, const ShardInfo&> &&
           !std::same_as<Fn, VariableInitializer>) VariableInitializer(Fn make, Skip skip = nullptr)
      : make_(std::move(make)), skip_(std::move(skip)) {}

  Tensor operator()(const ShardInfo& shard) const { return make_(shard); }
  bool can_skip() const { return skip_ != nullptr; }
  void skip() const { skip_(); }

 private:
  Make make_;
  Skip skip_;
};

}  // namespace distribute

using distribute::VariableAggregation;
using distribute::VariableSynchronization;

}  // namespace cohort
