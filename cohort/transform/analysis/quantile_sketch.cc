#include "cohort/transform/analysis/quantile_sketch.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

constexpr size_t kBuffered = 4096;  // values that are sorted at once

// The least k for which the bound is within epsilon.
size_t least_compacted(double epsilon) {
  constexpr double kMostValues = 0x1p36;
  const auto bound = [](double k) {
    return 2 / k * (std::log(std::max(kMostValues / k, 1.0)) / std::log(3.0) + 1.64) / 0.946;
  };
  double k = 8;
  while (bound(k) > epsilon) k *= 1.02;
  return static_cast<size_t>(std::ceil(k));
}

struct SavedSketch {
  std::vector<double> values;
  std::vector<double> weights;
  double error = 0;
};
void fields(auto& f, SavedSketch& saved) {
  f(1, saved.values);
  f(2, saved.weights);
  f(3, saved.error);
}

}  // namespace

QuantileSketch::QuantileSketch(double epsilon) : least_compacted_(least_compacted(epsilon)) {}

template <class T>
void QuantileSketch::add(const T* values, int64_t count, int64_t stride) {
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i * stride]);
    if (value != value) continue;
    values_.push_back(value);
    if (values_.size() == kBuffered) flush();
  }
}
template void QuantileSketch::add(const float*, int64_t, int64_t);
template void QuantileSketch::add(const double*, int64_t, int64_t);
template void QuantileSketch::add(const int32_t*, int64_t, int64_t);
template void QuantileSketch::add(const int64_t*, int64_t, int64_t);

void QuantileSketch::add(double value, double weight) {
  if (value != value || !(weight > 0)) return;
  weighted_.push_back({value, weight});
  if (weighted_.size() == kBuffered) flush();
}

void QuantileSketch::merge(const QuantileSketch& other) {
  place(other.all_items());
  error_ += other.error_;
}

QuantileSketch::Items QuantileSketch::sorted(Items items) {
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.value < b.value; });
  return merged(items, {});
}

QuantileSketch::Items QuantileSketch::merged(const Items& a, const Items& b) {
  Items out;
  out.reserve(a.size() + b.size());
  const auto append = [&](const Item& item) {
    if (!out.empty() && out.back().value == item.value) {
      out.back().weight += item.weight;
    } else {
      out.push_back(item);
    }
  };
  auto in_b = b.begin();
  for (const Item& item : a) {
    for (; in_b != b.end() && in_b->value < item.value; ++in_b) append(*in_b);
    append(item);
  }
  for (; in_b != b.end(); ++in_b) append(*in_b);
  return out;
}

void QuantileSketch::flush() {
  if (!values_.empty()) {
    std::sort(values_.begin(), values_.end());
    Items items;
    items.reserve(values_.size());
    for (const double value : values_) {
      if (!items.empty() && items.back().value == value) {
        items.back().weight += 1;
      } else {
        items.push_back({value, 1});
      }
    }
    values_.clear();
    place(std::move(items));
  }
  if (weighted_.empty()) return;
  place(sorted(std::move(weighted_)));
  weighted_.clear();
}

void QuantileSketch::place(Items items) {
  Levels pending;
  const auto put = [&](const Item& item) { pending[std::ilogb(item.weight)].push_back(item); };
  for (const Item& item : items) {
    weight_ += item.weight;
    put(item);
  }
  // Items only ever move to a higher level, so that each is visited once.
  while (!pending.empty()) {
    const int number = pending.begin()->first;
    const Items arrived = std::move(pending.begin()->second);
    pending.erase(pending.begin());
    Items& level = levels_[number];
    Items kept;
    Levels up;
    for (const Item& item : merged(level, arrived)) {
      const int place = std::ilogb(item.weight);
      (place == number ? kept : up[place]).push_back(item);  // equal values, with their sum
    }
    level = std::move(kept);
    // A third more, so that a level of many equal values is not looked at again and again.
    if (level.size() >= least_compacted_ + least_compacted_ / 3) {
      for (const Item& item : compact(level)) up[std::ilogb(item.weight)].push_back(item);
    }
    for (auto& [place, moved] : up)
      pending[place] = merged(pending[place], sorted(std::move(moved)));
  }
}

QuantileSketch::Items QuantileSketch::compact(Items& level) {
  Items up;
  up.reserve(level.size() / 3);
  double error = 0;
  const size_t whole = level.size() / 3 * 3;
  for (size_t i = 0; i < whole; i += 3) {
    const Item& low = level[i];
    const Item& high = level[i + 2];
    up.push_back({level[i + 1].value, low.weight + level[i + 1].weight + high.weight});
    error = std::max({error, low.weight, high.weight});
  }
  error_ += error;
  level.erase(level.begin(), level.begin() + static_cast<ptrdiff_t>(whole));
  return up;
}

QuantileSketch::Items QuantileSketch::all_items() const {
  Items all = weighted_;
  for (const double value : values_) all.push_back({value, 1});
  for (const auto& [number, level] : levels_) all.insert(all.end(), level.begin(), level.end());
  return sorted(std::move(all));
}

std::vector<double> QuantileSketch::boundaries(int64_t num_buckets) const {
  std::vector<double> out(static_cast<size_t>(num_buckets - 1), 0);
  const Items items = all_items();
  if (items.empty()) return out;
  double total = 0;
  for (const Item& item : items) total += item.weight;
  double up_to = items[0].weight;
  size_t at = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double rank = static_cast<double>(i + 1) * total / static_cast<double>(num_buckets);
    while (up_to <= rank && at + 1 < items.size()) up_to += items[++at].weight;
    out[i] = items[at].value;
  }
  return out;
}

double QuantileSketch::weight() const {
  double buffered = static_cast<double>(values_.size());
  for (const Item& item : weighted_) buffered += item.weight;
  return weight_ + buffered;
}

size_t QuantileSketch::bytes() const {
  size_t items = weighted_.capacity();
  for (const auto& [number, level] : levels_) items += level.capacity();
  return items * sizeof(Item) + values_.capacity() * sizeof(double);
}

std::string QuantileSketch::saved() const {
  SavedSketch saved;
  for (const Item& item : all_items()) {
    saved.values.push_back(item.value);
    saved.weights.push_back(item.weight);
  }
  saved.error = error_;
  return encode_fields(saved);
}

void QuantileSketch::add_saved(std::string_view bytes, std::string_view what) {
  const auto saved = decode_fields<SavedSketch>(bytes, what);
  const WireReader reader(bytes, what);
  if (saved.values.size() != saved.weights.size()) reader.fail("has values without weights");
  Items items;
  for (size_t i = 0; i < saved.values.size(); ++i) {
    const Item item = {saved.values[i], saved.weights[i]};
    if (item.value != item.value || !(item.weight > 0) || !std::isfinite(item.weight)) {
      reader.fail("has a value or a weight that no summary has");
    }
    items.push_back(item);
  }
  if (!(saved.error >= 0)) reader.fail("has an impossible error");
  place(sorted(std::move(items)));
  error_ += saved.error;
}

}  // namespace cohort::internal
