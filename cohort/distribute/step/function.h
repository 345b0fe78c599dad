// A step with declared inputs. A call with other arguments is an error that names the argument,
// before the step runs.
//
//   auto train_step = function(
//       [&](const PerReplica<Structure>& batch) { return strategy.run(step_fn, batch); },
//       {.input_signature = {dist_dataset.element_spec()}});
//   train_step(iterator.get_next());
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/spec.h"
#include "cohort/distribute/step/function_graphs.h"
#include "cohort/distribute/values/values.h"

namespace cohort {

// What an argument must fit: a structure (which may be a single tensor), or one component per
// replica.
using ArgumentSpec = std::variant<StructureSpec, distribute::PerReplicaSpec>;

// One spec per argument, in order: {spec} or {first, second}. Without specs (the default, and
// nullopt) calls are not checked.
class InputSignature {
 public:
  InputSignature() = default;
  InputSignature(std::nullopt_t) {}
  // Accepts one brace or two. This is a class of its own because a vector in an optional needs two.
  InputSignature(std::initializer_list<ArgumentSpec> specs)
      : InputSignature(std::vector<ArgumentSpec>(specs)) {}
  InputSignature(std::vector<ArgumentSpec> specs) : specs_(std::move(specs)) {}
  InputSignature(std::optional<std::vector<ArgumentSpec>> specs) : specs_(std::move(specs)) {}

  const std::optional<std::vector<ArgumentSpec>>& specs() const { return specs_; }

 private:
  std::optional<std::vector<ArgumentSpec>> specs_;
};

struct FunctionOptions {
  InputSignature input_signature = {};
  // Whether the steps that it runs (Strategy::run) are recorded and replayed: see
  // distribute::StepGraphs. Each call of the function makes the same calls of run, in one order.
  bool capture = false;
};

namespace internal {

// Errors: InvalidArgument (names the argument, the place in it, what was expected and what was
// given).
COHORT_API void check_argument(const ArgumentSpec& spec, size_t index, const Structure& argument);
COHORT_API void check_argument(const ArgumentSpec& spec, size_t index,
                               const distribute::PerReplica<Structure>& argument);
COHORT_API void check_argument_count(size_t expected, size_t found);
[[noreturn]] COHORT_API void throw_cannot_check(size_t index);

template <class T>
void check_any_argument(const ArgumentSpec& spec, size_t index, const T& argument) {
  if constexpr (std::is_convertible_v<const T&, Structure>) {
    check_argument(spec, index, Structure(argument));
  } else {
    throw_cannot_check(index);
  }
}
template <class T>
void check_any_argument(const ArgumentSpec& spec, size_t index,
                        const distribute::PerReplica<T>& argument) {
  if constexpr (std::is_same_v<T, Structure>) {
    check_argument(spec, index, argument);
  } else if constexpr (std::is_convertible_v<const T&, Structure>) {
    check_argument(spec, index, distribute::internal_values::to_structures(argument));
  } else {
    throw_cannot_check(index);
  }
}

}  // namespace internal

// Made by function(). Thread safety: that of the function it holds.
template <class Fn>
class Function {
 public:
  Function(Fn fn, FunctionOptions options) : fn_(std::move(fn)), options_(std::move(options)) {
    if (options_.capture) graphs_ = internal::make_function_graphs();
  }

  // Errors: InvalidArgument (the arguments do not fit the signature), what the function throws.
  template <class... Args>
  decltype(auto) operator()(Args&&... args) const {
    if (input_signature()) check(args...);
    const internal::ScopedFunctionGraphs captured(graphs_.get());
    return fn_(std::forward<Args>(args)...);
  }

  const std::optional<std::vector<ArgumentSpec>>& input_signature() const {
    return options_.input_signature.specs();
  }

 private:
  template <class... Args>
  void check(const Args&... args) const {
    const std::vector<ArgumentSpec>& signature = *input_signature();
    internal::check_argument_count(signature.size(), sizeof...(Args));
    size_t index = 0;
    (
        [&] {
          internal::check_any_argument(signature[index], index, args);
          ++index;
        }(),
        ...);
  }

  Fn fn_;
  FunctionOptions options_;
  std::shared_ptr<internal::FunctionGraphs> graphs_;
};

// A function that calls fn with arguments that fit the signature, and refuses others.
template <class Fn>
Function<std::decay_t<Fn>> function(Fn&& fn, FunctionOptions options = {}) {
  return {std::forward<Fn>(fn), std::move(options)};
}

}  // namespace cohort
