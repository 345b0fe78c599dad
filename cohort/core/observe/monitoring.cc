#include "cohort/core/observe/monitoring.h"

#include <map>
#include <mutex>
#include <utility>

namespace cohort {
namespace {

using Key = std::pair<std::string, std::vector<std::string>>;

struct Registry {
  std::mutex mutex;
  std::map<Key, int64_t> values;
};

// Made at first use and never destroyed: static objects may count while the process exits.
Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

}  // namespace

namespace monitoring {

int64_t value(std::string_view name, const std::vector<std::string>& labels) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.values.find(Key(name, labels));
  return found == all.values.end() ? 0 : found->second;
}

std::vector<Sample> samples() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<Sample> samples;
  for (const auto& [key, value] : all.values) samples.push_back({key.first, key.second, value});
  return samples;
}

}  // namespace monitoring

namespace internal {

void increase_counter(std::string_view name, std::vector<std::string> labels, int64_t by) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.values[Key(name, std::move(labels))] += by;
}

void set_gauge(std::string_view name, std::vector<std::string> labels, int64_t value) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.values[Key(name, std::move(labels))] = value;
}

}  // namespace internal
}  // namespace cohort
