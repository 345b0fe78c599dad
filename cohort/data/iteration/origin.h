// Puts the origin of an element in front of error messages about it.
#pragma once

#include <memory>
#include <string>

#include "cohort/core/error_context.h"
#include "cohort/data/iteration/iterator.h"

namespace cohort::internal {

// The origin of something that is made of several elements of the input, which may come from
// several files.
inline std::shared_ptr<const std::string> of_several(const std::string& what,
                                                     const DataIterator& input) {
  const auto origin = input.last_origin();
  if (!origin) return nullptr;
  return std::make_shared<const std::string>(what + " that ends in " + *origin);
}

// Calls work(); an exception from it is rethrown with `origin` in front of its message, if there is
// one.
template <class Work>
auto with_origin(const std::shared_ptr<const std::string>& origin, const Work& work) {
  try {
    return work();
  } catch (...) {
    if (!origin) throw;
    rethrow_with_context(*origin);
  }
}

// The same, with the origin of the last element of `input`.
template <class Work>
auto with_origin(const DataIterator& input, const Work& work) {
  try {
    return work();
  } catch (...) {
    const auto origin = input.last_origin();
    if (!origin) throw;
    rethrow_with_context(*origin);
  }
}

}  // namespace cohort::internal
