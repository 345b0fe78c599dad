// User functions on elements, type-erased: what map and filter run.
//
//   dataset.map([](const Tensor& image, const Tensor& label) { return tuple(image / 255, label); });
//   numbers.map([](int64_t x) { return 2 * x; });         // over records, as one loop per block
//
// What a function takes and how: core/structure_call.h; what it may return: core/to_structure.h. A
// map's may ask for random numbers first:
//
//   images.map([](random::RandomGenerator& random, const Tensor& image) {
//     return image + random.normal({28, 28});
//   });
#pragma once

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
#include "cohort/core/spec.h"
#include "cohort/core/structure.h"
#include "cohort/core/structure_call.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

struct ScalarType {
  bool is_string = false;
  DType dtype = int64;  // of a number
};

// Where a loop over records finds argument k and leaves result k: the first of n values.
struct ScalarInput {
  const void* numbers = nullptr;
  const StringTensor* strings = nullptr;
};
struct ScalarOutput {
  void* numbers = nullptr;
  std::vector<std::string>* strings = nullptr;  // appended to
};

// A function of scalars, as a loop over n records.
struct COHORT_API ScalarFunction {
  std::vector<ScalarType> arguments;
  std::vector<ScalarType> results;
  bool returns_tuple = false;
  // Counts `row` up as it goes: the record that threw.
  std::function<void(const ScalarInput*, const ScalarOutput*, int64_t n, int64_t& row)> loop;

  // The result for one element, or for each of a block's.
  // Errors: InvalidArgument (the element does not fit the arguments), the function's own.
  Structure apply(const Structure& element, int64_t& row) const;
  Structure apply_block(const Structure& block, int64_t& row) const;
  StructureSpec result_spec() const;
};

struct ElementFunction {
  std::function<Structure(const Structure&)> whole;
  // Where all arguments and results are scalars.
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
ScalarFunction make_scalar_function(std::shared_ptr<Callable> callable, std::tuple<Args...>*,
                                    std::index_sequence<kIndex...>) {
  using Results = ScalarResults<Result>;
  ScalarFunction function;
  function.arguments = {scalar_type<Args>()...};
  function.results = Results::types();
  function.returns_tuple = kIsTupleResult<Result>;
  function.loop = [callable](const ScalarInput* in, const ScalarOutput* out, int64_t n,
                             int64_t& row) {
    Callable& call = *callable;
    for (; row < n; ++row) Results::store(call(read_scalar<Args>(in[kIndex], row)...), out, row);
  };
  return function;
}

// ---- the edge -----------------------------------------------------------------------------------

template <class Callable>
constexpr bool takes_generator() {
  if constexpr (HasCallableTraits<Callable>) {
    return SplitContext<typename CallableTraits<Callable>::Arguments,
                        random::Generator>::kTakesContext;
  } else {
    return false;
  }
}

// Whether any of these parameters, or each of them, is a scalar.
template <class... Args>
constexpr bool any_scalar(std::tuple<Args...>*) {
  return (kIsScalar<Args> || ...);
}
template <class... Args>
constexpr bool all_scalars(std::tuple<Args...>*) {
  return (kIsScalar<Args> && ...);
}

template <class F>
ElementFunction make_element_function(F&& function) {
  using Callable = std::decay_t<F>;
  static_assert(!takes_generator<Callable>(),
                "only a map's function may ask for a random::Generator");
  auto callable = std::make_shared<Callable>(std::forward<F>(function));
  ElementFunction erased;
  erased.whole = shared_structure_function<>(callable, kElementSite);
  if constexpr (HasCallableTraits<Callable>) {
    using Traits = CallableTraits<Callable>;
    using Result = std::remove_cvref_t<typename Traits::Result>;
    static_assert(Traits::kArity > 0, "a function on elements takes at least one argument");
    static_assert(!std::is_void_v<Result>, "a function on elements returns an element");
    constexpr typename Traits::Arguments* kArguments = nullptr;
    erased.takes_scalars = any_scalar(kArguments);
    if constexpr (all_scalars(kArguments) && ScalarResults<Result>::kAll) {
      erased.scalar = make_scalar_function<Result>(callable, kArguments,
                                                   std::make_index_sequence<Traits::kArity>());
    }
  } else {
    static_assert(!std::is_void_v<std::invoke_result_t<Callable&, const Structure&>>,
                  "a function on elements returns an element");
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
    static_assert(std::tuple_size_v<Rest> > 0, "after the generator comes the element");
    static_assert(!std::is_void_v<typename CallableTraits<Callable>::Result>,
                  "a function on elements returns an element");
    ElementFunction erased;
    erased.takes_scalars = any_scalar(static_cast<Rest*>(nullptr));
    erased.random =
        [call = structure_function<random::Generator>(std::forward<F>(function), kElementSite)](
            const random::Generator& generator, const Structure& element) {
          random::Generator mine = generator;  // a handle: functions may ask for Generator&
          return call(mine, element);
        };
    return erased;
  } else {
    return make_element_function(std::forward<F>(function));
  }
}

// Functions on elements that give something else than an element: a dataset.
template <class Result, class F>
std::function<Result(const Structure&)> make_function_to(F&& function) {
  using Callable = std::decay_t<F>;
  if constexpr (HasCallableTraits<Callable>) {
    using Traits = CallableTraits<Callable>;
    static_assert(Traits::kArity > 0, "a function on elements takes at least one argument");
    static_assert(std::is_convertible_v<typename Traits::Result, Result>,
                  "this function on elements returns a data::Dataset");
  } else {
    static_assert(std::is_invocable_r_v<Result, Callable&, const Structure&>,
                  "a generic function on elements takes a Structure; this one returns a Dataset");
  }
  auto callable = std::make_shared<Callable>(std::forward<F>(function));
  return [callable](const Structure& element) -> Result {
    return call_function(*callable, kElementSite, kNoContext, element);
  };
}

}  // namespace cohort::internal
