#include "cohort/distribute/variables/make_variable.h"

#include <c10/core/ScalarType.h>

#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/profiler/tracing.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/variables/creators.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/ops/random.h"
#include "cohort/train/objects/pending_value.h"

namespace cohort::internal {
namespace {

using distribute::ShardInfo;
using distribute::VariableAggregation;
using distribute::VariableCreation;
using distribute::VariableInitializer;
using distribute::VariableOptions;
using distribute::VariableSpec;
using distribute::VariableSynchronization;

thread_local bool in_dataset_function = false;

const char* aggregation_name(VariableAggregation aggregation) {
  constexpr const char* kNames[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
  const auto number = static_cast<size_t>(aggregation);
  return number < std::size(kNames) ? kNames[number] : "that does not exist";
}

void check_not_in_dataset_function(const std::string& name) {
  if (!in_dataset_function) return;
  throw InvalidArgumentError(str("a dataset function makes variable ", quoted(name),
                                 "; make variables before, under the strategy's scope, not in "
                                 "functions that make a worker's input"));
}

// Numbers that were cast may be none.
void check_enumerators(const VariableOptions& options) {
  const auto check = [&](const char* what, int number, int last) {
    if (number >= 0 && number <= last) return;
    throw InvalidArgumentError(str("variable ", quoted(options.name), ": ", what, " ", number,
                                   " is none of ", what, "'s enumerators"));
  };
  check("VariableSynchronization", static_cast<int>(options.synchronization),
        static_cast<int>(VariableSynchronization::ON_READ));
  check("VariableAggregation", static_cast<int>(options.aggregation),
        static_cast<int>(VariableAggregation::ONLY_FIRST_REPLICA));
}

bool is_trainable(const VariableOptions& options, DType dtype) {
  const bool floating = at::isFloatingType(dtype) || at::isComplexType(dtype);
  const bool on_read = options.synchronization == VariableSynchronization::ON_READ;
  return options.trainable.value_or(floating && !on_read);
}

// Fills in what is left open.
// Errors: InvalidArgument (no enumerator; trainable, but not of a floating dtype).
VariableSpec resolve(VariableSpec spec) {
  VariableOptions& options = spec.options;
  check_enumerators(options);
  if (options.synchronization == VariableSynchronization::AUTO) {
    options.synchronization = VariableSynchronization::ON_WRITE;
  }
  const bool floating = at::isFloatingType(spec.dtype) || at::isComplexType(spec.dtype);
  const bool on_read = options.synchronization == VariableSynchronization::ON_READ;
  options.trainable = is_trainable(options, spec.dtype);
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

VariablePtr create_restored(StrategyCore& core, const VariableSpec& spec,
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

// What a program or the library asks for.
struct Request {
  VariableCreation creation;
  // What the initializer makes; missing where that is known only afterwards.
  std::optional<DType> dtype = std::nullopt;
  std::shared_ptr<PendingValue> pending = nullptr;
  bool in_host_memory = false;
  bool autocast = false;
};

// The spec that creators have made of it. Shapes and dtypes that are left open are those of the
// initial value.
VariableSpec spec_of(const VariableCreation& creation, VariableInitializer& initializer,
                     const std::optional<DType>& makes) {
  VariableOptions options = creation.options;
  const std::optional<DType> dtype = std::exchange(options.dtype, std::nullopt);
  if (creation.shape && makes) {
    const bool cast = dtype && *dtype != *makes;
    if (cast) {
      initializer = [make = initializer, to = *dtype](const ShardInfo& shard) {
        const Tensor value = make(shard);
        return value.defined() ? value.to(to) : value;
      };
    }
    return {.shape = *creation.shape, .dtype = cast ? *dtype : *makes, .options = options};
  }
  Tensor value = creation.initial_value();
  if (!value.defined()) {
    throw InvalidArgumentError(
        str("variable '", options.name, "' needs an initial value, but got an undefined tensor"));
  }
  if (dtype) value = value.to(*dtype);
  initializer = [value](const ShardInfo& shard) { return shard.of(value); };
  return {.shape = value.sizes().vec(), .dtype = value.scalar_type(), .options = options};
}

VariablePtr make_in(StrategyCore& core, const Request& request, VariableCreation creation) {
  VariableInitializer initializer = creation.initializer;
  VariableSpec spec = resolve(spec_of(creation, initializer, request.dtype));
  spec.in_host_memory = request.in_host_memory;
  spec.autocast = request.autocast;
  const bool mirrored = spec.options.synchronization == VariableSynchronization::ON_WRITE;
  if (request.pending != nullptr && mirrored && initializer.can_skip()) {
    return create_restored(core, spec, initializer, request.pending);
  }
  if (creation.device.empty()) return core.create_variable(spec, initializer);
  return core.create_variable_on(creation.device, spec, initializer);
}

// Outside of a replica's own context.
VariablePtr create_here(StrategyCore& core, Request request) {
  if (has_open_creator(current_creators())) request.pending = nullptr;
  const std::string what = str("variable ", quoted(request.creation.options.name));
  return core.group().attempt(what, [&] {
    return call_creators(nullptr, core, request.creation, [&](VariableCreation creation) {
      return make_in(core, request, std::move(creation));
    });
  });
}

// The name of the call, which replicas compare when they meet: what their requests must agree on.
// Initial values may differ: the first replica's counts.
std::string agreed_text(const VariableCreation& creation, const std::optional<DType>& makes) {
  const VariableOptions& options = creation.options;
  const std::optional<DType> dtype = options.dtype ? options.dtype : makes;
  const bool on_read = options.synchronization == VariableSynchronization::ON_READ;
  const bool trainable = is_trainable(options, dtype.value_or(float32));
  return str("the creation of variable ", quoted(options.name), ", ",
             dtype ? str(dtype_name(*dtype), " ") : "",
             creation.shape ? shape_str(*creation.shape) : "of its initial value's shape",
             trainable ? "" : ", not trainable", on_read ? ", ON_READ" : ", ON_WRITE",
             " with aggregation ", aggregation_name(options.aggregation));
}

// In a step every replica comes here with its own request, and the creators that it has opened in
// the step; replica 0's makes the variable.
VariablePtr create(Request request) {
  check_not_in_dataset_function(request.creation.options.name);
  const auto owner = current_core();
  StrategyCore& core = *owner;
  Replica* replica = current_replica();
  if (core.is_default() || replica == nullptr) return create_here(core, std::move(request));

  const Creators around_step = creators_around_step(*replica);
  const bool has_own = current_creators() != around_step;
  return call_creators(around_step.get(), core, request.creation, [&](VariableCreation creation) {
    struct Frame {
      Request request;
      VariablePtr result;
    } mine{{std::move(creation), request.dtype, has_own ? nullptr : request.pending,
            request.in_host_memory, request.autocast},
           {}};
    const std::string call = agreed_text(mine.request.creation, request.dtype);
    replica->merge(call.c_str(), &mine, [&](std::span<void* const> all) {
      // Not the stream of the replica that happened to come last.
      const auto generator = make_stream(next_seed());
      ScopedGenerator scoped(generator);
      const VariablePtr result = create_here(core, static_cast<Frame*>(all[0])->request);
      for (void* one : all) static_cast<Frame*>(one)->result = result;
    });
    return mine.result;
  });
}

Request request_of(const VariableSpec& spec, const VariableInitializer& initializer) {
  if (spec.options.dtype && *spec.options.dtype != spec.dtype) {
    throw InvalidArgumentError(str("variable '", spec.options.name, "': its spec says dtype ",
                                   dtype_name(spec.dtype), ", its options ",
                                   dtype_name(*spec.options.dtype), "; name it once"));
  }
  Request request{{.shape = spec.shape, .initializer = initializer, .options = spec.options},
                  spec.dtype};
  request.creation.options.dtype = spec.dtype;
  request.in_host_memory = spec.in_host_memory;
  request.autocast = spec.autocast;
  return request;
}

void check_dense(const std::string& name, const Tensor& value) {
  if (!value.defined() || value.layout() == at::kStrided) return;
  throw InvalidArgumentError(internal::str("variable '", name, "' cannot be made of ",
                                           describe(value), " of layout ", value.layout(),
                                           "; variables are dense: make it so with to_dense()"));
}

Request request_of(const Tensor& value, const VariableOptions& options) {
  check_dense(options.name, value);
  Request request{{.initializer = [value](const ShardInfo&) { return value; }, .options = options}};
  if (!value.defined()) return request;
  request.creation.shape = value.sizes().vec();
  request.creation.initializer = [value](const ShardInfo& shard) { return shard.of(value); };
  request.dtype = value.scalar_type();
  if (!options.dtype) request.creation.options.dtype = request.dtype;
  return request;
}

// Checks a variable that creators may have exchanged. Errors: InvalidArgument (it is not as was
// asked for).
void check_as_asked(const VariableImpl& made, const VariableSpec& spec) {
  const bool on_read = spec.options.synchronization == VariableSynchronization::ON_READ;
  const bool is_on_read = made.options().synchronization == VariableSynchronization::ON_READ;
  const auto core = current_core();
  if (made.shape() == at::IntArrayRef(spec.shape) && made.dtype() == spec.dtype &&
      on_read == is_on_read && made.core() == core) {
    return;
  }
  const auto text = [](DType dtype, at::IntArrayRef shape, bool is_read,
                       const StrategyCore& owner) {
    return str(dtype_name(dtype), " ", shape_str(shape), ", ", is_read ? "ON_READ" : "ON_WRITE",
               ", of a ", owner.name());
  };
  throw InvalidArgumentError(
      str("variable ", quoted(spec.options.name), " is to be ",
          text(spec.dtype, spec.shape, on_read, *core), ", but the creator of a ",
          "variable_creator_scope made or returned variable ", quoted(made.name()), ", which is ",
          text(made.dtype(), made.shape(), is_on_read, *made.core()),
          "; who asked for it computes with what it asked for: change the name, the value and "
          "whether it is trainable alone"));
}

}  // namespace

VariablePtr make_variable(const VariableSpec& spec, const VariableInitializer& initializer) {
  return create(request_of(spec, initializer));
}

VariablePtr make_variable(const Tensor& initial_value, const VariableOptions& options) {
  return create(request_of(initial_value, options));
}

VariablePtr make_variable(const std::function<Tensor()>& initializer,
                          const VariableOptions& options) {
  return create(Request{{.initializer = [initializer](const ShardInfo&) { return initializer(); },
                         .options = options}});
}

VariablePtr make_own_variable(const VariableSpec& spec, const VariableInitializer& initializer,
                              const std::shared_ptr<PendingValue>& pending) {
  Request request = request_of(spec, initializer);
  request.pending = pending;
  const VariablePtr made = create(std::move(request));
  check_as_asked(*made, spec);
  return made;
}

VariablePtr make_own_variable(const Tensor& initial_value, const VariableOptions& options) {
  const VariablePtr made = make_variable(initial_value, options);
  check_as_asked(*made, {.shape = initial_value.sizes().vec(),
                         .dtype = options.dtype.value_or(initial_value.scalar_type()),
                         .options = options});
  return made;
}

ScopedDatasetFunction::ScopedDatasetFunction()
    : was_in_one_(std::exchange(in_dataset_function, true)) {}
ScopedDatasetFunction::~ScopedDatasetFunction() { in_dataset_function = was_in_one_; }

Tensor make_initial_value(const VariableSpec& spec, const VariableInitializer& initializer,
                          const ShardInfo& shard) {
  const Tracing for_real(false);  // a call that only looks at forms may make it, but it is to last
  const Tensor value = initializer(shard);
  check_dense(spec.options.name, value);
  if (value.defined() && value.sizes() == shard.shape && value.scalar_type() == spec.dtype) {
    return value.detach();
  }
  throw InvalidArgumentError(str("the initializer of variable '", spec.options.name, "' made ",
                                 value.defined() ? describe(value) : "an undefined tensor",
                                 ", but was asked for ", dtype_name(spec.dtype), " ",
                                 shape_str(shard.shape)));
}

}  // namespace cohort::internal
