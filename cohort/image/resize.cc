#include "cohort/image/resize.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/structure/row_memory.h"
#include "cohort/image/crop.h"
#include "cohort/image/image_shape.h"
#include "cohort/image/kernels/resize_kernels.h"
#include "cohort/image/kernels/taps.h"

namespace cohort::internal::image {
namespace {

ResizeMethod parse_method(const std::string& name) {
  static const std::map<std::string, ResizeMethod> methods = {
      {"bilinear", ResizeMethod::kBilinear}, {"nearest", ResizeMethod::kNearest},
      {"bicubic", ResizeMethod::kBicubic},   {"area", ResizeMethod::kArea},
      {"lanczos3", ResizeMethod::kLanczos3}, {"lanczos5", ResizeMethod::kLanczos5},
      {"gaussian", ResizeMethod::kGaussian}, {"mitchellcubic", ResizeMethod::kMitchellCubic}};
  const auto found = methods.find(name);
  if (found != methods.end()) return found->second;
  throw InvalidArgumentError(str("image::resize: there is no method '", name,
                                 "'; there are bilinear, nearest, bicubic, area, lanczos3, "
                                 "lanczos5, gaussian and mitchellcubic"));
}

// float32 or uint8 without gaps: what the loops read.
Tensor readable(const Tensor& images) {
  const Tensor plain = contiguous_elements(images);
  return plain.scalar_type() == uint8 ? plain : plain.to(float32);
}

struct Plan {
  ResizeMethod method;
  bool lerps = false;
  Lerp row_lerp = {}, column_lerp = {};
  Taps rows = {}, columns = {};
  float factor = 1;
};

Plan plan_of(ResizeMethod method, bool antialias, const ImageShape& from, int64_t height,
             int64_t width) {
  Plan plan{.method = method};
  plan.lerps = method == ResizeMethod::kBilinear && !antialias;
  if (plan.lerps) {
    plan.row_lerp = bilinear_axis(from.height, height);
    plan.column_lerp = bilinear_axis(from.width, width);
    return plan;
  }
  plan.rows = taps_of_axis(method, antialias, from.height, height);
  plan.columns = taps_of_axis(method, antialias, from.width, width);
  if (method == ResizeMethod::kArea) {
    const float rows = static_cast<float>(from.height) / static_cast<float>(height);
    const float columns = static_cast<float>(from.width) / static_cast<float>(width);
    plan.factor = 1.0f / (rows * columns);
  }
  return plan;
}

template <class T>
void resize_plain(const Plan& plan, const ImageShape& from, const T* in, int64_t height,
                  int64_t width, float* out) {
  const int64_t in_size = from.height * from.width * from.channels;
  const int64_t row_size = width * from.channels;
  intra_op_parallel_for(
      0, from.batch * height, rows_per_thread(row_size), [&](int64_t begin, int64_t end) {
        while (begin < end) {
          const int64_t image = begin / height, first = begin % height;
          const int64_t last = std::min(height, first + end - begin);
          const ResizedImage<T> resized = {.in = in + image * in_size,
                                           .height = from.height,
                                           .width = from.width,
                                           .channels = from.channels,
                                           .out = out + image * height * row_size,
                                           .out_width = width};
          if (plan.lerps) {
            resize_bilinear_rows(resized, plan.row_lerp, plan.column_lerp, first, last);
          } else {
            resize_by_taps(resized, plan.rows, plan.columns, plan.method == ResizeMethod::kArea,
                           plan.factor, first, last);
          }
          begin += last - first;
        }
      });
}

// [out, in], on the images' device.
Tensor matrix_of(const Taps& taps, int64_t in, const Tensor& like) {
  Tensor matrix = at::zeros({taps.size(), in}, float32);
  float* const values = matrix.data_ptr<float>();
  for (int64_t i = 0; i < taps.size(); ++i) {
    for (int64_t k = 0; k < taps.count[i]; ++k) {
      values[i * in + taps.first[i] + k] += taps.weights_of(i)[k];
    }
  }
  return matrix.to(like.device());
}

// Resizes by products of matrices: on any device, and with gradients.
Tensor resize_by_products(const Plan& plan, const ImageShape& from, const Tensor& images,
                          int64_t height, int64_t width) {
  const Taps rows = plan.lerps ? taps_of(plan.row_lerp) : plan.rows;
  const Taps columns = plan.lerps ? taps_of(plan.column_lerp) : plan.columns;
  const Tensor in =
      images.to(float32).reshape({from.batch, from.height, from.width * from.channels});
  const Tensor narrow = at::matmul(matrix_of(rows, from.height, in), in)
                            .reshape({from.batch * height, from.width, from.channels});
  const Tensor out = at::matmul(matrix_of(columns, from.width, in), narrow) * plan.factor;
  return out.reshape(from.sizes(height, width));
}

Tensor resize_nearest(const Tensor& images, const ImageShape& from, int64_t height, int64_t width) {
  const std::vector<int64_t> rows = nearest_axis(from.height, height);
  const std::vector<int64_t> columns = nearest_axis(from.width, width);
  if (!is_plain(images)) {
    const auto index = [&](const std::vector<int64_t>& places) {
      return at::from_blob(const_cast<int64_t*>(places.data()),
                           {static_cast<int64_t>(places.size())}, int64)
          .to(images.device(), /*non_blocking=*/false, /*copy=*/true);
    };
    return images.index_select(-3, index(rows)).index_select(-2, index(columns));
  }
  const Tensor in = contiguous_elements(images);
  Tensor out = empty_result(from.sizes(height, width), in.scalar_type());
  const auto bytes = static_cast<int64_t>(in.element_size()) * from.channels;
  const char* const from_memory = static_cast<const char*>(in.data_ptr());
  char* const to_memory = static_cast<char*>(out.data_ptr());
  for (int64_t i = 0; i < from.batch; ++i) {
    resize_nearest_rows(from_memory + i * from.height * from.width * bytes, from.width, bytes,
                        rows.data(), columns.data(), width, to_memory + i * height * width * bytes,
                        0, height);
  }
  return out;
}

Tensor resize_to(const Tensor& images, const ImageShape& from, int64_t height, int64_t width,
                 ResizeMethod method, bool antialias) {
  if (method == ResizeMethod::kNearest) return resize_nearest(images, from, height, width);
  const Plan plan = plan_of(method, antialias, from, height, width);
  if (!is_plain(images)) return resize_by_products(plan, from, images, height, width);
  const Tensor in = readable(images);
  Tensor out = empty_result(from.sizes(height, width), float32);
  if (out.numel() == 0) return out;
  float* const to = out.data_ptr<float>();
  if (in.scalar_type() == uint8) {
    resize_plain(plan, from, in.data_ptr<uint8_t>(), height, width, to);
  } else {
    resize_plain(plan, from, in.data_ptr<float>(), height, width, to);
  }
  return out;
}

}  // namespace
}  // namespace cohort::internal::image

