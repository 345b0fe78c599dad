#include "cohort/data/options.h"

#include <ostream>

namespace cohort::data {
namespace {

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
  return merged;
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
  out << '}';
  out.flags(flags);
  return out;
}

}  // namespace cohort::data
