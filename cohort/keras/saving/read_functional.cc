#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "cohort/cluster/json_document.h"
#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/keras/model/model_config.h"
#include "cohort/keras/saving/model_reader.h"

namespace cohort::internal {
namespace {

using keras::SymbolicStructure;
using keras::SymbolicTensor;
using keras::layers::LayerHandle;

// A tensor: ["dense", 0, 0], perhaps with the arguments of the call that reads it.
struct Reference {
  std::string layer;
  size_t node = 0;
  size_t tensor = 0;
  Json arguments = Json::object();
};

bool is_reference(const Json& json) {
  return json.is_array() && json.size() >= 3 && json[0].is_string() &&
         json[1].is_number_unsigned() && json[2].is_number_unsigned();
}

// Thread safety: none.
class FunctionalReader {
 public:
  using LayerOf = std::function<LayerHandle(const Json&, const std::string&)>;

  FunctionalReader(const Json& config, std::string where, const LayerOf& layer_of)
      : config_(config), where_(std::move(where)) {
    const Json& list = member_of(config, "layers", where_);
    if (!list.is_array()) throw_wrong_field(list, "a list", str(where_, ": 'layers'"));
    for (size_t i = 0; i < list.size(); ++i) {
      add_layer(list[i], str(where_, ": layers[", i, "]"), layer_of);
    }
  }

  keras::Functional read() {
    make_calls();
    keras::ModelOptions options;
    if (config_.contains("name")) options.name = string_member(config_, "name", where_);
    const SymbolicStructure inputs = ends("input_layers");
    const SymbolicStructure outputs = ends("output_layers");
    try {
      return keras::Functional(inputs, outputs, options);
    } catch (...) {
      rethrow_with_context(where_);
    }
  }

 private:
  struct Entry {
    std::string name;
    LayerHandle layer;
    size_t hidden = 0;
    Json nodes = Json::array();
    std::vector<SymbolicStructure> calls = {};  // of the first nodes
  };

  void add_layer(const Json& json, const std::string& place, const LayerOf& layer_of) {
    Json own = json;
    Json nodes = Json::array();
    if (own.is_object()) {
      nodes = own.value("inbound_nodes", Json::array());
      own.erase("inbound_nodes");
      set_options_of_calls(own, nodes, place);
    }
    if (!nodes.is_array()) throw_wrong_field(nodes, "a list", str(place, ": 'inbound_nodes'"));
    LayerHandle layer = layer_of(own, place);
    const std::string name =
        own.contains("name") ? string_member(own, "name", place) : layer.name();
    Entry entry{name, layer, hidden_nodes(own), std::move(nodes)};
    if (input_layer_spec(*layer.get()) != nullptr) {
      entry.calls.emplace_back(symbolic_input(layer));
      entry.nodes = Json::array();
    }
    if (!by_name_.emplace(name, entries_.size()).second) {
      throw InvalidArgumentError(str(place, ": another layer is called ", quoted(name), ", too"));
    }
    entries_.push_back(std::move(entry));
  }

  // What Keras has as an argument of the call, and Cohort as an option. Errors: Unimplemented (the
  // calls differ in it).
  static void set_options_of_calls(Json& layer, const Json& nodes, const std::string& place) {
    const Json class_name = layer.value("class_name", Json());
    if (!class_name.is_string() || !nodes.is_array()) return;
    for (const std::string& option : options_of_calls(class_name.get<std::string>())) {
      const auto has = [&](const Json& node) { return says(node, option); };
      const auto count = std::count_if(nodes.begin(), nodes.end(), has);
      if (count == 0) continue;
      if (count < static_cast<int64_t>(nodes.size())) {
        throw UnimplementedError(str(place, ": the calls of this ", class_name.get<std::string>(),
                                     " differ in ", quoted(option),
                                     ", which is an option of the layer in Cohort; use a layer for "
                                     "each"));
      }
      Json& config = layer["config"];  // of another kind: refused by the layer's reader
      if (config.is_null() || config.is_object()) config[option] = true;
    }
  }

  // Whether an object somewhere in `json` has true under `key`.
  static bool says(const Json& json, const std::string& key) {
    if (json.is_object() && json.value(key, Json()) == true) return true;
    return json.is_structured() && std::any_of(json.begin(), json.end(), [&](const Json& member) {
             return says(member, key);
           });
  }

  // Layers may be listed before those that they read: calls are made as soon as they can be.
  void make_calls() {
    for (bool advanced = true; advanced;) {
      advanced = false;
      for (Entry& entry : entries_) {
        while (entry.calls.size() < entry.nodes.size() && make_call(entry)) advanced = true;
      }
    }
    for (const Entry& entry : entries_) {
      if (entry.calls.size() >= entry.nodes.size()) continue;
      throw InvalidArgumentError(str(where_, ": layer ", quoted(entry.name), " reads ",
                                     shown_json(entry.nodes[entry.calls.size()]),
                                     ", which no layer before it makes"));
    }
  }

  // False: what it reads is not there yet.
  bool make_call(Entry& entry) {
    const std::string place =
        str(where_, ": layer ", quoted(entry.name), ": inbound_nodes[", entry.calls.size(), "]");
    Json arguments = Json::object();
    const Json& node = entry.nodes[entry.calls.size()];
    if (node.is_array() && node.empty()) {
      throw InvalidArgumentError(str(place, ": the call has no inputs"));
    }
    std::optional<SymbolicStructure> inputs = structure(node, place, &arguments);
    if (!inputs) return false;
    if (node.is_array() && node.size() == 1 && !inputs->is_leaf()) inputs = (*inputs)[0];
    const std::string class_name = entry.layer.class_name();
    if (!add_tensors(arguments, class_name, place, *inputs)) return false;
    keras::CallOptions options;
    if (const auto training = arguments.find("training");
        training != arguments.end() && training->is_boolean()) {
      options.training = training->get<bool>();
    }
    try {
      entry.calls.push_back(entry.layer(*inputs, options));
    } catch (...) {
      rethrow_with_context(place);
    }
    return true;
  }

