// Describes a variable that has no value yet: its shape, its dtype, how it is stored, and the
// function that makes its initial value.
//
//   const VariableSpec spec{.shape = {1'000'000, 64}, .options = {.name = "table"}};
//   Variable table(spec, [](const ShardInfo& shard) { return at::zeros(shard.shape); });
//
// A strategy sees the spec first. So it can decide where the values will be, and run the function
// there, possibly for one shard at a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/optim/constraint.h"

namespace cohort {
namespace internal {
class PendingValue;
}
namespace distribute {

// How the components of a variable are kept consistent.
enum class VariableSynchronization {
  AUTO,      // ON_WRITE
  NONE,      // refused by strategies that mirror
  ON_WRITE,  // equal at all times: a write reaches every component (a mirrored variable)
  ON_READ,   // each replica writes its own; a cross-replica read aggregates (metrics, statistics)
};

// How per-replica values become one: the values that replicas assign to an ON_WRITE variable, and
// the components of an ON_READ variable when it is read.
enum class VariableAggregation { NONE, SUM, MEAN, ONLY_FIRST_REPLICA };

struct VariableOptions {
  std::string name = "Variable";
  // Whether layers list the variable as trainable and tapes record it; missing: true, unless the
  // variable is ON_READ or has a dtype that is not floating.
  std::optional<bool> trainable = std::nullopt;
  // To which the initial value is cast; missing: the value's own, or a VariableSpec's.
  std::optional<DType> dtype = std::nullopt;
  VariableSynchronization synchronization = VariableSynchronization::AUTO;
  VariableAggregation aggregation = VariableAggregation::NONE;
  // What optimizers do to the variable after each update. It gets the whole value, and on ps tasks
  // must be one of keras::constraints. Other writes do not call it.
  optim::Constraint constraint = {};
};

struct VariableSpec {
  std::vector<int64_t> shape = {};
  DType dtype = float32;
  VariableOptions options = {};
  // In the host's memory, whatever the devices of the replicas: for counters, which the host reads
  // in every step.
  bool in_host_memory = false;
  // Read in the dtype of an Autocast (variables/autocast.h).
  bool autocast = false;
};

// The part of a variable that is to be made: the box of size `shape` that begins at `offset`. Both
// have one number per dimension.
struct ShardInfo {
  std::vector<int64_t> shape;
  std::vector<int64_t> offset;

  // The whole of a variable of this shape.
  static ShardInfo whole(std::vector<int64_t> shape);
  // This part of a tensor that has the variable's shape; shares its memory.
  // Errors: InvalidArgument (a tensor of another shape, in which it does not lie).
  Tensor of(const Tensor& whole) const;
};

// Initial values that any task can make by itself, for whichever part of the variable it keeps.
struct KnownValues {
  enum class Kind { kConstant, kUniform, kNormal, kTruncatedNormal };
  Kind kind = Kind::kConstant;
  double first = 0;   // the constant, the lower bound, or the mean
  double second = 0;  // the upper bound, or the standard deviation
  // The place of the random stream at the variable's first element.
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint64_t position = 0;
};

// Makes a variable's initial value. The function runs later: a strategy runs it once per shard,
// whatever the number of replicas. If the strategy keeps values in this process, there is one
// shard, and the function runs on the thread that creates the variable, before the creation
// returns.
//
// If a checkpoint that was restored earlier holds the value already, the function is skipped,
// provided that it says how (`skip`). Otherwise it runs nevertheless: it may draw random numbers
// from a stream that others use, too, and theirs must not change.
//
// A handle: copies share the function. Thread safety: that of the function.
class VariableInitializer {
 public:
  // Shape: shard.shape, of the spec's dtype.
  using Make = std::function<Tensor(const ShardInfo& shard)>;
  // Leaves random streams in the state in which `make` would have left them. It need not compute
  // anything for that: a stream from which no other code draws may catch up at the next draw.
  using Skip = std::function<void()>;
  // Says what the values are, in place of `make`, and leaves random streams as `make` would have.
  // nullopt, where it cannot say: then it has changed nothing.
  using Describe = std::function<std::optional<KnownValues>()>;

  template <class Fn>
  requires(std::is_invocable_r_v<Tensor, const Fn&, const ShardInfo&> &&
           !std::same_as<Fn, VariableInitializer>)
      VariableInitializer(Fn make, Skip skip = nullptr, Describe describe = nullptr)
      : make_(std::move(make)), skip_(std::move(skip)), describe_(std::move(describe)) {}

  // For the library's own use: `make` reads the value of a checkpoint that was restored before.
  VariableInitializer(Make make, std::shared_ptr<const internal::PendingValue> restored)
      : make_(std::move(make)), restored_(std::move(restored)) {}

  Tensor operator()(const ShardInfo& shard) const { return make_(shard); }
  bool can_skip() const { return skip_ != nullptr; }
  void skip() const { skip_(); }
  std::optional<KnownValues> describe() const {
    return describe_ == nullptr ? std::nullopt : describe_();
  }
  // For the library's own use: the restored value, parts of which other processes can read
  // themselves; or nullptr.
  const std::shared_ptr<const internal::PendingValue>& restored() const { return restored_; }

 private:
  Make make_;
  Skip skip_;
  Describe describe_;
  std::shared_ptr<const internal::PendingValue> restored_;
};

// What is asked for where a variable is made. A creator (variables/variable_creator.h) may change
// any of it before it calls the next one.
struct COHORT_API VariableCreation {
  // Missing: that of the initial value, which is not made yet.
  std::optional<std::vector<int64_t>> shape = std::nullopt;
  // Makes the part of the initial value that it is asked for. If `shape` is missing it makes all of
  // it, whatever it is asked for.
  VariableInitializer initializer;
  VariableOptions options = {};
  // The ps task that is to keep the variable: "/job:ps/task:1". Empty: the strategy chooses. A
  // strategy overrides what the creators of its scope say, and heeds those around it, except for
  // variables that lie beside others, as slots do. Strategies without ps tasks refuse it.
  std::string device = "";

  // Makes all of the initial value, now; each call makes it again.
  Tensor initial_value() const;
  // Replaces initializer and shape. If options.dtype has a value, the tensor is cast to it.
  // Errors: InvalidArgument (an undefined tensor).
  void set_initial_value(const Tensor& value);
};

}  // namespace distribute

using distribute::VariableAggregation;
using distribute::VariableCreation;
using distribute::VariableOptions;
using distribute::VariableSynchronization;

}  // namespace cohort
