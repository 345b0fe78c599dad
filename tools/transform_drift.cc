#include "tools/transform_drift.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "cohort/core/text.h"
#include "tools/printable.h"

namespace cohort::tools {
namespace {

using internal::general_digits;
using internal::quoted;
using internal::str;
using Analysis = StoredTransform::Analysis;

constexpr double kNoDistance = std::numeric_limits<double>::infinity();
constexpr size_t kLongestKey = 40;

std::string shown(double number) { return general_digits(number, 6); }
std::string shown_key(std::string_view key) {
  return printable(quoted(key.substr(0, kLongestKey)) + (key.size() > kLongestKey ? ".." : ""));
}

// `distance` as a part of `whole`, which is not negative.
double part_of(double distance, double whole) {
  if (distance == 0) return 0;
  const double part = distance / whole;
  return std::isnan(part) || whole == 0 ? kNoDistance : part;
}
bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
double distance_of(double a, double b) { return same(a, b) ? 0 : std::abs(a - b); }

double mean_moved(double mean_a, double variance_a, double mean_b) {
  return part_of(distance_of(mean_a, mean_b), std::sqrt(variance_a));
}
double variance_moved(double a, double b) {
  return same(a, b) ? 0 : part_of(std::max(a, b) - std::min(a, b), std::min(a, b));
}
double range_moved(double min_a, double max_a, double min_b, double max_b) {
  if (same(min_a, min_b) && same(max_a, max_b)) return 0;
  const double below = min_a - min_b, above = max_b - max_a;
  if (std::isnan(below) || std::isnan(above)) return kNoDistance;
  return part_of(std::max({0., below, above}), max_a - min_a);
}

// The position that moved most, and by how much.
struct Farthest {
  size_t position = 0;
  double moved = 0;

  void add(size_t at, double distance) {
    if (distance > moved) *this = {at, distance};
  }
};

// Measures two equal analyses that have the same constants.
class DriftOfNumbers {
 public:
  DriftOfNumbers(const AnalysisOfRun& a, const AnalysisOfRun& b) : a_(a), b_(b) {}

  void measure(std::vector<Drift>& found) const {
    if (has("mean") && has("variance")) add_mean_and_variance(found);
    if (has("min") && has("max")) add_range(found);
    if (has("quantiles")) add_quantiles(found);
    if (has("sum")) add_sum("sum", found);
    // A vocabulary's size is the number of its lines, which its tokens' measures show.
    if (has("size") && !a_.analysis.file) add_sum("size", found);
  }

 private:
  const StoredConstant& in_a(const char* name) const { return *a_.analysis.constant(name); }
  const StoredConstant& in_b(const char* name) const { return *b_.analysis.constant(name); }

  bool has(const char* name) const {
    const auto is_number = [&](const Analysis& analysis) {
      const StoredConstant* constant = analysis.constant(name);
      return constant != nullptr && !constant->is_string();
    };
    return is_number(a_.analysis) && is_number(b_.analysis);
  }

  // False where the shapes differ, which is a drift of its own.
  bool comparable(Measure measure, const char* name, std::vector<Drift>& found) const {
    if (in_a(name).shape == in_b(name).shape) return true;
    found.push_back({.measure = measure,
                     .moved = kNoDistance,
                     .a = shape_text(in_a(name).shape),
                     .b = shape_text(in_b(name).shape)});
    return false;
  }
  // The shapes agree with those of `first`, which were compared.
  bool agree(const char* first, const char* second) const {
    return in_a(first).shape == in_a(second).shape && in_b(first).shape == in_b(second).shape;
  }

  std::string at(const char* name, size_t position) const {
    return in_a(name).size() > 1 ? str(" at ", position) : "";
  }

  void add_mean_and_variance(std::vector<Drift>& found) const {
    if (!comparable(Measure::kMean, "mean", found) || !agree("mean", "variance")) return;
    const StoredConstant &mean_a = in_a("mean"), &mean_b = in_b("mean");
    const StoredConstant &variance_a = in_a("variance"), &variance_b = in_b("variance");
    Farthest mean, variance;
    for (size_t i = 0; i < mean_a.size(); ++i) {
      mean.add(i, mean_moved(mean_a.number(i), variance_a.number(i), mean_b.number(i)));
      variance.add(i, variance_moved(variance_a.number(i), variance_b.number(i)));
    }
    add(Measure::kMean, "mean", mean, found);
    add(Measure::kVariance, "variance", variance, found);
  }

