// What a convolution's unit and its passes share.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "cohort/ops/max_pool_kernels.h"
#include "cohort/ops/plan/activation_kernels.h"
#include "cohort/ops/plan/kernels.h"
#include "cohort/ops/plan/onednn.h"
#include "cohort/ops/plan/pooled_gradient_kernels.h"
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
  std::vector<DescribedConvolution> described;

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
  // As loops of gradients below pooling have it.
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
  // That of variables.
  Layout plain_kernel() const { return kernel(Tag::hwio); }
  Layout kernel(Tag tag) const {
    return Layout({operation.filters, image.channels, operation.size[0], operation.size[1]}, kFloat,
                  tag);
  }
  size_t index_of(const Chunk& chunk) const { return described[0].count == chunk.count ? 0 : 1; }
};

// Errors: NotPlanned. like: the same for chunks of another size, whose layouts it takes over.
DescribedConvolution describe_for(const SharedByConvolutions& shared, int64_t count,
                                  const DescribedConvolution* like);

class ConvolutionForward final : public Forward {
 public:
  explicit ConvolutionForward(const SharedByConvolutions& shared)
      : s_(shared),
        kernel_(shared.plain_kernel(), shared.described[0].forward.weights_desc()),
        lanes_(shared.chunks.lanes.size()),
        places_(shared.fused.pools()
                    ? shared.pooled().size() *
                          (shared.records ? shared.chunks.batch
                                          : shared.chunks.largest *
                                                static_cast<int64_t>(shared.chunks.lanes.size()))
                    : 0) {
    for_one_thread([&] {
      for (Lane& lane : lanes_) {
        for (const DescribedConvolution& described : s_.described) {
          std::vector<int> arguments{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
          if (adds_bias()) arguments.push_back(DNNL_ARG_BIAS);
          lane.convolve.emplace_back(described.forward, arguments, lane.scratch);
        }
        if (!s_.crop().keeps_all())
          lane.cropped = Buffer<float>(s_.chunks.largest * s_.read.size());
        if (s_.fused.pools()) lane.result = Buffer<float>(s_.chunks.largest * s_.result.size());
      }
    });
  }

  void begin(const float* const* parameters) override {
    blocked_ = kernel_(parameters[0]);
    bias_ = s_.operation.bias ? parameters[1] : nullptr;
  }

  void run(const Chunk& chunk, const float* in, float* out) override {
    Lane& lane = lanes_[static_cast<size_t>(chunk.lane)];
    const float* from = in;
    if (!s_.crop().keeps_all()) {
      crop(s_.crop(), chunk.count, in, lane.cropped.data());
      from = lane.cropped.data();
    }
    float* const to = s_.fused.pools() ? lane.result.data() : out;
    Primitive& convolve = lane.convolve[s_.index_of(chunk)];
    if (adds_bias()) {
      convolve({from, blocked_, to, bias_});
    } else {
      convolve({from, blocked_, to});
    }
    if (s_.fused.pools()) {
      const TiledImages tiles = s_.tiles(chunk.count);
      max_pool_rows<float>(tiles, 0, tiles.out_rows(), bias_, s_.fused.relu(), to, out,
                           places(chunk));
    } else if (s_.fused.activation) {
      activate(*s_.fused.activation, out, chunk.count * s_.result.size(), out);
    }
  }

  // Where in their windows the largest stand.
  uint8_t* places(const Chunk& chunk) const {
    const int64_t example = s_.records ? chunk.first : chunk.lane * s_.chunks.largest;
    return places_.data() + example * s_.pooled().size();
  }

 private:
  struct Lane {
    Scratch scratch;
    std::vector<Primitive> convolve;  // by size of chunk
    Buffer<float> cropped;
    Buffer<float> result;
  };

  bool adds_bias() const { return s_.operation.bias && !s_.fused.pools(); }

  const SharedByConvolutions& s_;
  Relayout kernel_;
  std::vector<Lane> lanes_;
  Buffer<uint8_t> places_;
  const float* blocked_ = nullptr;
  const float* bias_ = nullptr;
};

// The gradients by dense convolutions, and by loops over what pooling kept.
std::unique_ptr<Backward> make_dense_gradients(const SharedByConvolutions& shared);
std::unique_ptr<Backward> make_pooled_gradients(const SharedByConvolutions& shared);

}  // namespace cohort::internal::plan
