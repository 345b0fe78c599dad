#include "cohort/keras/base/fields.h"

#include <ATen/ops/tensor.h>

#include <functional>
#include <utility>

#include "cohort/cluster/json_document.h"
#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

[[noreturn]] void throw_function(const char* what) {
  throw UnimplementedError(str("its ", what,
                               " is a function of the program, which no file can hold; give one of "
                               "Keras's by name"));
}

}  // namespace

Json field_json(bool value) { return value; }
Json field_json(int64_t value) { return value; }
Json field_json(uint64_t value) { return value; }
Json field_json(double value) { return value; }
Json field_json(const std::string& value) { return value; }
Json field_json(DType value) { return dtype_name(value); }
Json field_json(const keras::mixed_precision::Policy& value) {
  if (!value.is_mixed()) return value.name();
  return json_of(serialized("keras.mixed_precision", "Policy", {{"name", value.name()}}));
}
Json field_json(const Tensor& value) {
  if (!value.defined()) return nullptr;
  const Tensor numbers = contiguous_elements(value.detach().to(c10::kCPU, DType::Double));
  if (numbers.dim() == 0) return numbers.item<double>();
  if (numbers.dim() > 1) {
    Json list = Json::array();
    for (const Tensor& row : numbers.unbind()) list.push_back(field_json(row));
    return list;
  }
  return std::vector<double>(numbers.data_ptr<double>(),
                             numbers.data_ptr<double>() + numbers.numel());
}
Json field_json(const keras::layers::Size2D& value) {
  return Json::array({value.height, value.width});
}
Json field_json(const keras::layers::Size3D& value) {
  return Json::array({value.depth, value.height, value.width});
}
Json field_json(const keras::activations::Activation& value) {
  if (!value.is_named()) throw_function("activation");
  return value.name();
}
Json field_json(const keras::initializers::Initializer& value) {
  const auto config = value.serialize();
  if (!config) throw_function("initializer");
  return json_of(*config);
}
Json field_json(const keras::regularizers::Regularizer& value) {
  if (!value) return nullptr;
  const auto config = value.serialize();
  if (!config) throw_function("regularizer");
  return json_of(*config);
}

Json field_json(const keras::constraints::Constraint& value) {
  if (!value) return nullptr;
  const auto config = value.serialize();
  if (!config) throw_function("constraint");
  return json_of(*config);
}

void throw_wrong_field(const Json& json, const char* expected, const std::string& where) {
  throw InvalidArgumentError(str(where, ": ", expected, " was expected, not ", json_kind(json)));
}

void read_field(const Json& json, bool& value, const std::string& where) {
  if (!json.is_boolean()) throw_wrong_field(json, "true or false", where);
  value = json.get<bool>();
}
void read_field(const Json& json, int64_t& value, const std::string& where) {
  value = integer_of(json, where);
}
void read_field(const Json& json, uint64_t& value, const std::string& where) {
  value = json.is_number_unsigned() ? json.get<uint64_t>()
                                    : static_cast<uint64_t>(integer_of(json, where));
}
void read_field(const Json& json, double& value, const std::string& where) {
  if (!json.is_number()) throw_wrong_field(json, "a number", where);
  value = json.get<double>();
}
void read_field(const Json& json, std::string& value, const std::string& where) {
  if (!json.is_string()) throw_wrong_field(json, "a string", where);
  value = json.get<std::string>();
}
void read_field(const Json& json, DType& value, const std::string& where) {
  if (!json.is_string()) throw_wrong_field(json, "a dtype's name", where);
  const std::string name = json.get<std::string>();
  const auto found = find_policy(name);
  if (!found || found->is_mixed()) {
    throw InvalidArgumentError(str(where, ": no dtype is called ", quoted(name)));
  }
  value = found->compute_dtype();
}
void read_field(const Json& json, keras::mixed_precision::Policy& value, const std::string& where) {
  const Json& name =
      json.is_object() ? member_of(member_of(json, "config", where), "name", where) : json;
  if (!name.is_string()) throw_wrong_field(name, "the name of a dtype or policy", where);
  const auto found = find_policy(name.get<std::string>());
  if (!found) {
    throw InvalidArgumentError(
        str(where, ": no dtype is called ", quoted(name.get<std::string>()), ", and no policy"));
  }
  value = *found;
}
void read_field(const Json& json, Tensor& value, const std::string& where) {
  if (json.is_null()) {
    value = Tensor();
    return;
  }
  std::vector<int64_t> shape;
  const Json* level = &json;
  for (; level->is_array(); level = &level->front()) {
    shape.push_back(static_cast<int64_t>(level->size()));
    if (level->empty()) break;
  }
  std::vector<double> numbers;
  const std::function<void(const Json&)> collect = [&](const Json& part) {
    if (!part.is_array()) {
      read_field(part, numbers.emplace_back(), where);
      return;
    }
    for (const Json& element : part) collect(element);
  };
  collect(json);
  int64_t count = 1;
  bool fits = true;
  for (const int64_t size : shape) fits = fits && !__builtin_mul_overflow(count, size, &count);
  if (!fits || count != static_cast<int64_t>(numbers.size())) {
    throw InvalidArgumentError(str(where, ": its rows are of unlike lengths"));
  }
  value = at::tensor(numbers, at::dtype(at::kDouble)).reshape(shape);
}
void read_field(const Json& json, keras::layers::Size2D& value, const std::string& where) {
  if (!json.is_array()) {
    int64_t size = 0;
    read_field(json, size, where);
    value = size;
    return;
  }
  std::vector<int64_t> sizes;
  read_field(json, sizes, where);
  if (sizes.empty() || sizes.size() > 2) throw_wrong_field(json, "one number or two", where);
  value = keras::layers::Size2D(sizes.front(), sizes.back());
}

