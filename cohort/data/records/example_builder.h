// Builds tf.Example records, TensorFlow's records of named features.
//
//   io::ExampleBuilder example;
//   example.add_bytes("image", {png}).add_ints("label", {7});
//   writer.write(example.serialize());
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort::io {

// Each feature is one list of values, perhaps empty. Adding a name again replaces its values.
// Thread safety: as std::map.
class COHORT_API ExampleBuilder {
 public:
  ExampleBuilder& add_bytes(std::string_view name, std::span<const std::string_view> values);
  ExampleBuilder& add_floats(std::string_view name, std::span<const float> values);
  ExampleBuilder& add_ints(std::string_view name, std::span<const int64_t> values);
  // The same for values that stand in the call.
  ExampleBuilder& add_bytes(std::string_view name, std::initializer_list<std::string_view> values);
  ExampleBuilder& add_floats(std::string_view name, std::initializer_list<float> values);
  ExampleBuilder& add_ints(std::string_view name, std::initializer_list<int64_t> values);

  // The message; the same features always give the same bytes.
  std::string serialize() const;

 private:
  std::map<std::string, std::string, std::less<>> features_;  // messages Feature
};

}  // namespace cohort::io
