// Makes a Structure from what a function returned:
//
//   to_structure(std::pair(images, 0.5));     // (float32 [2, 3], float64 [])
//   struct Loss { Tensor sum, count; };
//   to_structure(Loss{sum, count});           // (sum, count)
//
// A Structure, or what converts to one; numbers and strings; a std::tuple, pair, array or vector of
// such, or a plain struct of up to six such fields, which becomes a tuple.
#pragma once

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/aggregate.h"
#include "cohort/core/structure/scalar_type.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// Uninitialised, of shape [].
COHORT_API Tensor scalar_tensor(DType dtype);

template <class T>
inline constexpr bool kIsTupleResult = false;
template <class... Ts>
inline constexpr bool kIsTupleResult<std::tuple<Ts...>> = true;
template <class A, class B>
inline constexpr bool kIsTupleResult<std::pair<A, B>> = true;
template <class T, size_t kSize>
inline constexpr bool kIsTupleResult<std::array<T, kSize>> = true;

template <class T>
inline constexpr bool kIsVectorResult = false;
template <class T>
inline constexpr bool kIsVectorResult<std::vector<T>> = true;

// Whether to_structure takes a T.
template <class T>
constexpr bool is_result();
template <class T>
inline constexpr bool kIsResult = is_result<T>();

template <class T>
struct AreResults {
  static constexpr bool kAll = true;
};
template <class... Ts>
struct AreResults<std::tuple<Ts...>> {
  static constexpr bool kAll = (kIsResult<Ts> && ...);
};
template <class A, class B>
struct AreResults<std::pair<A, B>> : AreResults<std::tuple<A, B>> {};
template <class T, size_t kSize>
struct AreResults<std::array<T, kSize>> : AreResults<std::tuple<T>> {};

template <class T>
inline constexpr bool kIsLeafResult = kIsNumber<T> || std::is_convertible_v<T, Structure> ||
                                      std::is_convertible_v<T, std::string_view>;

// Whether T is a plain struct that becomes a tuple.
template <class T>
constexpr bool is_struct_result() {
  if constexpr (kIsLeafResult<T> || kIsTupleResult<T> || kFieldCount<T> == 0) {
    return false;
  } else {
    return decltype(with_fields(std::declval<T&>(), [](auto&... fields) {
      return std::bool_constant<(kIsResult<std::remove_cvref_t<decltype(fields)>> && ...)>();
    }))::value;
  }
}
template <class T>
inline constexpr bool kIsStructResult = is_struct_result<T>();

template <class T>
constexpr bool is_result() {
  if constexpr (kIsTupleResult<T>) {
    return AreResults<T>::kAll;
  } else if constexpr (kIsVectorResult<T>) {
    return kIsResult<typename T::value_type> && !kIsScalar<typename T::value_type>;
  } else {
    return kIsLeafResult<T> || kIsStructResult<T>;
  }
}

enum class ScalarDtype {
  kExact,    // that of the C++ type: a double is a float64, an int an int32
  kDefault,  // Structure's own: a double is a float32, an int an int64
};

template <ScalarDtype kScalars = ScalarDtype::kExact, class Result>
Structure to_structure(Result&& result) {
  using T = std::remove_cvref_t<Result>;
  if constexpr (kIsTupleResult<T>) {
    return std::apply(
        [](auto&&... members) {
          return Structure::make_tuple(
              {to_structure<kScalars>(std::forward<decltype(members)>(members))...});
        },
        std::forward<Result>(result));
  } else if constexpr (kIsVectorResult<T>) {
    static_assert(!kIsScalar<typename T::value_type>,
                  "a vector of scalars would become a tuple of as many tensors: return a Tensor or "
                  "StringTensor of them");
    std::vector<Structure> members;
    members.reserve(result.size());
    for (const auto& member : result) members.push_back(to_structure<kScalars>(member));
    return Structure::make_tuple(std::move(members));
  } else if constexpr (kScalars == ScalarDtype::kDefault &&
                       std::is_convertible_v<Result, Structure>) {
    return std::forward<Result>(result);
  } else if constexpr (kIsNumber<T>) {
    Tensor tensor = scalar_tensor(number_dtype<T>());
    *static_cast<T*>(tensor.data_ptr()) = result;
    return tensor;
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return StringTensor::scalar(result);
  } else if constexpr (kIsStructResult<T>) {
    return with_fields(result, [](auto&... fields) {
      return Structure::make_tuple({to_structure<kScalars>(fields)...});
    });
  } else {
    static_assert(std::is_convertible_v<T, Structure>,
                  "a function returns Structure, Tensor, StringTensor, numbers, strings, or a "
                  "std::tuple, pair, array, vector or plain struct of them");
    return Structure(std::forward<Result>(result));
  }
}

}  // namespace cohort::internal
