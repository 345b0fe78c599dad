// The parameter of a function, or any value, out of a Structure: the way back of to_structure.h.
//
//   from_structure<int64_t>(element[0], 0, site);
//   from_structure<std::pair<Tensor, Tensor>>(element, 0, site);
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/aggregate.h"
#include "cohort/core/structure/scalar_type.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/to_structure.h"

namespace cohort::internal {

// The words of messages: "<function> takes 2 <argument>s, but <input> is one leaf: ...".
struct CallSite {
  const char* function = "the function";
  const char* argument = "argument";
  const char* input = "the input";
};

// ---- parameter `index` of a function, out of a structure ----------------------------------------
// Errors: InvalidArgument, naming the parameter and what is there.

// Errors: the input is no tuple of `count` members (a dict's have names, which parameters lack).
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
// Errors: `value` is no tuple of `count` members, which parameter `index` has.
COHORT_API void check_parameter_members(const Structure& value, size_t count, size_t index,
                                        const CallSite& site);

// Whether every value of `from` is one of `to` (or rounds to one, for large integers).
bool widens(DType from, DType to);
// Says that a parameter is a `type`, but that `found` is there.
[[noreturn]] COHORT_API void throw_wrong_scalar(size_t index, const std::string& type,
                                                const std::string& found, const CallSite& site);

template <class T>
inline constexpr bool kTakesLeaf =
    kIsScalar<T> || std::is_same_v<T, Tensor> || std::is_same_v<T, StringTensor>;

// Whether from_structure makes a T.
template <class T>
constexpr bool is_parameter();
template <class T>
inline constexpr bool kIsParameter = is_parameter<T>();

template <class T>
struct AreParameters {
  static constexpr bool kAll = false;
};
template <class... Ts>
struct AreParameters<std::tuple<Ts...>> {
  static constexpr bool kAll = (kIsParameter<std::remove_cv_t<Ts>> && ...);
};
template <class A, class B>
struct AreParameters<std::pair<A, B>> : AreParameters<std::tuple<A, B>> {};
template <class T, size_t kSize>
struct AreParameters<std::array<T, kSize>> : AreParameters<std::tuple<T>> {};

template <class T>
constexpr bool is_struct_parameter() {
  if constexpr (kFieldCount<T> == 0) {
    return false;
  } else {
    return decltype(with_fields(std::declval<T&>(), [](auto&... fields) {
      return std::bool_constant<(kIsParameter<std::remove_cvref_t<decltype(fields)>> && ...)>();
    }))::value;
  }
}

template <class T>
constexpr bool is_parameter() {
  if constexpr (kIsTupleResult<T>) {
    return AreParameters<T>::kAll;
  } else if constexpr (kTakesLeaf<T> || std::is_convertible_v<const Structure&, T> ||
                       std::is_convertible_v<const Tensor&, T>) {
    return true;
  } else if constexpr (kIsVectorResult<T>) {
    return kIsParameter<typename T::value_type>;
  } else {
    return is_struct_parameter<T>();
  }
}

template <class T>
decltype(auto) from_structure(const Structure& value, size_t index, const CallSite& site);

template <class T, size_t... kIndex>
T tuple_from_structure(const Structure& value, size_t index, const CallSite& site,
                       std::index_sequence<kIndex...>) {
  check_parameter_members(value, sizeof...(kIndex), index, site);
  return T{from_structure<std::tuple_element_t<kIndex, T>>(value[kIndex], index, site)...};
}

template <class T>
T struct_from_structure(const Structure& value, size_t index, const CallSite& site) {
  check_parameter_members(value, kFieldCount<T>, index, site);
  T made{};
  with_fields(made, [&](auto&... fields) {
    size_t member = 0;
    ((fields = from_structure<std::remove_cvref_t<decltype(fields)>>(value[member++], index, site)),
     ...);
  });
  return made;
}

template <class T>
T vector_from_structure(const Structure& value, size_t index, const CallSite& site) {
  check_parameter_members(value, value.is_leaf() ? 0 : value.size(), index, site);
  T made;
  for (size_t i = 0; i < value.size(); ++i) {
    made.push_back(from_structure<typename T::value_type>(value[i], index, site));
  }
  return made;
}

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
  } else if constexpr (kIsTupleResult<T>) {  // before what converts: a std::tuple of one does
    return tuple_from_structure<T>(value, index, site,
                                   std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (std::is_convertible_v<const Structure&, T>) {
    return static_cast<T>(value);
  } else if constexpr (std::is_convertible_v<const Tensor&, T>) {
    return static_cast<T>(tensor_value(value, index, site));
  } else if constexpr (kIsVectorResult<T>) {
    return vector_from_structure<T>(value, index, site);
  } else {
    static_assert(kIsParameter<T>,
                  "a function's parameters are Structure, Tensor, StringTensor, numbers, strings, "
                  "tuples, pairs and plain structs of them, or what a Structure or a Tensor "
                  "converts to");
    return struct_from_structure<T>(value, index, site);
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

}  // namespace cohort::internal
