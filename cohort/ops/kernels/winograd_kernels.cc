#include "cohort/ops/kernels/winograd_kernels.h"

#include <algorithm>

#include "cohort/ops/kernels/panel_product.h"
#include "cohort/ops/kernels/winograd_tiles.h"
#include "cohort/ops/kernels/winograd_transforms.h"

namespace cohort::internal::plan {
namespace {

constexpr int kPoints = kTransformedSize;

// How far apart rows of so many numbers are: parts of them that are read in turns would otherwise
// share few places of a cache.
int64_t row_distance(int64_t numbers) {
  return numbers > kPanel && numbers % kPanel == 0 ? numbers + kVector : numbers;
}

// Transformed tiles: [kPoints][tiles][channels], each point an odd number of cache lines.
struct PointsLayout {
  PointsLayout(int64_t tiles, int64_t channels)
      : row(row_distance(channels)), distance((tiles * row / kVector | 1) * kVector) {}
  int64_t size() const { return kPoints * distance; }

  int64_t row;       // from one tile to the next
  int64_t distance;  // from one point to the next
};

struct Points : PointsLayout {
  Points(const PointsLayout& layout, float* data) : PointsLayout(layout), data(data) {}
  float* point(int p) const { return data + p * distance; }
  Points from(int64_t tile) const {
    Points rest = *this;
    rest.data += tile * row;
    return rest;
  }

  float* data;
};

// Transformed tiles of images, and behind them those of the results.
struct SidesLayout {
  SidesLayout(const Winograd& s, int64_t tiles)
      : images(tiles, s.channels), results(tiles, s.filters) {}
  int64_t size() const { return images.size() + results.size(); }

  PointsLayout images;
  PointsLayout results;
};

struct Sides {
  Sides(const SidesLayout& layout, float* data)
      : images(layout.images, data), results(layout.results, data + layout.images.size()) {}

  Points images;
  Points results;
};

int64_t tiles_of(const Winograd& s, int64_t images) {
  return images * s.tile_rows() * s.tile_columns();
}

// The tiles that are transformed and multiplied together: so many that both sides of the products
// stay in a second-level cache, and a kernel is read for many.
struct Tiling {
  Tiling(const Winograd& s, int64_t images) : total(tiles_of(s, images)) {
    constexpr int64_t kCached = int64_t{1} << 17;  // elements: half of that cache
    constexpr int64_t kLeast = 48;
    const int64_t most = std::max(kCached / (kPoints * (s.channels + s.filters)), kLeast);
    const int64_t blocks = std::max<int64_t>((total + most - 1) / most, 1);
    block = round_up((total + blocks - 1) / blocks, kTogether);
  }
  int64_t total;
  int64_t block;
};

// The parts of scratch memory.
struct ScratchLayout {
  ScratchLayout(const Winograd& s, const Tiling& tiling)
      : sides(s, tiling.block), border(std::max(s.channels, s.filters)) {}
  int64_t size() const { return sides.size() + border; }

  SidesLayout sides;
  int64_t border;
};

struct Scratch : Sides {
  Scratch(const ScratchLayout& layout, float* data)
      : Sides(layout.sides, data), border(data + layout.sides.size()) {}

