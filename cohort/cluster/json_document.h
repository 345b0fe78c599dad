// JSON from outside as a tree, with limits, and errors that name the path at which something is
// wrong. For sources only: it includes nlohmann-json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cohort::internal {

struct JsonLimits {
  std::string_view source;  // what errors begin with: "TF_CONFIG"
  size_t bytes;
  int depth;
};

// Errors: InvalidArgument "source: path: problem", on one line (no JSON, too large, too deep, a
// member twice in one object, a NUL byte); ResourceExhausted (no memory for it).
nlohmann::json parse_json(std::string_view text, const JsonLimits& limits);

// "a string", "a list" and so on, for errors.
std::string_view json_kind(const nlohmann::json& value);

}  // namespace cohort::internal
