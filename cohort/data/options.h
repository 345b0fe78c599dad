// Options for the execution and distribution of a dataset; they do not change its elements.
//
//   data::Options options;
//   options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::DATA;
//   dataset = dataset.with_options(options);
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>

#include "cohort/core/export.h"

namespace cohort::data {

// How a dataset is divided between several input workers.
enum class AutoShardPolicy {
  OFF = -1,  // every worker sees all data
  AUTO = 0,  // FILE, and where that is impossible DATA
  FILE = 1,  // whole files
  DATA = 2,  // elements, by index
  HINT = 3,  // where the dataset itself says, by shard(SHARD_HINT, ...)
};

// In Dataset::shard(SHARD_HINT, SHARD_HINT): the place where AutoShardPolicy::HINT divides; the
// index is ignored. Under every other policy, and with one worker, all elements pass.
inline constexpr int64_t SHARD_HINT = -1;

// A field that is not set keeps the value of the dataset's inputs, and finally its default.
struct DistributeOptions {
  std::optional<AutoShardPolicy> auto_shard_policy = {};  // default: AUTO
  std::optional<int64_t> num_devices = {};                // without effect: the strategy knows
};

// The following structs are tf.data's. They are accepted and have no effect; this is logged once
// per process for each field that is set.

// Graph optimizations: blocks (docs/data.md) serve their purpose here.
struct OptimizationOptions {
  std::optional<bool> apply_default_optimizations = {};
  std::optional<bool> filter_fusion = {};
  std::optional<bool> filter_parallelization = {};
  std::optional<bool> inject_prefetch = {};
  std::optional<bool> map_and_batch_fusion = {};
  std::optional<bool> map_and_filter_fusion = {};
  std::optional<bool> map_fusion = {};
  std::optional<bool> map_parallelization = {};
  std::optional<bool> noop_elimination = {};
  std::optional<bool> parallel_batch = {};
  std::optional<bool> seq_interleave_prefetch = {};
  std::optional<bool> shuffle_and_repeat_fusion = {};
};

// All pipelines share one pool of threads.
struct ThreadingOptions {
  std::optional<int64_t> max_intra_op_parallelism = {};
  std::optional<int64_t> private_threadpool_size = {};
};

// AUTOTUNE is set where it is wanted, and has its own limits.
struct AutotuneOptions {
  std::optional<bool> enabled = {};
  std::optional<int64_t> cpu_budget = {};
  std::optional<int64_t> ram_budget = {};
};

// How to handle operations with state outside of the graph: here it is part of the iterator's
// state.
enum class ExternalStatePolicy { WARN = 0, IGNORE = 1, FAIL = 2 };

// A value type. Thread safety: as any struct.
struct COHORT_API Options {
  DistributeOptions experimental_distribute = {};
  OptimizationOptions experimental_optimization = {};
  // Whether parallel stages without an option of their own keep the order of their input. Default:
  // true.
  std::optional<bool> deterministic = {};
  std::optional<bool> experimental_deterministic = {};  // the older name of the same
  ThreadingOptions threading = {};
  AutotuneOptions autotune = {};
  std::optional<ExternalStatePolicy> experimental_external_state_policy = {};  // without effect
  std::optional<bool> experimental_slack = {};                                 // without effect
  std::optional<bool> experimental_symbolic_checkpoint = {};                   // without effect
  std::optional<bool> experimental_warm_start = {};                            // without effect

  // These options, with those that `over` sets in place of them.
  Options merged_with(const Options& over) const;
  AutoShardPolicy auto_shard_policy() const {
    return experimental_distribute.auto_shard_policy.value_or(AutoShardPolicy::AUTO);
  }
  bool is_deterministic() const {
    return deterministic.value_or(experimental_deterministic.value_or(true));
  }
};

// Logs which of the options have no effect here, once per process for each.
// Thread safety: any thread.
COHORT_API void log_ignored(const Options& options);

// AUTO, FILE, ...
COHORT_API std::ostream& operator<<(std::ostream& out, AutoShardPolicy policy);
// WARN, IGNORE, FAIL
COHORT_API std::ostream& operator<<(std::ostream& out, ExternalStatePolicy policy);
// {auto_shard_policy: DATA, deterministic: false}: what is set.
COHORT_API std::ostream& operator<<(std::ostream& out, const Options& options);

// The guides' names.
namespace experimental {
using data::AutoShardPolicy;
using data::AutotuneOptions;
using data::DistributeOptions;
using data::ExternalStatePolicy;
using data::OptimizationOptions;
using data::SHARD_HINT;
using data::ThreadingOptions;
}  // namespace experimental

}  // namespace cohort::data
