#include "cohort/image/image_shape.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/structure/row_memory.h"

namespace cohort::internal::image {
namespace {

// Pixels. Tables of rows and columns are made before the picture, whose size memory limits.
constexpr int64_t kMostOfSide = int64_t{1} << 24;

}  // namespace

std::vector<int64_t> ImageShape::sizes(int64_t new_height, int64_t new_width) const {
  if (is_batch) return {batch, new_height, new_width, channels};
  return {new_height, new_width, channels};
}

ImageShape shape_of_images(const char* operation, const Tensor& images) {
  if (!images.defined() || (images.dim() != 3 && images.dim() != 4)) {
    throw InvalidArgumentError(str(operation,
                                   " takes an image [height, width, channels] or a batch ",
                                   "[batch, height, width, channels], but got ", describe(images)));
  }
  const bool is_batch = images.dim() == 4;
  return {.is_batch = is_batch,
          .batch = is_batch ? images.size(0) : 1,
          .height = images.size(-3),
          .width = images.size(-2),
          .channels = images.size(-1)};
}

void check_size(const char* operation, at::IntArrayRef size) {
  const auto fits = [](int64_t one) { return one > 0 && one <= kMostOfSide; };
  if (size.size() == 2 && fits(size[0]) && fits(size[1])) return;
  throw InvalidArgumentError(str(operation, ": the size is ", shape_str(size),
                                 "; it must be two positive numbers, height and width, up to ",
                                 kMostOfSide));
}

Tensor copied(const Tensor& part) {
  if (!is_plain(part)) return part.contiguous();
  return empty_result(part.sizes(), part.scalar_type()).copy_(part);
}

bool is_plain(const Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
         !(tensor.requires_grad() && at::GradMode::is_enabled());
}

int64_t rows_per_thread(int64_t elements_per_row) {
  constexpr int64_t kElements = int64_t{1} << 18;  // some 50 us
  return std::max<int64_t>(1, kElements / std::max<int64_t>(elements_per_row, 1));
}

}  // namespace cohort::internal::image
