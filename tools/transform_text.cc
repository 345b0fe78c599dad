#include "tools/transform_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "tools/printable.h"

namespace cohort::tools {
namespace {

using internal::is_digit;
using internal::is_letter;
using internal::quoted;
using internal::shown_json;
using internal::str;
using nlohmann::json;

constexpr size_t kLongestExpression = 400;
constexpr size_t kLongestRepetition = 24;

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kInfix = {{
    {"add", " + "},
    {"subtract", " - "},
    {"multiply", " * "},
    {"divide", " / "},
    {"equal", " == "},
    {"not_equal", " != "},
    {"less", " < "},
    {"less_equal", " <= "},
    {"greater", " > "},
    {"greater_equal", " >= "},
    {"logical_and", " & "},
    {"logical_or", " | "},
}};

// Attributes of an analysis that are not worth a word: nobody has set them, or its inputs say them.
bool is_understood(const std::string& name, const json& value) {
  if (name == "reduce_instance_dims") return value == true;
  if (name == "weighted" || name == "dtype") return true;
  return value == false || value == nullptr || value == json::array();
}

bool is_plain(std::string_view name) {
  return !name.empty() && !is_digit(name[0]) && std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '_';
  });
}

std::string name_attribute(const StoredTransform::Step& step) {
  const auto name = step.attributes.find("name");
  return name != step.attributes.end() && name->is_string() ? name->get<std::string>() : "";
}

// Writes one expression, within kLongestExpression and some.
class ExpressionText {
 public:
  explicit ExpressionText(const StoredTransform& transform) : transform_(transform) {}

  void append(int number, bool inside = false) {
    if (text_.size() > kLongestExpression) {
      if (!text_.ends_with("..")) text_ += "..";
      return;
    }
    const StoredTransform::Step& step = transform_.steps[number];
    if (step.operation == "input") {
      text_ += name_text(name_attribute(step));
    } else if (step.analysis >= 0) {
      append_statistic(step, transform_.analyses[step.analysis]);
    } else if (step.operation.starts_with("constant") && step.attributes.contains("value")) {
      text_ += printable(shown_json(step.attributes["value"]), kLongestExpression);
    } else if (const auto infix = infix_of(step); !infix.empty()) {
      if (inside) text_ += '(';
      append(step.inputs[0], true);
      text_ += infix;
      append(step.inputs[1], true);
      if (inside) text_ += ')';
    } else {
      append_call(step);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  static std::string_view infix_of(const StoredTransform::Step& step) {
    for (const auto& [operation, text] : kInfix) {
      if (operation == step.operation && step.inputs.size() == 2) return text;
    }
    return "";
  }

  void append_statistic(const StoredTransform::Step& step,
                        const StoredTransform::Analysis& analysis) {
    if (!analysis.vocabulary.empty()) {
      text_ += "vocabulary " + name_text(analysis.vocabulary);
      return;
    }
    text_ += printable(name_attribute(step)) + '(';
    const size_t begin = text_.size();
    append_list(analysis.inputs);
    // Most statistics stand beside the column that they are of.
    const std::string of = text_.substr(begin);
    if (of.size() > kLongestRepetition && text_.find(of) < begin)
      text_.replace(begin, of.npos, "..");
    text_ += ')';
  }

  void append_call(const StoredTransform::Step& step) {
    text_ += printable(step.operation) + '(';
    append_list(step.inputs);
    bool first = step.inputs.empty();
    for (const auto& [name, value] : step.attributes.items()) {
      if (value == false || value == "" || value == nullptr) continue;
      text_ += str(first ? "" : ", ", printable(name), '=',
                   printable(shown_json(value), kLongestExpression));
      first = false;
    }
    text_ += ')';
  }

  void append_list(const std::vector<int>& steps) {
    for (size_t i = 0; i < steps.size() && text_.size() <= kLongestExpression; ++i) {
      if (i > 0) text_ += ", ";
      append(steps[i]);
    }
  }

  const StoredTransform& transform_;
  std::string text_;
};

std::string numbers_text(const std::vector<int>& steps, const std::vector<int>& numbers) {
  std::string text;
  for (const int step : steps) text += str(' ', numbers[step]);
  return text;
}

std::string type_of(const StoredTransform& transform, const std::string& column) {
  for (const auto& known : transform.columns) {
    if (known.name == column) return known.type;
  }
  return "";
}

// Lists what two lists of named things differ in. `text(side, entry)` says what a thing is, of A on
// side 0 and of B on side 1.
template <class List, class Same, class Text>
void add_named_differences(const char* noun, const List& a, const List& b, const Same& same,
                           const Text& text, std::vector<std::string>& lines) {
  const auto find = [](const List& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(),
                        [&](const auto& entry) { return entry.first == name; });
  };
  for (const auto& entry : a) {
    const std::string name = str(noun, ' ', name_text(entry.first));
    const auto other = find(b, entry.first);
    if (other == b.end()) {
      lines.push_back(str(name, " is only in A: ", text(0, entry)));
    } else if (!same(entry, *other)) {
      lines.push_back(str(name, ": A ", text(0, entry), ", B ", text(1, *other)));
    }
  }
  for (const auto& entry : b) {
    if (find(a, entry.first) != a.end()) continue;
    lines.push_back(str(noun, ' ', name_text(entry.first), " is only in B: ", text(1, entry)));
  }
}

void add_missing_analyses(const StoredTransform& of, const EqualSteps::Numbers& numbers,
                          const EqualSteps::Numbers& others, const char* side,
                          std::vector<std::string>& lines) {
  const std::set<int> theirs(others.analyses.begin(), others.analyses.end());
  for (size_t i = 0; i < of.analyses.size(); ++i) {
    if (theirs.contains(numbers.analyses[i])) continue;
    lines.push_back(str("only ", side, " has ", analysis_text(of, of.analyses[i])));
  }
}

}  // namespace