  // Tensors that Keras passes by name become members of the inputs. False: not there yet.
  bool add_tensors(const Json& arguments, const std::string& class_name, const std::string& place,
                   SymbolicStructure& inputs) const {
    static const std::vector<std::string> recurrent = {"initial_state"};
    const std::vector<std::string>& own = named_inputs(class_name);
    const std::vector<std::string>& names = own.empty() ? recurrent : own;
    std::vector<SymbolicStructure> members;
    for (const SymbolicTensor& leaf : inputs.leaves()) members.emplace_back(leaf);
    const size_t given = members.size();
    for (const std::string& name : names) {
      const auto found = arguments.find(name);
      if (found == arguments.end() || found->is_null()) continue;
      const auto value = structure(*found, place + ": " + name, nullptr);
      if (!value) return false;
      // A mask stands after the keys, which are the values where nobody says.
      if (name == "attention_mask" && members.size() == 2) members.push_back(members[1]);
      add_members(*value, members);
    }
    if (members.size() > given) inputs = SymbolicStructure::make_tuple(members);
    for (const auto& [key, value] : arguments.items()) {
      const std::vector<std::string>& options = options_of_calls(class_name);
      const bool known = key == "training" || value.is_null() || value == false ||
                         std::find(names.begin(), names.end(), key) != names.end() ||
                         std::find(options.begin(), options.end(), key) != options.end();
      if (known) continue;
      throw UnimplementedError(str(place, ": Cohort's ", class_name, " has no argument ",
                                   quoted(key), ", which is ", shown_json(value)));
    }
    return true;
  }

  // Appends the members of a tuple as they are: the states of stacked cells are tuples.
  static void add_members(const SymbolicStructure& value, std::vector<SymbolicStructure>& members) {
    if (value.is_leaf() || value.spec().is_dict()) {
      members.push_back(value);
      return;
    }
    for (size_t i = 0; i < value.spec().members().size(); ++i) members.push_back(value[i]);
  }

  // Nothing: a layer has not been called yet.
  std::optional<SymbolicStructure> structure(const Json& json, const std::string& place,
                                             Json* arguments) const {
    if (is_reference(json)) {
      if (arguments != nullptr && json.size() > 3 && json[3].is_object()) {
        arguments->update(json[3]);
      }
      return tensor(json, place);
    }
    if (json.is_object()) {
      SymbolicStructure::Dict members;
      for (const auto& [key, value] : json.items()) {
        auto member = structure(value, place, arguments);
        if (!member) return std::nullopt;
        members.emplace_back(key, std::move(*member));
      }
      return SymbolicStructure::make_dict(members);
    }
    if (!json.is_array()) throw_wrong_field(json, "a tensor as [layer, node, index]", place);
    std::vector<SymbolicStructure> members;
    for (const Json& value : json) {
      auto member = structure(value, place, arguments);
      if (!member) return std::nullopt;
      members.push_back(std::move(*member));
    }
    return SymbolicStructure::make_tuple(members);
  }

  std::optional<SymbolicStructure> tensor(const Json& json, const std::string& place) const {
    const auto found = by_name_.find(json[0].get<std::string>());
    if (found == by_name_.end()) {
      throw InvalidArgumentError(str(place, ": there is no layer ", shown_json(json[0])));
    }
    const Entry& entry = entries_[found->second];
    const auto node = json[1].get<size_t>();
    const auto index = json[2].get<size_t>();
    const size_t count = std::max(entry.nodes.size(), size_t{1});
    if (node < entry.hidden || node - entry.hidden >= count) {
      throw InvalidArgumentError(str(place, ": layer ", quoted(entry.name), " has ", count,
                                     " calls, but number ", node, " is read"));
    }
    if (node - entry.hidden >= entry.calls.size()) return std::nullopt;
    const SymbolicStructure& outputs = entry.calls[node - entry.hidden];
    if (index >= outputs.leaves().size()) {
      throw InvalidArgumentError(str(place, ": layer ", quoted(entry.name), " gives ",
                                     outputs.leaves().size(), " tensors, but number ", index,
                                     " is read"));
    }
    return SymbolicStructure(outputs.leaves()[index]);
  }

  // Inputs or outputs of the model; a list of one is that one, as Keras writes it.
  SymbolicStructure ends(const char* key) const {
    const Json& json = member_of(config_, key, where_);
    const std::string place = str(where_, ": ", quoted(key));
    auto tensors = structure(json, place, nullptr);
    if (!tensors || tensors->leaves().empty()) {
      throw InvalidArgumentError(str(place, " is ", shown_json(json), ", which names no tensors"));
    }
    if (json.is_array() && json.size() == 1 && !tensors->is_leaf()) return (*tensors)[0];
    return *tensors;
  }

  const Json& config_;
  const std::string where_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace

keras::Functional read_functional(
    const Json& config, const std::string& where,
    const std::function<LayerHandle(const Json&, const std::string&)>& layer_of) {
  return FunctionalReader(config, where, layer_of).read();
}

}  // namespace cohort::internal
