// How `Strategy::run` calls a step function: takes arguments apart per replica, converts them to
// what the function declares, and makes results safe to leave the replica. Templates only; the
// work is done by type-erased code behind StrategyCore::run.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/callable_traits.h"
#include "cohort/core/export.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/values.h"

namespace cohort::internal {

// What one replica runs. Kept alive by whoever still runs it.
class COHORT_API RunFrame {
 public:
  virtual ~RunFrame() = default;
  virtual void call(distribute::ReplicaContext& context, size_t local_replica) = 0;
};

[[noreturn]] COHORT_API void throw_wrong_component_count(size_t components, size_t replicas);
// A tensor without its autograd graph, the same storage.
COHORT_API Tensor detached(const Tensor& tensor);
COHORT_API Structure detached(const Structure& structure);
template <class T>
T detached(T value) {
  return value;
}
// All of them first, since each may hold any other.
template <class T>
std::vector<T> detached(std::vector<T> values);
template <class... T>
std::tuple<T...> detached(std::tuple<T...> values);
template <class A, class B>
std::pair<A, B> detached(std::pair<A, B> value);

template <class T>
std::vector<T> detached(std::vector<T> values) {
  for (T& value : values) value = detached(value);
  return values;
}
template <class... T>
std::tuple<T...> detached(std::tuple<T...> values) {
  std::apply([](auto&... value) { ((value = detached(value)), ...); }, values);
  return values;
}
template <class A, class B>
std::pair<A, B> detached(std::pair<A, B> value) {
  return {detached(std::move(value.first)), detached(std::move(value.second))};
}

template <class Arg>
decltype(auto) component(const Arg& arg, size_t) {
  return (arg);
}
template <class T>
const T& component(const distribute::PerReplica<T>& arg, size_t i) {
  return arg.value(i);
}
template <class T>
const T& component(const distribute::Mirrored<T>& arg, size_t i) {
  return arg.value(i);
}
template <class Arg>
void check_components(const Arg&, size_t) {}
template <class T>
void check_components(const distribute::PerReplica<T>& arg, size_t replicas) {
  if (arg.size() != replicas) throw_wrong_component_count(arg.size(), replicas);
}
template <class T>
void check_components(const distribute::Mirrored<T>& arg, size_t replicas) {
  if (arg.size() != replicas) throw_wrong_component_count(arg.size(), replicas);
}

template <class Parameter, class Value>
decltype(auto) convert_argument(const Value& value) {
  if constexpr (std::is_same_v<Value, Structure> && std::is_same_v<Parameter, Tensor>) {
    return value.tensor();
  } else if constexpr (std::is_same_v<Value, Structure> &&
                       std::is_same_v<Parameter, StringTensor>) {
    return value.strings();
  } else if constexpr (std::is_same_v<Value, Parameter>) {
    return (value);
  } else {
    static_assert(std::is_convertible_v<const Value&, Parameter>,
                  "the step function's parameter cannot be made from the argument of run");
    return static_cast<Parameter>(value);
  }
}

[[noreturn]] COHORT_API void throw_wrong_member_count(const Structure& batch, size_t parameters);

// Calls fn(first..., members of `batch`...), as many members as there are Parameters.
template <class Parameters, class Fn, size_t... kIndex, class... First>
decltype(auto) call_unpacked(Fn& fn, const Structure& batch, std::index_sequence<kIndex...>,
                             First&... first) {
  if (batch.is_leaf() || batch.size() != sizeof...(kIndex)) {
    throw_wrong_member_count(batch, sizeof...(kIndex));
  }
  return fn(first..., convert_argument<std::tuple_element_t<kIndex, Parameters>>(batch[kIndex])...);
}
template <class Parameters, class Fn, size_t... kIndex, class... First, class... Values>
decltype(auto) call_each(Fn& fn, std::index_sequence<kIndex...>, std::tuple<First&...> first,
                         const Values&... values) {
  return std::apply(
      [&](auto&... context) -> decltype(auto) {
        return fn(context...,
                  convert_argument<std::tuple_element_t<kIndex, Parameters>>(values)...);
      },
      first);
}

template <class Tuple>
struct DropFirst;
template <class First, class... Rest>
struct DropFirst<std::tuple<First, Rest...>> {
  using type = std::tuple<Rest...>;
};

// fn's parameters after the optional ReplicaContext&.
template <class Fn>
struct StepParameters {
  using All = typename CallableTraits<Fn>::Arguments;
  static constexpr bool takes_context() {
    if constexpr (std::tuple_size_v<All> == 0) {
      return false;
    } else {
      return std::is_same_v<std::tuple_element_t<0, All>, distribute::ReplicaContext>;
    }
  }
  template <bool kDrop, class Tuple>
  struct Rest {
    using type = Tuple;
  };
  template <class Tuple>
  struct Rest<true, Tuple> {
    using type = typename DropFirst<Tuple>::type;
  };
  using type = typename Rest<takes_context(), All>::type;
};

// Calls the step function with one replica's arguments.
template <class Fn, class... Values>
decltype(auto) call_step(Fn& fn, distribute::ReplicaContext& context, const Values&... values) {
  if constexpr (HasCallableTraits<Fn>) {
    using Parameters = typename StepParameters<Fn>::type;
    constexpr size_t kCount = std::tuple_size_v<Parameters>;
    using Indices = std::make_index_sequence<kCount>;
    constexpr bool kContext = StepParameters<Fn>::takes_context();
    if constexpr (kCount == sizeof...(Values)) {
      if constexpr (kContext) {
        return call_each<Parameters>(fn, Indices(), std::tie(context), values...);
      } else {
        return call_each<Parameters>(fn, Indices(), std::tuple<>(), values...);
      }
    } else {
      static_assert(sizeof...(Values) == 1 && (std::is_same_v<Values, Structure> && ...),
                    "run got another number of arguments than the step function takes");
      if constexpr (kContext) {
        return call_unpacked<Parameters>(fn, values..., Indices(), context);
      } else {
        return call_unpacked<Parameters>(fn, values..., Indices());
      }
    }
  } else {
    static_assert(std::is_invocable_v<Fn&, const Values&...>,
                  "a generic step function is called with run's arguments as they are");
    return fn(values...);
  }
}

template <class Fn, class... Args>
using StepResult = std::remove_cvref_t<decltype(call_step(
    std::declval<Fn&>(), std::declval<distribute::ReplicaContext&>(),
    component(std::declval<const Args&>(), size_t{0})...))>;

// Arguments that a step keeps a copy of, since they are cheap to copy and a replica that was given
// up may outlast the caller's. Others are kept by reference where they are lvalues.
template <class T>
inline constexpr bool kIsHandle =
    std::is_arithmetic_v<T> || std::is_same_v<T, Tensor> || std::is_same_v<T, Structure> ||
    std::is_same_v<T, distribute::Variable>;
template <class T>
inline constexpr bool kIsHandle<distribute::PerReplica<T>> = kIsHandle<T>;
template <class T>
inline constexpr bool kIsHandle<distribute::Mirrored<T>> = kIsHandle<T>;
template <class Arg>
using KeptArgument =
    std::conditional_t<kIsHandle<std::remove_cvref_t<Arg>>, std::remove_cvref_t<Arg>, Arg>;

// The call of one step: the function by reference where it is an lvalue, else owned.
template <class Fn, class... Args>
class StepFrame final : public RunFrame {
 public:
  using Callable = std::remove_reference_t<Fn>;
  using Result = StepResult<Callable, std::remove_cvref_t<Args>...>;

