#include "cohort/ops/plan/winograd_kernels.h"

#include <algorithm>

#include "cohort/ops/plan/register_sums.h"

namespace cohort::internal::plan {
namespace {

constexpr int kPoints = 16;                  // numbers of a transformed tile
constexpr int64_t kPanel = kSums * kVector;  // columns that are multiplied together
constexpr int kTogether = kRows<Floats>;     // and rows

// How far apart rows of so many numbers are: parts of them that are read in turns would otherwise
// share few places of a cache.
int64_t row_distance(int64_t numbers) {
  return numbers > kPanel && numbers % kPanel == 0 ? numbers + kVector : numbers;
}

// Transformed tiles: [kPoints][tiles][channels], each point an odd number of cache lines.
struct Points {
  float* data = nullptr;
  int64_t row = 0;       // from one tile to the next
  int64_t distance = 0;  // from one point to the next

  Points(int64_t tiles, int64_t channels, float* data)
      : data(data), row(row_distance(channels)), distance((tiles * row / kVector | 1) * kVector) {}
  int64_t size() const { return kPoints * distance; }
  float* point(int p) const { return data + p * distance; }
};

// Which tiles are transformed and multiplied together: so many that both sides of the products stay
// in a second-level cache, and a kernel is read for many.
struct Tiling {
  Tiling(const Winograd& s, int64_t images) : total(images * s.tile_rows() * s.tile_columns()) {
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
struct Parts {
  Parts(const Winograd& s, const Tiling& tiling, float* scratch)
      : images(tiling.block, s.channels, scratch),
        results(tiling.block, s.filters, scratch + images.size()),
        border(results.data + results.size()),
        size(images.size() + results.size() + std::max(s.channels, s.filters)) {}
  Points images;
  Points results;
  float* border;  // a pixel outside: zeros to read, or where to write what nobody wants
  int64_t size;
};

// The pixels of one tile after the other, kSize x kSize each, of which the first tile's first lies at
// (-rows_before, -columns_before).
template <int kSize, class T>
class TilePixels {
 public:
  struct Images {
    T* first = nullptr;
    int64_t height = 0;
    int64_t width = 0;
    int64_t channels = 0;
    int64_t rows_before = 0;
    int64_t columns_before = 0;
  };
  TilePixels(const Winograd& s, const Images& images, T* border, int64_t tile)
      : images_(images),
        border_(border),
        tile_rows_(s.tile_rows()),
        tile_columns_(s.tile_columns()),
        image_(tile / (tile_rows_ * tile_columns_)),
        row_(tile / tile_columns_ % tile_rows_),
        column_(tile % tile_columns_) {}

  int64_t channels() const { return images_.channels; }
  // Where the next tile's are.
  COHORT_INLINE void next(T* (&at)[kSize * kSize]) {
    const int64_t top = 2 * row_ - images_.rows_before;
    const int64_t left = 2 * column_ - images_.columns_before;
    const int64_t first = (image_ * images_.height + top) * images_.width + left;
#pragma GCC unroll 4
    for (int r = 0; r < kSize; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < kSize; ++c) {
        const bool inside =
            top + r >= 0 && top + r < images_.height && left + c >= 0 && left + c < images_.width;
        at[r * kSize + c] =
            inside ? images_.first + (first + r * images_.width + c) * images_.channels : border_;
      }
    }
    if (++column_ < tile_columns_) return;
    column_ = 0;
    if (++row_ < tile_rows_) return;
    row_ = 0;
    ++image_;
  }

 private:
  const Images images_;
  T* const border_;
  const int64_t tile_rows_;
  const int64_t tile_columns_;
  int64_t image_;
  int64_t row_;
  int64_t column_;
};

using ImagePixels = TilePixels<4, const float>;
ImagePixels pixels_of_images(const Winograd& s, const float* in, const float* border,
                             int64_t tile) {
  return {s, {in, s.height, s.width, s.channels, s.rows_before, s.columns_before}, border, tile};
}
template <class T>
TilePixels<2, T> pixels_of_results(const Winograd& s, T* out, T* border, int64_t tile) {
  return {s, {out, s.out_height, s.out_width, s.filters, 0, 0}, border, tile};
}

// The transforms, each first of columns, then of rows. In Lavin and Gray's terms: of an image B^T d B,
COHORT_INLINE void transform(const Floats (&d)[16], Floats (&v)[16]) {
  Floats rows[16];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    rows[c] = d[c] - d[8 + c];
    rows[4 + c] = d[4 + c] + d[8 + c];
    rows[8 + c] = d[8 + c] - d[4 + c];
    rows[12 + c] = d[4 + c] - d[12 + c];
  }
#pragma GCC unroll 4
  for (int r = 0; r < 16; r += 4) {
    v[r] = rows[r] - rows[r + 2];
    v[r + 1] = rows[r + 1] + rows[r + 2];
    v[r + 2] = rows[r + 2] - rows[r + 1];
    v[r + 3] = rows[r + 1] - rows[r + 3];
  }
}

// of a kernel G g G^T,
COHORT_INLINE void transform(const Floats (&g)[9], Floats (&u)[16]) {
  Floats rows[12];
#pragma GCC unroll 3
  for (int c = 0; c < 3; ++c) {
    const Floats sides = g[c] + g[6 + c];
    rows[c] = g[c];
    rows[3 + c] = 0.5f * (sides + g[3 + c]);
    rows[6 + c] = 0.5f * (sides - g[3 + c]);
    rows[9 + c] = g[6 + c];
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const Floats sides = rows[3 * r] + rows[3 * r + 2];
    u[4 * r] = rows[3 * r];
    u[4 * r + 1] = 0.5f * (sides + rows[3 * r + 1]);
    u[4 * r + 2] = 0.5f * (sides - rows[3 * r + 1]);
    u[4 * r + 3] = rows[3 * r + 2];
  }
}

// of products A^T m A;
COHORT_INLINE void transform_back(const Floats (&m)[16], Floats (&y)[4]) {
  Floats rows[8];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    rows[c] = m[c] + m[4 + c] + m[8 + c];
    rows[4 + c] = m[4 + c] - m[8 + c] - m[12 + c];
  }
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) {
    y[2 * r] = rows[4 * r] + rows[4 * r + 1] + rows[4 * r + 2];
    y[2 * r + 1] = rows[4 * r + 1] - rows[4 * r + 2] - rows[4 * r + 3];
  }
}

