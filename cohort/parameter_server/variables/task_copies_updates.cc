// What a step sees of its own updates of variables on ps tasks.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>

#include <array>
#include <vector>

#include "cohort/parameter_server/store/apply_rule.h"
#include "cohort/parameter_server/variables/task_copies.h"

namespace cohort::internal {

namespace {

// Shapes: values: the variable's, then the slots'.
void run_rule(const TaskCopies::Update& update, const std::vector<Tensor>& values,
              const Tensor& gradient, const Tensor& indices) {
  std::array<void*, optim::kMaxSlots> slots{};
  for (size_t i = 1; i < values.size(); ++i) slots[i - 1] = values[i].data_ptr();
  const auto scalars = update.rule->prepare(update.learning_rate, update.iteration);
  apply_rule(*update.rule, scalars, values[0], slots.data(), gradient, indices);
}

}  // namespace

void TaskCopies::apply(const Update& update) {
  const at::NoGradGuard no_grad;
  const bool is_sparse = update.gradient.is_sparse();
  if (is_sparse && update.rule->zero_gradient_is_no_op() && !update.constraint) {
    return apply_rows(update);
  }
  std::vector<Lock> locks;
  std::vector<Tensor> values;
  for (const auto& one : update.written) {
    View& view = one->whole_in_step(locks.emplace_back());
    make_writable(view, true);
    one->mark_written(view);
    values.push_back(view.value);
  }
  if (is_sparse) {
    run_rule(update, values, update.gradient._values(), update.gradient._indices()[0]);
  } else {
    run_rule(update, values, update.gradient, Tensor());
  }
  if (update.constraint) values[0].copy_(update.constraint(values[0]));
}

void TaskCopies::apply_rows(const Update& update) {
  const Tensor ids = update.gradient._indices()[0].contiguous();
  if (ids.numel() == 0) return;
  std::vector<Tensor> rows;
  for (const auto& one : update.written) rows.push_back(one->rows_of(ids));
  run_rule(update, rows, update.gradient._values(), at::arange(ids.numel(), int64));
  for (size_t i = 0; i < rows.size(); ++i) {
    update.written[i]->scatter(ScatterOp::kUpdate, {.values = rows[i], .indices = ids});
  }
}

Tensor TaskCopies::rows_of(const Tensor& ids) {
  Lock lock;
  View& view = view_in_step(lock);
  if (!view.value.defined()) read_rows_into(view, lock, ids);
  if (view.value.defined()) return view.value.index_select(0, ids);
  return view.rows.rows().index_select(0, positions_in(view.rows.ids(), ids));
}

}  // namespace cohort::internal
