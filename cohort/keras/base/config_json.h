// What is inside of a Config. For sources only: it includes nlohmann-json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cohort/keras/base/config.h"

namespace cohort::internal {

using Json = nlohmann::json;

struct ConfigData {
  static keras::Config config_of(Json object);

  Json json = Json::object();
};

inline const Json& json_of(const keras::Config& config) { return config.data().json; }

// What Keras writes of an object: {"module": .., "class_name": .., "config": ..}.
keras::Config serialized(std::string_view module, std::string_view class_name, Json config);

// Levels of objects and lists that are written and read: a Sequential in another one counts three,
// a Functional six. Hostile texts have as many as they like, and each takes some of the stack.
inline constexpr int kMostConfigDepth = 200;
// Errors: InvalidArgument "`where` ..." (deeper than that).
void check_depth(const Json& json, const std::string& where);

// Writes JSON as Python does, with NaN, Infinity and -Infinity; parse_config reads it.
// Errors: InvalidArgument "`where`: ..." (a text that is not UTF-8; says where; as check_depth).
std::string dump_config(const Json& json, const std::string& where);
// For errors: of any text.
std::string shown_json(const Json& json);
// Errors: InvalidArgument "`where`: ..." (no JSON; says where in it).
Json parse_config(std::string_view text, const std::string& where);
// The longest text that is read: models of some thousand layers, with vocabularies, are far
// shorter.
inline constexpr uint64_t kMostConfigBytes = uint64_t{1} << 30;
// Every integer of a configuration is read here. Errors: InvalidArgument "`where`: ..." (none, or
// one that exceeds 64 bits with a sign, which the JSON's type turns into another one).
int64_t integer_of(const Json& json, const std::string& where);
// Errors: InvalidArgument "`where`: ..." (no such member, or of another kind).
const Json& member_of(const Json& object, const char* key, const std::string& where);
std::string string_member(const Json& object, const char* key, const std::string& where);

}  // namespace cohort::internal
