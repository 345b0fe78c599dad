#include "cohort/keras/model/model_config.h"

#include <unordered_map>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/base/serialized_layer.h"
#include "cohort/keras/model/graph_calls.h"

namespace cohort::internal {
namespace {

using keras::SymbolicStructure;
using keras::SymbolicTensor;
using keras::layers::Layer;
using keras::layers::LayerHandle;

// In the form of `spec`, one JSON value a leaf.
Json pack_json(const StructureSpec& spec, const std::vector<Json>& leaves, size_t& next) {
  if (spec.is_leaf()) return leaves[next++];
  if (spec.is_dict()) {
    Json object = Json::object();
    for (const auto& [key, member] : spec.items()) object[key] = pack_json(member, leaves, next);
    return object;
  }
  Json list = Json::array();
  for (const StructureSpec& member : spec.members()) {
    list.push_back(pack_json(member, leaves, next));
  }
  return list;
}

Json pack_json(const StructureSpec& spec, const std::vector<Json>& leaves) {
  size_t next = 0;
  Json packed = pack_json(spec, leaves, next);
  return spec.is_leaf() ? Json::array({packed}) : packed;
}

class FunctionalWriter {
 public:
  FunctionalWriter(const SymbolicStructure& inputs, const SymbolicStructure& outputs)
      : calls_(inputs, outputs) {}

  Json layer(const LayerHandle& layer) {
    Json json = serialized_layer(*layer.get());
    hidden_[layer.get()] = hidden_nodes(json);
    Json nodes = Json::array();
    Json options = Json::object();
    for (const std::string& option : options_of_calls(layer.class_name())) {
      if (json["config"].value(option, Json()) == true) options[option] = true;
      json["config"].erase(option);
    }
    const std::vector<std::string>& names = named_inputs(layer.class_name());
    for (const SymbolicNode* call : calls_.of(layer.get())) {
      if (!call->inputs) continue;
      if (call->options.training) options["training"] = *call->options.training;
      nodes.push_back(names.empty() ? node(*call, options) : named_node(*call, names, options));
      options.erase("training");
    }
    json["name"] = layer.name();
    json["inbound_nodes"] = std::move(nodes);
    return json;
  }

  // ["dense", 0, 0] for each leaf.
  Json references(const SymbolicStructure& tensors) const {
    std::vector<Json> leaves;
    for (const SymbolicTensor& tensor : tensors.leaves()) leaves.push_back(reference(tensor));
    return pack_json(tensors.spec(), leaves);
  }

 private:
  Json reference(const SymbolicTensor& tensor) const {
    const Layer* layer = tensor.layer().get();
    const auto hidden = hidden_.find(layer);
    const size_t first = hidden == hidden_.end() ? 0 : hidden->second;
    return Json::array(
        {tensor.layer().name(), first + calls_.number_of(*tensor.node()), tensor.index()});
  }

  // Keras takes the options that stand beside the last of the inputs.
  Json node(const SymbolicNode& call, const Json& options) const {
    std::vector<Json> leaves;
    for (const SymbolicTensor& input : call.inputs->leaves()) {
      leaves.push_back(reference(input));
      leaves.back().push_back(options);
    }
    return pack_json(call.inputs->spec(), leaves);
  }

  // Keras's takes inputs one by one, those after the first by name.
  Json named_node(const SymbolicNode& call, const std::vector<std::string>& names,
                  Json options) const {
    const std::vector<SymbolicTensor>& inputs = call.inputs->leaves();
    for (size_t i = 1; i < inputs.size(); ++i) options[names.at(i - 1)] = reference(inputs[i]);
    Json first = reference(inputs[0]);
    first.push_back(std::move(options));
    return Json::array({std::move(first)});
  }

  const GraphCalls calls_;
  std::unordered_map<const Layer*, size_t> hidden_;
};

}  // namespace

const std::vector<std::string>& named_inputs(const std::string& class_name) {
  static const std::vector<std::string> attention = {"value", "key", "attention_mask"};
  static const std::vector<std::string> encoding = {"count_weights"};
  static const std::vector<std::string> none;
  return class_name == "MultiHeadAttention" ? attention
         : class_name == "CategoryEncoding" ? encoding
                                            : none;
}

const std::vector<std::string>& options_of_calls(const std::string& class_name) {
  static const std::vector<std::string> attention = {"use_causal_mask", "return_attention_scores"};
  static const std::vector<std::string> none;
  const bool attends = class_name == "MultiHeadAttention" || class_name == "Attention" ||
                       class_name == "AdditiveAttention";
  return attends ? attention : none;
}

size_t hidden_nodes(const Json& serialized_layer) {
  const auto config = serialized_layer.find("config");
  if (config == serialized_layer.end() || !config->is_object()) return 0;
  const auto layers = config->find("layers");
  if (layers == config->end() || !layers->is_array() || layers->empty()) return 0;
  const Json& first = layers->front();
  return first.is_object() && first.value("class_name", Json()) == "InputLayer" ? 1 : 0;
}

keras::Config sequential_config(const keras::Model& model, const Layer* input_layer,
                                const std::optional<TensorSpec>& input) {
  Json layers = Json::array();
  if (input_layer != nullptr) {
    layers.push_back(serialized_layer(*input_layer));
  } else if (input && input->shape() && !model.children().empty()) {
    const std::string name = model.children().front().layer->name() + "_input";
    layers.push_back(json_of(
        serialized("keras.layers", "InputLayer", json_of(input_layer_config(name, *input)))));
  }
  for (const Layer::Child& child : model.children()) {
    layers.push_back(serialized_layer(*child.layer));
  }
  return ConfigData::config_of({{"layers", std::move(layers)}});
}

keras::Config functional_config(const keras::Model& model, const SymbolicStructure& inputs,
                                const SymbolicStructure& outputs,
                                const std::vector<LayerHandle>& layers) {
  for (const SymbolicTensor& input : inputs.leaves()) {
    if (!input.node()->inputs) continue;
    throw UnimplementedError(str("model ", quoted(model.name()),
                                 ": its input is an output of layer ", quoted(input.layer().name()),
                                 ", which Keras's configurations cannot say; make it a "
                                 "keras::Input"));
  }
  FunctionalWriter writer(inputs, outputs);
  Json list = Json::array();
  for (const LayerHandle& layer : layers) list.push_back(writer.layer(layer));
  return ConfigData::config_of({{"layers", std::move(list)},
                                {"input_layers", writer.references(inputs)},
                                {"output_layers", writer.references(outputs)}});
}

}  // namespace cohort::internal
