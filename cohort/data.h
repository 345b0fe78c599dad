// Input pipelines alone, without strategies and Keras: for programs that read, write or prepare data.
//
//   #include <cohort/data.h>
//   for (const cohort::Structure& batch : cohort::data::Dataset::range(9).batch(2)) ...
//
// cohort/cohort.h includes all of it.
#pragma once

#include "cohort/core/device.h"
#include "cohort/core/error.h"
#include "cohort/core/leaf_type.h"
#include "cohort/core/logging.h"
#include "cohort/core/memory.h"
#include "cohort/core/optional.h"
#include "cohort/core/profiler.h"
#include "cohort/core/spec.h"
#include "cohort/core/string_tensor.h"
#include "cohort/core/structure.h"
#include "cohort/core/tensor.h"
#include "cohort/core/unpack.h"
#include "cohort/data/auto_shard.h"
#include "cohort/data/batch_sizes.h"
#include "cohort/data/csv_dataset.h"
#include "cohort/data/dataset.h"
#include "cohort/data/dataset_iterator.h"
#include "cohort/data/fixed_length_record_dataset.h"
#include "cohort/data/list_files.h"
#include "cohort/data/options.h"
#include "cohort/data/parse_example.h"
#include "cohort/data/paths.h"
#include "cohort/data/record_dataset_options.h"
#include "cohort/data/records/example_builder.h"
#include "cohort/data/records/tfrecord_writer.h"
#include "cohort/data/split_batches.h"
#include "cohort/data/state.h"
#include "cohort/data/text_line_dataset.h"
#include "cohort/data/tfrecord_dataset.h"
#include "cohort/data/torch_dataset.h"
#include "cohort/ops/random.h"
#include "cohort/version.h"
