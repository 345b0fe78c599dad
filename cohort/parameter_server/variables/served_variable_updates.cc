// What a step sees of its own updates of variables on ps tasks.
#include <ATen/ops/arange.h>

#include <array>
#include <vector>

#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/store/apply_rule.h"
#include "cohort/parameter_server/store/row_ids.h"
#include "cohort/parameter_server/variables/served_variable.h"
#include "cohort/parameter_server/variables/task_step.h"

namespace cohort::internal {

namespace {

// The variable, then its slots.
std::vector<const ServedVariable*> written_by(const StepUpdate& update) {
  std::vector<const ServedVariable*> written{update.variable.get()};
  for (const auto& slot : update.slots) written.push_back(slot.get());
  return written;
}

// Shapes: values: the variable's, then the slots'.
void apply(const StepUpdate& update, const std::vector<Tensor>& values, const Tensor& gradient,
           const Tensor& indices) {
  std::array<void*, optim::kMaxSlots> slots{};
  for (size_t i = 1; i < values.size(); ++i) slots[i - 1] = values[i].data_ptr();
  const auto scalars = update.rule->prepare(update.learning_rate, update.iteration);
  apply_rule(*update.rule, scalars, values[0], slots.data(), gradient, indices);
}

}  // namespace

void ServedVariable::update_here(const StepUpdate& update) const {
  const at::NoGradGuard no_grad;
  const bool is_sparse = update.gradient.is_sparse();
  if (is_sparse && update.rule->zero_gradient_is_no_op()) return update_rows_here(update);
  std::vector<Lock> locks;
  std::vector<Tensor> values;
  for (const ServedVariable* one : written_by(update)) {
    View& view = one->whole_in_step(locks.emplace_back());
    make_writable(view, true);
    view.versions.assign(one->shards_.size(), -1);
    mark_written(view);
    values.push_back(view.value);
  }
  if (!is_sparse) return apply(update, values, update.gradient, Tensor());
  apply(update, values, update.gradient._values(), update.gradient._indices()[0]);
}

void ServedVariable::update_rows_here(const StepUpdate& update) const {
  const Tensor ids = update.gradient._indices()[0].contiguous();
  if (ids.numel() == 0) return;
  const std::vector<const ServedVariable*> written = written_by(update);
  std::vector<Tensor> rows;
  for (const ServedVariable* one : written) rows.push_back(one->rows_here(ids));
  apply(update, rows, update.gradient._values(), at::arange(ids.numel(), int64));
  for (size_t i = 0; i < rows.size(); ++i) {
    written[i]->scatter_here(ScatterOp::kUpdate, {.values = rows[i], .indices = ids});
  }
}

Tensor ServedVariable::rows_here(const Tensor& ids) const {
  Lock lock;
  View& view = view_in_step(lock);
  if (!view.value.defined()) read_rows_into(view, lock, ids);
  if (view.value.defined()) return view.value.index_select(0, ids);
  return view.rows.rows().index_select(0, positions_in(view.rows.ids(), ids));
}

}  // namespace cohort::internal
