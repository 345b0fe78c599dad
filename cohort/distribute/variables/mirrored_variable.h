// An ON_WRITE variable of which every replica has a component: they are equal at all times.
#pragma once

#include "cohort/distribute/variables/on_write_variable.h"

namespace cohort::internal {

class MirroredVariable final : public OnWriteVariable {
 public:
  using OnWriteVariable::OnWriteVariable;
  const char* kind() const override { return "MirroredVariable"; }
};

}  // namespace cohort::internal
