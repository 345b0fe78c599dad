#include "cohort/data/options.h"

#include <map>
#include <mutex>
#include <ostream>
#include <set>
#include <string>

#include "cohort/core/logging.h"

namespace cohort::data {
namespace {

// visit(name, field) for each.
template <class Options, class Visit>
void for_each_optimization(Options& options, const Visit& visit) {
  visit("apply_default_optimizations", options.apply_default_optimizations);
  visit("filter_fusion", options.filter_fusion);
  visit("filter_parallelization", options.filter_parallelization);
  visit("inject_prefetch", options.inject_prefetch);
  visit("map_and_batch_fusion", options.map_and_batch_fusion);
  visit("map_and_filter_fusion", options.map_and_filter_fusion);
  visit("map_fusion", options.map_fusion);
  visit("map_parallelization", options.map_parallelization);
  visit("noop_elimination", options.noop_elimination);
  visit("parallel_batch", options.parallel_batch);
  visit("shuffle_and_repeat_fusion", options.shuffle_and_repeat_fusion);
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
  take_over(merged.experimental_deterministic, over.experimental_deterministic);
  take_over(merged.experimental_slack, over.experimental_slack);
  std::map<std::string, std::optional<bool>> set;
  for_each_optimization(over.experimental_optimization,
                        [&](const char* name, const auto& value) { set[name] = value; });
  for_each_optimization(merged.experimental_optimization,
                        [&](const char* name, auto& value) { take_over(value, set[name]); });
  return merged;
}

void log_ignored(const Options& options) {
  static std::mutex mutex;
  static std::set<std::string> logged;
  const auto log_once = [&](const std::string& name, const auto& value, const char* why) {
    const std::lock_guard lock(mutex);
    if (!value || !logged.insert(name).second) return;
    internal::log_info("Options.", name, " has no effect: ", why);
  };
  for_each_optimization(options.experimental_optimization,
                        [&](const char* name, const auto& value) {
                          log_once(internal::str("experimental_optimization.", name), value,
                                   "pipelines run on blocks of elements as they are");
                        });
  log_once("experimental_slack", options.experimental_slack, "prefetch begins as soon as it can");
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

std::ostream& operator<<(std::ostream& out, const Options& options) {
  const char* separator = "";
  auto field = [&](const char* name, const auto& value) {
    if (!value) return;
    out << separator << name << ": " << *value;
    separator = ", ";
  };
  const auto flags = out.flags();
  out << std::boolalpha << '{';
  field("auto_shard_policy", options.experimental_distribute.auto_shard_policy);
  field("deterministic", options.experimental_deterministic);
  field("slack", options.experimental_slack);
  for_each_optimization(options.experimental_optimization, field);
  out << '}';
  out.flags(flags);
  return out;
}

}  // namespace cohort::data
