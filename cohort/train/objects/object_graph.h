// The graph of objects that a checkpoint was made of: TensorFlow's TrackableObjectGraph, which
// every checkpoint holds as a string under kObjectGraphKey.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal {

inline constexpr const char* kObjectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

struct ObjectGraph {
  struct Child {
    std::string name;
    uint32_t node = 0;
  };
  struct Attribute {
    std::string name;            // "VARIABLE_VALUE"
    std::string full_name;       // of the variable, for people
    std::string checkpoint_key;  // of the tensor in the checkpoint
  };
  // How optimizers before Keras 2.11 refer to their slots.
  struct SlotVariable {
    uint32_t original_variable = 0;
    uint32_t slot_variable = 0;
    std::string slot_name;
  };
  struct BoolValue {
    bool value = false;
  };
  struct Node {
    std::vector<Child> children;
    std::vector<Attribute> attributes;
    std::vector<SlotVariable> slot_variables;
    BoolValue has_values = {};  // it or something below it; format_object_graph sees to it
  };

  std::vector<Node> nodes;  // the first is the root; objects may form cycles
};

std::string format_object_graph(ObjectGraph graph);
// Memory: in proportion to the bytes, and 64 MiB.
// Errors: DataLoss (malformed, no nodes, a node that does not exist; `file` is named).
ObjectGraph parse_object_graph(std::string_view bytes, const std::string& file);

// A child's name as part of a path: '.' becomes "..", '/' becomes ".S".
std::string escape_name(std::string_view name);
// "PATH/.ATTRIBUTES/NAME", the key of a value.
std::string attribute_key(std::string_view path, std::string_view attribute);
// The key without "/.ATTRIBUTES/VARIABLE_VALUE", and with '.' and '/' as they were: what people
// read.
std::string readable_key(std::string_view key);

}  // namespace cohort::internal