std::string name_text(std::string_view name) {
  return printable(is_plain(name) ? std::string(name) : quoted(name));
}

std::string expression(const StoredTransform& transform, int step) {
  ExpressionText text(transform);
  text.append(step);
  return text.take();
}

std::string subject(const StoredTransform& transform, const StoredTransform::Analysis& analysis) {
  std::string text;
  for (size_t i = 0; i < analysis.inputs.size(); ++i) {
    text += str(i == 0 ? "" : " weighted by ", expression(transform, analysis.inputs[i]));
  }
  return text;
}

std::string analysis_text(const StoredTransform& transform,
                          const StoredTransform::Analysis& analysis) {
  std::string options;
  for (const auto& [name, value] : analysis.attributes.items()) {
    if (is_understood(name, value)) continue;
    options += str(options.empty() ? "" : ", ", printable(name), '=',
                   printable(shown_json(value), kLongestExpression));
  }
  std::string text = printable(analysis.kind);
  if (!analysis.vocabulary.empty()) text += ' ' + name_text(analysis.vocabulary);
  text += " of " + subject(transform, analysis);
  return options.empty() ? text : str(text, " (", options, ')');
}

EqualSteps::Numbers EqualSteps::number(const StoredTransform& transform) {
  Numbers numbers;
  numbers.analyses.assign(transform.analyses.size(), -1);
  std::set<int> taken;
  const auto number_analysis = [&](size_t i) {
    const StoredTransform::Analysis& analysis = transform.analyses[i];
    if (numbers.analyses[i] >= 0) return;
    std::string key =
        str("analysis ", quoted(analysis.kind), shown_json(analysis.attributes),
            quoted(analysis.vocabulary), numbers_text(analysis.inputs, numbers.steps));
    // Cohort writes none twice. The second of another writer is equal to another's second.
    while (!taken.insert(numbers.analyses[i] = number_of(key)).second) key += " again";
  };
  for (const StoredTransform::Step& step : transform.steps) {
    std::string key = str("step ", quoted(step.operation), shown_json(step.attributes),
                          numbers_text(step.inputs, numbers.steps));
    if (step.operation == "input") key += type_of(transform, name_attribute(step));
    if (step.analysis >= 0) {
      number_analysis(static_cast<size_t>(step.analysis));
      key += str(" analysis ", numbers.analyses[step.analysis]);
    }
    numbers.steps.push_back(number_of(key));
  }
  for (size_t i = 0; i < transform.analyses.size(); ++i) number_analysis(i);
  return numbers;
}

std::vector<std::string> function_differences(const StoredTransform& a,
                                              const EqualSteps::Numbers& numbers_a,
                                              const StoredTransform& b,
                                              const EqualSteps::Numbers& numbers_b) {
  std::vector<std::string> lines;
  const auto types = [](const StoredTransform& of) {
    std::vector<std::pair<std::string, std::string>> list;
    for (const auto& column : of.columns) list.emplace_back(column.name, column.type);
    return list;
  };
  add_named_differences(
      "column", types(a), types(b),
      [](const auto& x, const auto& y) { return x.second == y.second; },
      [](int, const auto& entry) { return printable(entry.second); }, lines);
  const auto same_step = [&](const auto& x, const auto& y) {
    return numbers_a.steps[x.second] == numbers_b.steps[y.second];
  };
  const auto step_of = [&](int side, const auto& entry) {
    return expression(side == 0 ? a : b, entry.second);
  };
  add_named_differences("output", a.outputs, b.outputs, same_step, step_of, lines);
  add_named_differences("statistic", a.statistics, b.statistics, same_step, step_of, lines);
  add_missing_analyses(a, numbers_a, numbers_b, "A", lines);
  add_missing_analyses(b, numbers_b, numbers_a, "B", lines);
  return lines;
}

}  // namespace cohort::tools
