#include "cohort/distribute/variable_creation.h"

#include <c10/core/ScalarType.h>

#include <span>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/text.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/distribute/variable_impl.h"
#include "cohort/ops/random.h"
#include "cohort/train/pending_value.h"

namespace cohort::internal {
namespace {

using distribute::ReplicaContext;
using distribute::ShardInfo;
using distribute::Strategy;
using distribute::VariableInitializer;
using distribute::VariableOptions;
using distribute::VariableSpec;
using distribute::VariableSynchronization;

thread_local bool in_dataset_function = false;

void check_not_in_dataset_function(const std::string& name) {
  if (!in_dataset_function) return;
  throw InvalidArgumentError(str("a dataset function makes variable ", quoted(name),
                                 "; make variables before, under the strategy's scope, not in "
                                 "functions that make a worker's input"));
}

using Create = FunctionRef<std::shared_ptr<VariableImpl>(StrategyCore&)>;

// Fills in what is left open. Errors: InvalidArgument (trainable, but not of a floating dtype; two
// dtypes).
VariableSpec resolve(VariableSpec spec) {
  VariableOptions& options = spec.options;
  if (options.dtype && *options.dtype != spec.dtype) {
    throw InvalidArgumentError(str("variable '", options.name, "': its spec says dtype ",
                                   dtype_name(spec.dtype), ", its options ",
                                   dtype_name(*options.dtype), "; name it once"));
  }
  if (options.synchronization == VariableSynchronization::AUTO) {
    options.synchronization = VariableSynchronization::ON_WRITE;
  }
  const bool floating = at::isFloatingType(spec.dtype) || at::isComplexType(spec.dtype);
  const bool on_read = options.synchronization == VariableSynchronization::ON_READ;
  if (!options.trainable) options.trainable = floating && !on_read;
  if (*options.trainable && !floating) {
    throw InvalidArgumentError(str("variable '", options.name, "' of dtype ",
                                   dtype_name(spec.dtype),
                                   " cannot be trainable; gradients need a floating dtype"));
  }
  if (*options.trainable && on_read) {
    throw InvalidArgumentError(str("variable '", options.name,
                                   "': ON_READ variables differ between replicas and cannot be "
                                   "trainable"));
  }
  return spec;
}

// In a step every replica comes here with its own `create`; replica 0's makes the variable.
std::shared_ptr<VariableImpl> create_in_context(Create create) {
  const auto owner = current_core();
  StrategyCore& core = *owner;
  ReplicaContext* replica = distribute::get_replica_context();
  if (core.is_default() || replica == nullptr) return create(core);
  struct Frame {
    Create create;
    std::shared_ptr<VariableImpl> result;
  } mine{create, nullptr};
  replica->merge("creation of a variable", &mine, [&](Strategy&, std::span<void* const> all) {
    // Not the stream of the replica that happened to come last.
    const auto generator = make_stream(next_seed());
    ScopedGenerator scoped(generator);
    const auto result = static_cast<Frame*>(all[0])->create(core);
    for (void* one : all) static_cast<Frame*>(one)->result = result;
  });
  return mine.result;
}

std::shared_ptr<VariableImpl> create_restored(StrategyCore& core, const VariableSpec& spec,
                                              const VariableInitializer& initializer,
                                              const std::shared_ptr<PendingValue>& pending) {
  const auto read = [pending](const ShardInfo& shard) {
    return pending->read({.start = shard.offset, .length = shard.shape});
  };
  const auto result = core.create_variable(spec, VariableInitializer(read, pending));
  initializer.skip();
  pending->hand_over(*result);
  return result;
}

}  // namespace

std::shared_ptr<VariableImpl> create_variable(const VariableSpec& spec,
                                              const VariableInitializer& initializer,
                                              const std::shared_ptr<PendingValue>& pending) {
  check_not_in_dataset_function(spec.options.name);
  return create_in_context([&](StrategyCore& core) {
    const VariableSpec resolved = resolve(spec);
    const bool mirrored = resolved.options.synchronization == VariableSynchronization::ON_WRITE;
    if (pending != nullptr && mirrored && initializer.can_skip()) {
      return create_restored(core, resolved, initializer, pending);
    }
    return core.create_variable(resolved, initializer);
  });
}

std::shared_ptr<VariableImpl> create_variable(const std::function<Tensor()>& initializer,
                                              const VariableOptions& options) {
  check_not_in_dataset_function(options.name);
  return create_in_context([&](StrategyCore& core) {
    Tensor value = initializer();
    if (value.defined() && options.dtype) value = value.to(*options.dtype);
    if (!value.defined()) {
      throw InvalidArgumentError(
          str("variable '", options.name, "' needs an initial value, but got an undefined tensor"));
    }
    const VariableSpec spec{
        .shape = value.sizes().vec(), .dtype = value.scalar_type(), .options = options};
    return core.create_variable(resolve(spec),
                                [value](const ShardInfo& shard) { return shard.of(value); });
  });
}

ScopedDatasetFunction::ScopedDatasetFunction()
    : was_in_one_(std::exchange(in_dataset_function, true)) {}
ScopedDatasetFunction::~ScopedDatasetFunction() { in_dataset_function = was_in_one_; }

Tensor make_initial_value(const VariableSpec& spec, const VariableInitializer& initializer,
                          const ShardInfo& shard) {
  const Tensor value = initializer(shard);
  if (value.defined() && value.sizes() == shard.shape && value.scalar_type() == spec.dtype) {
    return value.detach();
  }
  throw InvalidArgumentError(str("the initializer of variable '", spec.options.name, "' made ",
                                 value.defined() ? describe(value) : "an undefined tensor",
                                 ", but was asked for ", dtype_name(spec.dtype), " ",
                                 shape_str(shard.shape)));
}

}  // namespace cohort::internal

namespace cohort::distribute {

ShardInfo ShardInfo::whole(std::vector<int64_t> shape) {
  std::vector<int64_t> offset(shape.size(), 0);
  return {std::move(shape), std::move(offset)};
}

Tensor ShardInfo::of(const Tensor& whole) const {
  Tensor part = whole;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto dimension = static_cast<int64_t>(d);
    if (part.size(dimension) == shape[d]) continue;
    part = part.narrow(dimension, offset[d], shape[d]);
  }
  return part;
}

}  // namespace cohort::distribute