  float* border;  // a pixel outside: zeros to read, or where to write what nobody wants
};

template <int kSize>
COHORT_INLINE void transform_tiles(TilePixels<kSize, const float> pixels, int64_t tiles,
                                   const Points& points) {
  for (int64_t t = 0; t < tiles; ++t) {
    const float* at[kSize * kSize];
    pixels.next(at);
    float* const to = points.data + t * points.row;
    for (int64_t c = 0; c < pixels.channels(); c += kVector) {
      Floats from[kSize * kSize], transformed[kPoints];
#pragma GCC unroll 16
      for (int p = 0; p < kSize * kSize; ++p) load(at[p] + c, from[p]);
      transform(from, transformed);
#pragma GCC unroll 16
      for (int p = 0; p < kPoints; ++p) store(transformed[p], to + p * points.distance + c);
    }
  }
}

COHORT_INLINE void write_results(TilePixels<2, float> pixels, int64_t tiles, const Points& points,
                                 const float* bias) {
  for (int64_t t = 0; t < tiles; ++t) {
    float* at[4];
    pixels.next(at);
    const float* const from = points.data + t * points.row;
    for (int64_t f = 0; f < pixels.channels(); f += kVector) {
      Floats products[kPoints], results[4], added{};
#pragma GCC unroll 16
      for (int p = 0; p < kPoints; ++p) load(from + p * points.distance + f, products[p]);
      transform_back(products, results);
      if (bias != nullptr) load(bias + f, added);
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p) store(results[p] + added, at[p] + f);
    }
  }
}

// A transformed kernel: [kPoints][panels][rows][columns of a panel].
struct PackedKernel {
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t distance() const { return rows * columns + kVector; }  // from one point to the next
  int64_t width(int64_t panel) const { return std::min(kPanel, columns - panel); }
  COHORT_INLINE void put(const Floats (&weights)[9], int64_t row, int64_t column, float* to) const {
    Floats transformed[kPoints];
    transform(weights, transformed);
    const int64_t panel = column / kPanel * kPanel;
    to += panel * rows + row * width(panel) + column - panel;
#pragma GCC unroll 16
    for (int p = 0; p < kPoints; ++p) store(transformed[p], to + p * distance());
  }
};

// A kernel's gradient, transformed: [kPoints][channels][filters].
struct GradientSums {
  explicit GradientSums(const Winograd& s)
      : row(row_distance(s.filters)), distance(s.channels * row + kVector) {}
  int64_t row;
  int64_t distance;
};

// Stores the part of a kernel's gradient that belongs to one channel and kVector filters.
COHORT_INLINE void store_weights(const Floats (&points)[kPoints], const Winograd& s,
                                 int64_t channel, int64_t filter, float* gradient) {
  Floats weights[9];
  transform_back(points, weights);
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) {
    store(weights[t], gradient + (t * s.channels + channel) * s.filters + filter);
  }
}

constexpr int64_t kChannelsTogether = 8 * kTogether;

// Calls visit(weight, pixel of the image, pixel of the result) for all products, as offsets.
template <class Visit>
void for_products(const Winograd& s, int64_t images, const Visit& visit) {
  for (int64_t i = 0; i < images * s.out_height * s.out_width * 9; ++i) {
    const int64_t tap = i % 9;
    const int64_t out = i / 9;
    const int64_t y = out / s.out_width % s.out_height + tap / 3 - s.rows_before;
    const int64_t x = out % s.out_width + tap % 3 - s.columns_before;
    if (y < 0 || y >= s.height || x < 0 || x >= s.width) continue;
    const int64_t in = (out / s.out_width / s.out_height * s.height + y) * s.width + x;
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int64_t f = 0; f < s.filters; ++f) {
        visit((tap * s.channels + c) * s.filters + f, in * s.channels + c, out * s.filters + f);
      }
    }
  }
}

}  // namespace

bool has_kernels(const Winograd& s, int64_t images) {
  constexpr int64_t kLeastTiles = 16;
  return s.channels % kVector == 0 && s.filters % kVector == 0 &&
         tiles_of(s, images) >= kLeastTiles && has_wide_registers();
}

int64_t transformed_kernel_size(const Winograd& s) {
  return kPoints * PackedKernel{s.channels, s.filters}.distance();
}

COHORT_WIDE void transform_kernel(const Winograd& s, int64_t first, int64_t end,
                                  const float* kernel, float* transformed) {
  const PackedKernel packed{s.channels, s.filters};
  for (int64_t c = first; c < end; ++c) {
    for (int64_t f = 0; f < s.filters; f += kVector) {
      Floats weights[9];
#pragma GCC unroll 9
      for (int t = 0; t < 9; ++t) load(kernel + (t * s.channels + c) * s.filters + f, weights[t]);
      packed.put(weights, c, f, transformed);
    }
  }
}

