// Extracts what one replica gets of a value: its component of a PerReplica or Mirrored, or any
// other value as a whole.
#pragma once

#include <type_traits>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/distribute/values/values.h"

namespace cohort::internal {

// `what`: whose components they are, such as "an argument of run".
[[noreturn]] COHORT_API void throw_wrong_component_count(const char* what, size_t components,
                                                         size_t replicas);

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

template <class Value>
using Component = std::remove_cvref_t<decltype(component(std::declval<const Value&>(), size_t{}))>;

}  // namespace cohort::internal
