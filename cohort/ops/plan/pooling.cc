// Max-pooling that follows no convolution.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/ops/kernels/max_pool_kernels.h"
#include "cohort/ops/plan/buffer.h"
#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {
namespace {

struct SharedByPooling {
  Fused fused;
  Image image;
  int64_t batch = 0;
  int64_t lanes_batch = 0;  // examples that places are kept of
  int64_t largest = 0;
  bool records = false;

  Image pooled() const {
    return {image.height / fused.tile[0], image.width / fused.tile[1], image.channels};
  }
  TiledImages tiles(int64_t count) const {
    return {count, image.height, image.width, image.channels, fused.tile[0], fused.tile[1]};
  }
};

class PoolingForward final : public Forward {
 public:
  explicit PoolingForward(const SharedByPooling& shared)
      : s_(shared), places_(shared.lanes_batch * shared.pooled().size()) {}

  void begin(const float* const*) override {}
  void run(const Chunk& chunk, const float* in, float* out) override {
    const TiledImages tiles = s_.tiles(chunk.count);
    max_pool_rows<float>(tiles, 0, tiles.out_rows(), /*bias=*/nullptr, s_.fused.relu(), in, out,
                         places(chunk));
  }

  uint8_t* places(const Chunk& chunk) const {
    const int64_t example = s_.records ? chunk.first : chunk.lane * s_.largest;
    return places_.data() + example * s_.pooled().size();
  }

 private:
  const SharedByPooling& s_;
  Buffer<uint8_t> places_;
};

class PoolingBackward final : public Backward {
 public:
  explicit PoolingBackward(const SharedByPooling& shared) : s_(shared) {}

  void begin(Forward& forward, const Values& values, const float* const*, float* const*) override {
    forward_ = static_cast<const PoolingForward*>(&forward);
    values_ = values;
  }
  void run(const Chunk& chunk) override {
    if (values_.in_gradient == nullptr) return;
    const TiledImages tiles = s_.tiles(chunk.count);
    unpool_rows<float>(
        tiles, 0, tiles.out_rows(), values_.out_gradient + chunk.first * s_.pooled().size(),
        forward_->places(chunk), values_.in_gradient + chunk.first * s_.image.size());
  }
  void end(Parallel) override {}

 private:
  const SharedByPooling& s_;
  const PoolingForward* forward_ = nullptr;
  Values values_;
};

class PoolingUnit final : public Unit {
 public:
  PoolingUnit(const Fused& fused, const Image& image) {
    s_.fused = fused;
    s_.image = image;
  }

  int64_t in_size() const override { return s_.image.size(); }
  int64_t out_size() const override { return s_.pooled().size(); }
  size_t num_parameters() const override { return 0; }
  int64_t work() const override { return s_.image.size(); }
  int64_t widest() const override { return s_.image.size(); }
  bool reads_output() const override { return false; }
  std::string describe() const override {
    return str(s_.fused.tile[0], "x", s_.fused.tile[1], " max-pooling",
               s_.fused.describe_activation());
  }
  void prepare(const Chunks& chunks, bool records, bool) override {
    s_.batch = chunks.batch;
    s_.largest = chunks.largest;
    s_.records = records;
    s_.lanes_batch =
        records ? chunks.batch : chunks.largest * static_cast<int64_t>(chunks.lanes.size());
  }
  std::unique_ptr<Forward> make_forward() const override {
    return std::make_unique<PoolingForward>(s_);
  }
  std::unique_ptr<Backward> make_backward() const override {
    return std::make_unique<PoolingBackward>(s_);
  }

 private:
  SharedByPooling s_;
};

}  // namespace

std::unique_ptr<Unit> make_pooling(const Fused& fused, const Image& image) {
  return std::make_unique<PoolingUnit>(fused, image);
}

}  // namespace cohort::internal::plan