  void add(Measure measure, const char* name, const Farthest& farthest,
           std::vector<Drift>& found) const {
    if (in_a(name).size() == 0) return;
    const size_t i = farthest.position;
    found.push_back({.measure = measure,
                     .moved = farthest.moved,
                     .a = shown(in_a(name).number(i)) + at(name, i),
                     .b = shown(in_b(name).number(i))});
  }

  void add_range(std::vector<Drift>& found) const {
    if (!comparable(Measure::kRange, "min", found) || !agree("min", "max")) return;
    const StoredConstant &min_a = in_a("min"), &max_a = in_a("max");
    const StoredConstant &min_b = in_b("min"), &max_b = in_b("max");
    if (min_a.size() == 0) return;
    Farthest range;
    for (size_t i = 0; i < min_a.size(); ++i) {
      range.add(i, range_moved(min_a.number(i), max_a.number(i), min_b.number(i), max_b.number(i)));
    }
    const size_t i = range.position;
    found.push_back({.measure = Measure::kRange,
                     .moved = range.moved,
                     .a = str(shown(min_a.number(i)), " to ", shown(max_a.number(i)), at("min", i)),
                     .b = str(shown(min_b.number(i)), " to ", shown(max_b.number(i)))});
  }

  // Boundaries stand in the last dimension.
  void add_quantiles(std::vector<Drift>& found) const {
    if (!comparable(Measure::kQuantiles, "quantiles", found)) return;
    const StoredConstant &a = in_a("quantiles"), &b = in_b("quantiles");
    if (a.size() == 0) return;
    const auto boundaries = static_cast<size_t>(a.shape.empty() ? 1 : a.shape.back());
    Farthest farthest;
    for (size_t i = 0; i < a.size(); ++i) {
      const size_t first = i - i % boundaries;
      const double low = a.number(first), high = a.number(first + boundaries - 1);
      // One boundary alone, or equal ones, have no distance between them.
      const double whole = low == high ? std::abs(low) : high - low;
      farthest.add(i, part_of(distance_of(a.number(i), b.number(i)), whole));
    }
    const size_t i = farthest.position;
    const double level =
        100. * static_cast<double>(i % boundaries + 1) / static_cast<double>(boundaries + 1);
    found.push_back({.measure = Measure::kQuantiles,
                     .moved = farthest.moved,
                     .a = str(shown(a.number(i)), " at ", general_digits(level, 4), '%'),
                     .b = shown(b.number(i))});
  }

  void add_sum(const char* name, std::vector<Drift>& found) const {
    if (!comparable(Measure::kSum, name, found) || in_a(name).size() == 0) return;
    const auto per_row = [&](const AnalysisOfRun& run, size_t i) {
      const double sum = run.analysis.constant(name)->number(i);
      return sum == 0 ? 0 : sum / static_cast<double>(run.transform.rows);
    };
    Farthest farthest;
    for (size_t i = 0; i < in_a(name).size(); ++i) {
      const double a = per_row(a_, i), b = per_row(b_, i);
      farthest.add(i, part_of(distance_of(a, b), std::abs(a)));
    }
    const size_t i = farthest.position;
    found.push_back({.measure = Measure::kSum,
                     .moved = farthest.moved,
                     .a = str(name, ' ', shown(per_row(a_, i)), " a row", at(name, i)),
                     .b = str(shown(per_row(b_, i)), " a row")});
  }

