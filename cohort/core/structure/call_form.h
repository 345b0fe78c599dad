// Finds how a function is called with given arguments, or why it cannot be called. The templates at
// the edge of the library check this, so that a mistake is one message at the line of the call.
//
//   check_call<Fn, ReplicaContext, Structure>();   // a message for each CallFault
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cohort/core/structure/callable_traits.h"
#include "cohort/core/structure/from_structure.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// Stands for the context of callers that have none.
struct NoContext {};
inline constexpr NoContext kNoContext;

template <class... Context>
struct ContextOrNone {
  using type = const NoContext;
};
template <class Context>
struct ContextOrNone<Context> {
  using type = Context;
};
template <class... Context>
using CallContext = typename ContextOrNone<Context...>::type;

// A function's parameters without the context that it asks for.
template <class Arguments, class Context>
struct SplitContext {
  static constexpr bool kTakesContext = false;
  using Parameters = Arguments;
};
template <class Context, class... Rest>
struct SplitContext<std::tuple<Context, Rest...>, Context> {
  static constexpr bool kTakesContext = true;
  using Parameters = std::tuple<Rest...>;
};

template <class... Values>
inline constexpr bool kIsOneStructure = false;
template <>
inline constexpr bool kIsOneStructure<Structure> = true;

// ---- how ----------------------------------------------------------------------------------------

// A form has Parameters (without the context) and kTakesContext; or kAsItIs: with the arguments as
// they are; or, if there is none, kMissing.
template <class Arguments, bool kWithContext = false>
struct ParameterForm {
  static constexpr bool kMissing = false;
  static constexpr bool kAsItIs = false;
  static constexpr bool kTakesContext = kWithContext;
  using Parameters = Arguments;
};
template <bool kWithContext>
struct GenericForm {
  static constexpr bool kMissing = false;
  static constexpr bool kAsItIs = true;
  static constexpr bool kTakesContext = kWithContext;
};
struct NoForm {
  static constexpr bool kMissing = true;
};

// Whether a generic function can be called. The question compiles its body, in which an error is
// the user's. std::is_invocable would put five lines more before the user's own.
template <class Fn, class... Values>
concept TakesAsItIs = requires(Fn& fn, const Values&... values) {
  fn(values...);
};
// Whether a generic function has exactly these types of `auto` parameters, after a context. It is
// never called with a context for an `auto`, for which its body is not meant.
template <class Fn, class Context, class... Autos>
concept TakesAfterContext = requires {
  typename std::void_t<decltype(&Fn::template operator()<Autos...>)>;
}
&&requires(Fn& fn, Context& context, const Autos&... values) { fn(context, values...); };

template <class Fn, class Context, class... Tensors>
constexpr auto form_of_members() {
  if constexpr (TakesAsItIs<Fn, Tensors...>) {
    return ParameterForm<std::tuple<Tensors...>>();
  } else if constexpr (TakesAfterContext<Fn, Context, Tensors...>) {
    return ParameterForm<std::tuple<Tensors...>, true>();
  } else if constexpr (sizeof...(Tensors) < 8) {
    return form_of_members<Fn, Context, Tensors..., Tensor>();
  } else {
    return NoForm();
  }
}
template <class Fn, class Context, class... Values>
constexpr auto generic_form() {
  if constexpr (TakesAfterContext<Fn, Context, Values...>) {
    return GenericForm<true>();
  } else if constexpr (kIsOneStructure<Values...>) {
    return form_of_members<Fn, Context, Tensor, Tensor>();
  } else {
    return NoForm();
  }
}

// The form in which Fn is called. This one: for functions whose parameters nobody can list (generic
// lambdas, overloaded call operators).
template <class Fn, class Context, class... Values>
struct CallForm : decltype(generic_form<Fn, Context, Values...>()) {};
template <class Fn, class Context, class... Values>
requires(!HasCallableTraits<Fn>) &&
    TakesAsItIs<Fn, Values...> struct CallForm<Fn, Context, Values...> : GenericForm<false> {
};
template <class Fn, class Context, class... Values>
requires HasCallableTraits<Fn>
struct CallForm<Fn, Context, Values...>
    : ParameterForm<typename SplitContext<typename CallableTraits<Fn>::Arguments,
                                          std::remove_cv_t<Context>>::Parameters,
                    SplitContext<typename CallableTraits<Fn>::Arguments,
                                 std::remove_cv_t<Context>>::kTakesContext> {
};

// ---- why not ------------------------------------------------------------------------------------

