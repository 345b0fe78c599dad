// Convolutions and their gradients with fewer products.
#include <algorithm>
#include <vector>

#include "cohort/ops/plan/convolution_products.h"
#include "cohort/ops/plan/vectors.h"
#include "cohort/ops/plan/winograd_kernels.h"

namespace cohort::internal::plan {
namespace {

// Calls body(first, end) for whole vectors of `count` channels, by several threads where there are
// many weights.
void for_channels(int64_t count, int64_t weights_each, Parallel parallel,
                  FunctionRef<void(int64_t, int64_t)> body) {
  constexpr int64_t kPerPart = int64_t{1} << 14;  // weights: some 30 us
  const int64_t parts = std::clamp<int64_t>(count * weights_each / kPerPart, 1, count / kVector);
  parallel(parts, [&](int64_t i) {
    const int64_t vectors = count / kVector;
    body(vectors * i / parts * kVector, vectors * (i + 1) / parts * kVector);
  });
}

std::vector<Buffer<float>> make_buffers(size_t count, int64_t size) {
  std::vector<Buffer<float>> made;
  for (size_t i = 0; i < count; ++i) made.emplace_back(size);
  return made;
}

class WinogradConvolver final : public Convolver {
 public:
  // transform: that of the kernel of `shape`, which is `convolved` or has it for its gradient.
  WinogradConvolver(const SharedByConvolutions& shared, const Winograd& convolved,
                    decltype(transform_kernel)* transform)
      : shape_(shared.winograd()),
        convolved_(convolved),
        transform_(transform),
        transformed_(transformed_kernel_size(convolved)),
        scratch_(make_buffers(shared.chunks.lanes.size(),
                              winograd_scratch_size(convolved, shared.chunks.largest))) {}

  void begin(const float* kernel, Parallel parallel) override {
    for_channels(convolved_.channels, convolved_.filters, parallel,
                 [&](int64_t first, int64_t end) {
                   transform_(shape_, first, end, kernel, transformed_.data());
                 });
  }
  void run(const Chunk& chunk, const float* from, const float* bias, float* to) override {
    convolve_winograd(convolved_, chunk.count, from, transformed_.data(), bias,
                      scratch_[static_cast<size_t>(chunk.lane)].data(), to);
  }

 private:
  const Winograd shape_;
  const Winograd convolved_;
  decltype(transform_kernel)* const transform_;
  const Buffer<float> transformed_;
  const std::vector<Buffer<float>> scratch_;  // by lane
};

class WinogradKernelGradient final : public KernelGradient {
 public:
  explicit WinogradKernelGradient(const SharedByConvolutions& shared)
      : s_(shared),
        shape_(shared.winograd()),
        scratch_(make_buffers(shared.chunks.lanes.size(),
                              winograd_scratch_size(shape_, shared.chunks.largest))),
        sums_(make_buffers(shared.chunks.lanes.size(), transformed_gradient_size(shape_))) {
    for (const Buffer<float>& sum : sums_) all_.push_back(sum.data());
  }

  void run(const Chunk& chunk, const float* in, const float* out_gradient) override {
    const auto lane = static_cast<size_t>(chunk.lane);
    sum_transformed_gradient(shape_, chunk.count, in, out_gradient, !s_.is_first(chunk),
                             scratch_[lane].data(), sums_[lane].data());
  }
  void end(Parallel parallel, float* gradient) override {
    for_channels(shape_.channels, shape_.filters, parallel, [&](int64_t first, int64_t end) {
      kernel_gradient(shape_, first, end, all_, gradient);
    });
  }

 private:
  const SharedByConvolutions& s_;
  const Winograd shape_;
  // By lane:
  const std::vector<Buffer<float>> scratch_;
  const std::vector<Buffer<float>> sums_;
  std::vector<const float*> all_;
};

}  // namespace

std::unique_ptr<Convolver> make_winograd(const SharedByConvolutions& shared) {
  return std::make_unique<WinogradConvolver>(shared, shared.winograd(), transform_kernel);
}
std::unique_ptr<Convolver> make_winograd_input_gradient(const SharedByConvolutions& shared) {
  return std::make_unique<WinogradConvolver>(shared, shared.winograd().of_gradient(),
                                             transform_kernel_for_gradient);
}
std::unique_ptr<KernelGradient> make_winograd_kernel_gradient(const SharedByConvolutions& shared) {
  return std::make_unique<WinogradKernelGradient>(shared);
}

}  // namespace cohort::internal::plan