void read_field(const Json& json, keras::layers::Size3D& value, const std::string& where) {
  if (!json.is_array()) {
    int64_t size = 0;
    read_field(json, size, where);
    value = size;
    return;
  }
  std::vector<int64_t> sizes;
  read_field(json, sizes, where);
  if (sizes.size() == 1) sizes.assign(3, sizes[0]);
  if (sizes.size() != 3) throw_wrong_field(json, "one number or three", where);
  value = keras::layers::Size3D(sizes[0], sizes[1], sizes[2]);
}

ClassAndConfig class_and_config(const Json& json, const std::string& where) {
  if (json.is_string()) return {json.get<std::string>()};
  ClassAndConfig parts{string_member(json, "class_name", where)};
  if (const auto found = json.find("config"); found != json.end()) {
    // Functions have their name there.
    if (found->is_string()) return {found->get<std::string>()};
    parts.config = *found;
  }
  if (!parts.config.is_object()) throw_wrong_field(parts.config, "an object", where + ": config");
  return parts;
}

void read_field(const Json& json, keras::activations::Activation& value, const std::string& where) {
  if (json.is_null()) {
    value = {};
    return;
  }
  const std::string name = class_and_config(json, where).class_name;
  try {
    value = keras::activations::Activation(name);
  } catch (...) {
    rethrow_with_context(where);
  }
}

const Json* FieldReader::find(const char* key) {
  seen_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() ? nullptr : &*found;
}

void FieldReader::list_of_one(const char* key, int64_t& value) {
  const Json* found = find(key);
  if (found == nullptr) return;
  const bool is_list = found->is_array() && found->size() == 1;
  read_field(is_list ? found->front() : *found, value, quoted(key));
}

void FieldReader::list_of_one(const char* key, std::optional<int64_t>& value) {
  const Json* found = find(key);
  if (found == nullptr) return;
  if (found->is_null()) return value.reset();
  list_of_one(key, value.emplace());
}

void FieldWriter::open_sizes(const char* key, const std::vector<int64_t>& sizes) {
  json[key] = nullptr;
  for (const int64_t size : sizes) json[key].push_back(size < 0 ? Json(nullptr) : Json(size));
}

void FieldReader::open_sizes(const char* key, std::vector<int64_t>& sizes) {
  sizes.clear();
  const Json* found = find(key);
  if (found == nullptr || found->is_null()) return;
  if (!found->is_array()) throw_wrong_field(*found, "a list", quoted(key));
  for (const Json& size : *found) {
    sizes.push_back(size.is_null() ? kUnknownDim : integer_of(size, quoted(key)));
  }
}

void FieldReader::one_or_list(const char* key, std::vector<int64_t>& values) {
  const Json* found = find(key);
  if (found == nullptr) return;
  if (found->is_number_integer()) {
    values = {integer_of(*found, quoted(key))};
  } else {
    read_field(*found, values, quoted(key));
  }
}

void FieldReader::always(const char* key, const Json& value) {
  const Json* found = find(key);
  if (found == nullptr || *found == value || found->is_null()) return;
  throw UnimplementedError(
      str(quoted(key), " is ", shown_json(*found), "; Cohort has only ", shown_json(value)));
}

void FieldReader::finish() const {
  for (const auto& [key, value] : json_.items()) {
    const bool says_nothing = value.is_null() || value == false;
    if (seen_.count(key) > 0 || says_nothing) continue;
    throw UnimplementedError(str("Cohort has no ", quoted(key), ", which is ", shown_json(value)));
  }
}

}  // namespace cohort::internal