enum class CallFault {
  kNone,
  kOptional,
  kReference,
  kCount,
  kArgument,
  kParameter,
  kMember,
  kGeneric,
  kNoFunction,
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
// Such as Optional, which has one as its base.
template <class T>
requires requires {
  typename T::value_type;
} && std::is_base_of_v<std::optional<typename T::value_type>, T>
inline constexpr bool kIsOptional<T> = true;

template <class Parameter, class Value>
constexpr CallFault argument_fault() {
  if constexpr (std::is_same_v<Value, Structure>) {
    return kIsParameter<Parameter> ? CallFault::kNone : CallFault::kParameter;
  } else if constexpr (std::is_same_v<Value, Parameter> ||
                       std::is_convertible_v<const Value&, Parameter>) {
    return CallFault::kNone;
  } else {
    return kIsOptional<Value> ? CallFault::kOptional : CallFault::kArgument;
  }
}

constexpr CallFault first_fault(std::initializer_list<CallFault> faults) {
  for (const CallFault fault : faults) {
    if (fault != CallFault::kNone) return fault;
  }
  return CallFault::kNone;
}

// If the values are one Structure, its members are known at run time only.
template <class... Parameters, class... Values>
constexpr CallFault parameters_fault(std::tuple<Parameters...>*, std::tuple<Values...>*) {
  if constexpr (kIsOneStructure<Values...>) {
    return first_fault({CallFault::kNone, argument_fault<Parameters, Structure>()...});
  } else if constexpr (sizeof...(Parameters) == sizeof...(Values)) {
    return first_fault({CallFault::kNone, argument_fault<Parameters, Values>()...});
  } else {
    return (kIsOptional<Values> || ...) ? CallFault::kOptional : CallFault::kCount;
  }
}

template <class Fn>
constexpr bool changes_argument(bool takes_context) {
  if constexpr (HasCallableTraits<Fn>) {
    for (size_t i = takes_context ? 1 : 0; i < CallableTraits<Fn>::kArity; ++i) {
      if (CallableTraits<Fn>::kChangesArgument[i]) return true;
    }
  }
  return false;
}

struct CallOperator {
  void operator()();
};
template <class Fn>
struct WithCallOperator : Fn, CallOperator {};
// Whether it can be called with any arguments: its call operator makes a second one ambiguous.
template <class Fn>
concept HasCallOperator = std::is_class_v<Fn> && !std::is_final_v<Fn> && !requires {
  &WithCallOperator<Fn>::operator();
};

template <class Fn, class Context, class... Values>
constexpr CallFault call_fault() {
  using Form = CallForm<Fn, Context, Values...>;
  if constexpr (std::is_member_pointer_v<Fn>) {
    return CallFault::kMember;
  } else if constexpr (Form::kMissing) {
    if constexpr ((kIsOptional<Values> || ...)) return CallFault::kOptional;
    return HasCallOperator<Fn> ? CallFault::kGeneric : CallFault::kNoFunction;
  } else if constexpr (Form::kAsItIs) {
    return CallFault::kNone;
  } else {
    constexpr CallFault kFault = parameters_fault(static_cast<typename Form::Parameters*>(nullptr),
                                                  static_cast<std::tuple<Values...>*>(nullptr));
    if constexpr (kFault != CallFault::kNone) return kFault;
    return changes_argument<Fn>(Form::kTakesContext) ? CallFault::kReference : CallFault::kNone;
  }
}
template <class Fn, class Context, class... Values>
inline constexpr CallFault kCallFault = call_fault<Fn, Context, Values...>();

// Fails to compile, with what to do, unless kFault is kNone.
template <CallFault kFault>
constexpr void check_fault() {
  static_assert(kFault != CallFault::kOptional,
                "an argument is the std::optional that next() returns: test it, and pass what it "
                "holds: while (auto batch = it.next()) strategy.run(step, *batch);");
  static_assert(kFault != CallFault::kReference,
                "a parameter of the function is a reference to something that it could change: "
                "take `const T&` or `T` (arguments are shared between replicas and calls)");
  static_assert(kFault != CallFault::kCount,
                "the function takes another number of arguments than it is given (besides a "
                "ReplicaContext& first)");
  static_assert(kFault != CallFault::kArgument,
                "an argument does not convert to the type of the function's parameter");
  static_assert(kFault != CallFault::kParameter,
                "a function's parameters are Structure, Tensor, StringTensor, numbers, strings, "
                "tuples, pairs and plain structs of them, or what a Structure or a Tensor "
                "converts to (a ReplicaContext& or random::Generator& comes first)");
  static_assert(kFault != CallFault::kMember,
                "a member function needs its object: give a lambda that calls it, such as "
                "[&](const Structure& batch) { return trainer.step(batch); }");
  static_assert(kFault != CallFault::kGeneric,
                "the function cannot be called with these arguments: one `auto` is the whole batch "
                "or element, a Structure, and several are its members, Tensors; name the types "
                "that you mean, such as const Tensor&");
  static_assert(kFault != CallFault::kNoFunction,
                "this is no function: give the function itself, not what it returns");
}
template <class Fn, class Context, class... Values>
constexpr void check_call() {
  check_fault<kCallFault<Fn, Context, Values...>>();
}

}  // namespace cohort::internal
