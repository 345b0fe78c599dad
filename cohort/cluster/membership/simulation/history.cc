#include "cohort/cluster/membership/simulation/history.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::membership {

int64_t StoreHistory::begin_add() { return ++adds_; }

int64_t StoreHistory::floor(uint64_t service) const {
  const auto found = sums_.find(service);
  return found == sums_.end() || found->second.empty() ? 0 : *found->second.rbegin();
}

std::string StoreHistory::end_add(uint64_t service, int64_t floor, int64_t sum) {
  if (sum <= floor) {
    return str("an add gave ", sum, " although one that had ended before it began gave ", floor);
  }
  if (sum > adds_) return str("an add gave ", sum, " after ", adds_, " had begun");
  if (!sums_[service].insert(sum).second) return str("two adds gave ", sum);
  return "";
}

std::string StoreHistory::begin_set(Time now) {
  std::string value = "v" + decimal_digits(writes_.size());
  writes_[value] = {now, std::nullopt};
  return value;
}

void StoreHistory::end_set(const std::string& value, uint64_t service, Time now) {
  writes_[value].end = now;
  writes_[value].service = service;
}

std::string StoreHistory::end_get(uint64_t service, Time begin,
                                  const std::optional<std::string>& value) {
  Time written_until = Time(-1);  // nobody has set what was read
  if (value) {
    const auto found = writes_.find(*value);
    if (found == writes_.end()) return "a get gave '" + *value + "', which nobody has set";
    if (!found->second.end) return "";  // still under way: it may have happened at any time since
    written_until = *found->second.end;
  }
  for (const auto& [other, write] : writes_) {
    if (write.service == service && write.end && *write.end < begin &&
        write.begin > written_until) {
      return str("a get gave ", value.value_or("nothing"), " although ", other,
                 " had been set since, and before the get began");
    }
  }
  return "";
}

void StoreHistory::begin_barrier(const std::string& name, const TaskId& task) {
  arrived_[name].insert(task);
}

std::string StoreHistory::end_barrier(const std::string& name,
                                      const std::vector<TaskId>& tasks) const {
  const auto& arrived = arrived_.at(name);
  for (const TaskId& task : tasks) {
    if (arrived.count(task) == 0) return str("barrier ", name, " opened before ", task, " came");
  }
  return "";
}

}  // namespace cohort::internal::membership
