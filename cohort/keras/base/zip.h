// Python's zip for two lists of the same length.
//
//   optimizer.apply_gradients(zip(gradients, model.trainable_variables()));
//   optimizer.apply_gradients(zip(gradients, {weight, bias}));
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "cohort/core/error.h"

namespace cohort {

// Errors: InvalidArgument (the lists differ in length).
template <class A, class B>
std::vector<std::pair<A, B>> zip(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) {
    throw InvalidArgumentError(
        internal::str("zip got lists of ", a.size(), " and ", b.size(), " elements"));
  }
  std::vector<std::pair<A, B>> pairs;
  pairs.reserve(a.size());
  for (size_t i = 0; i < a.size(); ++i) pairs.emplace_back(a[i], b[i]);
  return pairs;
}
// The second list may stand in braces.
template <class A, class B>
std::vector<std::pair<A, B>> zip(const std::vector<A>& a, std::initializer_list<B> b) {
  return zip(a, std::vector<B>(b));
}

}  // namespace cohort
