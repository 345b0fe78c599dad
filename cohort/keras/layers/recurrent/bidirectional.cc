#include "cohort/keras/layers/recurrent/bidirectional.h"

#include <ATen/ops/cat.h>

#include <utility>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/layer_reader.h"
#include "cohort/keras/layers/base/segments.h"
#include "cohort/keras/layers/base/serialized_layer.h"
#include "cohort/keras/layers/recurrent/recurrent_layer.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

const RecurrentLayer& recurrent_of(const LayerHandle& layer) {
  const auto* recurrent = dynamic_cast<const RecurrentLayer*>(layer.get());
  if (recurrent == nullptr) {
    throw InvalidArgumentError(str("Bidirectional takes an RNN, LSTM, GRU or SimpleRNN, but got '",
                                   layer.name(), "' of class ", layer.class_name()));
  }
  return *recurrent;
}

using Merge = Tensor (*)(const Tensor& forward, const Tensor& backward);

// nullptr: none.
Merge merge_of(const std::optional<std::string>& mode) {
  if (!mode) return nullptr;
  static const std::vector<std::pair<std::string, Merge>> modes = {
      {"concat",
       [](const Tensor& a, const Tensor& b) {
         return at::cat({a, b}, -1);
       }},
      {"sum", [](const Tensor& a, const Tensor& b) { return a + b; }},
      {"mul", [](const Tensor& a, const Tensor& b) { return a * b; }},
      {"ave", [](const Tensor& a, const Tensor& b) { return (a + b) / 2; }},
  };
  for (const auto& [name, merge] : modes) {
    if (name == *mode) return merge;
  }
  throw InvalidArgumentError(str("Bidirectional: merge_mode is ", internal::quoted(*mode),
                                 "; it must be 'concat', 'sum', 'mul' or 'ave', or missing"));
}

// What one of the two layers returns.
struct Outcome {
  explicit Outcome(const Structure& outputs) {
    if (outputs.is_leaf()) {
      output = outputs.tensor();
      return;
    }
    output = outputs[0].tensor();
    for (size_t i = 1; i < outputs.size(); ++i) state.push_back(outputs[i].tensor());
  }
  Tensor output;
  std::vector<Tensor> state;
};

class BidirectionalImpl final : public Layer {
 public:
  BidirectionalImpl(const LayerHandle& layer, BidirectionalOptions options)
      : Layer("Bidirectional", {.name = options.name, .dtype = options.dtype}),
        given_(layer),
        given_backward_(options.backward_layer),
        merge_mode_(std::move(options.merge_mode)),
        merge_(merge_of(merge_mode_)),
        forward_(again("forward_", given_, false)),
        backward_(given_backward_ ? again("backward_", *given_backward_, false)
                                  : again("backward_", given_, true)),
        run_forward_(std::vector<Layer*>{forward_.get()}),
        run_backward_(std::vector<Layer*>{backward_.get()}) {
    check_directions();
    track("forward_layer", forward_);
    track("backward_layer", backward_);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      field.always("layer", internal::serialized_layer(*given_.get()));
      if (given_backward_) {
        field.always("backward_layer", internal::serialized_layer(*given_backward_->get()));
      }
      field("merge_mode", merge_mode_);
    });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions& options) override {
    std::vector<Tensor> tensors;
    inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
    const size_t ahead_states = num_states(forward_);
    const size_t back_states = num_states(backward_);
    if (tensors.size() != 1 && tensors.size() != 1 + ahead_states + back_states) {
      throw InvalidArgumentError(
          str("layer '", name(),
              "' takes [batch, steps, features], or a tuple of it and the initial states of both "
              "directions, but got ",
              internal::describe_leaves(inputs)));
    }
    const bool given = tensors.size() > 1;
    const Outcome ahead(run_forward_(with_state(tensors, 1, given ? ahead_states : 0), options));
    Outcome back(
        run_backward_(with_state(tensors, 1 + ahead_states, given ? back_states : 0), options));
    const RecurrentLayer::Options& own = recurrent_of(given_).options();
    const bool sequences = own.return_sequences;
    if (sequences) back.output = back.output.flip(own.time_major ? 0 : 1);
    const Tensor mask = sequences ? internal::mask_of(tensors[0]) : Tensor();
    std::vector<Structure> members;
    if (merge_ != nullptr) {
      members = {internal::with_mask(merge_(ahead.output, back.output), mask)};
    } else {
      members = {ahead.output, internal::with_mask(back.output, mask)};
    }
    members.insert(members.end(), ahead.state.begin(), ahead.state.end());
    members.insert(members.end(), back.state.begin(), back.state.end());
    return members.size() == 1 ? members[0] : Structure::make_tuple(std::move(members));
  }

 private:
  static LayerHandle again(const char* prefix, const LayerHandle& given, bool reversed) {
    const RecurrentLayer& layer = recurrent_of(given);
    LayerHandle made = layer.again(prefix + layer.name(), reversed);
    static_cast<RecurrentLayer&>(*made.get())
        .set_zeros_where_masked(layer.options().return_sequences);
    return made;
  }

  static size_t num_states(const LayerHandle& layer) {
    return recurrent_of(layer).cell().state_size().size();
  }

  void check_directions() const {
    const RecurrentLayer::Options& ahead = recurrent_of(forward_).options();
    const RecurrentLayer::Options& back = recurrent_of(backward_).options();
    if (ahead.go_backwards == back.go_backwards) {
      throw InvalidArgumentError(str("Bidirectional: '", given_.name(),
                                     "' and the backward_layer '", given_backward_->name(),
                                     "' go the same way; give one of them .go_backwards = true"));
    }
    const auto check = [this](const char* option, bool first, bool second) {
      if (first == second) return;
      throw InvalidArgumentError(str("Bidirectional: ", option, " is ", first ? "true" : "false",
                                     " of '", given_.name(), "' and ", second ? "true" : "false",
                                     " of the backward_layer '", given_backward_->name(),
                                     "'; it must be the same"));
    };
    check("return_sequences", ahead.return_sequences, back.return_sequences);
    check("return_state", ahead.return_state, back.return_state);
    check("stateful", ahead.stateful, back.stateful);
    check("time_major", ahead.time_major, back.time_major);
  }

  static Structure with_state(const std::vector<Tensor>& tensors, size_t first, size_t count) {
    if (count == 0) return tensors[0];
    std::vector<Structure> members = {tensors[0]};
    for (size_t i = first; i < first + count; ++i) members.emplace_back(tensors[i]);
    return Structure::make_tuple(std::move(members));
  }

  const LayerHandle given_;
  const std::optional<LayerHandle> given_backward_;
  const std::optional<std::string> merge_mode_;
  const Merge merge_;
  const LayerHandle forward_;
  const LayerHandle backward_;
  // Plans, where the layers can be planned.
  const internal::Segments run_forward_;
  const internal::Segments run_backward_;
};

}  // namespace

Bidirectional::Bidirectional(const LayerHandle& layer, BidirectionalOptions options)
    : LayerHandle(std::make_shared<BidirectionalImpl>(layer, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_bidirectional(FieldReader& field) {
  layers::BidirectionalOptions options;
  field.common(options);
  field("merge_mode", options.merge_mode);
  if (const Json* backward = field.find("backward_layer"); backward && !backward->is_null()) {
    options.backward_layer = layer_field(field, "backward_layer");
  }
  return layers::Bidirectional(layer_field(field, "layer"), std::move(options));
}

}  // namespace cohort::internal
