#include "cohort/parameter_server/store/apply_rule.h"

#include <ATen/ops/zeros_like.h>

#include "cohort/core/structure/contiguous_elements.h"

namespace cohort::internal {

void apply_rule(const optim::UpdateRule& rule, const optim::StepScalars& scalars,
                const Tensor& value, void* const* slots, const Tensor& gradient,
                const Tensor& indices) {
  if (rule.updates_whole_variables()) {
    const Tensor dense = indices.defined() ? at::zeros_like(value).index_copy_(0, indices, gradient)
                                           : contiguous_elements(gradient);
    rule.update_whole(scalars, {.param = value.data_ptr(),
                                .slots = slots,
                                .gradient = dense.data_ptr(),
                                .shape = value.sizes(),
                                .dtype = value.scalar_type()});
    return;
  }
  const Tensor numbers = contiguous_elements(gradient);
  if (!indices.defined()) {
    rule.update(scalars, {.param = value.data_ptr(),
                          .slots = slots,
                          .gradient = numbers.data_ptr(),
                          .size = value.numel(),
                          .dtype = value.scalar_type()});
    return;
  }
  const Tensor ids = indices.contiguous();
  const int64_t rows = value.size(0);
  optim::update_rows(rule, scalars,
                     {.param = value.data_ptr(),
                      .slots = slots,
                      .num_rows = rows,
                      .row_size = rows == 0 ? 0 : value.numel() / rows,
                      .gradient = numbers.data_ptr(),
                      .row_ids = ids.data_ptr<int64_t>(),
                      .num_row_ids = ids.numel(),
                      .dtype = value.scalar_type()});
}

}  // namespace cohort::internal
