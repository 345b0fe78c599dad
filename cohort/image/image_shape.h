// The shape of one image [height, width, channels] or a batch of them [batch, height, width,
// channels].
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal::image {

struct ImageShape {
  bool is_batch = false;
  int64_t batch = 1;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  // The shape of images of another size.
  std::vector<int64_t> sizes(int64_t new_height, int64_t new_width) const;
};

// Errors: InvalidArgument (undefined; neither of rank 3 nor 4), naming the operation.
ImageShape shape_of_images(const char* operation, const Tensor& images);
// Two positive numbers. Errors: InvalidArgument.
void check_size(const char* operation, at::IntArrayRef size);
// A copy without gaps, made in a row of a batch where one is offered.
Tensor copied(const Tensor& part);
// Whether our loops may read the tensor's memory and no gradient is recorded of it.
bool is_plain(const Tensor& tensor);
// For sizes of pieces of work of intra_op_parallel_for: as many rows as are worth a thread.
int64_t rows_per_thread(int64_t elements_per_row);

}  // namespace cohort::internal::image
