#include "cohort/distribute/gradients/whole_variables.h"

#include <ATen/ops/zeros.h>

#include <array>
#include <cstring>

#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {
namespace {

void* first_component(const distribute::Variable& variable) {
  return variable.impl().local().component(0).data_ptr();
}

void copy_to_others(const distribute::Variable& variable) {
  const LocalVariable& local = variable.impl().local();
  const Tensor& first = local.component(0);
  for (const size_t i : local.distinct_components()) {
    if (i != 0) std::memcpy(local.component(i).data_ptr(), first.data_ptr(), first.nbytes());
  }
}

}  // namespace

Tensor dense_of_rows(const SparseRows& rows, const distribute::Variable& variable) {
  Tensor dense = at::zeros(variable.shape(), at::dtype(variable.dtype()));
  const size_t row_bytes = dense.nbytes() / static_cast<size_t>(dense.size(0));
  char* const data = static_cast<char*>(dense.data_ptr());
  for (const SparseRows::Row& row : rows.rows()) {
    std::memcpy(data + static_cast<size_t>(row.id) * row_bytes, row.values, row_bytes);
  }
  return dense;
}

void update_whole_on_host(const UpdateTarget& target, const optim::UpdateRule& rule,
                          const optim::StepScalars& scalars, const Tensor& gradient) {
  std::array<void*, optim::kMaxSlots> slots{};
  for (size_t i = 0; i < target.slots.size(); ++i) slots[i] = first_component(target.slots[i]);
  rule.update_whole(scalars, {.param = first_component(target.variable),
                              .slots = slots.data(),
                              .gradient = gradient.data_ptr(),
                              .shape = target.variable.shape(),
                              .dtype = target.variable.dtype()});
  copy_to_others(target.variable);
  for (const distribute::Variable& slot : target.slots) copy_to_others(slot);
}

}  // namespace cohort::internal
