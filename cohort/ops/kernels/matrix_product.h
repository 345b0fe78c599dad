// Products of matrices by loops of our own, for processors for which oneDNN has none that is fast.
#pragma once

#include <cstdint>

namespace cohort::internal::plan {

// [rows, inner] x [inner, columns] + bias [columns] -> [rows, columns]. left_row, left_inner: how
// far the next row of the left matrix is, and the next number of a row; the others alike.
struct MatrixProduct {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  const float* left = nullptr;
  int64_t left_row = 0;
  int64_t left_inner = 1;
  const float* right = nullptr;
  int64_t right_inner = 0;
  int64_t right_column = 1;
  const float* bias = nullptr;  // or none
  float* result = nullptr;
  int64_t result_row = 0;
};

// How many numbers of scratch memory that takes.
int64_t matrix_scratch_size(int64_t rows, int64_t inner);
// On the calling thread. A row's result does not depend on how many rows there are.
void multiply_matrices(const MatrixProduct& product, float* scratch);
// What it computes, number by number.
void multiply_matrices_reference(const MatrixProduct& product);

}  // namespace cohort::internal::plan
