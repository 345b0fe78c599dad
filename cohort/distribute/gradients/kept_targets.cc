#include "cohort/distribute/gradients/kept_targets.h"

#include <c10/util/accumulate.h>

#include <cstring>

#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/step_transaction.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

using collective::SliceRange;

namespace {

// The elements of the rows in these parts.
std::vector<SliceRange> elements_of_rows(std::span<const SparseRows> parts,
                                         const distribute::Variable& variable) {
  const auto& shape = variable.shape();
  const int64_t row_size = c10::multiply_integers(shape.begin() + 1, shape.end());
  std::vector<SliceRange> elements;
  for (const SparseRows& rows : parts) {
    for (const SparseRows::Row& row : rows.rows()) {
      elements.push_back({row.id * row_size, (row.id + 1) * row_size});
    }
  }
  return elements;
}

c10::SmallVector<const LocalVariable*, 8> variables_of(const UpdateTarget& target) {
  c10::SmallVector<const LocalVariable*, 8> variables = {&target.variable.impl().local()};
  for (const auto& slot : target.slots) variables.push_back(&slot.impl().local());
  return variables;
}

}  // namespace

void KeptTargets::prepare(const Replica& replica, const Update& update) {
  kept_.clear();
  const StepTransaction* const transaction = replica.core().transaction();
  if (transaction == nullptr || !transaction->is_open()) return;
  kept_.resize(update.targets.size());
  for (size_t i = 0; i < update.targets.size(); ++i) {
    const UpdateTarget& target = update.targets[i];
    const bool has_rows = !update.rows.empty() && !update.rows[i].empty();
    if (!update.sums.empty() && !has_rows && !update.sums[i].defined()) continue;
    const bool few_rows = has_rows && update.step.rule_of(target).zero_gradient_is_no_op();
    if (few_rows && !update.whole) {
      const std::vector<SliceRange> parts = elements_of_rows(update.rows[i], target.variable);
      for (const LocalVariable* variable : variables_of(target)) variable->keep_parts(parts);
    } else if (update.whole || has_rows) {
      for (const LocalVariable* variable : variables_of(target)) variable->about_to_write();
    } else {
      for (const LocalVariable* variable : variables_of(target)) {
        const Tensor& value = variable->component(0);
        if (char* const to = variable->keep_all()) {
          kept_[i].push_back({static_cast<const char*>(value.data_ptr()), to,
                              static_cast<int64_t>(value.element_size())});
        }
      }
    }
  }
}

void KeptTargets::keep(size_t i, SliceRange part) const {
  for (const Copy& copy : kept_[i]) {
    const int64_t offset = part.begin * copy.element_size;
    std::memcpy(copy.to + offset, copy.from + offset,
                static_cast<size_t>((part.end - part.begin) * copy.element_size));
  }
}

}  // namespace cohort::internal
