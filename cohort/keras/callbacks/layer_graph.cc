#include "cohort/keras/callbacks/layer_graph.h"

#include <algorithm>
#include <vector>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"

namespace cohort::internal {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kWhere = "the graph of a model";

std::string class_of(const Json& layer) { return string_member(layer, "class_name", kWhere); }
// Errors name it: "the graph of a model: a layer of class Scale".
std::string place_of(const Json& layer) {
  return str(kWhere, ": a layer of class ", class_of(layer));
}
const Json& config_of(const Json& layer) { return member_of(layer, "config", place_of(layer)); }
bool is_sequential(const Json& layer) { return class_of(layer) == "Sequential"; }
// A class of the program may have "layers" of its own in its configuration.
bool is_model(const Json& layer) {
  const std::string name = class_of(layer);
  return name == "Sequential" || name == "Functional" || name == "Model";
}
std::string name_of(const Json& layer) {
  return string_member(config_of(layer), "name", place_of(layer));
}
const Json& layers_of(const Json& model) {
  return member_of(config_of(model), "layers", place_of(model));
}

std::string join(const std::string& scope, const std::string& name) {
  return scope.empty() ? name : str(scope, "/", name);
}

void append_new(Names& names, const Names& more) {
  for (const std::string& name : more) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

// The names of layers in references such as ["dense", 0, 0], wherever they are in it.
void collect_layers(const Json& json, Names& found) {
  if (json.is_array() && json.size() >= 3 && json[0].is_string() && json[1].is_number_integer() &&
      json[2].is_number_integer()) {
    append_new(found, {json[0].get<std::string>()});
    for (size_t i = 3; i < json.size(); ++i) collect_layers(json[i], found);
  } else if (json.is_structured()) {
    for (const Json& member : json) collect_layers(member, found);
  }
}

// TensorFlow's GraphDef, as far as it is written.
struct NodeDef {
  std::string name;
  std::string operation;
  Names inputs;
};
void fields(auto& f, NodeDef& node) {
  f(1, node.name, kAlways);
  f(2, node.operation, kAlways);
  f(3, node.inputs);
}

struct VersionDef {
  int producer = 27;  // that of TensorFlow 2
};
void fields(auto& f, VersionDef& versions) { f(1, versions.producer); }

struct GraphDef {
  std::vector<NodeDef> nodes;
  VersionDef versions;
};
void fields(auto& f, GraphDef& graph) {
  f(1, graph.nodes);
  f(4, graph.versions);
}

// Thread safety: none.
class GraphWriter {
 public:
  // `feeds`: the nodes that the inputs of the model get their values from.
  void add_model(const Json& model, const std::string& scope, const Names& feeds) {
    if (is_sequential(model)) {
      Names before = feeds;
      for (const Json& layer : layers_of(model)) {
        add_layer(layer, scope, before);
        before = outputs_of(layer, scope);
      }
      return;
    }
    for (const Json& layer : layers_of(model)) {
      const auto nodes = layer.find("inbound_nodes");
      Names inputs;
      if (nodes != layer.end()) collect_layers(*nodes, inputs);
      add_layer(layer, scope, inputs.empty() ? feeds : outputs_of(inputs, model, scope));
    }
  }

  // Adds a layer as a node, or a model as the scope of its layers.
  void add_layer(const Json& layer, const std::string& scope, const Names& inputs) {
    const std::string name = join(scope, name_of(layer));
    if (is_model(layer)) return add_model(layer, name, inputs);
    graph_.nodes.push_back({name, class_of(layer), inputs});
  }

  std::string str() const { return encode_fields(graph_); }

 private:
  // The nodes that have the results of the layers of these names in the model.
  static Names outputs_of(const Names& layers, const Json& model, const std::string& scope) {
    Names nodes;
    for (const Json& layer : layers_of(model)) {
      if (std::find(layers.begin(), layers.end(), name_of(layer)) == layers.end()) continue;
      append_new(nodes, outputs_of(layer, scope));
    }
    return nodes;
  }

  // The nodes that have a layer's results.
  static Names outputs_of(const Json& layer, const std::string& scope) {
    const std::string name = join(scope, name_of(layer));
    if (!is_model(layer)) return {name};
    if (is_sequential(layer)) {
      const Json& layers = layers_of(layer);
      return layers.empty() ? Names() : outputs_of(layers.back(), name);
    }
    Names ends;
    collect_layers(member_of(config_of(layer), "output_layers", place_of(layer)), ends);
    return outputs_of(ends, layer, name);
  }

  GraphDef graph_;
};

}  // namespace

std::string layer_graph(std::string_view json) {
  const Json model = parse_config(json, kWhere);
  GraphWriter graph;
  if (is_model(model)) {
    graph.add_model(model, name_of(model), {});
  } else {  // of a class of the program, whose layers nobody knows
    graph.add_layer(model, "", {});
  }
  return graph.str();
}

}  // namespace cohort::internal
