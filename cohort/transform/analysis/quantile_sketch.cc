#include "cohort/transform/analysis/quantile_sketch.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/transform/analysis/radix_sort.h"

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

// floor(log2(weight)) + 1023, with all that is subnormal in one level.
int level_of(double weight) { return static_cast<int>(std::bit_cast<uint64_t>(weight) >> 52); }

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
  return items.empty() ? items : merged(items, {});
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
    radix_sort(values_, scratch_);
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
    place(items);
  }
  if (weighted_.empty()) return;
  place(sorted(std::move(weighted_)));
  weighted_.clear();
}

// Puts items that come in order into the lists of their levels, in this order.
class QuantileSketch::Divider {
 public:
  explicit Divider(Levels& levels) : levels_(levels) {}
  void put(const Item& item) {
    const int number = level_of(item.weight);
    if (list_ == nullptr || number != number_) {
      number_ = number;
      list_ = &levels_[number];
    }
    list_->push_back(item);
  }

 private:
  Levels& levels_;
  int number_ = 0;
  Items* list_ = nullptr;  // of level number_: most neighbours have the same
};

void QuantileSketch::place(const Items& items) {
  Levels pending;
  Divider arriving(pending);
  for (const Item& item : items) {
    weight_ += item.weight;
    arriving.put(item);
  }
  // Items only ever move to a higher level, so that each is visited once.
  while (!pending.empty()) {
    const int number = pending.begin()->first;
    Items& level = levels_[number];
    level = merged(level, pending.begin()->second);
    pending.erase(pending.begin());
    Levels up;
    Divider moving(up);
    size_t kept = 0;
    for (const Item& item : level) {
      if (level_of(item.weight) == number) {
        level[kept++] = item;
      } else {
        moving.put(item);  // equal values, with their sum
      }
    }
    level.resize(kept);
    // A third more, so that a level of many equal values is not looked at again and again.
    if (level.size() >= least_compacted_ + least_compacted_ / 3) compact(level, up);
    for (auto& [place, moved] : up) {
      Items& there = pending[place];
      there = merged(there, sorted(std::move(moved)));
    }
  }
}

void QuantileSketch::compact(Items& level, Levels& up) {
  Divider moving(up);
  double error = 0;
  const size_t whole = level.size() / 3 * 3;
  for (size_t i = 0; i < whole; i += 3) {
    const Item& low = level[i];
    const Item& high = level[i + 2];
    moving.put({level[i + 1].value, low.weight + level[i + 1].weight + high.weight});
    error = std::max({error, low.weight, high.weight});
  }
  error_ += error;
  level = Items(level.begin() + static_cast<ptrdiff_t>(whole), level.end());  // frees the memory
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
  return items * sizeof(Item) + (values_.capacity() + scratch_.capacity()) * sizeof(double);
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
