#include "cohort/ops/linear.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/addmv.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/core/cpu/intra_op_threads.h"

namespace cohort::internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Multiplications that are worth a thread: some 40 us of work.
constexpr int64_t kPerThread = int64_t{1} << 21;

int64_t useful_threads(int64_t rows, int64_t inner, int64_t columns) {
  if (at::in_parallel_region() || blas_threads() != 1) return 1;
  const int64_t work = rows * inner * columns;
  const int64_t wanted = std::min<int64_t>(work / kPerThread, at::get_num_threads());
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>({rows, columns, 1}));
}

// Calls body(begin, end) for `parts` parts of `size`, each on a thread of its own, unrecorded and
// in inference mode where the caller is: both are a matter of each thread.
template <class Body>
void for_parts(int64_t size, int64_t parts, const Body& body) {
  const int64_t step = (size + parts - 1) / parts;
  intra_op_parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = std::min(part * step, size);
      const int64_t end = std::min(begin + step, size);
      if (begin < end) body(begin, end);
    }
  });
}

// a b (+ bias): [rows, inner] x [inner, columns].
Tensor product(const Tensor& a, const Tensor& b, const Tensor& bias = Tensor()) {
  const auto whole = [&](const Tensor& left, const Tensor& right, const Tensor& addend) {
    return addend.defined() ? at::addmm(addend, left, right) : at::mm(left, right);
  };
  const int64_t rows = a.size(0), columns = b.size(1);
  const int64_t threads = useful_threads(rows, a.size(1), columns);
  if (threads == 1 || at::GradMode::is_enabled()) return whole(a, b, bias);
  const Tensor out = at::empty({rows, columns}, a.options());
  if (rows >= columns) {
    for_parts(rows, threads, [&](int64_t begin, int64_t end) {
      Tensor part = out.slice(0, begin, end);
      const Tensor left = a.slice(0, begin, end);
      bias.defined() ? at::addmm_out(part, bias, left, b) : at::mm_out(part, left, b);
    });
  } else {
    for_parts(columns, threads, [&](int64_t begin, int64_t end) {
      Tensor part = out.slice(1, begin, end);
      const Tensor right = b.slice(1, begin, end);
      bias.defined() ? at::addmm_out(part, bias.slice(0, begin, end), a, right)
                     : at::mm_out(part, a, right);
    });
  }
  return out;
}

constexpr char kHasBias[] = "has_bias";

struct Linear : Function<Linear> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias) {
    // Both are saved as addmm does: each for the other's gradient only.
    context->save_for_backward(
        {weight.requires_grad() ? x : Tensor(), x.requires_grad() ? weight : Tensor()});
    context->saved_data[kHasBias] = bias.has_value();
    return product(x, weight, bias.value_or(Tensor()));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& gradient = gradients[0];
    const bool has_bias = context->saved_data[kHasBias].toBool();
    const auto wants = [&](size_t input) { return context->needs_input_grad(input); };
    return {wants(0) ? product(gradient, saved[1].t()) : Tensor(),
            wants(1) ? product(saved[0].t(), gradient) : Tensor(),
            has_bias && wants(2) ? gradient.sum(0) : Tensor()};
  }
};

bool can_multiply(const Tensor& x, const Tensor& weight) {
  const auto fits = [](const Tensor& matrix) {
    return matrix.dim() == 2 && matrix.is_cpu() && matrix.layout() == at::kStrided &&
           (matrix.scalar_type() == float32 || matrix.scalar_type() == float64);
  };
  return fits(x) && fits(weight) && x.scalar_type() == weight.scalar_type() &&
         x.size(1) == weight.size(0);
}

// OpenBLAS packs such a product as if there were many columns, which takes eight times as long.
bool is_large_matrix_by_vector(const Tensor& x, const Tensor& weight) {
  constexpr int64_t kLarge = 1 << 13;
  return can_multiply(x, weight) && weight.size(1) == 1 && x.numel() >= kLarge;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (is_large_matrix_by_vector(x, weight)) {
    const Tensor vector = weight.squeeze(1);
    return (bias.defined() ? at::addmv(bias, x, vector) : at::mv(x, vector)).unsqueeze(1);
  }
  if (can_multiply(x, weight) && useful_threads(x.size(0), x.size(1), weight.size(1)) > 1) {
    return Linear::apply(x, weight, bias.defined() ? c10::make_optional(bias) : c10::nullopt);
  }
  return bias.defined() ? at::addmm(bias, x, weight) : at::mm(x, weight);
}

}  // namespace cohort::internal
