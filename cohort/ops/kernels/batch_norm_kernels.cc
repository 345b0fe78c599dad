#include "cohort/ops/kernels/batch_norm_kernels.h"

#include <algorithm>

#include "cohort/core/cpu/vector_clones.h"
#include "cohort/ops/kernels/vectors.h"

namespace cohort::internal {
namespace {

// Blocks that stay in the first-level cache: sums over so few rows are exact enough as floats, and
// are added up as doubles.
constexpr int64_t kRows = 32;
constexpr int64_t kChannels = 64;

// Some rows and channels of more.
struct Block {
  int64_t row;
  int64_t rows;
  int64_t channel;
  int64_t channels;
};

// Calls Sum::add(block) for all blocks.
template <class Sum>
COHORT_INLINE void for_blocks(int64_t rows, int64_t channels, const Sum& sum) {
  for (int64_t row = 0; row < rows; row += kRows) {
    for (int64_t channel = 0; channel < channels; channel += kChannels) {
      sum.add(Block{row, std::min(kRows, rows - row), channel,
                    std::min(kChannels, channels - channel)});
    }
  }
}

// Adds `rows` with these means and sums of squares to what there are of `before`.
COHORT_INLINE void merge(int64_t before, int64_t rows, double mean, double squares, double& to_mean,
                         double& to_squares) {
  const auto all = static_cast<double>(before + rows);
  const double share = static_cast<double>(rows) / all;
  const double difference = mean - to_mean;
  to_mean += difference * share;
  to_squares += squares + difference * difference * share * static_cast<double>(before);
}

struct MomentsOfBlocks {
  const float* x;
  int64_t channels;
  Moments& moments;

  COHORT_INLINE void add(const Block& b) const {
    const float* const first = x + b.row * channels + b.channel;
    float mean[kChannels] = {};
    for (int64_t r = 0; r < b.rows; ++r) {
      const float* __restrict value = first + r * channels;
      for (int64_t c = 0; c < b.channels; ++c) mean[c] += value[c];
    }
    const float share = 1.f / static_cast<float>(b.rows);
    for (int64_t c = 0; c < b.channels; ++c) mean[c] *= share;
    // The mean is rounded: what the differences add up to puts that right.
    float rest[kChannels] = {};
    float squares[kChannels] = {};
    for (int64_t r = 0; r < b.rows; ++r) {
      const float* __restrict value = first + r * channels;
      for (int64_t c = 0; c < b.channels; ++c) {
        const float difference = value[c] - mean[c];
        rest[c] += difference;
        squares[c] += difference * difference;
      }
    }
    for (int64_t c = 0; c < b.channels; ++c) {
      const auto place = static_cast<size_t>(b.channel + c);
      const double off = static_cast<double>(rest[c]) * share;
      merge(moments.rows + b.row, b.rows, mean[c] + off,
            std::max(squares[c] - off * off * static_cast<double>(b.rows), 0.), moments.mean[place],
            moments.squares[place]);
    }
  }
};

struct GradientSumsOfBlocks {
  const float* x;
  const float* mean;
  const float* gradient;
  int64_t channels;
  double* sums;
  double* products;

  COHORT_INLINE void add(const Block& b) const {
    float sum[kChannels] = {};
    float product[kChannels] = {};
    for (int64_t r = b.row; r < b.row + b.rows; ++r) {
      const float* __restrict value = x + r * channels + b.channel;
      const float* __restrict outer = gradient + r * channels + b.channel;
      for (int64_t c = 0; c < b.channels; ++c) {
        sum[c] += outer[c];
        product[c] += outer[c] * (value[c] - mean[b.channel + c]);
      }
    }
    for (int64_t c = 0; c < b.channels; ++c) {
      sums[b.channel + c] += sum[c];
      products[b.channel + c] += product[c];
    }
  }
};

}  // namespace

COHORT_VECTOR_CLONES void add_moments(const float* x, int64_t rows, int64_t channels,
                                      Moments& moments) {
  for_blocks(rows, channels, MomentsOfBlocks{x, channels, moments});
  moments.rows += rows;
}

void merge_moments(const Moments& other, Moments& moments) {
  if (other.rows == 0) return;
  for (size_t c = 0; c < moments.mean.size(); ++c) {
    merge(moments.rows, other.rows, other.mean[c], other.squares[c], moments.mean[c],
          moments.squares[c]);
  }
  moments.rows += other.rows;
}

COHORT_VECTOR_CLONES void normalize_rows(const Normalizer& by, const float* x, int64_t rows,
                                         int64_t channels, float* y) {
  for (int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
    const float* __restrict from = x;
    float* __restrict to = y;
    for (int64_t c = 0; c < channels; ++c) {
      to[c] = (from[c] - by.mean[c]) * by.scale[c] + by.offset[c];
    }
  }
}

COHORT_VECTOR_CLONES void add_gradient_sums(const float* x, const float* mean,
                                            const float* gradient, int64_t rows, int64_t channels,
                                            double* sums, double* products) {
  for_blocks(rows, channels, GradientSumsOfBlocks{x, mean, gradient, channels, sums, products});
}

COHORT_VECTOR_CLONES void normalization_gradient_rows(const InputGradient& by, const float* x,
                                                      const float* gradient, int64_t rows,
                                                      int64_t channels, float* result) {
  for (int64_t row = 0; row < rows;
       ++row, x += channels, gradient += channels, result += channels) {
    const float* __restrict value = x;
    const float* __restrict outer = gradient;
    float* __restrict to = result;
    for (int64_t c = 0; c < channels; ++c) {
      to[c] = outer[c] * by.scale[c] - by.constant[c] - (value[c] - by.mean[c]) * by.slope[c];
    }
  }
}

}  // namespace cohort::internal
