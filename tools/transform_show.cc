#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/text.h"
#include "tools/output.h"
#include "tools/printable.h"
#include "tools/stored_transform.h"
#include "tools/transform_commands.h"
#include "tools/transform_text.h"

namespace cohort::tools {
namespace {

using internal::decimal_digits;
using internal::general_digits;
using internal::quoted;
using internal::str;
using Analysis = StoredTransform::Analysis;
using ShownJson = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kLongestToken = 60;

std::string value_text(const StoredConstant& constant, size_t index) {
  if (constant.is_string()) {
    return printable(quoted(constant.text(index).substr(0, kLongestToken)));
  }
  const nlohmann::json& value = constant.values[index];
  if (value.is_number_integer()) return value.dump();
  return general_digits(constant.number(index), 6);
}

std::string token_text(const std::string& token) {
  return printable(quoted(std::string_view(token).substr(0, kLongestToken))) +
         (token.size() > kLongestToken ? ".." : "");
}

// "[1, 2]": where a value stands in its constant; "" where it is alone.
std::string position_text(const std::vector<int64_t>& shape, size_t index) {
  if (std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size == 1; })) return "";
  std::vector<size_t> position(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    const auto size = static_cast<size_t>(std::max<int64_t>(1, shape[i]));
    position[i] = index % size;
    index /= size;
  }
  return shape_text(position);
}

std::string and_more(size_t all, size_t shown) {
  return all > shown ? str("and ", all - shown, " more") : "";
}

// NaN has no place in an order.
double ordered(double count) { return std::isnan(count) ? -HUGE_VAL : count; }

// The places of the largest counts, those of one count in order.
std::vector<size_t> largest(const StoredConstant& counts, size_t most) {
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  most = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                    [&](size_t i, size_t k) {
                      const double a = ordered(counts.number(i)), b = ordered(counts.number(k));
                      return a > b || (a == b && i < k);
                    });
  order.resize(most);
  return order;
}

// `most` of the numbers below `size`, from the first to the last at even distances.
std::vector<size_t> spread(size_t size, size_t most) {
  std::vector<size_t> places;
  const size_t count = std::min(size, most);
  for (size_t i = 0; i < count; ++i) {
    places.push_back(count == 1 ? 0 : i * (size - 1) / (count - 1));
  }
  return places;
}

// Shows the sections of a transform, one after another.
class TransformText {
 public:
  TransformText(internal::FileSystem& files, const StoredTransform& transform, size_t most,
                std::ostream& out)
      : files_(files), transform_(transform), most_(most), out_(out) {}

  void show() {
    out_ << printable(transform_.directory) << ": "
         << counted(static_cast<uint64_t>(transform_.rows), "row") << " analysed by Cohort "
         << printable(transform_.cohort_version) << '\n';
    show_function();
    show_numbers();
    show_quantiles();
    show_vocabularies();
    show_counts();
  }

 private:
  void section(const char* title, Rows rows) const {
    if (rows.empty()) return;
    for (auto& row : rows) row[0].insert(0, "  ");
    out_ << '\n' << title << '\n';
    print_table(rows, out_);
  }

  void show_function() const {
    Rows columns, outputs, statistics;
    for (const auto& column : transform_.columns) {
      columns.push_back({printable(column.name), printable(column.type)});
    }
    for (const auto& [name, step] : transform_.outputs) {
      outputs.push_back({printable(name), expression(transform_, step)});
    }
    for (const auto& [name, step] : transform_.statistics) {
      statistics.push_back({printable(name), expression(transform_, step)});
    }
    section("columns", std::move(columns));
    section("outputs", std::move(outputs));
    section("statistics that are kept", std::move(statistics));
  }

  // Results that are one number a position, those of one subject in one row.
  void show_numbers() const {
    constexpr const char* kNames[] = {"count", "size", "mean", "variance", "min", "max", "sum"};
    using Subject = std::pair<std::string, std::vector<int64_t>>;  // and the results' shape
    std::vector<Subject> subjects;
    std::map<Subject, std::map<std::string, const StoredConstant*>> found;
    std::set<std::string> names;
    for (const Analysis& analysis : transform_.analyses) {
      if (analysis.file) continue;
      for (const char* name : kNames) {
        const StoredConstant* constant = analysis.constant(name);
        if (constant == nullptr || constant->is_string()) continue;
        const Subject key = {subject(transform_, analysis), constant->shape};
        if (!found.contains(key)) subjects.push_back(key);
        found[key][name] = constant;
        names.insert(name);
      }
    }
    if (found.empty()) return;
    Rows rows = {{""}};
    for (const char* name : kNames) {
      if (names.contains(name)) {
        rows[0].push_back(name == std::string("variance") ? "standard deviation" : name);
      }
    }
    for (const Subject& of : subjects) add_number_rows(of.first, found[of], kNames, names, rows);
    section("numbers", std::move(rows));
  }

