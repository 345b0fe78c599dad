// How variables are spread over ps tasks.
#pragma once

namespace cohort::distribute {

enum class VariablePlacement {
  ROUND_ROBIN,   // shard after shard to one ps task after the other, as TensorFlow does
  LEAST_LOADED,  // to the ps task that has the fewest bytes so far; of several, the first
};

}  // namespace cohort::distribute
