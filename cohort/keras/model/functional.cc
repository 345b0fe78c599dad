#include "cohort/keras/model/functional.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_set>
#include <utility>

#include "cohort/keras/base/backend.h"
#include "cohort/keras/layers/base/fusion.h"
#include "cohort/keras/layers/base/segments.h"
#include "cohort/keras/model/functional_inputs.h"
#include "cohort/keras/model/graph_calls.h"
#include "cohort/keras/model/layer_order.h"
#include "cohort/keras/model/model_config.h"
#include "cohort/keras/model/summary.h"

namespace cohort::keras {
namespace {

using internal::FunctionalInputs;
using internal::str;
using internal::SymbolicNode;
using layers::LayerHandle;

// A slot holds the value of one symbolic tensor while the model runs.
using Slot = size_t;

// One call of a layer.
struct Step {
  LayerHandle layer;
  CallOptions options;
  StructureSpec input_form;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  std::vector<Slot> last_used;  // slots that nothing after this step reads
  size_t chain = 0;             // how many steps, from this one on, run together; 0: it alone
  std::shared_ptr<internal::Segment> segment = nullptr;  // that runs them
};

// Values in the form of `spec`.
Structure pack(const StructureSpec& form, const std::vector<Slot>& slots,
               const std::vector<Leaf>& values) {
  size_t i = 0;
  return form.make_structure([&](const TensorSpec&) { return values[slots[i++]]; });
}

// Puts the graph behind the outputs into an order in which it can run.
class Planner {
 public:
  Planner(const SymbolicStructure& inputs, const SymbolicStructure& outputs) {
    for (const SymbolicTensor& input : inputs.leaves()) {
      if (slots_.count(key(input)) != 0) {
        throw InvalidArgumentError(
            str("the input '", input.layer().name(), "' is among the model's inputs twice"));
      }
      slot_of(input);
    }
    for (const SymbolicTensor& output : outputs.leaves()) {
      visit(output, nullptr);
      output_slots.push_back(slot_of(output));
    }
    find_last_uses();
    for (size_t i = 0; i < steps.size(); i += std::max<size_t>(steps[i].chain, 1)) {
      const std::vector<layers::Layer*> run = private_run(i);
      steps[i].chain = internal::Segment::length(run);
      if (steps[i].chain > 0) {
        const std::span<layers::Layer* const> layers(run.data(), steps[i].chain);
        steps[i].segment = std::make_shared<internal::Segment>(layers);
      } else {
        steps[i].chain = internal::fused_chain(run);
      }
    }
  }

  std::vector<Step> steps;
  std::vector<Slot> output_slots;
  size_t num_slots() const { return slots_.size(); }

 private:
  using Key = std::pair<const SymbolicNode*, size_t>;
  static Key key(const SymbolicTensor& tensor) { return {tensor.node().get(), tensor.index()}; }

  Slot slot_of(const SymbolicTensor& tensor) {
    return slots_.emplace(key(tensor), slots_.size()).first->second;
  }

  void visit(const SymbolicTensor& tensor, const LayerHandle* consumer) {
    const SymbolicNode& node = *tensor.node();
    if (slots_.count(key(tensor)) != 0 || planned_.count(&node) != 0) return;
    if (!node.inputs) {
      throw InvalidArgumentError(str("graph disconnected: ",
                                     consumer == nullptr ? std::string("an output of the model")
                                                         : str("layer '", consumer->name(), "'"),
                                     " needs the input '", node.layer.name(),
                                     "', which is not among the model's inputs"));
    }
    for (const SymbolicTensor& input : node.inputs->leaves()) visit(input, &node.layer);
    planned_.insert(&node);
    Step step{node.layer, node.options, node.inputs->spec(), {}, {}, {}, 0, nullptr};
    for (const SymbolicTensor& input : node.inputs->leaves()) step.inputs.push_back(slot_of(input));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      step.outputs.push_back(slot_of(SymbolicTensor(tensor.node(), i)));
    }
    steps.push_back(std::move(step));
  }

  void find_last_uses() {
    std::set<Slot> used(output_slots.begin(), output_slots.end());
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      for (const Slot slot : step->inputs) {
        if (used.insert(slot).second) step->last_used.push_back(slot);
      }
    }
  }

  // The layers from step `i` on of which each gives all that the next one reads, to nobody else.
  std::vector<layers::Layer*> private_run(size_t i) const {
    std::vector<layers::Layer*> run{steps[i].layer.get()};
    for (; i + 1 < steps.size(); ++i) {
      const Step& next = steps[i + 1];
      const bool is_private = steps[i].outputs.size() == 1 && next.inputs == steps[i].outputs &&
                              next.last_used == steps[i].outputs &&
                              next.options.training == steps[i].options.training;
      if (!is_private) break;
      run.push_back(next.layer.get());
    }
    return run;
  }

  std::map<Key, Slot> slots_;
  std::unordered_set<const SymbolicNode*> planned_;
};

