// Input pipelines alone, without strategies and Keras: for programs that read, write or prepare
// data.
//
//   #include <cohort/data.h>
//   for (const cohort::Structure& batch : cohort::data::Dataset::range(9).batch(2)) ...
//
// cohort/cohort.h includes all of it.
#pragma once

#include "cohort/core/language.h"  // before all others

#include "cohort/core/error.h"
#include "cohort/core/errors.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/observe/monitoring.h"
#include "cohort/core/profiler/profiler.h"
#include "cohort/core/program/interrupt.h"
#include "cohort/core/program/memory.h"
#include "cohort/core/program/run_program.h"
#include "cohort/core/program/task_id.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/structure/device_settings.h"
#include "cohort/core/structure/leaf_type.h"
#include "cohort/core/structure/optional.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/sparse_tensor.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/core/structure/unpack.h"
#include "cohort/core/traceback.h"
#include "cohort/data/dataset.h"
#include "cohort/data/dataset_iterator.h"
#include "cohort/data/files/csv_dataset.h"
#include "cohort/data/files/example_features.h"
#include "cohort/data/files/fixed_length_record_dataset.h"
#include "cohort/data/files/make_batched_features_dataset.h"
#include "cohort/data/files/make_csv_dataset.h"
#include "cohort/data/files/parse_example.h"
#include "cohort/data/files/parse_sequence_example.h"
#include "cohort/data/files/record_dataset_options.h"
#include "cohort/data/files/text_line_dataset.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/iter.h"
#include "cohort/data/iteration/state.h"
#include "cohort/data/options.h"
#include "cohort/data/paths.h"
#include "cohort/data/ragged_batch.h"
#include "cohort/data/records/example_builder.h"
#include "cohort/data/records/tfrecord_writer.h"
#include "cohort/data/reducer.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/sharding/batch_sizes.h"
#include "cohort/data/sharding/split_batches.h"
#include "cohort/data/torch_dataset.h"
#include "cohort/data/window.h"
#include "cohort/ops/random.h"
#include "cohort/version.h"
