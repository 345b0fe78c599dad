#include "cohort/data/options.h"

#include <mutex>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

#include "cohort/core/observe/logging.h"

namespace cohort::data {
namespace {

// visit(name, field of a, field of b, why it has no effect) for each field that has none.
template <class A, class B, class Visit>
void for_each_ignored(A& a, B& b, const Visit& visit) {
#define COHORT_FIELD(name, why) visit(#name, a.name, b.name, why)
  const char* why = "the strategy knows its devices";
  COHORT_FIELD(experimental_distribute.num_devices, why);
  why = "pipelines run on blocks of elements as they are";
  COHORT_FIELD(experimental_optimization.apply_default_optimizations, why);
  COHORT_FIELD(experimental_optimization.filter_fusion, why);
  COHORT_FIELD(experimental_optimization.filter_parallelization, why);
  COHORT_FIELD(experimental_optimization.inject_prefetch, why);
  COHORT_FIELD(experimental_optimization.map_and_batch_fusion, why);
  COHORT_FIELD(experimental_optimization.map_and_filter_fusion, why);
  COHORT_FIELD(experimental_optimization.map_fusion, why);
  COHORT_FIELD(experimental_optimization.map_parallelization, why);
  COHORT_FIELD(experimental_optimization.noop_elimination, why);
  COHORT_FIELD(experimental_optimization.parallel_batch, why);
  COHORT_FIELD(experimental_optimization.seq_interleave_prefetch, why);
  COHORT_FIELD(experimental_optimization.shuffle_and_repeat_fusion, why);
  why = "all pipelines share one pool of threads";
  COHORT_FIELD(threading.max_intra_op_parallelism, why);
  COHORT_FIELD(threading.private_threadpool_size, why);
  why = "AUTOTUNE is said where it is wanted, and knows its own limits";
  COHORT_FIELD(autotune.enabled, why);
  COHORT_FIELD(autotune.cpu_budget, why);
  COHORT_FIELD(autotune.ram_budget, why);
  COHORT_FIELD(experimental_external_state_policy, "the state is part of the iterator's");
  COHORT_FIELD(experimental_slack, "prefetch begins as soon as it can");
  COHORT_FIELD(experimental_symbolic_checkpoint, "states are always small");
  COHORT_FIELD(experimental_warm_start, "stages begin with the first element that is asked for");
#undef COHORT_FIELD
}

template <class T>
void take_over(std::optional<T>& into, const std::optional<T>& from) {
  if (from) into = from;
}

}  // namespace

Options Options::merged_with(const Options& over) const {
  Options merged = *this;
  take_over(merged.experimental_distribute.auto_shard_policy,
            over.experimental_distribute.auto_shard_policy);
  if (over.deterministic || over.experimental_deterministic) {
    merged.deterministic = merged.experimental_deterministic = over.is_deterministic();
  }
  for_each_ignored(merged, over, [](const char*, auto& into, const auto& from, const char*) {
    take_over(into, from);
  });
  return merged;
}

void log_ignored(const Options& options) {
  static std::mutex mutex;
  static std::set<std::string> logged;
  const std::lock_guard lock(mutex);
  for_each_ignored(options, options,
                   [&](const char* name, const auto& value, const auto&, const char* why) {
                     if (!value || !logged.insert(name).second) return;
                     internal::log_info("Options.", name, " has no effect: ", why);
                   });
}

std::ostream& operator<<(std::ostream& out, AutoShardPolicy policy) {
  switch (policy) {
    case AutoShardPolicy::OFF:
      return out << "OFF";
    case AutoShardPolicy::AUTO:
      return out << "AUTO";
    case AutoShardPolicy::FILE:
      return out << "FILE";
    case AutoShardPolicy::DATA:
      return out << "DATA";
    case AutoShardPolicy::HINT:
      return out << "HINT";
  }
  return out << "AutoShardPolicy(" << static_cast<int>(policy) << ")";
}

std::ostream& operator<<(std::ostream& out, ExternalStatePolicy policy) {
  switch (policy) {
    case ExternalStatePolicy::WARN:
      return out << "WARN";
    case ExternalStatePolicy::IGNORE:
      return out << "IGNORE";
    case ExternalStatePolicy::FAIL:
      return out << "FAIL";
  }
  return out << "ExternalStatePolicy(" << static_cast<int>(policy) << ")";
}

std::ostream& operator<<(std::ostream& out, const Options& options) {
  const char* separator = "";
  const auto field = [&](std::string_view name, const auto& value) {
    if (!value) return;
    out << separator << name.substr(name.rfind('.') + 1) << ": " << *value;
    separator = ", ";
  };
  const auto flags = out.flags();
  out << std::boolalpha << '{';
  field("auto_shard_policy", options.experimental_distribute.auto_shard_policy);
  field("deterministic",
        options.deterministic ? options.deterministic : options.experimental_deterministic);
  for_each_ignored(
      options, options,
      [&](const char* name, const auto& value, const auto&, const char*) { field(name, value); });
  out << '}';
  out.flags(flags);
  return out;
}

}  // namespace cohort::data
