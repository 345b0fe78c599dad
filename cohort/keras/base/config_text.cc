// Configurations as text.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "cohort/cluster/config_error.h"
#include "cohort/cluster/json_document.h"
#include "cohort/core/error.h"
#include "cohort/keras/base/config_json.h"

namespace cohort::internal {
namespace {

constexpr auto kMostInteger = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

struct NonFinite {
  std::string_view word;
  double value;
};
constexpr std::array<NonFinite, 3> kNonFinite = {{
    {"NaN", std::numeric_limits<double>::quiet_NaN()},
    {"-Infinity", -std::numeric_limits<double>::infinity()},
    {"Infinity", std::numeric_limits<double>::infinity()},
}};

const char* word_of(double value) {
  if (std::isnan(value)) return "NaN";
  return value < 0 ? "-Infinity" : "Infinity";
}

// Python's words for numbers that JSON has not, which its parser refuses: strings while it parses.
class NonFiniteWords {
 public:
  explicit NonFiniteWords(std::string_view text) : text_(text) {
    const bool has_any = text.find("NaN") != text.npos || text.find("Infinity") != text.npos;
    if (!has_any) return;
    while (text.find(mark_) != text.npos) mark_ += '~';
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (!in_string && replace_word(text, i)) continue;
      if (text[i] == '"') in_string = !in_string;
      replaced_ += text[i];
      if (in_string && text[i] == '\\' && i + 1 < text.size()) replaced_ += text[++i];
    }
    text_ = replaced_;
  }
  NonFiniteWords(const NonFiniteWords&) = delete;
  NonFiniteWords& operator=(const NonFiniteWords&) = delete;

  std::string_view text() const { return text_; }
  void restore(Json& json) const {
    if (replaced_.empty()) return;
    for (Json& member : json) {
      if (member.is_structured()) {
        restore(member);
        continue;
      }
      for (const NonFinite& one : kNonFinite) {
        if (member == mark_ + std::string(one.word)) member = one.value;
      }
    }
  }

 private:
  bool replace_word(std::string_view text, size_t& i) {
    for (const NonFinite& one : kNonFinite) {
      if (!text.substr(i).starts_with(one.word)) continue;
      replaced_ += str('"', mark_, one.word, '"');
      i += one.word.size() - 1;
      return true;
    }
    return false;
  }
  std::string mark_ = "number ";
  std::string replaced_;
  std::string_view text_;
};

class ConfigText {
 public:
  explicit ConfigText(const std::string& where) : where_(where) {}

  void append(const Json& json, const std::string& path) {
    if (json.is_object()) {
      text_ += '{';
      for (auto member = json.begin(); member != json.end(); ++member) {
        if (member != json.begin()) text_ += ',';
        append(Json(member.key()), path);
        text_ += ':';
        append(*member, path + json_member(member.key()));
      }
      text_ += '}';
    } else if (json.is_array()) {
      text_ += '[';
      for (size_t i = 0; i < json.size(); ++i) {
        if (i > 0) text_ += ',';
        append(json[i], path + json_element(static_cast<int>(i)));
      }
      text_ += ']';
    } else if (json.is_number_float() && !std::isfinite(json.get<double>())) {
      text_ += word_of(json.get<double>());
    } else {
      append_scalar(json, path);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  void append_scalar(const Json& json, const std::string& path) {
    try {
      text_ += json.dump();
    } catch (const Json::exception&) {
      const std::string place = path.starts_with('.') ? path.substr(1) : path;
      throw InvalidArgumentError(str(where_, place.empty() ? "" : ": ", place, ": the text ",
                                     shown_json(json), " is not UTF-8, as JSON wants it"));
    }
  }

  const std::string& where_;
  std::string text_;
};

// Whether it has more than `levels` levels.
bool is_deeper_than(const Json& json, int levels) {
  if (!json.is_structured()) return false;
  if (levels == 0) return true;
  return std::any_of(json.begin(), json.end(),
                     [&](const Json& member) { return is_deeper_than(member, levels - 1); });
}

}  // namespace

void check_depth(const Json& json, const std::string& where) {
  if (!is_deeper_than(json, kMostConfigDepth)) return;
  throw InvalidArgumentError(str(where, " has a configuration of more than ", kMostConfigDepth,
                                 " levels, deeper than what is read again; nest fewer models "
                                 "within each other: each takes three levels or more"));
}

std::string dump_config(const Json& json, const std::string& where) {
  check_depth(json, where);
  ConfigText text(where);
  text.append(json, "");
  return text.take();
}

std::string shown_json(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json parse_config(std::string_view text, const std::string& where) {
  const JsonLimits limits{.source = where, .bytes = kMostConfigBytes, .depth = kMostConfigDepth};
  NonFiniteWords words(text);
  Json json = parse_json(words.text(), limits);
  words.restore(json);
  if (!json.is_object()) {
    throw InvalidArgumentError(str(where, ": an object was expected, not ", json_kind(json)));
  }
  return json;
}

int64_t integer_of(const Json& json, const std::string& where) {
  if (!json.is_number_integer()) {
    throw InvalidArgumentError(str(where, ": an integer was expected, not ",
                                   json.is_number() ? shown_json(json) : json_kind(json)));
  }
  if (json.is_number_unsigned() && json.get<uint64_t>() > kMostInteger) {
    throw InvalidArgumentError(
        str(where, ": ", json.get<uint64_t>(), " is too large; at most ", kMostInteger, " can be"));
  }
  return json.get<int64_t>();
}

}  // namespace cohort::internal