  void add_number_rows(const std::string& of,
                       const std::map<std::string, const StoredConstant*>& constants,
                       std::span<const char* const> order, const std::set<std::string>& names,
                       Rows& rows) const {
    const StoredConstant& first = *constants.begin()->second;
    const size_t shown = std::min(first.size(), most_);
    for (size_t i = 0; i < shown; ++i) {
      const std::string place = position_text(first.shape, i);
      std::vector<std::string> row = {place.empty() ? of : str(of, " at ", place)};
      for (const char* name : order) {
        if (!names.contains(name)) continue;
        const auto constant = constants.find(name);
        if (constant == constants.end()) {
          row.emplace_back("-");
        } else if (name == std::string_view("variance")) {
          row.push_back(general_digits(std::sqrt(constant->second->number(i)), 6));
        } else {
          row.push_back(value_text(*constant->second, i));
        }
      }
      rows.push_back(std::move(row));
    }
    if (shown < first.size()) rows.push_back({and_more(first.size(), shown)});
  }

  void show_quantiles() const {
    Rows rows;
    for (const Analysis& analysis : transform_.analyses) {
      const StoredConstant* quantiles = analysis.constant("quantiles");
      if (quantiles == nullptr || quantiles->is_string()) continue;
      const auto boundaries =
          static_cast<size_t>(quantiles->shape.empty() ? int64_t{1} : quantiles->shape.back());
      const std::string of = subject(transform_, analysis);
      if (quantiles->size() == 0) rows.push_back({of, "no values"});
      const size_t positions = boundaries == 0 ? 0 : quantiles->size() / boundaries;
      std::vector<int64_t> shape = quantiles->shape;
      if (!shape.empty()) shape.pop_back();
      for (size_t p = 0; p < std::min(positions, most_); ++p) {
        const std::string place = position_text(shape, p);
        rows.push_back({place.empty() ? of : str(of, " at ", place)});
        for (const size_t i : spread(boundaries, most_)) {
          const double level =
              100. * static_cast<double>(i + 1) / static_cast<double>(boundaries + 1);
          rows.back().push_back(
              str(general_digits(level, 4), "%: ", value_text(*quantiles, p * boundaries + i)));
        }
      }
      if (positions > most_) rows.push_back({and_more(positions, most_)});
    }
    section("quantiles", std::move(rows));
  }

  void show_vocabularies() const {
    Rows rows;
    for (const Analysis& analysis : transform_.analyses) {
      if (!analysis.file) continue;
      const auto lines = static_cast<uint64_t>(analysis.file->lines);
      rows.push_back({printable(analysis.vocabulary), "of " + subject(transform_, analysis),
                      counted(lines, "token"), counted(analysis.file->bytes, "byte")});
      const VocabularyHead head = read_vocabulary_head(files_, analysis, most_);
      std::string tokens;
      for (const auto& token : head.tokens) {
        tokens += (tokens.empty() ? "" : ", ") + token_text(token.text);
        if (token.frequency) tokens += str(": ", general_digits(*token.frequency, 15));
      }
      if (!tokens.empty()) rows.back().push_back(tokens);
      if (lines > head.tokens.size()) rows.back().push_back(and_more(lines, head.tokens.size()));
    }
    section("vocabularies", std::move(rows));
  }

  void show_counts() const {
    Rows rows;
    for (const Analysis& analysis : transform_.analyses) {
      const StoredConstant* keys = analysis.constant("keys");
      const StoredConstant* counts = analysis.constant("counts");
      const char* noun = keys != nullptr ? "key" : "bin";
      if (counts == nullptr) counts = analysis.constant("documents"), noun = "index";
      if (counts == nullptr || counts->is_string()) continue;
      if (keys != nullptr && keys->size() != counts->size()) continue;
      double sum = 0;
      for (size_t i = 0; i < counts->size(); ++i) sum += counts->number(i);
      const StoredConstant* whole = analysis.constant("rows");
      if (whole != nullptr && whole->size() == 1 && !whole->is_string()) sum = whole->number(0);
      std::vector<std::string> row = {
          subject(transform_, analysis),
          noun == std::string_view("index")
              ? str(counts->size(), counts->size() == 1 ? " index" : " indices")
              : counted(counts->size(), noun)};
      const std::vector<size_t> order = largest(*counts, most_);
      for (const size_t i : order) {
        row.push_back(str(keys != nullptr ? value_text(*keys, i) : decimal_digits(i), ": ",
                          value_text(*counts, i), " (",
                          general_digits(sum == 0 ? 0 : 100 * counts->number(i) / sum, 3), "%)"));
      }
      if (order.size() < counts->size()) row.push_back(and_more(counts->size(), order.size()));
      rows.push_back(std::move(row));
    }
    section("counts, the largest first", std::move(rows));
  }

