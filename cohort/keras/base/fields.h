// The fields of a configuration, listed once for both ways: to JSON and from it.
//
//   template <class Fields, class Units, class Options>
//   void dense_fields(Fields& field, Units& units, Options& options) {
//     field("units", units);
//     field("activation", options.activation);
//     field.always("data_format", "channels_last");    // Keras has others, Cohort has not
//   }
//
// For sources only: it includes nlohmann-json.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/base/constraints.h"
#include "cohort/keras/base/initializers.h"
#include "cohort/keras/base/policy.h"
#include "cohort/keras/base/regularizers.h"
#include "cohort/keras/base/window.h"

namespace cohort::internal {

class LayerReader;

// Values of fields. Errors of all that write: Unimplemented (a function of the program).
Json field_json(bool value);
Json field_json(int64_t value);
Json field_json(uint64_t value);
Json field_json(double value);
Json field_json(const std::string& value);
Json field_json(DType value);
Json field_json(const keras::mixed_precision::Policy& value);
Json field_json(const Tensor& value);  // undefined: null
Json field_json(const keras::layers::Size2D& value);
Json field_json(const keras::layers::Size3D& value);
Json field_json(const keras::activations::Activation& value);
Json field_json(const keras::initializers::Initializer& value);
Json field_json(const keras::regularizers::Regularizer& value);
Json field_json(const keras::constraints::Constraint& value);
template <class T>
Json field_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(field_json(value));
  return list;
}
template <class T>
Json field_json(const std::optional<T>& value) {
  return value ? field_json(*value) : Json(nullptr);
}

// Errors of all that read: InvalidArgument (`where`: of another kind, an unknown name).
void read_field(const Json& json, bool& value, const std::string& where);
void read_field(const Json& json, int64_t& value, const std::string& where);
// Seeds: also a negative number, which stands for the same bits.
void read_field(const Json& json, uint64_t& value, const std::string& where);
void read_field(const Json& json, double& value, const std::string& where);
void read_field(const Json& json, std::string& value, const std::string& where);
void read_field(const Json& json, DType& value, const std::string& where);
// A name, or an object with one.
void read_field(const Json& json, keras::mixed_precision::Policy& value, const std::string& where);
void read_field(const Json& json, Tensor& value, const std::string& where);
// Also a list of one number, or of two or three.
void read_field(const Json& json, keras::layers::Size2D& value, const std::string& where);
void read_field(const Json& json, keras::layers::Size3D& value, const std::string& where);
void read_field(const Json& json, keras::activations::Activation& value, const std::string& where);
void read_field(const Json& json, keras::initializers::Initializer& value,
                const std::string& where);
void read_field(const Json& json, keras::regularizers::Regularizer& value,
                const std::string& where);
void read_field(const Json& json, keras::constraints::Constraint& value, const std::string& where);
[[noreturn]] void throw_wrong_field(const Json& json, const char* expected,
                                    const std::string& where);
template <class T>
void read_field(const Json& json, std::vector<T>& values, const std::string& where) {
  if (!json.is_array()) throw_wrong_field(json, "a list", where);
  values.clear();
  for (const Json& element : json) {
    T value{};
    read_field(element, value, where);
    values.push_back(std::move(value));
  }
}
template <class T>
void read_field(const Json& json, std::optional<T>& value, const std::string& where) {
  if (json.is_null()) {
    value.reset();
  } else if constexpr (std::is_default_constructible_v<T>) {
    T read{};
    read_field(json, read, where);
    value = std::move(read);
  } else {
    read_field(json, value.emplace(1), where);
  }
}

// A name and its configuration, as Keras writes them: {"class_name": .., "config": ..}, or a name
// alone. Errors: InvalidArgument.
struct ClassAndConfig {
  std::string class_name;
  Json config = Json::object();
};
ClassAndConfig class_and_config(const Json& json, const std::string& where);

