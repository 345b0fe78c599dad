// What the passes of a convolution's unit share, and what they multiply: by oneDNN's primitives, or
// with fewer products.
#pragma once

#include <memory>
#include <vector>

#include "cohort/ops/kernels/max_pool_kernels.h"
#include "cohort/ops/kernels/pooled_gradient_kernels.h"
#include "cohort/ops/kernels/winograd_kernels.h"
#include "cohort/ops/plan/kernels.h"
#include "cohort/ops/plan/onednn.h"
#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {

// The primitives for chunks of one size.
struct DescribedConvolution {
  int64_t count = 0;
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_data::primitive_desc data;
  dnnl::convolution_backward_weights::primitive_desc weights;
};

// What all passes share.
struct SharedByConvolutions {
  Convolution operation;
  Fused fused;
  Image image;
  Image read;       // the part of it that is taken
  Size gaps{1, 1};  // between the pixels that are; see has_gaps
  Image result;
  Chunks chunks{0, 1};
  bool records = false;
  bool wants_input = false;
  std::vector<DescribedConvolution> described;  // by size of chunk; none with fewer products

  Crop crop() const {
    return {.height = image.height,
            .width = image.width * image.channels,
            .kept_height = read.height,
            .kept_width = read.width * read.channels,
            .pixel = image.channels,
            .steps = gaps};
  }
  Image pooled() const {
    return {result.height / fused.tile[0], result.width / fused.tile[1], result.channels};
  }
  TiledImages tiles(int64_t count) const {
    return {count, result.height, result.width, result.channels, fused.tile[0], fused.tile[1]};
  }
  // The same convolution in the form of the loops of gradients below pooling.
  PooledConvolution pooled_convolution() const {
    return {.height = image.height,
            .width = image.width,
            .channels = image.channels,
            .size = operation.size[0],
            .filters = operation.filters,
            .tile_height = fused.tile[0],
            .tile_width = fused.tile[1],
            .pooled_height = pooled().height,
            .pooled_width = pooled().width};
  }
  // Whether they compute the gradients.
  bool has_pooled_gradients() const {
    return fused.pools() && gaps == Size{1, 1} && !operation.same &&
           operation.strides == Size{1, 1} && operation.dilation == Size{1, 1} &&
           operation.size[0] == operation.size[1] && has_kernels(pooled_convolution());
  }
  // The same convolution in the form of the loops with fewer products.
  Winograd winograd() const {
    return {.height = read.height,
            .width = read.width,
            .channels = read.channels,
            .rows_before = windows(read.height, 3, 1, 1, operation.same).before,
            .columns_before = windows(read.width, 3, 1, 1, operation.same).before,
            .out_height = result.height,
            .out_width = result.width,
            .filters = result.channels};
  }
  // Whether they compute it, and its gradients where no pooled ones do.
  bool has_fewer_products() const {
    return gaps == Size{1, 1} && operation.size == Size{3, 3} && operation.strides == Size{1, 1} &&
           operation.dilation == Size{1, 1} && has_kernels(winograd(), chunks.batch);
  }
  // Whether the convolution adds it: before pooling it is added to fewer elements.
  bool adds_bias() const { return operation.bias && !fused.pools(); }
  // The layout of a kernel in variables.
  Layout plain_kernel() const { return kernel(Tag::hwio); }
  Layout kernel(Tag tag) const {
    return Layout({operation.filters, image.channels, operation.size[0], operation.size[1]}, kFloat,
                  tag);
  }
  bool is_first(const Chunk& chunk) const {  // of its lane
    return chunk.first == chunks.lanes[static_cast<size_t>(chunk.lane)][0].first;
  }
  size_t index_of(const Chunk& chunk) const { return described[0].count == chunk.count ? 0 : 1; }
};

// Errors: NotPlanned. like: the same for chunks of another size, whose layouts it takes over.
DescribedConvolution describe_for(const SharedByConvolutions& shared, int64_t count,
                                  const DescribedConvolution* like);

// Images with a kernel: the convolution, or the gradient of its input. Thread safety: as Forward.
class Convolver {
 public:
  virtual ~Convolver() = default;
  // Before the chunks of a batch. kernel: [size, size, channels, filters].
  virtual void begin(const float* kernel, Parallel parallel) = 0;
  // bias: [filters], or nullptr where none is to be added.
  virtual void run(const Chunk& chunk, const float* from, const float* bias, float* to) = 0;
};

// The sum of the kernel's gradient over a batch. Thread safety: as Backward.
class KernelGradient {
 public:
  virtual ~KernelGradient() = default;
  // in: what was convolved; out_gradient: of the result.
  virtual void run(const Chunk& chunk, const float* in, const float* out_gradient) = 0;
  // gradient: [size, size, channels, filters].
  virtual void end(Parallel parallel, float* gradient) = 0;
};

// A convolver of oneDNN, which adds the bias if adds_bias() says so.
std::unique_ptr<Convolver> make_direct(const SharedByConvolutions& shared);
std::unique_ptr<Convolver> make_direct_input_gradient(const SharedByConvolutions& shared);
std::unique_ptr<KernelGradient> make_direct_kernel_gradient(const SharedByConvolutions& shared);
// A convolver with fewer products, if SharedByConvolutions::has_fewer_products().
std::unique_ptr<Convolver> make_winograd(const SharedByConvolutions& shared);
std::unique_ptr<Convolver> make_winograd_input_gradient(const SharedByConvolutions& shared);
std::unique_ptr<KernelGradient> make_winograd_kernel_gradient(const SharedByConvolutions& shared);

}  // namespace cohort::internal::plan
