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

// The replicas [first, first + size) of a task.
struct ReplicasOfTask {
  int first = 0;
  int size = 0;
};

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

  // For steps whose replicas may move to another task.
  //
  // Errors: FailedPrecondition (an argument whose components cannot be had again elsewhere).
  virtual void check_can_move() const {}
  // Gets the arguments of these replicas, by which the call runs from here on: all of them, or
  // those that are of other replicas.
  // Errors: those of check_can_move and of ReplicaSource.
  virtual void host(ReplicasOfTask, bool /*all*/) {}
  // The result of local replica `replica`; nothing where there is none, or none that can be sent.
  virtual std::optional<Structure> result_of(size_t) const { return std::nullopt; }
  // Has the results of these replicas, in place of those of `call`, from elsewhere.
  // Errors: those of ReplicaSource.
  virtual void take_results(ReplicasOfTask, std::shared_ptr<const ReplicaSource>) {}
  // Whence results are to be had by replica, for what the caller gets.
  std::shared_ptr<const ReplicaSource> source_of_results;

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
  if (arg.source() != nullptr) return;  // RunFrame::host gives it those of the replicas here
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

[[noreturn]] COHORT_API void throw_not_hosted();

// Gives an argument the components of these replicas.
template <class T>
void check_argument_can_move(T&) {}
template <class T>
void check_argument_can_move(const distribute::PerReplica<T>& argument) {
  if (argument.source() == nullptr || !kIsParameter<T>) throw_not_hosted();
}

template <class T>
void host_argument(T&, ReplicasOfTask, bool) {}
template <class T>
bool is_of(const distribute::PerReplica<T>& argument, ReplicasOfTask range) {
  return argument.source() == nullptr || (argument.source()->first() == range.first &&
                                          argument.size() == static_cast<size_t>(range.size));
}
template <class T>
void host_argument(const distribute::PerReplica<T>& argument, ReplicasOfTask range, bool all) {
  if (all || !is_of(argument, range)) throw_not_hosted();
}
template <class T>
void host_argument(distribute::PerReplica<T>& argument, ReplicasOfTask range, bool all) {
  if (!all && is_of(argument, range)) return;
  check_argument_can_move(argument);
  if constexpr (kIsParameter<T>) {
    typename distribute::PerReplica<T>::Values values;
    for (int id = range.first; id < range.first + range.size; ++id) {
      values.push_back(from_structure<T>(argument.source()->component(id), 0, kStepSite));
    }
    argument = distribute::PerReplica<T>(std::move(values), argument.source());
  }
}
template <class T>
void host_argument(distribute::Mirrored<T>& argument, ReplicasOfTask range, bool) {
  const typename distribute::Mirrored<T>::Values values(static_cast<size_t>(range.size),
                                                        argument.item());
  argument = distribute::Mirrored<T>(values);
}

// The results of one step, of whatever function.
template <class Result>
class ResultFrame : public RunFrame {
 public:
  static constexpr bool kIsCopyable = std::is_copy_constructible_v<Result>;
  static constexpr bool kIsSendable = kIsResult<Result> && kIsParameter<Result>;

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

  std::optional<Structure> result_of(size_t replica) const override {
    if constexpr (kIsSendable) {
      if (results_[replica]) return to_structure(*results_[replica]);
    }
    return std::nullopt;
  }
  void take_results(ReplicasOfTask range, std::shared_ptr<const ReplicaSource> source) override {
    if constexpr (kIsSendable) {
      host_results(static_cast<size_t>(range.size));
      for (int id = range.first; id < range.first + range.size; ++id) {
        results_[static_cast<size_t>(id - range.first)].emplace(
            from_structure<Result>(source->component(id), 0, kStepSite));
      }
      source_of_results = std::move(source);
    } else {
      source->component(range.first);  // which throws
    }
  }

  // PerReplica<Result>; a Variable comes back as itself.
  auto results() {
    if constexpr (std::is_same_v<Result, distribute::Variable>) {
      for (const auto& result : results_) {
        if (!(*result == *results_[0])) throw_different_variables();
      }
      return *results_[0];
    } else {
      typename distribute::PerReplica<Result>::Values values;
      for (auto& result : results_) values.push_back(std::move(*result));
      return distribute::PerReplica<Result>(std::move(values), source_of_results);
    }
  }

 protected:
  void host_results(size_t replicas) {
    results_.clear();
    results_.resize(replicas);
  }
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
  void host_results(size_t) {}
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
  void check_can_move() const override {
    std::apply([](auto&... argument) { (check_argument_can_move(argument), ...); }, args_);
  }
  void host(ReplicasOfTask range, bool all) override {
    std::apply([&](auto&... argument) { (host_argument(argument, range, all), ...); }, args_);
    this->host_results(static_cast<size_t>(range.size));
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
    return static_cast<typename Frame::Results*>(frame)->results();
  }
}

}  // namespace cohort::internal
