#include "cohort/ops/kernels/matrix_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace cohort::internal::plan {
namespace {

constexpr float kUntouched = -77;

std::vector<float> numbers(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> made(static_cast<size_t>(count));
  for (float& number : made) number = uniform(engine);
  return made;
}

struct Sizes {
  int64_t rows, inner, columns;
};
// Fewer and more than fit into registers, whole vectors and rests.
constexpr Sizes kSizes[] = {{1, 1, 1},   {3, 7, 5},    {6, 16, 64}, {13, 5, 66},
                            {14, 33, 4}, {30, 40, 80}, {5, 19, 139}};

class Matrices {
 public:
  Matrices(const Sizes& sizes, bool left_transposed, bool right_transposed, bool adds_bias)
      : left_(numbers(sizes.rows * sizes.inner, 1)),
        right_(numbers(sizes.inner * sizes.columns, 2)),
        bias_(numbers(sizes.columns, 3)),
        result_row_(sizes.columns + 3) {
    product.rows = sizes.rows;
    product.inner = sizes.inner;
    product.columns = sizes.columns;
    product.left = left_.data();
    product.left_row = left_transposed ? 1 : sizes.inner;
    product.left_inner = left_transposed ? sizes.rows : 1;
    product.right = right_.data();
    product.right_inner = right_transposed ? 1 : sizes.columns;
    product.right_column = right_transposed ? sizes.inner : 1;
    product.bias = adds_bias ? bias_.data() : nullptr;
    product.result_row = result_row_;
  }

  std::vector<float> result(bool by_reference) {
    std::vector<float> result(static_cast<size_t>(product.rows * result_row_), kUntouched);
    product.result = result.data();
    if (by_reference) {
      multiply_matrices_reference(product);
    } else {
      const int64_t size = matrix_scratch_size(product.rows, product.inner);
      std::vector<float> scratch(static_cast<size_t>(size), NAN);
      multiply_matrices(product, scratch.data());
    }
    return result;
  }

  MatrixProduct product;

 private:
  std::vector<float> left_, right_, bias_;
  int64_t result_row_;
};

TEST(MatrixProduct, IsWhatTheReferenceSaysAndTouchesNothingElse) {
  for (const Sizes& sizes : kSizes) {
    for (const int form : {0, 1, 2, 3, 4, 5, 6, 7}) {
      Matrices matrices(sizes, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0);
      const std::vector<float> expected = matrices.result(true), found = matrices.result(false);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 2e-6 * static_cast<double>(sizes.inner))
            << sizes.rows << " x " << sizes.inner << " x " << sizes.columns << ", form " << form;
      }
    }
  }
}

TEST(MatrixProduct, ARowDoesNotDependOnTheNumberOfRows) {
  Matrices all({30, 40, 80}, false, false, true);
  const std::vector<float> expected = all.result(false);
  for (const int64_t rows : {1, 5, 12, 13}) {
    Matrices some({30, 40, 80}, false, false, true);
    some.product.rows = rows;
    const std::vector<float> found = some.result(false);
    for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], expected[i]) << rows;
  }
}

}  // namespace
}  // namespace cohort::internal::plan
