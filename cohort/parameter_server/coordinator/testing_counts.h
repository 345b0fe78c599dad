// For tests: counters on the ps tasks.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "cohort/parameter_server/parameter_server_strategy.h"

namespace cohort::distribute {

inline Variable make_count(const ParameterServerStrategy& strategy,
                           const std::string& name = "count") {
  const auto scope = strategy.scope();
  return Variable(0, {.name = name, .aggregation = VariableAggregation::SUM});
}

// One on each of two ps tasks, with a function whose step adds one to both: they tell whether it
// counts on both, or on none.
class TwoCounts {
 public:
  // `before` is called in the step, before it adds.
  explicit TwoCounts(
      const ParameterServerStrategy& strategy, std::function<void()> before = [] {})
      : a(make_count(strategy, "a")),
        b(make_count(strategy, "b")),
        step(strategy.function("step", [this, &strategy, before = std::move(before)] {
          strategy.run([&] {
            before();
            a.assign_add(1);
            b.assign_add(1);
          });
        })) {}
  TwoCounts(const TwoCounts&) = delete;
  TwoCounts& operator=(const TwoCounts&) = delete;

  const Variable a, b;
  const WorkerFunction step;
};

}  // namespace cohort::distribute
