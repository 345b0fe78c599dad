#include "cohort/keras/callbacks/file_name.h"

#include <cstdio>
#include <regex>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

[[noreturn]] void throw_bad_pattern(const std::string& pattern, const std::string& what) {
  throw InvalidArgumentError(str("file name ", quoted(pattern), ": ", what));
}

// `format` as "02d" or ".3f".
std::string formatted_number(const std::string& pattern, double value, const std::string& format,
                             bool is_whole) {
  static const std::regex kForm("(0?[0-9]{0,2})(\\.[0-9]{1,2})?([dfeg]?)");
  std::smatch match;
  if (!std::regex_match(format, match, kForm)) {
    throw_bad_pattern(pattern, str(quoted(format), " is no format such as '02d' or '.2f'"));
  }
  char text[400];
  const std::string type = match[3].str();
  if (type == "d" || (type.empty() && is_whole)) {
    const std::string width = str('%', match[1].str(), "lld");
    std::snprintf(text, sizeof(text), width.c_str(), static_cast<long long>(value));
  } else {
    const std::string digits = match[2].str().empty() && type.empty() ? ".17" : match[2].str();
    const std::string whole = str('%', match[1].str(), digits, type.empty() ? "g" : type);
    std::snprintf(text, sizeof(text), whole.c_str(), value);
  }
  return text;
}

struct Field {
  std::string key;
  std::string format;  // "02d"
};

// Calls text(characters) and field(field) for what the pattern is made of, in its order.
template <class Text, class OnField>
void walk(const std::string& pattern, const Text& text, const OnField& on_field) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '}') throw_bad_pattern(pattern, "a '}' has no '{'");
    if (pattern[i] != '{') {
      text(pattern[i]);
      continue;
    }
    const size_t end = pattern.find('}', i);
    if (end == std::string::npos) throw_bad_pattern(pattern, "a '{' has no '}'");
    const std::string inside = pattern.substr(i + 1, end - i - 1);
    const size_t colon = inside.find(':');
    on_field(Field{.key = inside.substr(0, colon),
                   .format = colon == std::string::npos ? "" : inside.substr(colon + 1)});
    i = end;
  }
}

}  // namespace

std::vector<std::string> log_names_in(const std::string& pattern, bool has_batch) {
  std::vector<std::string> names;
  walk(
      pattern, [](char) {},
      [&](const Field& field) {
        const bool is_number = field.key == "epoch" || (has_batch && field.key == "batch");
        formatted_number(pattern, 1, field.format, is_number);  // which checks the format
        if (!is_number) names.push_back(field.key);
      });
  return names;
}

std::string formatted_file_name(const std::string& pattern, int64_t epoch,
                                std::optional<int64_t> batch, const keras::Logs& logs) {
  std::string name;
  const auto append = [&](const Field& field) {
    if (field.key == "epoch" || (field.key == "batch" && batch)) {
      const int64_t number = (field.key == "epoch" ? epoch : *batch) + 1;
      name += formatted_number(pattern, static_cast<double>(number), field.format, true);
      return;
    }
    const auto value = logs.find(field.key);
    if (!value) {
      std::string known = "epoch";
      for (const auto& entry : logs) known += ", " + entry.first;
      throw_bad_pattern(pattern, str("there is no ", quoted(field.key), "; there are: ", known));
    }
    name += formatted_number(pattern, *value, field.format, false);
  };
  walk(
      pattern, [&](char c) { name += c; }, append);
  return name;
}

std::string common_directory(const std::string& pattern) {
  return parent_directory(pattern.substr(0, pattern.find('{')) + "_");
}

}  // namespace cohort::internal
