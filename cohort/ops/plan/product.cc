#include "cohort/ops/plan/product.h"

namespace cohort::internal::plan {

Product describe_product(const ProductSizes& sizes, const Stride& left, const Stride& right,
                         bool adds_bias, int64_t result_row) {
  const Layout a({sizes.rows, sizes.inner}, kFloat, {left.row, left.column});
  const Layout b({sizes.inner, sizes.columns}, kFloat, {right.row, right.column});
  const Layout c({sizes.rows, sizes.columns}, kFloat,
                 {result_row == 0 ? sizes.columns : result_row, 1});
  const Layout bias({1, sizes.columns}, kFloat, Tag::ab);
  const Product made =
      adds_bias ? describe<dnnl::matmul>(a, b, bias, c) : describe<dnnl::matmul>(a, b, c);
  check_is_fast(made, "product");
  return made;
}

}  // namespace cohort::internal::plan