class FunctionalImpl final : public Model {
 public:
  FunctionalImpl(const SymbolicStructure& inputs, const SymbolicStructure& outputs,
                 const ModelOptions& options)
      : Model("Functional",
              {.name = options.name.empty() ? backend::unique_object_name("Model") : options.name,
               .autocast = false}),
        inputs_(inputs),
        outputs_(outputs),
        plan_(inputs, outputs),
        layers_(internal::layers_by_depth(inputs, outputs)) {
    std::set<std::string> names;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (!names.insert(layers_[i].name()).second) {
        throw InvalidArgumentError(str("two layers of a model are named '", layers_[i].name(),
                                       "'; layers and inputs need names of their own (.name)"));
      }
      if (internal::input_layer_spec(*layers_[i].get()) != nullptr) continue;
      track(str("layer-", i), layers_[i]);
    }
  }

  // A second output of a layer gets a number, as in Keras.
  std::vector<std::string> output_names(size_t) const override {
    std::vector<std::string> names;
    std::map<std::string, int> further;
    for (const SymbolicTensor& output : outputs_.leaves()) {
      const std::string& own = output.layer().name();
      std::string name = own;
      while (std::find(names.begin(), names.end(), name) != names.end()) {
        name = str(own, "_", ++further[own]);
      }
      names.push_back(std::move(name));
    }
    return names;
  }

  std::string explain() const override {
    std::string text;
    for (size_t s = 0; s < plan_.steps.size(); s += std::max<size_t>(plan_.steps[s].chain, 1)) {
      const Step& step = plan_.steps[s];
      text += step.segment != nullptr ? step.segment->explain()
                                      : internal::explain_unplanned(*step.layer.get());
    }
    return text;
  }

  std::optional<Config> get_config() const override {
    return internal::functional_config(*this, inputs_.form(), outputs_, layers_);
  }

  std::vector<train::TrackableChild> checkpoint_children() override {
    std::vector<Layer*> layers;
    for (const LayerHandle& layer : layers_) layers.push_back(layer.get());
    return internal::number_layers(layers);
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions& options) override {
    std::vector<Leaf> values = inputs_.bind(inputs, name());
    values.resize(plan_.num_slots(), Leaf(Tensor()));
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& first = plan_.steps[s];
      const CallOptions step_options{.training = first.options.training ? first.options.training
                                                                        : options.training};
      const Structure step_inputs = pack(first.input_form, first.inputs, values);
      Structure outcome;
      if (first.chain == 0) {
        outcome = first.layer(step_inputs, step_options);
      } else {
        c10::SmallVector<Layer*, 8> chain;
        for (size_t k = 0; k < first.chain; ++k) chain.push_back(plan_.steps[s + k].layer.get());
        outcome = first.segment != nullptr ? (*first.segment)(step_inputs, step_options)
                                           : internal::call_chain({chain.data(), chain.size()},
                                                                  step_inputs, step_options);
        for (const Slot slot : first.last_used) values[slot] = Leaf(Tensor());
        s += first.chain - 1;
      }
      const Step& step = plan_.steps[s];
      const std::vector<Leaf> results = outcome.flatten();
      if (results.size() != step.outputs.size()) {
        throw InvalidArgumentError(str("layer '", step.layer.name(), "' returned ", results.size(),
                                       " tensors where the model was made with ",
                                       step.outputs.size()));
      }
      for (size_t i = 0; i < results.size(); ++i) values[step.outputs[i]] = results[i];
      for (const Slot slot : step.last_used) values[slot] = Leaf(Tensor());
    }
    return pack(outputs_.spec(), plan_.output_slots, values);
  }

 private:
  internal::SummaryTable summary_table() const override {
    const internal::GraphCalls calls(inputs_.form(), outputs_);
    internal::SummaryTable table{.rows = {}, .has_connections = !is_chain(calls)};
    for (const LayerHandle& layer : layers_) table.rows.push_back(summary_row(layer, calls));
    return table;
  }

  // Whether each layer is called once, with what the one before it gave.
  bool is_chain(const internal::GraphCalls& calls) const {
    std::set<const SymbolicNode*> read;
    for (const LayerHandle& layer : layers_) {
      const std::vector<const SymbolicNode*>& own = calls.of(layer.get());
      if (own.size() > 1) return false;
      for (const SymbolicNode* call : own) {
        if (!call->inputs) continue;
        const std::vector<SymbolicTensor>& inputs = call->inputs->leaves();
        if (inputs.size() > 1) return false;
        for (const SymbolicTensor& input : inputs) {
          if (!read.insert(input.node().get()).second) return false;
        }
      }
    }
    return inputs_.form().leaves().size() == 1;
  }

  static internal::SummaryRow summary_row(const LayerHandle& layer,
                                          const internal::GraphCalls& calls) {
    const bool is_input = internal::input_layer_spec(*layer.get()) != nullptr;
    const char* const input_class = "InputLayer";
    internal::SummaryRow row{
        .layer = str(layer.name(), " (", is_input ? input_class : layer.class_name(), ")"),
        .output_shape = {},
        .parameters = str(is_input ? 0 : layer.count_params())};
    std::set<std::string> shapes;
    for (const SymbolicNode* call : calls.of(layer.get())) {
      shapes.insert(internal::shapes_text(call->outputs));
      if (!call->inputs) continue;
      for (const SymbolicTensor& input : call->inputs->leaves()) {
        row.connected_to.push_back(str(input.layer().name(), "[", calls.number_of(*input.node()),
                                       "][", input.index(), "]"));
      }
    }
    row.output_shape = shapes.size() == 1 ? *shapes.begin() : "multiple";
    if (is_input) row.output_shape = "[" + row.output_shape + "]";
    return row;
  }

  FunctionalInputs inputs_;
  SymbolicStructure outputs_;
  Planner plan_;
  std::vector<LayerHandle> layers_;  // with the input layers, which are no children
};

}  // namespace

Functional::Functional(const SymbolicStructure& inputs, const SymbolicStructure& outputs,
                       const ModelOptions& options)
    : ModelHandle(std::make_shared<FunctionalImpl>(inputs, outputs, options)) {
  internal::infer_outputs(*this, inputs.spec(), {});
}

}  // namespace cohort::keras