  StepFrame(size_t replicas, Fn&& fn, Args&&... args)
      : fn_(std::forward<Fn>(fn)), args_(std::forward<Args>(args)...) {
    std::apply([&](const auto&... arg) { (check_components(arg, replicas), ...); }, args_);
    if constexpr (!std::is_void_v<Result>) results_.resize(replicas);
  }

  void call(distribute::ReplicaContext& context, size_t i) override {
    std::apply(
        [&](const auto&... arg) {
          if constexpr (std::is_void_v<Result>) {
            call_step<Callable>(fn_, context, component(arg, i)...);
          } else {
            results_[i].emplace(detached(call_step<Callable>(fn_, context, component(arg, i)...)));
          }
        },
        args_);
  }

  // PerReplica<Result>; a Variable comes back as itself.
  auto take_results() {
    if constexpr (std::is_same_v<Result, distribute::Variable>) {
      for (const auto& result : results_) {
        if (!(*result == *results_[0])) {
          throw InvalidArgumentError("the replicas of a step returned different variables");
        }
      }
      return *results_[0];
    } else {
      typename distribute::PerReplica<Result>::Values values;
      for (auto& result : results_) values.push_back(std::move(*result));
      return distribute::PerReplica<Result>(std::move(values));
    }
  }

 private:
  struct Nothing {};
  Fn fn_;  // a reference for lvalues
  std::tuple<KeptArgument<Args>...> args_;
  c10::SmallVector<std::optional<std::conditional_t<std::is_void_v<Result>, Nothing, Result>>, 4>
      results_;
};

}  // namespace cohort::internal
