#include "cohort/ops/plan/product.h"

#include "cohort/ops/kernels/matrix_product.h"

namespace cohort::internal::plan {
namespace {

// On ARM64 oneDNN multiplies by loops for any processor, with seven times OpenBLAS's instructions,
// whatever the name of its implementation.
#if defined(__aarch64__)
constexpr bool kIsFast = false;
#else
constexpr bool kIsFast = true;
#endif

}  // namespace

Product describe_product(const ProductSizes& sizes, const Stride& left, const Stride& right,
                         bool adds_bias, int64_t result_row) {
  Product made{.sizes = sizes,
               .left = left,
               .right = right,
               .adds_bias = adds_bias,
               .result_row = result_row == 0 ? sizes.columns : result_row,
               .described = {}};
  if (!kIsFast) return made;
  const Layout a({sizes.rows, sizes.inner}, kFloat, {left.row, left.column});
  const Layout b({sizes.inner, sizes.columns}, kFloat, {right.row, right.column});
  const Layout c({sizes.rows, sizes.columns}, kFloat, {made.result_row, 1});
  const Layout bias({1, sizes.columns}, kFloat, Tag::ab);
  made.described =
      adds_bias ? describe<dnnl::matmul>(a, b, bias, c) : describe<dnnl::matmul>(a, b, c);
  check_is_fast(*made.described, "product");
  return made;
}

Multiplication::Multiplication(const Product& product, Scratch& scratch)
    : product_(product), scratch_(&scratch) {
  if (product.described) {
    std::vector<int> arguments{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    if (product.adds_bias) arguments.push_back(DNNL_ARG_BIAS);
    primitive_ = Primitive(*product.described, arguments, scratch);
  } else {
    const int64_t numbers = matrix_scratch_size(product.sizes.rows, product.sizes.inner);
    scratch.reserve(static_cast<size_t>(numbers) * sizeof(float));
  }
}

void Multiplication::operator()(const float* left, const float* right, float* result,
                                const float* bias) {
  if (!product_.described) {
    multiply_matrices({.rows = product_.sizes.rows,
                       .inner = product_.sizes.inner,
                       .columns = product_.sizes.columns,
                       .left = left,
                       .left_row = product_.left.row,
                       .left_inner = product_.left.column,
                       .right = right,
                       .right_inner = product_.right.row,
                       .right_column = product_.right.column,
                       .bias = bias,
                       .result = result,
                       .result_row = product_.result_row},
                      static_cast<float*>(scratch_->data()));
  } else if (product_.adds_bias) {
    primitive_({left, right, result, bias});
  } else {
    primitive_({left, right, result});
  }
}

}  // namespace cohort::internal::plan
