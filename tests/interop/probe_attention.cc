// Layers of sequences: attention, recurrent layers of any cell, TimeDistributed, EinsumDense.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros_like.h>
#include <cohort/cohort.h>
#include <cohort/keras/base/masks.h>

#include <memory>
#include <string>
#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

namespace layers = keras::layers;
using layers::LayerHandle;

// A cell of the program, which test_attention.py has in Python. The output is of another size than
// the states, of which the second counts steps.
class LeakyCell final : public layers::AbstractRNNCell {
 public:
  LeakyCell(int64_t units, double leak) : units_(units), leak_(leak) {}
  std::optional<keras::Config> get_config() const override {
    return keras::Config().set("units", units_).set("leak", leak_);
  }
  std::vector<keras::Shape> state_size() const override { return {{units_}, {1}}; }
  keras::Shape output_size() const override { return {units_ + 1}; }
  std::shared_ptr<AbstractRNNCell> clone() const override {
    return std::make_shared<LeakyCell>(units_, leak_);
  }

 protected:
  void build(const std::vector<keras::Shape>& input_shapes) override {
    kernel_ = add_weight("kernel", {input_shapes[0].back(), units_});
  }
  Step step(const Tensor& x, const std::vector<Tensor>& states,
            const keras::CallOptions&) override {
    const Tensor h = leak_ * states[0] + x.matmul(kernel_.value()).tanh();
    const Tensor count = states[1] + 1;
    return {concat({h, count * h.slice(1, 0, 1)}, 1), {h, count}};
  }

 private:
  const int64_t units_;
  const double leak_;
  Variable kernel_;
};

LayerHandle layer_of(const Json& request) {
  return keras::models::layer_from_config(
      request.at("layer").get<std::string>(), keras::Config::parse(request.at("config").dump()),
      {{"LeakyCell", [](const keras::Config& config) {
          return std::make_shared<LeakyCell>(config.get_int("units"), config.get_double("leak"));
        }}});
}

// `inputs`, of which each tensor has its mask, if it has one.
Structure marked(const Structure& inputs, const Json& masks) {
  size_t i = 0;
  return inputs.map([&](const Leaf& leaf) -> Leaf {
    const Json mask = i < masks.size() ? masks[i] : Json();
    ++i;
    if (mask.is_null()) return leaf;
    return internal::with_mask(leaf.tensor(), tensor_of(mask).to(boolean));
  });
}

// A weighted sum of all elements of all outputs, so that each has a gradient of its own.
Tensor mixed_outputs(const std::vector<Tensor>& outputs) {
  Tensor sum;
  for (const Tensor& output : outputs) {
    const Tensor weights = at::arange(output.numel(), output.options()).cos();
    const Tensor own = (output * weights.reshape(output.sizes())).sum();
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

std::vector<Tensor> tensors_of(const Structure& values) {
  std::vector<Tensor> tensors;
  values.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
  return tensors;
}

}  // namespace

Json run_sequence_layer(const Json& request) {
  try {
    const LayerHandle layer = layer_of(request);
    const Json masks = request.value("masks", Json::array());
    const keras::CallOptions options{.training = request.value("training", false)};
    const Structure inputs = structure_of(request.at("inputs"));
    layer(marked(inputs, masks));  // builds it
    std::vector<Tensor> weights;
    for (const Json& weight : request.at("weights")) weights.push_back(tensor_of(weight));
    layer.set_weights(weights);
    layer.reset_states();
    for (const Json& earlier : request.value("earlier", Json::array()))
      layer(structure_of(earlier));

    GradientTape tape;
    const std::vector<Tensor> given = tensors_of(inputs);
    std::vector<Tensor> sources;
    for (const Tensor& input : given) {
      if (!input.is_floating_point()) continue;
      tape.watch(input);
      sources.push_back(input);
    }
    const std::vector<Tensor> outputs = tensors_of(layer(marked(inputs, masks), options));
    for (const Variable& variable : layer.trainable_variables())
      sources.push_back(variable.value());
    const auto gradients = tape.gradient(mixed_outputs(outputs), sources,
                                         {.unconnected_gradients = UnconnectedGradients::ZERO});
    Json answer = {{"config", Json::parse(layer.get_config()->json())},
                   {"outputs", Json::array()},
                   {"masks", Json::array()},
                   {"gradients", Json::array()},
                   {"weights", Json::array()}};
    for (const Tensor& output : outputs) {
      answer["outputs"].push_back(json_of(output));
      const Tensor mask = internal::mask_of(output);
      answer["masks"].push_back(mask.defined() ? json_of(mask.to(int64)) : Json());
    }
    for (const Tensor& gradient : gradients) answer["gradients"].push_back(json_of(gradient));
    for (const Tensor& weight : layer.get_weights()) answer["weights"].push_back(json_of(weight));
    return answer;
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

}  // namespace cohort::interop
