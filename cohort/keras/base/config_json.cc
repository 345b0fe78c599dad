#include "cohort/keras/base/config_json.h"

#include <utility>

#include "cohort/cluster/json_document.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort {
namespace internal {

keras::Config ConfigData::config_of(Json object) {
  keras::Config config;
  config.own_data().json = std::move(object);
  return config;
}

keras::Config serialized(std::string_view module, std::string_view class_name, Json config) {
  return ConfigData::config_of({{"module", module},
                                {"class_name", class_name},
                                {"config", std::move(config)},
                                {"registered_name", nullptr}});
}

const Json& member_of(const Json& object, const char* key, const std::string& where) {
  if (!object.is_object()) {
    throw InvalidArgumentError(str(where, ": an object was expected, not ", json_kind(object)));
  }
  const auto found = object.find(key);
  if (found != object.end()) return *found;
  throw InvalidArgumentError(str(where, ": ", quoted(key), " is missing"));
}

std::string string_member(const Json& object, const char* key, const std::string& where) {
  const Json& member = member_of(object, key, where);
  if (member.is_string()) return member.get<std::string>();
  throw InvalidArgumentError(
      str(where, ": ", quoted(key), " is a string, but got ", json_kind(member)));
}

namespace {

constexpr const char* kConfiguration = "configuration";

std::string place_of(std::string_view key) { return str(kConfiguration, ": ", quoted(key)); }

// Errors: InvalidArgument (missing or of another kind).
const Json& config_value_at(const Json& object, std::string_view key, bool (*is_right)(const Json&),
                            const char* kind) {
  const Json& value = member_of(object, std::string(key).c_str(), kConfiguration);
  if (is_right(value)) return value;
  throw InvalidArgumentError(
      str(kConfiguration, ": ", quoted(key), " is ", json_kind(value), ", not ", kind));
}

template <bool (*is_right)(const Json&)>
bool is_value_list_of(const Json& value) {
  if (!value.is_array()) return false;
  for (const Json& element : value) {
    if (!is_right(element)) return false;
  }
  return true;
}

bool is_integer_value(const Json& value) { return value.is_number_integer(); }
bool is_string_value(const Json& value) { return value.is_string(); }

}  // namespace
}  // namespace internal

namespace keras {

using internal::config_value_at;
using internal::ConfigData;
using internal::integer_of;
using internal::Json;

Config::Config() : data_(std::make_shared<ConfigData>()) {}

Config Config::parse(std::string_view json) {
  return ConfigData::config_of(internal::parse_config(json, internal::kConfiguration));
}

ConfigData& Config::own_data() {
  if (data_.use_count() > 1) data_ = std::make_shared<ConfigData>(*data_);
  return *data_;
}

Config& Config::set(std::string_view key, bool value) {
  own_data().json[std::string(key)] = value;
  return *this;
}
Config& Config::set(std::string_view key, int64_t value) {
  own_data().json[std::string(key)] = value;
  return *this;
}
Config& Config::set(std::string_view key, double value) {
  own_data().json[std::string(key)] = value;
  return *this;
}
Config& Config::set(std::string_view key, std::string_view value) {
  own_data().json[std::string(key)] = value;
  return *this;
}
Config& Config::set(std::string_view key, const std::vector<int64_t>& value) {
  own_data().json[std::string(key)] = value;
  return *this;
}
Config& Config::set(std::string_view key, const std::vector<std::string>& value) {
  own_data().json[std::string(key)] = value;
  return *this;
}
Config& Config::set(std::string_view key, const Config& value) {
  Json json = internal::json_of(value);  // a copy: `value` may be this one
  own_data().json[std::string(key)] = std::move(json);
  return *this;
}

bool Config::contains(std::string_view key) const {
  const auto found = data_->json.find(std::string(key));
  return found != data_->json.end() && !found->is_null();
}

bool Config::get_bool(std::string_view key) const {
  return config_value_at(
             data_->json, key, [](const Json& v) { return v.is_boolean(); }, "true or false")
      .get<bool>();
}
int64_t Config::get_int(std::string_view key) const {
  return integer_of(config_value_at(data_->json, key, internal::is_integer_value, "an integer"),
                    internal::place_of(key));
}
double Config::get_double(std::string_view key) const {
  return config_value_at(
             data_->json, key, [](const Json& v) { return v.is_number(); }, "a number")
      .get<double>();
}
std::string Config::get_string(std::string_view key) const {
  return config_value_at(data_->json, key, internal::is_string_value, "a string")
      .get<std::string>();
}
std::vector<int64_t> Config::get_ints(std::string_view key) const {
  std::vector<int64_t> integers;
  for (const Json& element :
       config_value_at(data_->json, key, internal::is_value_list_of<internal::is_integer_value>,
                       "a list of integers")) {
    integers.push_back(integer_of(element, internal::place_of(key)));
  }
  return integers;
}
std::vector<std::string> Config::get_strings(std::string_view key) const {
  return config_value_at(data_->json, key, internal::is_value_list_of<internal::is_string_value>,
                         "a list of strings")
      .get<std::vector<std::string>>();
}
Config Config::get_config(std::string_view key) const {
  return ConfigData::config_of(config_value_at(
      data_->json, key, [](const Json& v) { return v.is_object(); }, "an object"));
}

std::string Config::json() const {
  return internal::dump_config(data_->json, internal::kConfiguration);
}
bool Config::operator==(const Config& other) const { return data_->json == other.data_->json; }

}  // namespace keras
}  // namespace cohort
