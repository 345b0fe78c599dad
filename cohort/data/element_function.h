// User functions on elements, type-erased: what map and filter run.
//
//   [](const Tensor& image, const Tensor& label) { return tuple(image / 255, label); }
//   [](int64_t x) { return 2 * x; }                       // over records, as one loop per block
//
// A function takes the element as a Structure, or an element's value or a tuple's members one by
// one (of a tuple of one member that member, unless the function takes a Structure) as Tensor,
// StringTensor, Structure or scalars (arithmetic types of exactly the element's dtype or one that
// holds all of its values, std::string_view, std::string). It returns a Structure, Tensor,
// StringTensor, scalar, or a std::tuple or std::pair of those, which becomes a tuple. A map's may
// ask for random numbers first:
//
//   [](random::Generator& random, const Tensor& image) { return image + random.normal({28, 28}); }
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

#include "cohort/core/callable_traits.h"
#include "cohort/core/export.h"
#include "cohort/core/spec.h"
#include "cohort/core/structure.h"
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

// ---- argument k of a function, out of an element -----------------------------------------------

// Errors: InvalidArgument (no tuple or dict of `arity` members).
COHORT_API void check_arity(const Structure& element, size_t arity);
// What the only argument is, unless it is a Structure: the element, or a tuple's only member.
COHORT_API const Structure& sole_argument(const Structure& element);
// Errors: InvalidArgument (no leaf of that kind; `argument` is which).
COHORT_API const Tensor& tensor_argument(const Structure& value, size_t argument);
COHORT_API const StringTensor& strings_argument(const Structure& value, size_t argument);
// The value of a 0-d tensor, as `dtype`. Errors: InvalidArgument.
COHORT_API Tensor number_argument(const Structure& value, DType dtype, size_t argument);
COHORT_API std::string_view string_argument(const Structure& value, size_t argument);
COHORT_API Tensor scalar_tensor(DType dtype);

template <class T>
inline constexpr bool kIsNumber =
    std::is_same_v<T, bool> || std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t> || std::is_same_v<T, int16_t> ||
    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> || std::is_same_v<T, long long>;
template <class T>
inline constexpr bool kIsText =
    std::is_same_v<T, std::string_view> || std::is_same_v<T, std::string>;
template <class T>
inline constexpr bool kIsScalar = kIsNumber<T> || kIsText<T>;

template <class T>
constexpr ScalarType scalar_type() {
  if constexpr (kIsText<T>)
    return {.is_string = true};
  else if constexpr (std::is_same_v<T, bool>)
    return {.dtype = boolean};
  else if constexpr (std::is_same_v<T, float>)
    return {.dtype = float32};
  else if constexpr (std::is_same_v<T, double>)
    return {.dtype = float64};
  else if constexpr (std::is_same_v<T, int8_t>)
    return {.dtype = DType::Char};
  else if constexpr (std::is_same_v<T, uint8_t>)
    return {.dtype = uint8};
  else if constexpr (std::is_same_v<T, int16_t>)
    return {.dtype = DType::Short};
  else if constexpr (std::is_same_v<T, int32_t>)
    return {.dtype = int32};
  else
    return {.dtype = int64};
}

template <class T>
decltype(auto) argument(const Structure& value, size_t index) {
  static_assert(kIsScalar<T> || std::is_same_v<T, Structure> || std::is_same_v<T, Tensor> ||
                    std::is_same_v<T, StringTensor>,
                "a function on elements takes Structure, Tensor, StringTensor, numbers or strings");
  if constexpr (std::is_same_v<T, Structure>) {
    return static_cast<const Structure&>(value);
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return tensor_argument(value, index);
  } else if constexpr (std::is_same_v<T, StringTensor>) {
    return strings_argument(value, index);
  } else if constexpr (kIsText<T>) {
    return T(string_argument(value, index));
  } else {
    const Tensor number = number_argument(value, scalar_type<T>().dtype, index);
    return T(*static_cast<const T*>(number.data_ptr()));
  }
}

// ---- results ------------------------------------------------------------------------------------

template <class T>
struct IsTupleResult : std::false_type {};
template <class... Ts>
struct IsTupleResult<std::tuple<Ts...>> : std::true_type {};
template <class A, class B>
struct IsTupleResult<std::pair<A, B>> : std::true_type {};

