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

// What to do with each tensor of a step's result.
class TensorMapping {
 public:
  virtual bool changes(const Tensor& tensor) const = 0;
  virtual Tensor mapped(const Tensor& tensor) const = 0;

 protected:
  ~TensorMapping() = default;
};

// Is shown the arguments of a step one after another; tensors may be replaced.
class ArgumentVisitor {
 public:
  virtual void tensor(Tensor& argument) = 0;
  virtual void structure(Structure& argument) = 0;
  // A number, or which variable it is.
  virtual void value(const void* bytes, size_t size) = 0;
  // What is of another kind: "an argument".
  virtual void other(const char* what) = 0;

 protected:
  ~ArgumentVisitor() = default;
};

// What one replica runs. Kept alive by every thread that still runs it.
class COHORT_API RunFrame {
 public:
  virtual ~RunFrame() = default;
  virtual void call(distribute::ReplicaContext& context, size_t local_replica) = 0;

  // For steps that are recorded (recorded_steps.h).
  virtual void visit_arguments(ArgumentVisitor& visitor, size_t) { visitor.other("the step"); }
  // The result of `call`, for set_result_of of any frame of the same class.
  virtual std::shared_ptr<const void> share_result(size_t) { return nullptr; }
  virtual void set_result_of(const std::shared_ptr<const void>&, const TensorMapping&, size_t) {}

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
// Tensors without their autograd graph, sharing their storage.
COHORT_API const TensorMapping& detaching();

// The value with the tensors in it mapped.
COHORT_API Tensor mapped(const Tensor& tensor, const TensorMapping& mapping);
COHORT_API Structure mapped(const Structure& structure, const TensorMapping& mapping);
template <class T>
T mapped(T value, const TensorMapping& mapping);
// All of them first, since each may hold any other.
template <class T>
std::vector<T> mapped(std::vector<T> values, const TensorMapping& mapping);
template <class... T>
std::tuple<T...> mapped(std::tuple<T...> values, const TensorMapping& mapping);
template <class A, class B>
std::pair<A, B> mapped(std::pair<A, B> value, const TensorMapping& mapping);
template <class T, size_t kSize>
std::array<T, kSize> mapped(std::array<T, kSize> values, const TensorMapping& mapping);

template <class T>
inline constexpr bool kIsStructureType =
    std::is_class_v<T> && !std::is_same_v<T, StringTensor> &&
    std::is_convertible_v<const T&, Structure> && std::is_convertible_v<const Structure&, T>;

template <class T>
T mapped(T value, const TensorMapping& mapping) {
  if constexpr (std::is_base_of_v<Tensor, T>) {
    static_cast<Tensor&>(value) = mapped(static_cast<const Tensor&>(value), mapping);
  } else if constexpr (kIsStructureType<T>) {  // such as RaggedTensor
    return static_cast<T>(mapped(static_cast<Structure>(value), mapping));
  } else if constexpr (kFieldCount < T >> 0) {
    with_fields(value,
                [&](auto&... fields) { ((fields = mapped(std::move(fields), mapping)), ...); });
  }
  return value;
}
template <class T>
std::vector<T> mapped(std::vector<T> values, const TensorMapping& mapping) {
  for (auto&& value : values) value = mapped(T(std::move(value)), mapping);  // of vector<bool>, too
  return values;
}
template <class... T>
std::tuple<T...> mapped(std::tuple<T...> values, const TensorMapping& mapping) {
  std::apply([&](auto&... value) { ((value = mapped(value, mapping)), ...); }, values);
  return values;
}
template <class A, class B>
std::pair<A, B> mapped(std::pair<A, B> value, const TensorMapping& mapping) {
  return {mapped(std::move(value.first), mapping), mapped(std::move(value.second), mapping)};
}

template <class T, size_t kSize>
std::array<T, kSize> mapped(std::array<T, kSize> values, const TensorMapping& mapping) {
  for (T& value : values) value = mapped(std::move(value), mapping);
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

// Shows the visitor what replica `replica` gets of a kept argument.
template <class T>
void visit_argument(T& argument, size_t, ArgumentVisitor& visitor) {
  if constexpr (!kIsHandle<std::remove_cv_t<T>>) {
    visitor.other("an argument");
  } else if constexpr (std::is_same_v<T, Tensor>) {
    visitor.tensor(argument);
  } else if constexpr (std::is_same_v<T, Structure>) {
    visitor.structure(argument);
  } else if constexpr (std::is_same_v<T, distribute::Variable>) {
    const void* const which = &argument.impl();
    visitor.value(&which, sizeof(which));
  } else {
    visitor.value(&argument, sizeof(argument));
  }
}
template <template <class> class Replicas, class T>
requires(kIsHandle<T> &&
         (std::is_same_v<Replicas<T>, distribute::PerReplica<T>> ||
          std::is_same_v<Replicas<T>,
                         distribute::Mirrored<T>>)) void visit_argument(Replicas<T>& argument,
                                                                        size_t replica,
                                                                        ArgumentVisitor& visitor) {
  typename Replicas<T>::Values values = argument.values();
  visit_argument(values[replica], replica, visitor);
  argument = Replicas<T>(std::move(values));
}

// The results of one step, of whatever function.
template <class Result>
class ResultFrame : public RunFrame {
 public:
  static constexpr bool kIsCopyable = std::is_copy_constructible_v<Result>;

  explicit ResultFrame(size_t replicas) { results_.resize(replicas); }

  std::shared_ptr<const void> share_result(size_t replica) override {
    if constexpr (kIsCopyable) return std::make_shared<const Result>(*results_[replica]);
    return nullptr;
  }
  void set_result_of(const std::shared_ptr<const void>& shared, const TensorMapping& mapping,
                     size_t replica) override {
    if constexpr (kIsCopyable) {
      results_[replica].emplace(mapped(*static_cast<const Result*>(shared.get()), mapping));
    }
  }

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
    results_[replica].emplace(mapped(std::move(result), detaching()));
  }

 private:
  c10::SmallVector<std::optional<Result>, 4> results_;
};
template <>
class ResultFrame<void> : public RunFrame {
 public:
  static constexpr bool kIsCopyable = true;

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
  void visit_arguments(ArgumentVisitor& visitor, size_t replica) override {
    if constexpr (!Results::kIsCopyable) visitor.other("the result");
    if constexpr (std::is_lvalue_reference_v<Fn>) {
      auto* const which = std::addressof(fn_);  // perhaps of a function
      visitor.value(&which, sizeof(which));
    }
    std::apply([&](auto&... argument) { (visit_argument(argument, replica, visitor), ...); },
               args_);
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
