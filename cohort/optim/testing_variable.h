// A variable with its slots and a count of updates: what the tests of the update rules train.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

template <class T>
struct TestingVariable {
  static constexpr DType kDtype = std::is_same_v<T, float> ? float32 : float64;

  TestingVariable(const UpdateRule& rule, std::vector<T> initial_value)
      : param(std::move(initial_value)) {
    for (const SlotSpec& spec : rule.slots()) {
      slots.emplace_back(param.size(), static_cast<T>(spec.initial_value));
    }
  }

  // The slots' elements from `offset` on.
  std::vector<void*> slot_pointers(int64_t offset = 0) {
    std::vector<void*> pointers;
    for (auto& slot : slots) pointers.push_back(slot.data() + offset);
    return pointers;
  }

  // Elements [begin, end), without counting an update.
  void update_slice(const UpdateRule& rule, const StepScalars& scalars,
                    const std::vector<T>& gradient, int64_t begin, int64_t end) {
    const auto pointers = slot_pointers(begin);
    rule.update(scalars, {.param = param.data() + begin,
                          .slots = pointers.data(),
                          .gradient = gradient.data() + begin,
                          .size = end - begin,
                          .dtype = kDtype});
  }

  // One step of the whole; returns the first element.
  T step(const UpdateRule& rule, double learning_rate, const std::vector<T>& gradient) {
    update_slice(rule, rule.prepare(learning_rate, iteration++), gradient, 0,
                 static_cast<int64_t>(param.size()));
    return param[0];
  }

  bool operator==(const TestingVariable&) const = default;

  std::vector<T> param;
  std::vector<std::vector<T>> slots;
  int64_t iteration = 0;
};

}  // namespace cohort::optim
