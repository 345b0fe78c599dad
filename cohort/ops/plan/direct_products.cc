// Convolutions and their gradients by oneDNN's primitives.
#include <vector>

#include "cohort/ops/plan/convolution_products.h"

namespace cohort::internal::plan {
namespace {

class Direct final : public Convolver {
 public:
  explicit Direct(const SharedByConvolutions& shared)
      : s_(shared),
        kernel_(shared.plain_kernel(), shared.described[0].forward.weights_desc()),
        lanes_(shared.chunks.lanes.size()) {
    std::vector<int> arguments{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    if (shared.adds_bias()) arguments.push_back(DNNL_ARG_BIAS);
    for_one_thread([&] {
      for (Lane& lane : lanes_) {
        for (const DescribedConvolution& described : s_.described) {
          lane.convolve.emplace_back(described.forward, arguments, lane.scratch);
        }
      }
    });
  }

  void begin(const float* kernel, Parallel) override { blocked_ = kernel_(kernel); }
  void run(const Chunk& chunk, const float* from, const float* bias, float* to) override {
    Primitive& convolve = lanes_[static_cast<size_t>(chunk.lane)].convolve[s_.index_of(chunk)];
    if (bias != nullptr) {
      convolve({from, blocked_, to, bias});
    } else {
      convolve({from, blocked_, to});
    }
  }

 private:
  struct Lane {
    Scratch scratch;
    std::vector<Primitive> convolve;  // by size of chunk
  };

  const SharedByConvolutions& s_;
  Relayout kernel_;
  std::vector<Lane> lanes_;
  const float* blocked_ = nullptr;
};

class DirectInputGradient final : public Convolver {
 public:
  explicit DirectInputGradient(const SharedByConvolutions& shared)
      : s_(shared),
        kernel_(shared.plain_kernel(), shared.described[0].data.weights_desc()),
        lanes_(shared.chunks.lanes.size()) {
    for_one_thread([&] {
      for (Lane& lane : lanes_) {
        for (const DescribedConvolution& described : s_.described) {
          lane.data.emplace_back(
              described.data,
              std::vector<int>{DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
              lane.scratch);
        }
      }
    });
  }

  void begin(const float* kernel, Parallel) override { blocked_ = kernel_(kernel); }
  void run(const Chunk& chunk, const float* from, const float*, float* to) override {
    lanes_[static_cast<size_t>(chunk.lane)].data[s_.index_of(chunk)]({from, blocked_, to});
  }

 private:
  struct Lane {
    Scratch scratch;
    std::vector<Primitive> data;  // by size of chunk
  };

  const SharedByConvolutions& s_;
  Relayout kernel_;
  std::vector<Lane> lanes_;
  const float* blocked_ = nullptr;
};

class DirectKernelGradient final : public KernelGradient {
 public:
  explicit DirectKernelGradient(const SharedByConvolutions& shared)
      : s_(shared),
        plain_(shared.described[0].weights.diff_weights_desc(), shared.plain_kernel()),
        size_(elements(shared.described[0].weights.diff_weights_desc())),
        lanes_(shared.chunks.lanes.size()) {
    for_one_thread([&] {
      for (size_t i = 0; i < lanes_.size(); ++i) make(lanes_[i], s_.chunks.lanes[i].size() > 1);
    });
  }

  void run(const Chunk& chunk, const float* in, const float* out_gradient) override {
    Lane& lane = lanes_[static_cast<size_t>(chunk.lane)];
    float* const to = s_.is_first(chunk) ? lane.sum.data() : lane.next.data();
    lane.weights[s_.index_of(chunk)]({in, out_gradient, to});
    if (!s_.is_first(chunk)) add(to, size_, lane.sum.data());
  }
  void end(Parallel, float* gradient) override {
    for (size_t i = 1; i < lanes_.size(); ++i)
      add(lanes_[i].sum.data(), size_, lanes_[0].sum.data());
    plain_.to(lanes_[0].sum.data(), gradient);
  }

 private:
  struct Lane {
    Scratch scratch;
    std::vector<Primitive> weights;  // by size of chunk
    Buffer<float> sum;               // over the lane's chunks
    Buffer<float> next;              // of the next chunk
  };

  void make(Lane& lane, bool several) const {
    for (const DescribedConvolution& described : s_.described) {
      lane.weights.emplace_back(
          described.weights,
          std::vector<int>{DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS}, lane.scratch);
    }
    lane.sum = Buffer<float>(size_);
    if (several) lane.next = Buffer<float>(size_);
  }

  const SharedByConvolutions& s_;
  Relayout plain_;
  const int64_t size_;
  std::vector<Lane> lanes_;
};

}  // namespace

std::unique_ptr<Convolver> make_direct(const SharedByConvolutions& shared) {
  return std::make_unique<Direct>(shared);
}
std::unique_ptr<Convolver> make_direct_input_gradient(const SharedByConvolutions& shared) {
  return std::make_unique<DirectInputGradient>(shared);
}
std::unique_ptr<KernelGradient> make_direct_kernel_gradient(const SharedByConvolutions& shared) {
  return std::make_unique<DirectKernelGradient>(shared);
}

}  // namespace cohort::internal::plan
