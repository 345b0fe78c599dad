// Makes variables, independent of the strategy that stores them: the call behind the constructors
// of Variable.
#pragma once

#include <functional>
#include <memory>

#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/core/variable_spec.h"

namespace cohort::internal {

class PendingValue;
class VariableImpl;

// Makes a variable in the current strategy, or takes what the program's creators give instead.
// Inside `run`: COLLECTIVE, and replica 0's arguments are used for all.
// Errors: see Variable; what creators throw.
std::shared_ptr<VariableImpl> make_variable(const distribute::VariableSpec& spec,
                                            const distribute::VariableInitializer& initializer);
std::shared_ptr<VariableImpl> make_variable(const Tensor& initial_value,
                                            const distribute::VariableOptions& options);
// For a shape that is unknown until the function has run: it runs before the strategy is asked.
std::shared_ptr<VariableImpl> make_variable(const std::function<Tensor()>& initializer,
                                            const distribute::VariableOptions& options);

// The same for variables of the library's own, whose code relies on what it has asked for.
//
// `pending`: a value that was restored before the variable existed; may be nullptr. If the variable
// is mirrored, the initializer can be skipped, and no creator is there, it becomes the initial
// value and counts as restored. Else it is left for Trackable::child_appeared.
// Errors: also InvalidArgument (a creator gave a variable of another shape, dtype, synchronization
// or strategy); with `pending`, DataLoss (damaged checkpoint).
std::shared_ptr<VariableImpl> make_own_variable(const distribute::VariableSpec& spec,
                                                const distribute::VariableInitializer& initializer,
                                                const std::shared_ptr<PendingValue>& pending);
std::shared_ptr<VariableImpl> make_own_variable(const Tensor& initial_value,
                                                const distribute::VariableOptions& options);

// While it lives, the calling thread makes no variables, of whatever strategy: it is in a dataset
// function, which runs once for each worker and again when one comes back. make_variable throws an
// InvalidArgumentError.
class [[nodiscard]] ScopedDatasetFunction {
 public:
  ScopedDatasetFunction();
  ~ScopedDatasetFunction();
  ScopedDatasetFunction(const ScopedDatasetFunction&) = delete;
  ScopedDatasetFunction& operator=(const ScopedDatasetFunction&) = delete;

 private:
  const bool was_in_one_;
};

// For strategies: runs the initializer for one shard.
// Errors: InvalidArgument (an undefined result, or one of another shape or dtype than requested),
// what the initializer throws.
Tensor make_initial_value(const distribute::VariableSpec& spec,
                          const distribute::VariableInitializer& initializer,
                          const distribute::ShardInfo& shard);

}  // namespace cohort::internal