COHORT_WIDE void transform_kernel_for_gradient(const Winograd& s, int64_t first, int64_t end,
                                               const float* kernel, float* transformed) {
  const PackedKernel packed{s.filters, s.channels};
  for (int64_t f = first; f < end; f += kVector) {
    for (int64_t c = 0; c < s.channels; c += kVector) {
      float by_filter[9][kVector * kVector];
      for (int t = 0; t < 9; ++t) {
        Floats block[kVector];
#pragma GCC unroll 16
        for (int i = 0; i < kVector; ++i) {
          load(kernel + (t * s.channels + c + i) * s.filters + f, block[i]);
        }
        transpose(block);
#pragma GCC unroll 16
        for (int i = 0; i < kVector; ++i) store(block[i], by_filter[8 - t] + i * kVector);
      }
      for (int64_t i = 0; i < kVector; ++i) {
        Floats weights[9];
#pragma GCC unroll 9
        for (int t = 0; t < 9; ++t) load(by_filter[t] + i * kVector, weights[t]);
        packed.put(weights, f + i, c, transformed);
      }
    }
  }
}

int64_t winograd_scratch_size(const Winograd& s, int64_t images) {
  // A smaller number of images may be divided into larger blocks.
  int64_t size = 0;
  for (int64_t some = 1; some <= images; ++some) {
    size = std::max(size, ScratchLayout(s, Tiling(s, some)).size());
  }
  return size;
}

COHORT_WIDE void convolve_winograd(const Winograd& s, int64_t images, const float* in,
                                   const float* transformed, const float* bias, float* scratch,
                                   float* out) {
  const Tiling tiling(s, images);
  const Scratch parts(ScratchLayout(s, tiling), scratch);
  const PackedKernel packed{s.channels, s.filters};
  for (int64_t first = 0; first < tiling.total; first += tiling.block) {
    const int64_t tiles = std::min(tiling.block, tiling.total - first);
    std::fill_n(parts.border, s.channels, 0.f);
    transform_tiles(pixels_of_images(s, in, parts.border, first), tiles, parts.images);
    for (int p = 0; p < kPoints; ++p) {
      for (int64_t panel = 0; panel < s.filters; panel += kPanel) {
        const int64_t width = packed.width(panel);
        multiply_panel({.rows = tiles,
                        .inner = s.channels,
                        .left = parts.images.point(p),
                        .left_row = parts.images.row,
                        .left_inner = 1,
                        .panel = transformed + p * packed.distance() + panel * s.channels,
                        .panel_inner = width,
                        .result = parts.results.point(p) + panel,
                        .result_row = parts.results.row},
                       width / kVector);
      }
    }
    write_results(pixels_of_results(s, out, parts.border, first), tiles, parts.results, bias);
  }
}

void convolve_reference(const Winograd& s, int64_t images, const float* in, const float* kernel,
                        const float* bias, float* out) {
  for (int64_t i = 0; i < images * s.out_size(); ++i) {
    out[i] = bias != nullptr ? bias[i % s.filters] : 0.f;
  }
  for_products(s, images, [&](int64_t weight, int64_t pixel, int64_t result) {
    out[result] += kernel[weight] * in[pixel];
  });
}

int64_t transformed_gradient_size(const Winograd& s) { return kPoints * GradientSums(s).distance; }

COHORT_WIDE void sum_transformed_gradient(const Winograd& s, int64_t images, const float* in,
                                          const float* out_gradient, bool adds, float* scratch,
                                          float* sum) {
  const Tiling tiling(s, images);
  const Scratch parts(ScratchLayout(s, tiling), scratch);
  const GradientSums sums(s);
  std::fill_n(parts.border, std::max(s.channels, s.filters), 0.f);
  for (int64_t first = 0; first < tiling.total; first += tiling.block) {
    const int64_t tiles = std::min(tiling.block, tiling.total - first);
    transform_tiles(pixels_of_images(s, in, parts.border, first), tiles, parts.images);
    transform_tiles(pixels_of_results<const float>(s, out_gradient, parts.border, first), tiles,
                    parts.results);
    for (int p = 0; p < kPoints; ++p) {
      for (int64_t panel = 0; panel < s.filters; panel += kPanel) {
        multiply_panel({.rows = s.channels,
                        .inner = tiles,
                        .left = parts.images.point(p),
                        .left_row = 1,
                        .left_inner = parts.images.row,
                        .panel = parts.results.point(p) + panel,
                        .panel_inner = parts.results.row,
                        .result = sum + p * sums.distance + panel,
                        .result_row = sums.row,
                        .adds = adds || first > 0},
                       std::min(kPanel, s.filters - panel) / kVector);
      }
    }
  }
}

