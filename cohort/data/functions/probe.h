// Finding something out by looking at elements.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>

#include "cohort/core/caught_error.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/pass_interrupted.h"

namespace cohort::internal {

// Calls use(element, index) for the node's first element. Where reading it or `use` fails, for the
// next, and so on: the first of many may be damaged, or a function may refuse it. Does nothing
// where there are no elements. Errors: the first, where all of many fail; InputDeadlineExceeded.
template <class Use>
void probe(const DataNode& node, const Use& use) {
  constexpr int64_t kMostProbed = 100;
  const auto iterator = node.make_iterator({.probing = true});
  std::exception_ptr error;
  for (int64_t index = 0; index < kMostProbed; ++index) {
    Structure element;
    try {
      if (!at_root([&] { return iterator->next(element); })) break;
      return use(std::as_const(element), index);
    } catch (const InputDeadlineExceeded&) {
      throw;
    } catch (...) {
      const std::exception_ptr failure = caught_error();
      if (!error) error = failure;
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace cohort::internal
