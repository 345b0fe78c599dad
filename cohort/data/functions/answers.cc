#include "cohort/data/functions/answers.h"

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

int64_t integer_of(const Structure& answer, std::string_view what) {
  if (answer.is_leaf() && answer.leaf().is_tensor() && answer.tensor().dim() == 0 &&
      c10::isIntegralType(answer.tensor().scalar_type(), /*includeBool=*/false)) {
    return answer.tensor().item<int64_t>();
  }
  throw InvalidArgumentError(
      str(what, StructureSpec::of(answer), "; it must be an integer or an integer scalar tensor"));
}

}  // namespace cohort::internal
