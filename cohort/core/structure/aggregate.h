// The fields of a struct, for functions that take or return one:
//
//   struct Loss { Tensor sum, count; };
//   static_assert(kFieldCount<Loss> == 2);
//   with_fields(loss, [](Tensor& sum, Tensor& count) { ... });
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace cohort::internal {

// Converts to the type of any field, but to no base class of the struct.
template <class Struct>
struct AnyField {
  template <class T>
  requires(!std::is_base_of_v<T, Struct>) operator T() const;
};

// Converts to a base class of the struct alone.
template <class Struct>
struct AnyBase {
  template <class T>
  requires(std::is_base_of_v<T, Struct> && !std::is_same_v<T, Struct>) operator T() const;
};

template <class T, size_t... kIndex>
constexpr bool takes_fields(std::index_sequence<kIndex...>) {
  return requires { T{(static_cast<void>(kIndex), AnyField<T>())...}; };
}
template <class T, size_t kCount = 7>
constexpr size_t count_fields() {
  if constexpr (kCount == 0) {
    return 0;
  } else if constexpr (takes_fields<T>(std::make_index_sequence<kCount>())) {
    return kCount;
  } else {
    return count_fields<T, kCount - 1>();
  }
}

// The number of elements that braces initialize, where a base class or an array is one.
template <class T>
constexpr size_t count_elements() {
  if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}}; }) return 7;
  if constexpr (requires { T{{}, {}, {}, {}, {}, {}}; }) return 6;
  if constexpr (requires { T{{}, {}, {}, {}, {}}; }) return 5;
  if constexpr (requires { T{{}, {}, {}, {}}; }) return 4;
  if constexpr (requires { T{{}, {}, {}}; }) return 3;
  if constexpr (requires { T{{}, {}}; }) return 2;
  return 1;
}

// The number of T's fields, if T is a plain struct of one to six of them: no base classes, no C
// arrays, nothing private. Else 0.
template <class T>
constexpr size_t plain_field_count() {
  if constexpr (std::is_aggregate_v<T> && std::is_class_v<T> && !requires { T{AnyBase<T>()}; }) {
    constexpr size_t kCount = count_fields<T>();
    return kCount < 7 && count_elements<T>() == kCount ? kCount : 0;
  } else {
    return 0;
  }
}
template <class T>
inline constexpr size_t kFieldCount = plain_field_count<T>();

// fn(field...), with references to the fields of `object`, which is a struct or a const one.
template <class T, class Fn>
decltype(auto) with_fields(T& object, Fn&& fn) {
  constexpr size_t kCount = kFieldCount<std::remove_const_t<T>>;
  if constexpr (kCount == 1) {
    auto& [a] = object;
    return fn(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = object;
    return fn(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = object;
    return fn(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = object;
    return fn(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = object;
    return fn(a, b, c, d, e);
  } else {
    static_assert(kCount == 6);
    auto& [a, b, c, d, e, f] = object;
    return fn(a, b, c, d, e, f);
  }
}

}  // namespace cohort::internal
