#include <c10/core/GradMode.h>

#include "cohort/core/error_context.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/carried_state.h"

namespace cohort::data {

Structure Dataset::reduce_erased(Structure initial, const internal::ElementFunction& fn) const {
  const c10::NoGradGuard no_grad;
  Structure state = internal::own_state(initial);
  int64_t index = 0;
  for (const Structure& element : *this) {
    Structure next;
    try {
      next = fn.whole(Structure::make_tuple({state, element}));
    } catch (...) {
      internal::rethrow_with_context(internal::str("reduce: element ", index));
    }
    internal::check_next_state("reduce", index, state, next);
    state = internal::apart_from(element, std::move(next));  // the function may write to it
    ++index;
  }
  return state;
}

}  // namespace cohort::data
