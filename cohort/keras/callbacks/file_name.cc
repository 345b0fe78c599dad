#include "cohort/keras/callbacks/file_name.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

[[noreturn]] void throw_bad_pattern(const std::string& pattern, const std::string& what) {
  throw InvalidArgumentError(str("file name ", quoted(pattern), ": ", what));
}

// "02.3f" in its parts.
struct NumberForm {
  bool zeros = false;  // before the number, instead of blanks
  size_t width = 0;
  std::optional<int> digits;
  char type = '\0';  // d, f, e or g; none
};

// The digits that `text` begins with, two at most; they are taken off it.
std::string_view take_digits(std::string_view& text) {
  size_t count = 0;
  while (count < std::min<size_t>(text.size(), 2) && is_digit(text[count])) ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

std::optional<NumberForm> parse_form(std::string_view text) {
  NumberForm form;
  form.zeros = text.starts_with('0');
  if (form.zeros) text.remove_prefix(1);
  form.width = static_cast<size_t>(parse_number<int>(take_digits(text)).value_or(0));
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    form.digits = parse_number<int>(take_digits(text));
    if (!form.digits) return std::nullopt;
  }
  if (!text.empty() && std::string_view("dfeg").find(text[0]) != std::string_view::npos) {
    form.type = text[0];
    text.remove_prefix(1);
  }
  return text.empty() ? std::optional(form) : std::nullopt;
}

std::string digits_of(double value, const NumberForm& form, bool is_whole) {
  constexpr int kUsual = 6, kAll = 17;
  if (form.type == 'd' || (form.type == '\0' && is_whole)) {
    return decimal_digits(static_cast<int64_t>(value));
  }
  if (form.type == 'f') return fixed_digits(value, form.digits.value_or(kUsual));
  if (form.type == 'e') return scientific_digits(value, form.digits.value_or(kUsual));
  return general_digits(value, form.digits.value_or(form.type == 'g' ? kUsual : kAll));
}

// `format` as "02d" or ".3f".
std::string formatted_number(const std::string& pattern, double value, const std::string& format,
                             bool is_whole) {
  const std::optional<NumberForm> form = parse_form(format);
  if (!form) {
    throw_bad_pattern(pattern, str(quoted(format), " is no format such as '02d' or '.2f'"));
  }
  std::string text = digits_of(value, *form, is_whole);
  if (text.size() >= form->width) return text;
  const bool zeros = form->zeros && std::isfinite(value);
  const size_t sign = zeros && text.starts_with('-') ? 1 : 0;
  return text.insert(sign, form->width - text.size(), zeros ? '0' : ' ');
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
