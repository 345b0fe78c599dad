// Records computations for gradients. Inside a step, gradients are recorded only in a tape.
//
//   GradientTape tape;
//   Tensor loss = f(weight.value());
//   std::vector<Tensor> gradients = tape.gradient(loss, {weight});
#pragma once

#include <concepts>
#include <initializer_list>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/core/threads/scratch.h"
#include "cohort/ops/recording_scope.h"

namespace cohort {

// The result for a source on which the target does not depend.
enum class UnconnectedGradients {
  NONE,  // an undefined tensor
  ZERO,  // zeros of the source's shape
};

struct GradientTapeOptions {
  // Whether gradient() may be called more than once; a persistent tape records until it is
  // destroyed or stop_recording() is called, any other until gradient() is called.
  bool persistent = false;
};

struct GradientOptions {
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::NONE;
  // Weights of the target's elements; missing: ones. Shape: the target's.
  Tensor output_gradients = Tensor();
};

namespace internal {
class GradientStream;
struct TapeSources;
// Something with a tensor that tapes record: a variable.
template <class T>
concept TapeSource = requires(const T& source) {
  { source.value() } -> std::convertible_to<Tensor>;
};
// The tensor by which a tape knows it; of a variable whose values are elsewhere, it has none.
template <TapeSource Source>
Tensor tape_source(const Source& source) {
  if constexpr (requires { source.tape_source(); }) {
    return source.tape_source();
  } else {
    return source.value();
  }
}
}  // namespace internal

// A tensor or variable by which a gradient is taken.
class GradientSource {
 public:
  GradientSource(const Tensor& tensor) : tensor_(tensor) {}
  template <internal::TapeSource Source>
  GradientSource(const Source& source) : tensor_(internal::tape_source(source)) {}

  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

// Turns libtorch's recording on for the calling thread while the tape records. Tapes and
// NoGradients of a thread may end in any order: the latest that goes on decides. A gradient that is
// computed while an outer tape records is itself recorded (second derivatives).
// Thread safety: one thread; where a tape ends on another, see NoGradient.
class COHORT_API GradientTape {
 public:
  explicit GradientTape(GradientTapeOptions options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // Makes `tensor` itself a source: call it before the tensor is used. Trainable variables are
  // sources without it. It requires a gradient (so that libtorch refuses to change it in place)
  // until the last tape that watches it has ended. Errors: InvalidArgument (undefined; not of a
  // floating dtype).
  void watch(const Tensor& tensor) const;

  // d target / d source for each source; of a target with several elements, of their sum.
  // Shapes: sources [..] -> the same shapes. Sparse embeddings give sparse gradients.
  // Errors: FailedPrecondition (called twice on a tape that is not persistent), InvalidArgument
  // (target undefined, shape of output_gradients; libtorch's own, for example of a value that was
  // changed in place).
  std::vector<Tensor> gradient(const Tensor& target, const std::vector<Tensor>& sources,
                               const GradientOptions& options = {});
  Tensor gradient(const Tensor& target, const Tensor& source, const GradientOptions& options = {}) {
    return gradient(target, std::vector<Tensor>{source}, options)[0];
  }
  template <internal::TapeSource Source>
  Tensor gradient(const Tensor& target, const Source& source, const GradientOptions& options = {}) {
    return gradient(target, std::vector<Tensor>{internal::tape_source(source)}, options)[0];
  }
  std::vector<Tensor> gradient(const Tensor& target, std::initializer_list<GradientSource> sources,
                               const GradientOptions& options = {});
  template <internal::TapeSource Source>
  std::vector<Tensor> gradient(const Tensor& target, const std::vector<Source>& sources,
                               const GradientOptions& options = {}) {
    internal::Scratch<Tensor, internal::TapeSources> leaves;
    for (const Source& source : sources) leaves->push_back(internal::tape_source(source));
    return gradient(target, *leaves, options);
  }
  template <internal::TapeSource Source>
  std::vector<Tensor> gradient(const Tensor& target, std::initializer_list<Source> sources,
                               const GradientOptions& options = {}) {
    return gradient(target, std::vector<Source>(sources), options);
  }

  // Stops recording for good; NoGradient does it for a block.
  void stop_recording();

  // Hands over the gradient of each of the stream's leaves as soon as it is complete: for Cohort's
  // own layers; see GradientStream::run. Errors: as gradient.
  void stream(const Tensor& target, internal::GradientStream& stream,
              FunctionRef<void(size_t, Tensor)> ready);

 private:
  GradientTapeOptions options_;
  internal::RecordingScope recording_;
  bool used_ = false;
  mutable std::vector<Tensor> watched_;
};

// Turns recording off for the calling thread during its lifetime, in any order with tapes.
// Thread safety: one thread. One that ends on another changes nothing there, and recording stays
// off on its own thread until what began before it ends.
class COHORT_API NoGradient {
 public:
  NoGradient();
  ~NoGradient();
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;

 private:
  internal::RecordingScope off_;
};

}  // namespace cohort
