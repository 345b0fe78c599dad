// How a dataset wants to be executed and distributed; says nothing about its elements.
//
//   data::Options options;
//   options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::DATA;
//   dataset = dataset.with_options(options);
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>

namespace cohort::data {

// How a dataset is divided between several input workers.
enum class AutoShardPolicy {
  OFF = -1,  // every worker sees all data
  AUTO = 0,  // FILE, and where that is impossible DATA
  FILE = 1,  // whole files
  DATA = 2,  // elements, by index
  HINT = 3,  // where the dataset itself says, by shard(SHARD_HINT, ...)
};

// In Dataset::shard(SHARD_HINT, SHARD_HINT): where AutoShardPolicy::HINT divides, whatever the
// index is. Under every other policy, and with one worker, all elements pass.
inline constexpr int64_t SHARD_HINT = -1;

// Each field that is not set keeps what the dataset's inputs say, and at the end its default.
struct DistributeOptions {
  std::optional<AutoShardPolicy> auto_shard_policy = {};  // default: AUTO
};

// Rewrites that tf.data can make of a graph. They are accepted and have no effect, which is logged
// once a process for each that is set: blocks (docs/data.md) do what they are for.
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
  std::optional<bool> shuffle_and_repeat_fusion = {};
};

// A value type. Thread safety: as any struct.
struct Options {
  DistributeOptions experimental_distribute = {};
  OptimizationOptions experimental_optimization = {};
  // Whether parallel stages keep the order of their input. Default: true.
  std::optional<bool> experimental_deterministic = {};
  // Whether tf.data's last prefetch starts later than it could. Accepted without effect, as the
  // optimizations are.
  std::optional<bool> experimental_slack = {};

  // These options, with those that `over` sets in place of them.
  Options merged_with(const Options& over) const;
  AutoShardPolicy auto_shard_policy() const {
    return experimental_distribute.auto_shard_policy.value_or(AutoShardPolicy::AUTO);
  }
};

// Says in the log which of the options have no effect here, once a process for each.
// Thread safety: any thread.
void log_ignored(const Options& options);

// AUTO, FILE, ...
std::ostream& operator<<(std::ostream& out, AutoShardPolicy policy);
// {auto_shard_policy: DATA, deterministic: false}: what is set.
std::ostream& operator<<(std::ostream& out, const Options& options);

// The guides' names.
namespace experimental {
using data::AutoShardPolicy;
using data::DistributeOptions;
using data::OptimizationOptions;
using data::SHARD_HINT;
}  // namespace experimental

}  // namespace cohort::data
