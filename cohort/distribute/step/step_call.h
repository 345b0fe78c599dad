// How `Strategy::run` calls a step function: it takes each replica's components out of the
// arguments, calls the function with them (core/structure_call.h), and detaches the results.
// Templates only; the work is done by type-erased code behind StrategyCore::run. What depends on
// the function alone is kept small, since a program has many step functions: what they share
// depends on the types of the result or of the arguments.
#pragma once

#include <array>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure_call.h"
#include "cohort/distribute/core/run_options.h"
#include "cohort/distribute/values/component.h"
#include "cohort/distribute/values/values.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort::distribute {
class ReplicaContext;
}

namespace cohort::internal {

class StrategyCore;

// What one replica runs. Kept alive by every thread that still runs it.
class COHORT_API RunFrame {
 public:
  virtual ~RunFrame() = default;
  virtual void call(distribute::ReplicaContext& context, size_t local_replica) = 0;

  // In memory of the thread's call before (core/kept_blocks.h), but for functions and arguments
  // that are aligned more strictly.
  static void* operator new(size_t bytes);
  static void operator delete(void* frame, size_t bytes) noexcept;
  static void* operator new(size_t bytes, std::align_val_t alignment);
  static void operator delete(void* frame, size_t bytes, std::align_val_t alignment) noexcept;
};
COHORT_API std::shared_ptr<RunFrame> own_frame(RunFrame* frame);

[[noreturn]] COHORT_API void throw_different_variables();
[[noreturn]] COHORT_API void throw_no_step_function();
// Checks a std::function or a pointer, which may be empty.
template <class Fn>
void check_is_function(const Fn& fn) {
  constexpr bool may_be_empty = std::is_pointer_v<Fn> || std::is_member_pointer_v<Fn> || requires {
    fn.operator bool();
    fn == nullptr;
  };
  if constexpr (may_be_empty) {
    if (fn == nullptr) throw_no_step_function();
  }
}
// The tensor without its autograd graph, sharing its storage.
COHORT_API Tensor detached(const Tensor& tensor);
COHORT_API Structure detached(const Structure& structure);
template <class T>
T detached(T value);
// All of them first, since each may hold any other.
template <class T>
std::vector<T> detached(std::vector<T> values);
template <class... T>
std::tuple<T...> detached(std::tuple<T...> values);
template <class A, class B>
std::pair<A, B> detached(std::pair<A, B> value);
template <class T, size_t kSize>
std::array<T, kSize> detached(std::array<T, kSize> values);

template <class T>
inline constexpr bool kIsStructureType =
    std::is_class_v<T> && !std::is_same_v<T, StringTensor> &&
    std::is_convertible_v<const T&, Structure> && std::is_convertible_v<const Structure&, T>;

template <class T>
T detached(T value) {
  if constexpr (std::is_base_of_v<Tensor, T>) {
    static_cast<Tensor&>(value) = detached(static_cast<const Tensor&>(value));
  } else if constexpr (kIsStructureType<T>) {  // such as RaggedTensor
    return static_cast<T>(detached(static_cast<Structure>(value)));
  } else if constexpr (kFieldCount < T >> 0) {
    with_fields(value, [](auto&... fields) { ((fields = detached(std::move(fields))), ...); });
  }
  return value;
}
template <class T>
std::vector<T> detached(std::vector<T> values) {
  for (auto&& value : values) value = detached(T(std::move(value)));  // auto&&: vector<bool>
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

template <class T, size_t kSize>
std::array<T, kSize> detached(std::array<T, kSize> values) {
  for (T& value : values) value = detached(std::move(value));
  return values;
}

inline constexpr const char* kArgumentOfRun = "an argument of run";

template <class Arg>
void check_components(const Arg&, size_t) {}
template <class T>
void check_components(const distribute::PerReplica<T>& arg, size_t replicas) {
  if (arg.size() != replicas) throw_wrong_component_count(kArgumentOfRun, arg.size(), replicas);
}
template <class T>
void check_components(const distribute::Mirrored<T>& arg, size_t replicas) {
  if (arg.size() != replicas) throw_wrong_component_count(kArgumentOfRun, arg.size(), replicas);
}

inline constexpr CallSite kStepSite{
    .function = "the step function", .argument = "argument", .input = "the argument of run"};

template <class Fn, class... Args>
using StepResult = std::remove_cvref_t<decltype(call_function(
    std::declval<Fn&>(), kStepSite, std::declval<distribute::ReplicaContext&>(),
    std::declval<const Component<Args>&>()...))>;
template <class Fn, class... Args>
using StepForm = CallForm<std::remove_reference_t<Fn>, distribute::ReplicaContext,
                          Component<std::remove_cvref_t<Args>>...>;
template <class Fn, class... Args>
inline constexpr CallFault kStepFault =
    kCallFault<std::remove_reference_t<Fn>, distribute::ReplicaContext,
               Component<std::remove_cvref_t<Args>>...>;

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

// The results of one step, of whatever function.
template <class Result>
class ResultFrame : public RunFrame {
 public:
  explicit ResultFrame(size_t replicas) { results_.resize(replicas); }

  // PerReplica<Result>; a Variable comes back as itself.
  auto take_results() {
    if constexpr (std::is_same_v<Result, distribute::Variable>) {
      for (const auto& result : results_) {
        if (!(*result == *results_[0])) throw_different_variables();
      }
      return *results_[0];
    } else {
      typename distribute::PerReplica<Result>::Values values;
      for (auto& result : results_) values.push_back(std::move(*result));
      return distribute::PerReplica<Result>(std::move(values));
    }
  }

 protected:
  void set_result(size_t replica, Result result) {
    results_[replica].emplace(detached(std::move(result)));
  }

 private:
  c10::SmallVector<std::optional<Result>, 4> results_;
};
template <>
class ResultFrame<void> : public RunFrame {
 public:
  explicit ResultFrame(size_t) {}
};

// The call of one step. The function is kept by reference if it is an lvalue, else owned.
template <class Fn, class... Args>
class StepFrame final
    : public ResultFrame<StepResult<std::remove_reference_t<Fn>, std::remove_cvref_t<Args>...>> {
 public:
  using Callable = std::remove_reference_t<Fn>;
  using Result = StepResult<Callable, std::remove_cvref_t<Args>...>;
  using Results = ResultFrame<Result>;

  StepFrame(size_t replicas, Fn&& fn, Args&&... args)
      : Results(replicas), fn_(static_cast<Fn&&>(fn)), args_(static_cast<Args&&>(args)...) {}

  void call(distribute::ReplicaContext& context, size_t replica) override {
    call_with(context, replica, std::index_sequence_for<Args...>());
  }

 private:
  template <size_t... kIndex>
  void call_with(distribute::ReplicaContext& context, [[maybe_unused]] size_t replica,
                 std::index_sequence<kIndex...>) {
    if constexpr (std::is_void_v<Result>) {
      call_function<Callable>(fn_, kStepSite, context,
                              component(std::get<kIndex>(args_), replica)...);
    } else {
      this->set_result(replica,
                       call_function<Callable>(fn_, kStepSite, context,
                                               component(std::get<kIndex>(args_), replica)...));
    }
  }

  Fn fn_;  // a reference for lvalues
  std::tuple<KeptArgument<Args>...> args_;
};

// What run_on_replicas asks of the strategy.
COHORT_API size_t num_local_replicas(const StrategyCore& core);
COHORT_API void run_frame(StrategyCore& core, const std::shared_ptr<RunFrame>& frame,
                          const distribute::RunOptions& options);

// See Strategy::run.
template <class Fn, class... Args>
auto run_on_replicas(StrategyCore& core, const distribute::RunOptions& options, Fn&& fn,
                     Args&&... args) {
  using Frame = StepFrame<Fn, Args...>;
  const size_t replicas = num_local_replicas(core);
  check_is_function<std::remove_cvref_t<Fn>>(fn);
  (check_components(args, replicas), ...);
  auto* const frame = new Frame(replicas, static_cast<Fn&&>(fn), static_cast<Args&&>(args)...);
  const std::shared_ptr<RunFrame> owner = own_frame(frame);
  run_frame(core, owner, options);
  if constexpr (!std::is_void_v<typename Frame::Result>) {
    return static_cast<typename Frame::Results*>(frame)->take_results();
  }
}

}  // namespace cohort::internal
