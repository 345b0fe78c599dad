// Calls a function with the members of a structure. This is the one place where a user's function
// meets type-erased code: steps, functions on elements, modules, and functions called by name.
//
//   StructureFunction<> scale = structure_function(
//       [](const Tensor& x, int64_t factor) { return x * factor; },
//       {.function = "the step function", .input = "the batch"});
//   Structure result = scale(tuple(x, 2));
//
// A function takes the structure itself, or a leaf's value, or as many parameters as a tuple or
// dict has members. A parameter is a Structure, Tensor, StringTensor, a number (of exactly the
// dtype or one that holds all of its values), std::string_view or std::string, or what a structure
// or its tensor converts to. A function of one leaf also takes a tuple of one member. A function
// may ask for a context first, where the caller has one: a ReplicaContext&, say. One whose
// parameters nobody can list (a generic lambda) is called with what there is, as it is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cohort/core/callable_traits.h"
#include "cohort/core/export.h"
#include "cohort/core/scalar_type.h"
#include "cohort/core/structure.h"
#include "cohort/core/to_structure.h"

namespace cohort::internal {

// The words of messages: "<function> takes 2 <argument>s, but <input> is one leaf: ...".
struct CallSite {
  const char* function = "the function";
  const char* argument = "argument";
  const char* input = "the input";
};

// ---- parameter `index` of a function, out of a structure ----------------------------------------
// Errors: InvalidArgument, naming the parameter and what is there.

// Errors: the input is no tuple or dict of `count` members.
COHORT_API void check_member_count(const Structure& input, size_t count, const CallSite& site);
// The only member of a tuple of one, or else the input.
COHORT_API const Structure& sole_value(const Structure& input);
COHORT_API const Tensor& tensor_value(const Structure& value, size_t index, const CallSite& site);
COHORT_API const StringTensor& strings_value(const Structure& value, size_t index,
                                             const CallSite& site);
// The value of a tensor of shape [], as `dtype`, on the CPU.
COHORT_API Tensor number_value(const Structure& value, DType dtype, size_t index,
                               const CallSite& site);
COHORT_API std::string_view string_value(const Structure& value, size_t index,
                                         const CallSite& site);

// Whether every value of `from` is one of `to` (or rounds to one, for large integers).
bool widens(DType from, DType to);
// Says that a parameter is a `type`, but that `found` is there.
[[noreturn]] COHORT_API void throw_wrong_scalar(size_t index, const std::string& type,
                                                const std::string& found, const CallSite& site);

template <class T>
inline constexpr bool kTakesLeaf =
    kIsScalar<T> || std::is_same_v<T, Tensor> || std::is_same_v<T, StringTensor>;

// `value` as a parameter of type T: by reference where it holds a T.
template <class T>
decltype(auto) from_structure(const Structure& value, size_t index, const CallSite& site) {
  if constexpr (std::is_same_v<T, Structure>) {
    return (value);
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return tensor_value(value, index, site);
  } else if constexpr (std::is_same_v<T, StringTensor>) {
    return strings_value(value, index, site);
  } else if constexpr (kIsText<T>) {
    return T(string_value(value, index, site));
  } else if constexpr (kIsNumber<T>) {
    const Tensor number = number_value(value, number_dtype<T>(), index, site);
    return T(*static_cast<const T*>(number.data_ptr()));
  } else if constexpr (std::is_convertible_v<const Structure&, T>) {
    return static_cast<T>(value);
  } else {
    static_assert(std::is_convertible_v<const Tensor&, T>,
                  "a function's parameters are Structure, Tensor, StringTensor, numbers, strings, "
                  "or what a Structure or a Tensor converts to");
    return static_cast<T>(tensor_value(value, index, site));
  }
}

// Any argument as a parameter of type T.
template <class T, class Value>
decltype(auto) to_parameter(const Value& value, size_t index, const CallSite& site) {
  if constexpr (std::is_same_v<Value, Structure>) {
    return from_structure<T>(value, index, site);
  } else if constexpr (std::is_same_v<Value, T>) {
    return (value);
  } else {
    static_assert(std::is_convertible_v<const Value&, T>,
                  "a parameter of the function cannot be made from its argument");
    return static_cast<T>(value);
  }
}

// ---- the call -----------------------------------------------------------------------------------

// Stands for the context of callers that have none.
struct NoContext {};
inline constexpr NoContext kNoContext;

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

template <class Parameters, bool kTakesContext, class Fn, class Context, size_t... kIndex,
          class... Values>
decltype(auto) call_values(Fn& fn, const CallSite& site, [[maybe_unused]] Context& context,
                           std::index_sequence<kIndex...>, const Values&... values) {
  if constexpr (kTakesContext) {
    return fn(context,
              to_parameter<std::tuple_element_t<kIndex, Parameters>>(values, kIndex, site)...);
  } else {
    return fn(to_parameter<std::tuple_element_t<kIndex, Parameters>>(values, kIndex, site)...);
  }
}

template <class Parameters, bool kTakesContext, class Fn, class Context, size_t... kIndex>
decltype(auto) call_members(Fn& fn, const CallSite& site, Context& context,
                            std::index_sequence<kIndex...> indices, const Structure& input) {
  if constexpr (sizeof...(kIndex) == 1) {
    constexpr bool kLeaf = kTakesLeaf<std::tuple_element_t<0, Parameters>>;
    return call_values<Parameters, kTakesContext>(fn, site, context, indices,
                                                  kLeaf ? sole_value(input) : input);
  } else {
    check_member_count(input, sizeof...(kIndex), site);
    return call_values<Parameters, kTakesContext>(fn, site, context, indices, input[kIndex]...);
  }
}

// fn with parameters of these types: out of one Structure, or out of as many values. With
// kTakesContext the context comes first.
template <class Parameters, bool kTakesContext = false, class Fn, class Context, class... Values>
decltype(auto) call_with_parameters(Fn& fn, const CallSite& site, Context& context,
                                    const Values&... values) {
  constexpr size_t kCount = std::tuple_size_v<Parameters>;
  constexpr auto kIndices = std::make_index_sequence<kCount>();
  if constexpr (sizeof...(Values) == 1 && (std::is_same_v<Values, Structure> && ...)) {
    return call_members<Parameters, kTakesContext>(fn, site, context, kIndices, values...);
  } else {
    static_assert(kCount == sizeof...(Values),
                  "there is another number of arguments than the function takes");
    return call_values<Parameters, kTakesContext>(fn, site, context, kIndices, values...);
  }
}

// fn, with the context if it asks for one first, and with what it declares out of `values`.
// Errors: InvalidArgument (a structure does not fit the parameters), what fn throws.
template <class Fn, class Context, class... Values>
decltype(auto) call_function(Fn& fn, const CallSite& site, Context& context,
                             const Values&... values) {
  if constexpr (HasCallableTraits<Fn>) {
    using Split = SplitContext<typename CallableTraits<Fn>::Arguments, std::remove_cv_t<Context>>;
    return call_with_parameters<typename Split::Parameters, Split::kTakesContext>(fn, site, context,
                                                                                  values...);
  } else {
    static_assert(std::is_invocable_v<Fn&, const Values&...>,
                  "a generic function is called with its arguments as they are");
    return fn(values...);
  }
}

// ---- type-erased --------------------------------------------------------------------------------

// A function of one structure, after a context or none.
template <class... Context>
using StructureFunction = std::function<Structure(Context&..., const Structure& input)>;

template <class... Context, class Fn>
StructureFunction<Context...> shared_structure_function(std::shared_ptr<Fn> fn,
                                                        const CallSite& site) {
  static_assert(sizeof...(Context) <= 1);
  return [fn = std::move(fn), site](Context&... context, const Structure& input) -> Structure {
    const auto call = [&]() -> decltype(auto) {
      if constexpr (sizeof...(Context) == 0) {
        return call_function(*fn, site, kNoContext, input);
      } else {
        return call_function(*fn, site, context..., input);
      }
    };
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      return Structure();
    } else {
      return to_structure(call());
    }
  };
}

// fn, erased: its result becomes a structure, that of a void function the empty tuple.
// Copies share one fn, which need not be copyable. Thread safety: that of fn.
template <class... Context, class Fn>
StructureFunction<Context...> structure_function(Fn&& fn, const CallSite& site = {}) {
  return shared_structure_function<Context...>(
      std::make_shared<std::decay_t<Fn>>(std::forward<Fn>(fn)), site);
}

}  // namespace cohort::internal