  const AnalysisOfRun& a_;
  const AnalysisOfRun& b_;
};

// What each key has of the whole, by its text.
using Shares = std::unordered_map<std::string, double>;

// nullopt: the counts have no sum that could be divided.
std::optional<Shares> shares_of(const std::vector<std::pair<std::string, double>>& counts,
                                std::optional<double> whole = std::nullopt) {
  double sum = whole.value_or(0);
  if (!whole) {
    for (const auto& [key, count] : counts) sum += count;
  }
  if (counts.empty()) return Shares();
  if (!(sum > 0) || std::isinf(sum)) return std::nullopt;
  Shares shares;
  for (const auto& [key, count] : counts) shares.emplace(key, count / sum);
  return shares;
}

double share_of(const Shares& shares, const std::string& key) {
  const auto found = shares.find(key);
  return found == shares.end() ? 0 : found->second;
}

void add_shares(const std::optional<Shares>& a, const std::optional<Shares>& b,
                std::vector<Drift>& found) {
  if (!a || !b) return;
  double moved = 0;
  const std::string* farthest = nullptr;
  const auto look = [&](const Shares& shares) {
    for (const auto& [key, share] : shares) {
      const double distance = distance_of(share_of(*a, key), share_of(*b, key));
      // Of equal distances the first key, in whatever order the table has them.
      const bool is_before = distance == moved && farthest != nullptr && key < *farthest;
      if (!(distance > moved) && !is_before) continue;
      moved = distance;
      farthest = &key;
    }
  };
  look(*a);
  look(*b);
  const auto text = [&](const Shares& shares) {
    if (farthest == nullptr) return counted(shares.size(), "key");
    return str(shown_key(*farthest), ' ', general_digits(100 * share_of(shares, *farthest), 3),
               '%');
  };
  found.push_back({.measure = Measure::kShares, .moved = moved, .a = text(*a), .b = text(*b)});
}

// The counts of keys; those of bins and of indices have numbers for keys.
std::optional<std::vector<std::pair<std::string, double>>> counts_of(const Analysis& analysis) {
  const StoredConstant* counts = analysis.constant("counts");
  if (counts == nullptr) counts = analysis.constant("documents");
  if (counts == nullptr || counts->is_string()) return std::nullopt;
  const StoredConstant* keys = analysis.constant("keys");
  if (keys != nullptr && (!keys->is_string() || keys->size() != counts->size()))
    return std::nullopt;
  std::vector<std::pair<std::string, double>> list;
  for (size_t i = 0; i < counts->size(); ++i) {
    list.emplace_back(keys != nullptr ? keys->text(i) : str(i), counts->number(i));
  }
  return list;
}

void measure_counts(const Analysis& a, const Analysis& b, std::vector<Drift>& found) {
  const auto counts_a = counts_of(a), counts_b = counts_of(b);
  if (!counts_a || !counts_b) return;
  // Several indices may be in one row: their whole are the rows.
  const auto whole = [](const Analysis& analysis) -> std::optional<double> {
    const StoredConstant* rows = analysis.constant("rows");
    if (rows == nullptr || rows->is_string() || rows->size() != 1) return std::nullopt;
    return rows->number(0);
  };
  add_shares(shares_of(*counts_a, whole(a)), shares_of(*counts_b, whole(b)), found);
}

void measure_vocabulary(internal::FileSystem& files, const Analysis& a, const Analysis& b,
                        uint64_t most_tokens, std::vector<Drift>& found) {
  const VocabularyHead head_a = read_vocabulary_head(files, a, most_tokens);
  const VocabularyHead head_b = read_vocabulary_head(files, b, most_tokens);
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < head_a.tokens.size(); ++i) places.emplace(head_a.tokens[i].text, i);
  size_t kept = 0, moved = 0;
  for (size_t i = 0; i < head_b.tokens.size(); ++i) {
    const auto place = places.find(head_b.tokens[i].text);
    if (place == places.end()) continue;
    ++kept;
    if (place->second != i) ++moved;
  }
  const auto part = [&](size_t tokens) {
    return tokens == 0
               ? 0
               : static_cast<double>(tokens - std::min(kept, tokens)) / static_cast<double>(tokens);
  };
  const size_t size_a = head_a.tokens.size(), size_b = head_b.tokens.size();
  found.push_back(
      {.measure = Measure::kTokens,
       .moved = std::max(part(size_a), part(size_b)),
       .a = str(counted(static_cast<uint64_t>(a.file->lines), "token"), ", first ", size_a, ": ",
                size_a - std::min(kept, size_a), " gone"),
       .b = str(counted(static_cast<uint64_t>(b.file->lines), "token"), ", first ", size_b, ": ",
                size_b - std::min(kept, size_b), " new, ", moved, " elsewhere")});
  if (!a.stores_frequency() || !b.stores_frequency()) return;
  const auto counts = [](const VocabularyHead& head) {
    std::vector<std::pair<std::string, double>> list;
    for (const auto& token : head.tokens) list.emplace_back(token.text, *token.frequency);
    return list;
  };
  add_shares(shares_of(counts(head_a)), shares_of(counts(head_b)), found);
}

}  // namespace

std::vector<Drift> drifts(internal::FileSystem& files, const AnalysisOfRun& a,
                          const AnalysisOfRun& b, uint64_t tokens) {
  std::vector<Drift> found;
  DriftOfNumbers(a, b).measure(found);
  measure_counts(a.analysis, b.analysis, found);
  if (a.analysis.file && b.analysis.file) {
    measure_vocabulary(files, a.analysis, b.analysis, tokens, found);
  }
  return found;
}

}  // namespace cohort::tools
