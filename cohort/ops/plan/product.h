// Products of matrices: oneDNN's, or our own loops where it has no fast ones for the processor.
#pragma once

#include <optional>

#include "cohort/ops/plan/onednn.h"

namespace cohort::internal::plan {

struct ProductSizes {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
};
// How far the next row and the next column are.
struct Stride {
  int64_t row = 0;
  int64_t column = 1;
};

// [rows, inner] x [inner, columns] -> [rows, columns], with a bias [columns] or none.
struct Product {
  ProductSizes sizes;
  Stride left;
  Stride right;
  bool adds_bias = false;
  int64_t result_row = 0;                                 // how far the result's next row is
  std::optional<dnnl::matmul::primitive_desc> described;  // or by our own loops
};

// result_row: 0: there are no gaps. Errors: NotPlanned.
Product describe_product(const ProductSizes& sizes, const Stride& left, const Stride& right,
                         bool adds_bias, int64_t result_row = 0);

// Computes a product on the calling thread. Thread safety: none. To be made in for_one_thread.
class Multiplication {
 public:
  Multiplication() = default;
  // scratch: outlives it.
  Multiplication(const Product& product, Scratch& scratch);

  // bias: where the product adds one. Errors: Internal.
  void operator()(const float* left, const float* right, float* result,
                  const float* bias = nullptr);

 private:
  Product product_;
  Primitive primitive_;
  Scratch* scratch_ = nullptr;
};

}  // namespace cohort::internal::plan