class FieldWriter {
 public:
  template <class T>
  void operator()(const char* key, const T& value) {
    json[key] = field_json(value);
  }
  // A number that Keras writes as a list of one.
  void list_of_one(const char* key, int64_t value) { json[key] = Json::array({value}); }
  void list_of_one(const char* key, const std::optional<int64_t>& value) {
    json[key] = value ? Json::array({*value}) : Json(nullptr);
  }
  // A number for which a list of one may stand.
  void number(const char* key, int64_t value) { json[key] = value; }
  // A list of which Keras writes one alone as a number.
  void one_or_list(const char* key, const std::vector<int64_t>& values) {
    json[key] = values.size() == 1 ? Json(values[0]) : Json(values);
  }
  // Sizes, of which those below 0 are open: null; no sizes: null.
  void open_sizes(const char* key, const std::vector<int64_t>& sizes);
  // What Keras's configurations lack: only where it is not what it would be without.
  template <class T>
  void unless(const char* key, const T& value, const T& usual) {
    if (!(field_json(value) == field_json(usual))) json[key] = field_json(value);
  }
  void always(const char* key, Json value) { json[key] = std::move(value); }
  // What changes no result here.
  void without_effect(const char* key, Json value) { json[key] = std::move(value); }
  // Numbers of which 0 means none, which Keras writes as null.
  template <class T>
  void zero_is_null(const char* key, const T& value) {
    json[key] = value == T(0) ? Json(nullptr) : Json(value);
  }

  Json json = Json::object();
};

// Errors begin with the field, "'units': ..."; whose it is, says read_fields.
class FieldReader {
 public:
  // layers: makes layers that stand in fields; nullptr where none can.
  explicit FieldReader(const Json& json, LayerReader* layers = nullptr)
      : json_(json), layers_(layers) {}

  // A field that is missing leaves the value as it is.
  template <class T>
  void operator()(const char* key, T& value) {
    if (const Json* found = find(key)) read_field(*found, value, quoted(key));
  }
  void list_of_one(const char* key, int64_t& value);
  void list_of_one(const char* key, std::optional<int64_t>& value);
  void number(const char* key, int64_t& value) { list_of_one(key, value); }
  void one_or_list(const char* key, std::vector<int64_t>& values);
  void open_sizes(const char* key, std::vector<int64_t>& sizes);
  template <class T>
  void unless(const char* key, T& value, const T&) {
    (*this)(key, value);
  }
  // Errors: Unimplemented (another value; names it).
  void always(const char* key, const Json& value);
  void without_effect(const char* key, const Json&) { find(key); }
  template <class T>
  void zero_is_null(const char* key, T& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    value = T(0);
    if (!found->is_null()) read_field(*found, value, quoted(key));
  }

  // Name and dtype, where `options` have them; `trainable` and what says of the input.
  template <class Options>
  void common(Options& options) {
    (*this)("name", options.name);
    if constexpr (requires { options.dtype; }) {
      const Json* dtype = find("dtype");
      if (dtype != nullptr && !dtype->is_null()) {
        read_field(*dtype, options.dtype.emplace(float32), quoted("dtype"));
      }
    }
    for (const char* key : {"dtype", "trainable", "batch_input_shape"}) find(key);
  }
  // Errors: Unimplemented (a field that nobody has read, and that says something).
  void finish() const;

  const Json* find(const char* key);
  LayerReader* layers() const { return layers_; }

 private:
  const Json& json_;
  LayerReader* const layers_;
  std::set<std::string, std::less<>> seen_;
};

// What `read` makes of the fields of `json`; it must read all of them. Errors of the fields, and of
// the constructor that gets their values, begin with `where`: "layer 'dense' (Dense)".
template <class Read>
auto read_fields(const Json& json, const std::string& where, const Read& read,
                 LayerReader* layers = nullptr) {
  try {
    FieldReader field(json, layers);
    auto made = read(field);
    field.finish();
    return made;
  } catch (...) {
    rethrow_with_context(where);
  }
}

}  // namespace cohort::internal