COHORT_WIDE void kernel_gradient(const Winograd& s, int64_t first, int64_t end,
                                 std::span<const float* const> sums, float* gradient) {
  const GradientSums layout(s);
  for (int64_t c = first; c < end; ++c) {
    for (int64_t f = 0; f < s.filters; f += kVector) {
      Floats points[kPoints] = {};
      for (const float* const sum : sums) {
        const float* const from = sum + c * layout.row + f;
#pragma GCC unroll 16
        for (int p = 0; p < kPoints; ++p) {
          Floats added;
          load(from + p * layout.distance, added);
          points[p] += added;
        }
      }
      store_weights(points, s, c, f, gradient);
    }
  }
}

int64_t transformed_batch_size(const Winograd& s, int64_t images) {
  return SidesLayout(s, tiles_of(s, images)).size();
}

COHORT_WIDE void transform_batch(const Winograd& s, int64_t images, int64_t first, int64_t count,
                                 const float* in, const float* out_gradient, const float* zeros,
                                 float* transformed) {
  const Sides batch(SidesLayout(s, tiles_of(s, images)), transformed);
  const int64_t each = tiles_of(s, 1);
  transform_tiles(pixels_of_images(s, in, zeros, 0), count * each, batch.images.from(first * each));
  transform_tiles(pixels_of_results(s, out_gradient, zeros, 0), count * each,
                  batch.results.from(first * each));
}

int64_t kernel_gradient_scratch_size() { return kPoints * kChannelsTogether * kPanel; }

COHORT_WIDE void kernel_gradient_of_batch(const Winograd& s, int64_t images, int64_t first,
                                          int64_t end, const float* transformed, float* scratch,
                                          float* gradient) {
  const int64_t tiles = tiles_of(s, images);
  const Sides batch(SidesLayout(s, tiles), const_cast<float*>(transformed));
  for (int64_t block = first; block < end; block += kChannelsTogether) {
    const int64_t channels = std::min(kChannelsTogether, end - block);
    for (int64_t panel = 0; panel < s.filters; panel += kPanel) {
      const int64_t width = std::min(kPanel, s.filters - panel);
      for (int p = 0; p < kPoints; ++p) {
        multiply_panel({.rows = channels,
                        .inner = tiles,
                        .left = batch.images.point(p) + block,
                        .left_row = 1,
                        .left_inner = batch.images.row,
                        .panel = batch.results.point(p) + panel,
                        .panel_inner = batch.results.row,
                        .result = scratch + p * kChannelsTogether * kPanel,
                        .result_row = kPanel},
                       width / kVector);
      }
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t f = 0; f < width; f += kVector) {
          Floats points[kPoints];
#pragma GCC unroll 16
          for (int p = 0; p < kPoints; ++p) {
            load(scratch + (p * kChannelsTogether + c) * kPanel + f, points[p]);
          }
          store_weights(points, s, block + c, panel + f, gradient);
        }
      }
    }
  }
}

void kernel_gradient_reference(const Winograd& s, int64_t images, const float* in,
                               const float* out_gradient, float* gradient) {
  std::fill_n(gradient, 9 * s.channels * s.filters, 0.f);
  for_products(s, images, [&](int64_t weight, int64_t pixel, int64_t result) {
    gradient[weight] += in[pixel] * out_gradient[result];
  });
}

}  // namespace cohort::internal::plan
