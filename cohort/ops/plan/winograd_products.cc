// Convolutions and their gradients with fewer products.
#include <algorithm>
#include <vector>

#include "cohort/ops/kernels/vectors.h"
#include "cohort/ops/kernels/winograd_kernels.h"
#include "cohort/ops/plan/convolution_products.h"

namespace cohort::internal::plan {
namespace {

// The channels of a kernel, divided among threads where there are many weights: whole vectors.
class Division {
 public:
  Division(int64_t channels, int64_t filters)
      : vectors_(channels / kVector),
        parts_(std::clamp<int64_t>(channels * filters / kPerPart, 1, std::min(vectors_, kMost))) {}

  int64_t parts() const { return parts_; }
  // Calls body(part, first channel, end).
  void run(Parallel parallel, FunctionRef<void(int64_t, int64_t, int64_t)> body) const {
    parallel(parts_, [&](int64_t i) {
      body(i, vectors_ * i / parts_ * kVector, vectors_ * (i + 1) / parts_ * kVector);
    });
  }

 private:
  static constexpr int64_t kPerPart = int64_t{1} << 14;  // weights: some 30 us
  static constexpr int64_t kMost = 16;

  int64_t vectors_;
  int64_t parts_;
};

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
        division_(convolved.channels, convolved.filters),
        transform_(transform),
        transformed_(transformed_kernel_size(convolved)),
        scratch_(make_buffers(shared.chunks.lanes.size(),
                              winograd_scratch_size(convolved, shared.chunks.largest))) {}

  void begin(const float* kernel, Parallel parallel) override {
    division_.run(parallel, [&](int64_t, int64_t first, int64_t end) {
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
  const Division division_;
  decltype(transform_kernel)* const transform_;
  const Buffer<float> transformed_;
  const std::vector<Buffer<float>> scratch_;  // by lane
};

// Sums in each lane by itself.
class SummedByLane final : public KernelGradient {
 public:
  explicit SummedByLane(const SharedByConvolutions& shared)
      : s_(shared),
        shape_(shared.winograd()),
        division_(shape_.channels, shape_.filters),
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
    division_.run(parallel, [&](int64_t, int64_t first, int64_t end) {
      kernel_gradient(shape_, first, end, all_, gradient);
    });
  }

 private:
  const SharedByConvolutions& s_;
  const Winograd shape_;
  const Division division_;
  // One for each lane:
  const std::vector<Buffer<float>> scratch_;
  const std::vector<Buffer<float>> sums_;
  std::vector<const float*> all_;
};

// After all chunks, by channels.
class SummedByChannel final : public KernelGradient {
 public:
  explicit SummedByChannel(const SharedByConvolutions& shared)
      : shape_(shared.winograd()),
        images_(shared.chunks.batch),
        division_(shape_.channels, shape_.filters),
        transformed_(transformed_batch_size(shape_, images_)),
        zeros_(static_cast<size_t>(std::max(shape_.channels, shape_.filters))),
        scratch_(
            make_buffers(static_cast<size_t>(division_.parts()), kernel_gradient_scratch_size())) {}

  // Whether this takes less memory, and so less time for it.
  static bool pays(const SharedByConvolutions& shared) {
    const Winograd shape = shared.winograd();
    return transformed_batch_size(shape, shared.chunks.batch) <
           std::ssize(shared.chunks.lanes) * transformed_gradient_size(shape);
  }

  void run(const Chunk& chunk, const float* in, const float* out_gradient) override {
    transform_batch(shape_, images_, chunk.first, chunk.count, in, out_gradient, zeros_.data(),
                    transformed_.data());
  }
  void end(Parallel parallel, float* gradient) override {
    division_.run(parallel, [&](int64_t part, int64_t first, int64_t end) {
      kernel_gradient_of_batch(shape_, images_, first, end, transformed_.data(),
                               scratch_[static_cast<size_t>(part)].data(), gradient);
    });
  }

 private:
  const Winograd shape_;
  const int64_t images_;
  const Division division_;
  const Buffer<float> transformed_;
  const std::vector<float> zeros_;
  const std::vector<Buffer<float>> scratch_;  // by part
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
  if (SummedByChannel::pays(shared)) return std::make_unique<SummedByChannel>(shared);
  return std::make_unique<SummedByLane>(shared);
}

}  // namespace cohort::internal::plan
