#include "cohort/ops/gradient_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

#include "cohort/core/threads/scratch.h"
#include "cohort/ops/graph_node.h"
#include "cohort/ops/small_sums.h"

namespace cohort::internal {

using torch::autograd::FunctionPostHook;
using torch::autograd::Node;
using torch::autograd::variable_list;

// Runs where a leaf's gradient has been added up.
class GradientStream::Hook final : public FunctionPostHook {
 public:
  Hook(GradientStream* stream, size_t leaf) : stream_(stream), leaf_(leaf) {}

  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    stream_->complete(leaf_);
    return outputs;
  }

 private:
  GradientStream* stream_;
  size_t leaf_;
};

struct GradientStream::Watched {
  NodePtr<Node> node;  // which the leaf itself only refers to
  uintptr_t hook;
};

namespace {

// The current stream of the leaves' device; of the host's leaves always the same.
c10::Stream stream_of(const std::vector<Tensor>& leaves) {
  const c10::Device host(c10::kCPU);
  if (leaves.empty() || leaves[0].is_cpu()) return c10::Stream(c10::Stream::DEFAULT, host);
  const c10::Device device = leaves[0].device();
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

GradientStream::GradientStream(std::vector<Tensor> leaves)
    : leaves_(std::move(leaves)), made_in_(stream_of(leaves_)) {
  watch();
}

void GradientStream::watch() {
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (!leaves_[i].requires_grad()) continue;
    NodePtr<Node> node = torch::autograd::impl::grad_accumulator(leaves_[i]);
    const uintptr_t hook = node->add_post_hook(std::make_unique<Hook>(this, i));
    watched_.push_back({std::move(node), hook});
  }
}

GradientStream::~GradientStream() { stop_watching(); }

void GradientStream::stop_watching() {
  for (const Watched& watched : watched_) watched.node->del_post_hook(watched.hook);
  watched_.clear();
}

void GradientStream::run(const Tensor& target, FunctionRef<void(size_t, Tensor)> ready) {
  if (!target.requires_grad() || watched_.empty()) return;
  // A node adds up in the stream in which it was made. In a step that is recorded, in a stream of
  // its own, another one must not take part.
  if (const c10::Stream current = stream_of(leaves_); current != made_in_) {
    stop_watching();
    watch();
    made_in_ = current;
  }
  Scratch<Tensor, struct StreamInputs> inputs;
  for (const Tensor& leaf : leaves_) {
    if (!leaf.requires_grad()) continue;
    leaf.mutable_grad().reset();
    inputs->push_back(leaf);
  }
  struct Ready {
    explicit Ready(GradientStream& stream, const FunctionRef<void(size_t, Tensor)>& ready)
        : stream(stream) {
      stream.ready_ = &ready;
    }
    ~Ready() {
      stream.ready_ = nullptr;
      for (const Tensor& leaf : stream.leaves_) leaf.mutable_grad().reset();
    }
    GradientStream& stream;
  } guard(*this, ready);
  torch::autograd::backward({target}, {ones_of(target)}, /*retain_graph=*/false,
                            /*create_graph=*/false, *inputs);
}

void GradientStream::complete(size_t i) {
  // A pass that is not ours may come by, too.
  if (ready_ == nullptr) return;
  Tensor gradient = std::exchange(leaves_[i].mutable_grad(), Tensor());
  // A node on the way may have had none to give.
  if (gradient.defined()) (*ready_)(i, std::move(gradient));
}

}  // namespace cohort::internal