// and the gradients of the last one, A y A^T, and of the kernel's, G^T u G.
COHORT_INLINE void transform(const Floats (&y)[4], Floats (&m)[16]) {
  const Floats rows[8] = {y[0],        y[1],        y[0] + y[2], y[1] + y[3],
                          y[0] - y[2], y[1] - y[3], -y[2],       -y[3]};
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    m[4 * r] = rows[2 * r];
    m[4 * r + 1] = rows[2 * r] + rows[2 * r + 1];
    m[4 * r + 2] = rows[2 * r] - rows[2 * r + 1];
    m[4 * r + 3] = -rows[2 * r + 1];
  }
}

COHORT_INLINE void transform_back(const Floats (&u)[16], Floats (&g)[9]) {
  Floats rows[12];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const Floats sum = 0.5f * (u[4 + c] + u[8 + c]);
    rows[c] = u[c] + sum;
    rows[4 + c] = 0.5f * (u[4 + c] - u[8 + c]);
    rows[8 + c] = sum + u[12 + c];
  }
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
    const Floats sum = 0.5f * (rows[4 * r + 1] + rows[4 * r + 2]);
    g[3 * r] = rows[4 * r] + sum;
    g[3 * r + 1] = 0.5f * (rows[4 * r + 1] - rows[4 * r + 2]);
    g[3 * r + 2] = sum + rows[4 * r + 3];
  }
}

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

// Rows times a panel of columns. How far apart numbers are: from one row to the next, and from one
// that is multiplied to the next.
struct PanelProduct {
  int64_t rows = 0;
  int64_t inner = 0;
  const float* left = nullptr;
  int64_t left_row = 0;
  int64_t left_inner = 0;
  const float* panel = nullptr;
  int64_t panel_inner = 0;
  float* result = nullptr;
  int64_t result_row = 0;
  bool adds = false;  // to what the result was
};

