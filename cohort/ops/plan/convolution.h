// A convolution's forward pass, which its gradients look at.
#pragma once

#include <memory>
#include <vector>

#include "cohort/ops/plan/activation_kernels.h"
#include "cohort/ops/plan/convolution_products.h"

namespace cohort::internal::plan {

class ConvolutionForward final : public Forward {
 public:
  explicit ConvolutionForward(const SharedByConvolutions& shared)
      : s_(shared),
        convolve_(shared.has_fewer_products() ? make_winograd(shared) : make_direct(shared)),
        lanes_(shared.chunks.lanes.size()),
        places_(shared.fused.pools()
                    ? shared.pooled().size() *
                          (shared.records ? shared.chunks.batch
                                          : shared.chunks.largest *
                                                static_cast<int64_t>(shared.chunks.lanes.size()))
                    : 0) {
    for (Lane& lane : lanes_) {
      if (!s_.crop().keeps_all()) lane.cropped = Buffer<float>(s_.chunks.largest * s_.read.size());
      if (s_.fused.pools()) lane.result = Buffer<float>(s_.chunks.largest * s_.result.size());
    }
  }

  void begin(const float* const* parameters) override {
    kernel_ = parameters[0];
    bias_ = s_.operation.bias ? parameters[1] : nullptr;
  }
  void make_ready(Parallel parallel) override { convolve_->begin(kernel_, parallel); }

  void run(const Chunk& chunk, const float* in, float* out) override {
    Lane& lane = lanes_[static_cast<size_t>(chunk.lane)];
    const float* from = in;
    if (!s_.crop().keeps_all()) {
      crop(s_.crop(), chunk.count, in, lane.cropped.data());
      from = lane.cropped.data();
    }
    float* const to = s_.fused.pools() ? lane.result.data() : out;
    convolve_->run(chunk, from, s_.adds_bias() ? bias_ : nullptr, to);
    if (s_.fused.pools()) {
      const TiledImages tiles = s_.tiles(chunk.count);
      max_pool_rows<float>(tiles, 0, tiles.out_rows(), bias_, s_.fused.relu(), to, out,
                           places(chunk));
    } else if (s_.fused.activation) {
      activate(*s_.fused.activation, out, chunk.count * s_.result.size(), out);
    }
  }

  // The places of the largest elements in their windows.
  uint8_t* places(const Chunk& chunk) const {
    const int64_t example = s_.records ? chunk.first : chunk.lane * s_.chunks.largest;
    return places_.data() + example * s_.pooled().size();
  }

 private:
  struct Lane {
    Buffer<float> cropped;
    Buffer<float> result;
  };

  const SharedByConvolutions& s_;
  const std::unique_ptr<Convolver> convolve_;
  std::vector<Lane> lanes_;
  Buffer<uint8_t> places_;
  const float* kernel_ = nullptr;
  const float* bias_ = nullptr;
};

// The gradients by dense convolutions, and by loops over what pooling kept.
std::unique_ptr<Backward> make_dense_gradients(const SharedByConvolutions& shared);
std::unique_ptr<Backward> make_pooled_gradients(const SharedByConvolutions& shared);

}  // namespace cohort::internal::plan
