#include "cohort/data/functions/predicate.h"

#include "cohort/core/structure/spec.h"

namespace cohort::internal {

bool is_true(const Structure& answer) {
  if (answer.is_leaf() && answer.leaf().is_tensor() && answer.tensor().dim() == 0 &&
      answer.tensor().scalar_type() == boolean) {
    return answer.tensor().item<bool>();
  }
  throw InvalidArgumentError(str("the function returned ", StructureSpec::of(answer),
                                 "; it must return a bool or a bool scalar tensor"));
}

}  // namespace cohort::internal
