#include "cohort/distribute/input/input_context.h"

#include <ostream>

#include "cohort/core/error.h"

namespace cohort::distribute {

int64_t InputContext::get_per_replica_batch_size(int64_t global_batch_size) const {
  if (num_replicas_in_sync < 1 || global_batch_size < 0) {
    throw InvalidArgumentError(internal::str("a global batch of ", global_batch_size,
                                             " cannot be divided between ", num_replicas_in_sync,
                                             " replicas in sync"));
  }
  if (global_batch_size % num_replicas_in_sync != 0) {
    throw InvalidArgumentError(internal::str(
        "the global batch size ", global_batch_size, " cannot be divided by the ",
        num_replicas_in_sync, " replicas in sync; choose a multiple of their number"));
  }
  return global_batch_size / num_replicas_in_sync;
}

std::ostream& operator<<(std::ostream& out, const InputContext& context) {
  return out << "tf.distribute.InputContext(input pipeline id " << context.input_pipeline_id
             << ", total: " << context.num_input_pipelines << ")";
}

}  // namespace cohort::distribute