  internal::FileSystem& files_;
  const StoredTransform& transform_;
  const size_t most_;
  std::ostream& out_;
};

ShownJson json_of(const StoredConstant& constant, const std::vector<size_t>& places) {
  ShownJson values = ShownJson::array();
  for (const size_t i : places) {
    if (constant.is_string()) {
      values.push_back(constant.text(i));
    } else if (constant.values[i].is_number_integer()) {
      values.push_back(ShownJson(constant.values[i]));
    } else {
      values.push_back(number_json(constant.number(i)));
    }
  }
  ShownJson json = {{"dtype", constant.dtype}, {"shape", constant.shape}};
  if (places.size() < constant.size()) json["places"] = places;
  json["values"] = std::move(values);
  return json;
}

// Of many values: the largest counts with their keys, and of others some at even distances.
ShownJson results_json(const Analysis& analysis, size_t most) {
  ShownJson json = ShownJson::object();
  const StoredConstant* keys = analysis.constant("keys");
  const StoredConstant* counts = analysis.constant("counts");
  const bool has_keys = keys != nullptr && counts != nullptr && !counts->is_string() &&
                        keys->size() == counts->size();
  for (const auto& [name, constant] : analysis.constants) {
    const bool by_count = &constant == counts || (has_keys && &constant == keys);
    json[name] = json_of(constant, by_count && constant.size() > most && !counts->is_string()
                                       ? largest(*counts, most)
                                       : spread(constant.size(), most));
  }
  return json;
}

ShownJson vocabulary_json(internal::FileSystem& files, const Analysis& analysis, size_t most) {
  ShownJson json = {{"name", analysis.vocabulary},
                    {"file", analysis.file->path},
                    {"lines", analysis.file->lines},
                    {"bytes", analysis.file->bytes},
                    {"tokens", ShownJson::array()}};
  for (const auto& token : read_vocabulary_head(files, analysis, most).tokens) {
    ShownJson entry = {{"token", token.text}};
    if (token.frequency) entry["frequency"] = number_json(*token.frequency);
    json["tokens"].push_back(std::move(entry));
  }
  return json;
}

void print_transform_json(internal::FileSystem& files, const StoredTransform& transform,
                          size_t most, std::ostream& out) {
  ShownJson json = {{"directory", transform.directory},
                    {"cohort", transform.cohort_version},
                    {"rows", transform.rows}};
  const auto named = [&](const char* key, const std::vector<StoredTransform::Named>& list) {
    json[key] = ShownJson::array();
    for (const auto& [name, step] : list) {
      json[key].push_back({{"name", name}, {"made_by", expression(transform, step)}});
    }
  };
  json["columns"] = ShownJson::array();
  for (const auto& column : transform.columns) {
    json["columns"].push_back({{"name", column.name}, {"type", column.type}});
  }
  named("outputs", transform.outputs);
  named("statistics", transform.statistics);
  json["analyses"] = ShownJson::array();
  for (const Analysis& analysis : transform.analyses) {
    ShownJson entry = {{"kind", analysis.kind},
                       {"of", subject(transform, analysis)},
                       {"attributes", analysis.attributes},
                       {"results", results_json(analysis, most)}};
    if (analysis.file) entry["vocabulary"] = vocabulary_json(files, analysis, most);
    json["analyses"].push_back(std::move(entry));
  }
  print_json(json, out);
}

}  // namespace

int show_transform(internal::FileSystem& files, const TransformShowOptions& options,
                   std::ostream& out) {
  const StoredTransform transform = read_stored_transform(files, options.directory);
  const auto most = static_cast<size_t>(options.max_values);
  if (options.json) {
    print_transform_json(files, transform, most, out);
  } else {
    TransformText(files, transform, most, out).show();
  }
  return kExitOk;
}

}  // namespace cohort::tools