template <int kVectors, int kCount = kTogether>
COHORT_INLINE void multiply_rows(const PanelProduct& p, int64_t row, int64_t count) {
  if constexpr (kCount > 1) {
    if (count < kCount) {
      multiply_rows<kVectors, kCount - 1>(p, row, count);
      return;
    }
  }
  float* const result = p.result + row * p.result_row;
  Floats sums[kCount][kVectors] = {};
  if (p.adds) {
#pragma GCC unroll 6
    for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) load(result + r * p.result_row + v * kVector, sums[r][v]);
    }
  }
  const float* left = p.left + row * p.left_row;
  const float* panel = p.panel;
  for (int64_t k = 0; k < p.inner; ++k, left += p.left_inner, panel += p.panel_inner) {
    Floats factors[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) load(panel + v * kVector, factors[v]);
#pragma GCC unroll 6
    for (int r = 0; r < kCount; ++r) {
      const float number = left[r * p.left_row];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] += factors[v] * number;
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(sums[r][v], result + r * p.result_row + v * kVector);
  }
}

template <int kVectors>
COHORT_INLINE void multiply_panel(const PanelProduct& p) {
  for (int64_t row = 0; row < p.rows; row += kTogether) {
    multiply_rows<kVectors>(p, row, std::min<int64_t>(kTogether, p.rows - row));
  }
}

// vectors: of the panel.
COHORT_INLINE void multiply_panel(const PanelProduct& p, int64_t vectors) {
  switch (vectors) {
    case 1:
      return multiply_panel<1>(p);
    case 2:
      return multiply_panel<2>(p);
    case 3:
      return multiply_panel<3>(p);
    default:
      return multiply_panel<4>(p);
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

// Swaps the squares of kStep x kStep numbers beside the diagonal.
template <int kStep>
COHORT_INLINE void swap_squares(Floats (&block)[kVector]) {
  Ints of_low, of_high;
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) {
    of_low[j] = (j & kStep) != 0 ? j - kStep + 16 : j;
    of_high[j] = (j & kStep) != 0 ? j + 16 : j + kStep;
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if ((i & kStep) != 0) continue;
    const Floats low = block[i];
    block[i] = __builtin_shuffle(low, block[i + kStep], of_low);
    block[i + kStep] = __builtin_shuffle(low, block[i + kStep], of_high);
  }
}

// Number j of vector i becomes number i of vector j.
COHORT_INLINE void transpose(Floats (&block)[kVector]) {
  swap_squares<8>(block);
  swap_squares<4>(block);
  swap_squares<2>(block);
  swap_squares<1>(block);
}

// A kernel's gradient, transformed: [kPoints][channels][filters].
struct GradientSums {
  explicit GradientSums(const Winograd& s)
      : row(row_distance(s.filters)), distance(s.channels * row + kVector) {}
  int64_t row;
  int64_t distance;
};

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
         images * s.tile_rows() * s.tile_columns() >= kLeastTiles && has_wide_registers();
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
    size = std::max(size, Parts(s, Tiling(s, some), nullptr).size);
  }
  return size;
}

COHORT_WIDE void convolve_winograd(const Winograd& s, int64_t images, const float* in,
                                   const float* transformed, const float* bias, float* scratch,
                                   float* out) {
  const Tiling tiling(s, images);
  const Parts parts(s, tiling, scratch);
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
  const Parts parts(s, tiling, scratch);
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
      Floats points[kPoints] = {}, weights[9];
      for (const float* const sum : sums) {
        const float* const from = sum + c * layout.row + f;
#pragma GCC unroll 16
        for (int p = 0; p < kPoints; ++p) {
          Floats added;
          load(from + p * layout.distance, added);
          points[p] += added;
        }
      }
      transform_back(points, weights);
#pragma GCC unroll 9
      for (int t = 0; t < 9; ++t) {
        store(weights[t], gradient + (t * s.channels + c) * s.filters + f);
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
