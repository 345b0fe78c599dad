#include "cohort/ops/gradient_tape.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/threads/scratch.h"
#include "cohort/ops/gradient_stream.h"
#include "cohort/ops/small_sums.h"

namespace cohort {
namespace {

using internal::Scratch;

constexpr const char* kGradient = "GradientTape::gradient";

void check_target(const Tensor& target, const Tensor& output_gradients) {
  if (!target.defined()) {
    throw InvalidArgumentError("GradientTape::gradient: the target is an undefined tensor");
  }
  if (output_gradients.defined() && output_gradients.sizes() != target.sizes()) {
    throw InvalidArgumentError(internal::str("GradientTape::gradient: output_gradients is ",
                                             internal::describe(output_gradients),
                                             ", but the target is ", internal::describe(target)));
  }
}

// Zeros of a source's shape take one that has a shape.
void check_defined(const std::vector<Tensor>& sources) {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].defined()) continue;
    throw InvalidArgumentError(
        internal::str("GradientTape::gradient: source ", i,
                      " is an undefined tensor, of whose shape there are no zeros"));
  }
}

// The gradients of those sources that want one, each at its source's place.
std::vector<Tensor> spread(std::vector<Tensor> gradients, const std::vector<Tensor>& sources) {
  std::vector<Tensor> spread(sources.size());
  size_t next = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].defined() && sources[i].requires_grad())
      spread[i] = std::move(gradients[next++]);
  }
  return spread;
}

// The tensors that require a gradient for tapes alone, and how many tapes watch each.
// Thread safety: any thread.
class Watches {
 public:
  // Made at first use and never destroyed: tapes may outlive what is static.
  static Watches& all() {
    static auto* const instance = new Watches;
    return *instance;
  }

  // False: it requires a gradient by itself.
  bool begin(const Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    const auto place = tapes_.find(tensor.unsafeGetTensorImpl());
    if (place != tapes_.end()) {
      ++place->second;
      return true;
    }
    if (tensor.requires_grad()) return false;
    tensor.set_requires_grad(true);
    tapes_.emplace(tensor.unsafeGetTensorImpl(), 1);
    return true;
  }
  void end(const Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    const auto place = tapes_.find(tensor.unsafeGetTensorImpl());
    if (--place->second > 0) return;
    tapes_.erase(place);
    if (tensor.is_leaf()) tensor.set_requires_grad(false);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const c10::TensorImpl*, int> tapes_;  // guarded by mutex_
};

}  // namespace

GradientTape::GradientTape(GradientTapeOptions options) : options_(options), recording_(true) {}

GradientTape::~GradientTape() {
  for (const Tensor& tensor : watched_) Watches::all().end(tensor);
}

void GradientTape::stop_recording() { recording_.end(); }

void GradientTape::watch(const Tensor& tensor) const {
  if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex())) {
    throw InvalidArgumentError(internal::str("GradientTape::watch takes floating tensors, but got ",
                                             internal::describe(tensor)));
  }
  watched_.reserve(watched_.size() + 1);
  if (Watches::all().begin(tensor)) watched_.push_back(tensor);
}

std::vector<Tensor> GradientTape::gradient(const Tensor& target,
                                           std::initializer_list<GradientSource> sources,
                                           const GradientOptions& options) {
  std::vector<Tensor> tensors;
  tensors.reserve(sources.size());
  for (const GradientSource& source : sources) tensors.push_back(source.tensor());
  return gradient(target, tensors, options);
}

std::vector<Tensor> GradientTape::gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                           const GradientOptions& options) {
  if (used_ && !options_.persistent) {
    throw FailedPreconditionError(
        "GradientTape::gradient was called twice; make the tape with {.persistent = true}");
  }
  check_target(target, options.output_gradients);
  if (options.unconnected_gradients == UnconnectedGradients::ZERO) check_defined(sources);
  used_ = true;
  if (!options_.persistent) stop_recording();
  const bool create_graph = at::GradMode::is_enabled() && internal::num_recording_scopes() > 0;

  Scratch<Tensor, struct Inputs> inputs;
  for (const Tensor& source : sources) {
    if (source.defined() && source.requires_grad()) inputs->push_back(source);
  }
  std::vector<Tensor> found;
  if (target.requires_grad() && !inputs->empty()) {
    Scratch<Tensor, struct Targets> targets;
    Scratch<Tensor, struct Seeds> seeds;
    targets->push_back(target);
    seeds->push_back(options.output_gradients.defined() ? options.output_gradients
                                                        : internal::ones_of(target));
    found = internal::with_typed_errors(kGradient, [&] {
      return torch::autograd::grad(*targets, *inputs, *seeds,
                                   /*retain_graph=*/options_.persistent || create_graph,
                                   create_graph, /*allow_unused=*/true);
    });
  } else {
    found.resize(inputs->size());
  }

  if (found.size() < sources.size()) found = spread(std::move(found), sources);
  if (options.unconnected_gradients == UnconnectedGradients::ZERO) {
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].defined()) found[i] = at::zeros_like(sources[i]);
    }
  }
  return found;
}

void GradientTape::stream(const Tensor& target, internal::GradientStream& stream,
                          FunctionRef<void(size_t, Tensor)> ready) {
  // The pass gives up the graph, and is not recorded itself.
  const size_t own = recording_.goes_on() ? 1 : 0;
  if (options_.persistent || internal::num_recording_scopes() > own || used_) {
    std::vector<Tensor> gradients = gradient(target, stream.leaves());
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) ready(i, std::move(gradients[i]));
    }
    return;
  }
  check_target(target, Tensor());
  used_ = true;
  stop_recording();
  internal::with_typed_errors(kGradient, [&] { stream.run(target, ready); });
}

NoGradient::NoGradient() : off_(false) {}
NoGradient::~NoGradient() = default;

}  // namespace cohort
