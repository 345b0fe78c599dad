#include "cohort/distribute/gradients/gradient_contribution.h"

#include <algorithm>

#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

bool on_host(const LocalVariable& variable) {
  const auto& components = variable.distinct_components();
  return std::all_of(components.begin(), components.end(),
                     [&](size_t i) { return variable.component(i).is_cpu(); });
}

Tensor usable_gradient(const Tensor& gradient, const distribute::Variable& of, int replica,
                       AddedUp where) {
  const VariableImpl& variable = of.impl();
  if (!gradient.defined()) return gradient;
  if (gradient.sizes() != variable.shape() || gradient.scalar_type() != variable.dtype()) {
    throw InvalidArgumentError(str("the gradient of variable '", variable.options().name,
                                   "' on replica ", replica, " is ", describe(gradient),
                                   ", but the variable is ", dtype_name(variable.dtype()), " ",
                                   shape_str(variable.shape())));
  }
  const bool usable_as_it_is = gradient.layout() == at::kStrided && gradient.is_cpu() &&
                               has_contiguous_elements(gradient) && !gradient.requires_grad();
  if (usable_as_it_is) return gradient;
  const Tensor detached = gradient.detach();
  const bool is_on_device = !on_host(variable.local());
  if (where != AddedUp::kOnHosts && is_on_device) {
    if (detached.layout() == at::kStrided) return detached.contiguous();
    return where == AddedUp::kInTask ? detached : detached.to_dense();
  }
  if (detached.layout() == at::kStrided) return contiguous_elements(detached.to(at::kCPU));
  if (!is_on_device && SparseRows::are_in(detached, kUpdateBlock)) return detached;
  return detached.coalesce().to_dense().to(at::kCPU);
}

Contribution::Contribution(const GradientExchange& through, int of_replica,
                           std::span<Tensor> brought, std::span<SparseRows> rows)
    : exchange(&through), replica(of_replica), gradients(brought), sparse(rows) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined() && gradients[i].layout() != at::kStrided && gradients[i].is_cpu()) {
      rows[i].assign(gradients[i]);
    }
  }
}

void densify(Contributions all, bool always) {
  const size_t count = of_replica(all, 0).gradients.size();
  for (size_t i = 0; i < count; ++i) {
    const auto is_dense = [&](void* one) {
      const Tensor& gradient = static_cast<Contribution*>(one)->gradients[i];
      return gradient.defined() && gradient.layout() == at::kStrided;
    };
    if (!always && std::none_of(all.begin(), all.end(), is_dense)) continue;
    for (size_t r = 0; r < all.size(); ++r) {
      Tensor& gradient = of_replica(all, r).gradients[i];
      if (gradient.defined() && gradient.layout() != at::kStrided) gradient = gradient.to_dense();
    }
  }
}

}  // namespace cohort::internal