template <class Result>
Structure to_structure(Result&& result) {
  using T = std::remove_cvref_t<Result>;
  if constexpr (IsTupleResult<T>::value) {
    return std::apply(
        [](auto&&... members) {
          return Structure::make_tuple({to_structure(std::forward<decltype(members)>(members))...});
        },
        std::forward<Result>(result));
  } else if constexpr (kIsNumber<T>) {
    Tensor tensor = scalar_tensor(scalar_type<T>().dtype);
    *static_cast<T*>(tensor.data_ptr()) = result;
    return tensor;
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return StringTensor::scalar(result);
  } else {
    static_assert(
        std::is_convertible_v<T, Structure>,
        "a function on elements returns Structure, Tensor, StringTensor, numbers, strings, "
        "or a std::tuple or std::pair of them");
    return Structure(std::forward<Result>(result));
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

// ---- the edge -----------------------------------------------------------------------------------

// callable(leading..., the element's value or members as Args...).
template <class Callable, class... Args, size_t... kIndex, class... Leading>
decltype(auto) call_with(Callable& callable, const Structure& element, std::tuple<Args...>*,
                         std::index_sequence<kIndex...>, Leading&... leading) {
  if constexpr (sizeof...(Args) == 1) {
    constexpr bool kWhole = (std::is_same_v<Args, Structure> && ...);
    return callable(leading..., argument<Args>(kWhole ? element : sole_argument(element), 0)...);
  } else {
    check_arity(element, sizeof...(Args));
    return callable(leading..., argument<Args>(element[kIndex], kIndex)...);
  }
}

// Whether a callable's first argument is a random::Generator, and the others.
template <class Arguments>
struct RandomArguments : std::false_type {};
template <class... Args>
struct RandomArguments<std::tuple<random::Generator, Args...>> : std::true_type {
  using Rest = std::tuple<Args...>;
};

template <class Result, class Callable, class... Args, size_t... kIndex>
ScalarFunction make_scalar_function(std::shared_ptr<Callable> callable, std::tuple<Args...>*,
                                    std::index_sequence<kIndex...>) {
  using Results = ScalarResults<Result>;
  ScalarFunction function;
  function.arguments = {scalar_type<Args>()...};
  function.results = Results::types();
  function.returns_tuple = IsTupleResult<Result>::value;
  function.loop = [callable](const ScalarInput* in, const ScalarOutput* out, int64_t n,
                             int64_t& row) {
    Callable& call = *callable;
    for (; row < n; ++row) Results::store(call(read_scalar<Args>(in[kIndex], row)...), out, row);
  };
  return function;
}

template <class F>
ElementFunction make_element_function(F&& function) {
  using Callable = std::decay_t<F>;
  auto callable = std::make_shared<Callable>(std::forward<F>(function));
  ElementFunction erased;
  if constexpr (HasCallableTraits<Callable>) {
    using Traits = CallableTraits<Callable>;
    using Result = std::remove_cvref_t<typename Traits::Result>;
    static_assert(Traits::kArity > 0, "a function on elements takes at least one argument");
    static_assert(!RandomArguments<typename Traits::Arguments>::value,
                  "only a map's function may ask for a random::Generator");
    constexpr auto kIndices = std::make_index_sequence<Traits::kArity>();
    constexpr typename Traits::Arguments* kArguments = nullptr;
    erased.whole = [callable, kIndices](const Structure& element) {
      return to_structure(call_with(*callable, element, kArguments, kIndices));
    };
    constexpr auto kScalars = []<class... Args>(std::tuple<Args...>*) {
      return std::pair((kIsScalar<Args> && ...), (kIsScalar<Args> || ...));
    }(kArguments);
    erased.takes_scalars = kScalars.second;
    if constexpr (kScalars.first && ScalarResults<Result>::kAll) {
      erased.scalar = make_scalar_function<Result>(callable, kArguments, kIndices);
    }
  } else {
    static_assert(std::is_invocable_v<Callable&, const Structure&>,
                  "a generic function on elements takes a Structure");
    erased.whole = [callable](const Structure& element) {
      return to_structure((*callable)(element));
    };
  }
  return erased;
}

// Also functions that ask for a generator first.
template <class F>
ElementFunction make_map_function(F&& function) {
  using Callable = std::decay_t<F>;
  if constexpr (HasCallableTraits<Callable>) {
    using Random = RandomArguments<typename CallableTraits<Callable>::Arguments>;
    if constexpr (Random::value) {
      using Rest = typename Random::Rest;
      static_assert(std::tuple_size_v<Rest> > 0, "after the generator comes the element");
      auto callable = std::make_shared<Callable>(std::forward<F>(function));
      ElementFunction erased;
      erased.takes_scalars = []<class... Args>(std::tuple<Args...>*) {
        return (kIsScalar<Args> || ...);
      }(static_cast<Rest*>(nullptr));
      erased.random = [callable](const random::Generator& generator, const Structure& element) {
        constexpr auto kIndices = std::make_index_sequence<std::tuple_size_v<Rest>>();
        random::Generator mine = generator;  // a handle: functions may ask for Generator&
        return to_structure(
            call_with(*callable, element, static_cast<Rest*>(nullptr), kIndices, mine));
      };
      return erased;
    } else {
      return make_element_function(std::forward<F>(function));
    }
  } else {
    return make_element_function(std::forward<F>(function));
  }
}

// Functions on elements that give something else than an element: a dataset.
template <class Result, class F>
std::function<Result(const Structure&)> make_function_to(F&& function) {
  using Callable = std::decay_t<F>;
  auto callable = std::make_shared<Callable>(std::forward<F>(function));
  if constexpr (HasCallableTraits<Callable>) {
    using Traits = CallableTraits<Callable>;
    static_assert(Traits::kArity > 0, "a function on elements takes at least one argument");
    static_assert(std::is_convertible_v<typename Traits::Result, Result>,
                  "this function on elements returns a data::Dataset");
    return [callable](const Structure& element) -> Result {
      constexpr typename Traits::Arguments* kArguments = nullptr;
      return call_with(*callable, element, kArguments, std::make_index_sequence<Traits::kArity>());
    };
  } else {
    static_assert(std::is_invocable_r_v<Result, Callable&, const Structure&>,
                  "a generic function on elements takes a Structure; this one returns a Dataset");
    return [callable](const Structure& element) -> Result { return (*callable)(element); };
  }
}

}  // namespace cohort::internal
