// The parts of a plan: each an operation, with those that are fused into it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "cohort/core/function_ref.h"
#include "cohort/ops/plan/chunks.h"
#include "cohort/ops/plan/operation.h"

namespace cohort::internal::plan {

// The most parameters that a unit has.
inline constexpr size_t kMostParameters = 4;

// parallel(n, body) calls body(i) for each i < n, on several threads.
using Parallel = FunctionRef<void(int64_t, FunctionRef<void(int64_t)>)>;

// What a unit remembers of one forward pass, and the memory it needs for it.
// Thread safety: run from one thread a lane; the others while no run is under way.
class Forward {
 public:
  virtual ~Forward() = default;
  // Before the chunks of a batch. parameters: their elements, in the order of the operation's.
  virtual void begin(const float* const* parameters) = 0;
  // After that, what of the preparation takes several threads.
  virtual void make_ready(Parallel) {}
  // Looks at a whole batch before its chunks: units for which Unit::looks_at_batch. in: the whole.
  virtual void look(const float* /*in*/, Parallel) {}
  // in, out: of this chunk's examples.
  virtual void run(const Chunk& chunk, const float* in, float* out) = 0;
  // The mean and the biased variance of each channel: units that look at a batch.
  virtual const float* statistics() const { return nullptr; }
};

// The memory of one backward pass. Thread safety: as Forward.
class Backward {
 public:
  // Whole batches; in_gradient is nullptr where nobody wants it.
  struct Values {
    const float* in = nullptr;
    const float* out = nullptr;
    const float* out_gradient = nullptr;
    float* in_gradient = nullptr;
  };

  virtual ~Backward() = default;
  // gradients: where that of each parameter goes, nullptr where nobody wants it.
  virtual void begin(Forward& forward, const Values& values, const float* const* parameters,
                     float* const* gradients) = 0;
  // After that, what of the preparation takes several threads.
  virtual void make_ready(Parallel) {}
  virtual void run(const Chunk& chunk) = 0;
  // After all chunks.
  virtual void end(Parallel parallel) = 0;
};

// Thread safety: immutable.
class Unit {
 public:
  virtual ~Unit() = default;

  // Elements of an example.
  virtual int64_t in_size() const = 0;
  virtual int64_t out_size() const = 0;
  virtual size_t num_parameters() const = 0;
  // How many of them, from the first on, a backward pass reads.
  virtual size_t num_kernels() const { return std::min<size_t>(num_parameters(), 1); }
  // Multiplications of an example's forward pass.
  virtual int64_t work() const = 0;
  // The work of its backward pass, if chunks are done one by one.
  virtual int64_t gradient_work() const { return 2 * work(); }
  // The elements of its largest value, for an example.
  virtual int64_t widest() const = 0;
  // The examples that it computes together where it can.
  virtual int64_t together() const { return 1; }
  // Whether it must see all of a batch before it computes any of it.
  virtual bool looks_at_batch() const { return false; }
  // Whether Backward reads Values::out.
  virtual bool reads_output() const = 0;
  // For texts: "3x3 convolution + bias + relu + 2x2 max-pooling".
  virtual std::string describe() const = 0;

  // Before the others, once: makes what depends on the sizes of chunks. wants_input: whether the
  // backward pass, if there is one (`records`), gives the input's gradient.
  // Errors: NotPlanned.
  virtual void prepare(const Chunks& chunks, bool records, bool wants_input) = 0;
  virtual std::unique_ptr<Forward> make_forward() const = 0;
  virtual std::unique_ptr<Backward> make_backward() const = 0;
};

// The elements of one image.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  int64_t size() const { return height * width * channels; }
};

// What follows a convolution or a product within its unit.
struct Fused {
  std::optional<Activation> activation = std::nullopt;
  Size tile{1, 1};  // of a max-pooling by windows that lie side by side, which knows relu alone

  bool relu() const { return activation && activation->function == Function::kRelu; }
  // " + relu", or nothing.
  std::string describe_activation() const {
    return activation ? " + " + plan::describe(*activation) : "";
  }
  bool pools() const { return tile[0] * tile[1] > 1; }
};

// image: the whole input; read: the upper left part of it that counts, of which the operation makes
// `result` (ahead of pooling).
std::unique_ptr<Unit> make_convolution(const Convolution& operation, const Fused& fused,
                                       const Image& image, const Image& read, const Image& result);
std::unique_ptr<Unit> make_dense(const Dense& operation, const Fused& fused, int64_t features);
std::unique_ptr<Unit> make_pooling(const Fused& fused, const Image& image);
std::unique_ptr<Unit> make_average(const AveragePooling& operation, const Image& image);
std::unique_ptr<Unit> make_global_average(const Image& image);
// size: the elements of an example.
std::unique_ptr<Unit> make_activation(const Activation& activation, int64_t size);
std::unique_ptr<Unit> make_dropout(const Dropout& operation, int64_t size);
std::unique_ptr<Unit> make_normalization(const Normalization& operation, int64_t size,
                                         int64_t channels);
std::unique_ptr<Unit> make_recurrent(const Recurrent& operation, int64_t steps, int64_t features);

}  // namespace cohort::internal::plan
