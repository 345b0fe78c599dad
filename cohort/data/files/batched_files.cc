#include "cohort/data/files/batched_files.h"

namespace cohort::internal {

data::Dataset batched(data::Dataset records, const BatchedFiles& options) {
  if (options.shuffle) {
    records = records.shuffle(options.shuffle_buffer_size, {.seed = options.shuffle_seed});
  }
  if (options.num_epochs != 1) records = records.repeat(options.num_epochs.value_or(-1));
  return records.batch(options.batch_size,
                       {.drop_remainder = options.drop_remainder || !options.num_epochs});
}

data::InterleaveOptions files_in_turn(int64_t num_parallel_reads, bool sloppy) {
  data::InterleaveOptions options;
  if (num_parallel_reads != data::AUTOTUNE) options.cycle_length = num_parallel_reads;
  if (num_parallel_reads != 1) options.num_parallel_calls = num_parallel_reads;
  if (sloppy) options.deterministic = false;
  return options;
}

}  // namespace cohort::internal
