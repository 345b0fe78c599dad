// The type that reducing or gathering a value of any type gives: numbers become tensors, and a type
// with members keeps its kind.
//
//   Reduced<std::pair<Tensor, double>>;    // std::pair<Tensor, Tensor>
#pragma once

#include <array>
#include <concepts>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/core/structure/from_structure.h"
#include "cohort/core/structure/to_structure.h"
#include "cohort/distribute/values/values.h"

namespace cohort::internal {

template <class T>
struct ReducedOf {
  using type = std::conditional_t<kIsNumber<T>, Tensor, T>;
};
template <class... Ts>
struct ReducedOf<std::tuple<Ts...>> {
  using type = std::tuple<typename ReducedOf<Ts>::type...>;
};
template <class A, class B>
struct ReducedOf<std::pair<A, B>> {
  using type = std::pair<typename ReducedOf<A>::type, typename ReducedOf<B>::type>;
};
template <class T, size_t kSize>
struct ReducedOf<std::array<T, kSize>> {
  using type = std::array<typename ReducedOf<T>::type, kSize>;
};
template <class T>
struct ReducedOf<std::vector<T>> {
  using type = std::vector<typename ReducedOf<T>::type>;
};
template <class T>
using Reduced = typename ReducedOf<T>::type;

// Types that are no Tensor or Structure, for which there are functions of their own.
template <class T>
concept ReducesByMember =
    !std::same_as<T, Tensor> && !std::same_as<T, Structure> &&
    (kIsNumber<T> || kIsTupleResult<T> || kIsVectorResult<T> || kIsStructResult<T>)&&kIsResult<T>;

inline constexpr CallSite kReducedSite{
    .function = "a reduced value", .argument = "member", .input = "the result"};

template <class T>
Reduced<T> from_reduced(const Structure& value) {
  return from_structure<Reduced<T>>(value, 0, kReducedSite);
}

// Numbers keep their dtype.
template <class T>
distribute::PerReplica<Structure> exact_structures(const distribute::PerReplica<T>& value) {
  typename distribute::PerReplica<Structure>::Values structures;
  for (const T& component : value.values()) structures.push_back(to_structure(component));
  return distribute::PerReplica<Structure>(std::move(structures));
}

}  // namespace cohort::internal
