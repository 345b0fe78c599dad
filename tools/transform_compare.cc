#include <map>
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

using internal::general_digits;
using internal::str;
using OrderedJson = nlohmann::ordered_json;

struct MeasuredDrift {
  std::string of;
  Drift drift;
  double limit = 0;

  bool is_beyond() const { return drift.moved > limit; }
};

struct TransformComparison {
  std::vector<std::string> function;  // differences
  std::vector<MeasuredDrift> measured;

  size_t num_beyond() const {
    size_t count = 0;
    for (const MeasuredDrift& one : measured) count += one.is_beyond() ? 1 : 0;
    return count;
  }
  bool is_equal() const { return function.empty() && num_beyond() == 0; }
};

std::string what_of(const AnalysisOfRun& run) {
  if (!run.analysis.vocabulary.empty()) return "vocabulary " + name_text(run.analysis.vocabulary);
  return subject(run.transform, run.analysis);
}

TransformComparison compare(internal::FileSystem& files, const TransformCompareOptions& options,
                            const StoredTransform& a, const StoredTransform& b) {
  EqualSteps equal;
  const EqualSteps::Numbers numbers_a = equal.number(a), numbers_b = equal.number(b);
  TransformComparison result{.function = function_differences(a, numbers_a, b, numbers_b),
                             .measured = {}};
  std::map<int, size_t> in_b;
  for (size_t i = 0; i < b.analyses.size(); ++i) in_b.emplace(numbers_b.analyses[i], i);
  for (size_t i = 0; i < a.analyses.size(); ++i) {
    const auto other = in_b.find(numbers_a.analyses[i]);
    if (other == in_b.end()) continue;
    const AnalysisOfRun run_a{a, a.analyses[i]}, run_b{b, b.analyses[other->second]};
    for (Drift& drift : drifts(files, run_a, run_b, options.tokens)) {
      const double limit = options.limits.of(drift.measure);
      result.measured.push_back({what_of(run_a), std::move(drift), limit});
    }
  }
  return result;
}

std::string_view measure_name(const MeasuredDrift& measured) {
  return kMeasureNames[static_cast<size_t>(measured.drift.measure)];
}

void print_comparison(const TransformComparison& comparison, const StoredTransform& a,
                      const StoredTransform& b, std::ostream& out) {
  const auto run = [](char side, const StoredTransform& transform) {
    return str(side, ": ", printable(transform.directory), ", ",
               counted(static_cast<uint64_t>(transform.rows), "row"), '\n');
  };
  out << run('A', a) << run('B', b);
  if (comparison.function.empty()) out << "the functions are equal\n";
  for (const std::string& line : comparison.function) out << "function: " << line << '\n';
  if (!comparison.measured.empty()) {
    std::vector<std::vector<std::string>> rows = {
        {"", "measure", "of", "A", "B", "moved", "limit"}};
    for (const MeasuredDrift& one : comparison.measured) {
      rows.push_back({one.is_beyond() ? "DRIFT" : "", std::string(measure_name(one)), one.of,
                      one.drift.a, one.drift.b, general_digits(one.drift.moved, 3),
                      general_digits(one.limit, 3)});
    }
    out << '\n';
    print_table(rows, out);
    out << '\n';
  }
  out << (comparison.is_equal() ? "no drift: " : "drift: ")
      << (comparison.function.empty() ? "" : "the functions differ; ") << comparison.num_beyond()
      << " of " << counted(comparison.measured.size(), "measure") << " beyond "
      << (comparison.measured.size() == 1 ? "its limit\n" : "their limits\n");
}

void print_comparison_json(const TransformComparison& comparison, const StoredTransform& a,
                           const StoredTransform& b, std::ostream& out) {
  const auto run = [](const StoredTransform& transform) {
    return OrderedJson{{"directory", transform.directory}, {"rows", transform.rows}};
  };
  OrderedJson json = {{"a", run(a)},
                      {"b", run(b)},
                      {"function_differences", comparison.function},
                      {"measures", OrderedJson::array()},
                      {"drift", !comparison.is_equal()}};
  for (const MeasuredDrift& one : comparison.measured) {
    json["measures"].push_back({{"measure", measure_name(one)},
                                {"of", one.of},
                                {"a", one.drift.a},
                                {"b", one.drift.b},
                                {"moved", number_json(one.drift.moved)},
                                {"limit", number_json(one.limit)},
                                {"drift", one.is_beyond()}});
  }
  print_json(json, out);
}

}  // namespace

int compare_transforms(internal::FileSystem& files, const TransformCompareOptions& options,
                       std::ostream& out) {
  const StoredTransform a = read_stored_transform(files, options.a);
  const StoredTransform b = read_stored_transform(files, options.b);
  const TransformComparison comparison = compare(files, options, a, b);
  if (options.json) {
    print_comparison_json(comparison, a, b, out);
  } else {
    print_comparison(comparison, a, b, out);
  }
  return comparison.is_equal() ? kExitOk : kExitDifferent;
}

}  // namespace cohort::tools
