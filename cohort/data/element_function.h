// User functions on elements, type-erased: what map and filter run.
//
//   dataset.map([](const Tensor& x, const Tensor& y) { return tuple(x / 255, y); });
//   numbers.map([](int64_t x) { return 2 * x; });         // over records, as one loop per block
//
// What a function takes and how: core/structure_call.h; what it may return: core/to_structure.h. A
// map's may ask for random numbers first:
//
//   images.map([](random::RandomGenerator& random, const Tensor& image) {
//     return image + random.normal({28, 28});
//   });
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/structure_call.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

struct ScalarType {
  bool is_string = false;
  DType dtype = int64;  // of a number
};

// The places where a loop over records finds argument k and leaves result k: the first of n values.
struct ScalarInput {
  const void* numbers = nullptr;
  const StringTensor* strings = nullptr;
};
struct ScalarOutput {
  void* numbers = nullptr;
  std::vector<std::string>* strings = nullptr;  // appended to
};

// Calls a function for n records.
struct ScalarLoop {
  using Run = void (*)(void* function, const ScalarInput*, const ScalarOutput*, int64_t n,
                       int64_t& row);
  std::shared_ptr<void> function;
  Run run = nullptr;

  // Counts `row` up as it goes: the record that threw.
  void operator()(const ScalarInput* in, const ScalarOutput* out, int64_t n, int64_t& row) const {
    run(function.get(), in, out, n, row);
  }
};

// A function of scalars, as a loop over n records.
struct COHORT_API ScalarFunction {
  std::vector<ScalarType> arguments;
  std::vector<ScalarType> results;
  bool returns_tuple = false;
  ScalarLoop loop;

  // The result for one element, or for each of a block's.
  // Errors: InvalidArgument (the element does not fit the arguments), the function's own.
  Structure apply(const Structure& element, int64_t& row) const;
  Structure apply_block(const Structure& block, int64_t& row) const;
  StructureSpec result_spec() const;
};

struct ElementFunction {
  StructureFunction<> whole;
  // Set if all arguments and results are scalars.
  std::optional<ScalarFunction> scalar;
  bool takes_scalars = false;  // at least one argument is: no function of blocks
  // Instead of both, where the function asks for a generator.
  std::function<Structure(const random::Generator&, const Structure&)> random;
};

inline constexpr CallSite kElementSite{
    .function = "the function", .argument = "argument", .input = "the element"};

// ---- functions of scalars -----------------------------------------------------------------------

template <class T>
constexpr ScalarType scalar_type() {
  if constexpr (kIsText<T>) {
    return {.is_string = true};
  } else {
    return {.dtype = number_dtype<T>()};
  }
}

// The scalar members of a result: itself, or a tuple's.
template <class T>
struct ScalarResults {
  static constexpr bool kAll = kIsScalar<T>;
  static std::vector<ScalarType> types() { return {scalar_type<T>()}; }
  static void store(T&& value, const ScalarOutput* out, int64_t i) { store_one(value, out[0], i); }
  template <class V>
  static void store_one(V& value, const ScalarOutput& out, int64_t i) {
    if constexpr (kIsText<V>)
      out.strings->emplace_back(value);
    else
      static_cast<V*>(out.numbers)[i] = value;
  }
};
template <class... Ts>
struct ScalarResults<std::tuple<Ts...>> {
  static constexpr bool kAll = sizeof...(Ts) > 0 && (kIsScalar<Ts> && ...);
  static std::vector<ScalarType> types() { return {scalar_type<Ts>()...}; }
  static void store(std::tuple<Ts...>&& values, const ScalarOutput* out, int64_t i) {
    std::apply([&](auto&... value) { (ScalarResults<Ts>::store_one(value, *out++, i), ...); },
               values);
  }
};
template <class A, class B>
struct ScalarResults<std::pair<A, B>> : ScalarResults<std::tuple<A, B>> {};

template <class T>
T read_scalar(const ScalarInput& input, int64_t i) {
  if constexpr (kIsText<T>)
    return T((*input.strings)[i]);
  else
    return static_cast<const T*>(input.numbers)[i];
}

template <class Result, class Callable, class... Args, size_t... kIndex>
void run_scalar_loop(Callable& call, std::tuple<Args...>*, std::index_sequence<kIndex...>,
                     const ScalarInput* in, const ScalarOutput* out, int64_t n, int64_t& row) {
  for (; row < n; ++row) {
    ScalarResults<Result>::store(call(read_scalar<Args>(in[kIndex], row)...), out, row);
  }
}

// All but the loop, which is empty.
template <class Result, class... Args>
ScalarFunction scalar_signature(std::tuple<Args...>*) {
  ScalarFunction function;
  function.arguments = {scalar_type<Args>()...};
  function.results = ScalarResults<Result>::types();
  function.returns_tuple = kIsTupleResult<Result>;
  return function;
}

// ---- the edge -----------------------------------------------------------------------------------

COHORT_API std::function<Structure(const random::Generator&, const Structure&)> with_own_generator(
    StructureFunction<random::Generator> call);

template <class Callable>
constexpr bool takes_generator() {
  if constexpr (HasCallableTraits<Callable>) {
    return SplitContext<typename CallableTraits<Callable>::Arguments,
                        random::Generator>::kTakesContext;
  } else {
    return false;
  }
}

