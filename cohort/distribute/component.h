// Extracts what one replica gets of a value: its component of a PerReplica or Mirrored, or any
// other value as a whole.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "cohort/core/optional.h"
#include "cohort/distribute/values.h"

namespace cohort::internal {

template <class Value>
const Value& component(const Value& value, size_t) {
  return value;
}
template <class T>
const T& component(const distribute::PerReplica<T>& value, size_t local_replica) {
  return value.value(local_replica);
}
template <class T>
const T& component(const distribute::Mirrored<T>& value, size_t local_replica) {
  return value.value(local_replica);
}

// What an iterator's next() returned, instead of the batch in it.
template <class T>
const T& component(const std::optional<distribute::PerReplica<T>>& value, size_t local_replica) {
  static_assert(sizeof(T) == 0,
                "next() returns a std::optional: check that it has a value and pass *batch, or use "
                "get_next() or tf::next(iterator), which throw OutOfRangeError at the end");
  return value->value(local_replica);
}
template <class T>
const T& component(const Optional<distribute::PerReplica<T>>& value, size_t local_replica) {
  static_assert(sizeof(T) == 0,
                "get_next_as_optional() returns an Optional: check has_value() and pass "
                "get_value()");
  return value->value(local_replica);
}

template <class Value>
using Component = std::remove_cvref_t<decltype(component(std::declval<const Value&>(), size_t{}))>;

}  // namespace cohort::internal
