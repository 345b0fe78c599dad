// How `Strategy::run` calls a step function: it takes each replica's components out of the
// arguments, calls the function with them (core/structure_call.h), and detaches the results.
// Templates only; the work is done by type-erased code behind StrategyCore::run.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure_call.h"
#include "cohort/distribute/component.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/values.h"

namespace cohort::internal {

// What one replica runs. Kept alive by every thread that still runs it.
class COHORT_API RunFrame {
 public:
  virtual ~RunFrame() = default;
  virtual void call(distribute::ReplicaContext& context, size_t local_replica) = 0;
};

[[noreturn]] COHORT_API void throw_wrong_component_count(size_t components, size_t replicas);
// The tensor without its autograd graph, sharing its storage.
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
void check_components(const Arg&, size_t) {}
template <class T>
void check_components(const distribute::PerReplica<T>& arg, size_t replicas) {
  if (arg.size() != replicas) throw_wrong_component_count(arg.size(), replicas);
}
template <class T>
void check_components(const distribute::Mirrored<T>& arg, size_t replicas) {
  if (arg.size() != replicas) throw_wrong_component_count(arg.size(), replicas);
}

inline constexpr CallSite kStepSite{
    .function = "the step function", .argument = "argument", .input = "the argument of run"};

template <class Fn, class... Args>
using StepResult = std::remove_cvref_t<decltype(call_function(
    std::declval<Fn&>(), kStepSite, std::declval<distribute::ReplicaContext&>(),
    component(std::declval<const Args&>(), size_t{0})...))>;

// Arguments of which a step keeps a copy, since they are cheap to copy, and a replica on which
// `run` has given up may outlive the caller's. Others are kept by reference if they are lvalues.
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

// The call of one step. The function is kept by reference if it is an lvalue, else owned.
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
            call_function<Callable>(fn_, kStepSite, context, component(arg, i)...);
          } else {
            results_[i].emplace(
                detached(call_function<Callable>(fn_, kStepSite, context, component(arg, i)...)));
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