// Why a function on elements cannot be called.
template <class F>
inline constexpr CallFault kElementFault = kCallFault<
    std::decay_t<F>,
    std::conditional_t<takes_generator<std::decay_t<F>>(), random::Generator, const NoContext>,
    Structure>;

// Whether any of these parameters, or each of them, is a scalar.
template <class... Args>
constexpr bool any_scalar(std::tuple<Args...>*) {
  return (kIsScalar<Args> || ...);
}
template <class... Args>
constexpr bool all_scalars(std::tuple<Args...>*) {
  return (kIsScalar<Args> && ...);
}

// What the function gives for an element of unknown form.
template <class Callable, class Context>
using ElementResult = std::remove_cvref_t<decltype(call_function(
    std::declval<Callable&>(), kElementSite, std::declval<Context&>(),
    std::declval<const Structure&>()))>;

// Fails to compile, with what to do, if a function on elements cannot be called or gives no
// element.
template <class Callable, class Context>
constexpr bool check_element_function() {
  constexpr CallFault kFault = kCallFault<Callable, Context, Structure>;
  check_fault<kFault>();
  if constexpr (kFault != CallFault::kNone) {
    return false;
  } else {
    if constexpr (HasCallableTraits<Callable>) {
      static_assert(CallableTraits<Callable>::kArity > (takes_generator<Callable>() ? 1 : 0),
                    "a function on elements takes at least one argument");
    }
    using Result = ElementResult<Callable, Context>;
    static_assert(!std::is_void_v<Result>,
                  "a function on elements returns an element: this one returns nothing");
    static_assert(std::is_void_v<Result> || kIsResult<Result>,
                  "a function on elements returns a Structure, Tensor, StringTensor, number, "
                  "string, or a std::tuple, pair, array, vector or plain struct of them");
    return !std::is_void_v<Result> && kIsResult<Result>;
  }
}

template <class F>
ElementFunction make_element_function(F&& function) {
  using Callable = std::decay_t<F>;
  static_assert(!takes_generator<Callable>(),
                "only a map's function may ask for a random::Generator");
  ElementFunction erased;
  constexpr bool kFits = check_element_function<Callable, const NoContext>();
  if constexpr (kFits && !takes_generator<Callable>()) {
    auto* const body = new FunctionBody<Callable>(static_cast<F&&>(function), kElementSite);
    erased.whole = StructureFunction<>(body);
    if constexpr (HasCallableTraits<Callable>) {
      using Result = std::remove_cvref_t<typename CallableTraits<Callable>::Result>;
      constexpr typename CallableTraits<Callable>::Arguments* kArguments = nullptr;
      erased.takes_scalars = any_scalar(kArguments);
      if constexpr (all_scalars(kArguments) && ScalarResults<Result>::kAll) {
        erased.scalar = scalar_signature<Result>(kArguments);
        erased.scalar->loop = {
            erased.whole.share(&body->fn), [](void* call, const ScalarInput* in,
                                              const ScalarOutput* out, int64_t n, int64_t& row) {
              run_scalar_loop<Result>(*static_cast<Callable*>(call), kArguments,
                                      std::make_index_sequence<CallableTraits<Callable>::kArity>(),
                                      in, out, n, row);
            }};
      }
    }
  }
  return erased;
}

// Also functions that ask for a generator first.
template <class F>
ElementFunction make_map_function(F&& function) {
  using Callable = std::decay_t<F>;
  if constexpr (takes_generator<Callable>()) {
    using Rest = typename SplitContext<typename CallableTraits<Callable>::Arguments,
                                       random::Generator>::Parameters;
    ElementFunction erased;
    constexpr bool kFits = check_element_function<Callable, random::Generator>();
    if constexpr (kFits) {
      erased.takes_scalars = any_scalar(static_cast<Rest*>(nullptr));
      erased.random = with_own_generator(StructureFunction<random::Generator>(
          new FunctionBody<Callable, random::Generator>(static_cast<F&&>(function), kElementSite)));
    }
    return erased;
  } else {
    return make_element_function(static_cast<F&&>(function));
  }
}

// A dataset that is made of a path: data::TFRecordDataset, say.
template <class Source, class Dataset>
concept DatasetOfPath =
    std::derived_from<Source, Dataset> && std::constructible_from<Source, const StringTensor&>;

template <class Source, class Dataset>
Dataset make_source(const Structure& path) {
  return Source(strings_value(sole_value(path), 0, kElementSite));
}

// Functions on elements that give something else than an element: a dataset.
template <class Result, class F>
std::function<Result(const Structure&)> make_function_to(F&& function) {
  using Callable = std::decay_t<F>;
  constexpr CallFault kFault = kCallFault<Callable, const NoContext, Structure>;
  check_fault<kFault>();
  if constexpr (kFault != CallFault::kNone) {
    return {};
  } else {
    using Returned = ElementResult<Callable, const NoContext>;
    static_assert(std::is_convertible_v<Returned, Result>,
                  "this function on elements returns a data::Dataset");
    if constexpr (!std::is_convertible_v<Returned, Result>) {
      return {};
    } else {
      auto callable = std::make_shared<Callable>(std::forward<F>(function));
      return [callable](const Structure& element) -> Result {
        return call_function(*callable, kElementSite, kNoContext, element);
      };
    }
  }
}

}  // namespace cohort::internal