namespace cohort::image {
namespace {

using internal::str;
using internal::image::check_size;
using internal::image::ImageShape;
using internal::image::shape_of_images;

ImageShape checked_images(const char* operation, const Tensor& images) {
  const ImageShape shape = shape_of_images(operation, images);
  if (shape.height < 1 || shape.width < 1) {
    throw InvalidArgumentError(
        str(operation, ": the images have no pixels: ", internal::describe(images)));
  }
  if (images.is_complex()) {
    throw UnimplementedError(
        str(operation, " takes real numbers, but got ", internal::describe(images)));
  }
  return shape;
}

}  // namespace

Tensor resize(const Tensor& images, at::IntArrayRef size, const ResizeOptions& options) {
  const ImageShape from = checked_images("image::resize", images);
  check_size("image::resize", size);
  const auto method = internal::image::parse_method(options.method);
  int64_t height = size[0], width = size[1];
  if (options.preserve_aspect_ratio) {
    const auto from_height = static_cast<float>(from.height);
    const auto from_width = static_cast<float>(from.width);
    const float scale =
        std::min(static_cast<float>(height) / from_height, static_cast<float>(width) / from_width);
    height = std::lrint(scale * from_height);
    width = std::lrint(scale * from_width);
    if (height < 1 || width < 1) {
      throw InvalidArgumentError(str("image::resize: of ", internal::describe(images),
                                     " nothing is left within ", internal::shape_str(size)));
    }
  }
  return internal::libtorch_call("image::resize", [&] {
    return internal::image::resize_to(images, from, height, width, method, options.antialias);
  });
}

Tensor resize_with_pad(const Tensor& images, int64_t target_height, int64_t target_width,
                       const ResizeWithPadOptions& options) {
  const ImageShape from = checked_images("image::resize_with_pad", images);
  check_size("image::resize_with_pad", {target_height, target_width});
  const auto height = static_cast<float>(from.height), width = static_cast<float>(from.width);
  const auto most_height = static_cast<float>(target_height);
  const auto most_width = static_cast<float>(target_width);
  const float ratio = std::max(width / most_width, height / most_height);
  const float new_height = height / ratio, new_width = width / ratio;
  const auto before = [](float target, float size) {
    return std::max<int64_t>(0, static_cast<int64_t>(std::floor((target - size) / 2)));
  };
  const Tensor resized = resize(
      images,
      {static_cast<int64_t>(std::floor(new_height)), static_cast<int64_t>(std::floor(new_width))},
      {.method = options.method, .antialias = options.antialias});
  return pad_to_bounding_box(resized, before(most_height, new_height),
                             before(most_width, new_width), target_height, target_width);
}

}  // namespace cohort::image
