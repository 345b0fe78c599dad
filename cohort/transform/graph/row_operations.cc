// Operations on the values of a row together.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_set>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/operations.h"
#include "cohort/transform/graph/text_builder.h"

namespace cohort::internal {
namespace {

using keras::Config;
using Types = std::span<const ColumnType>;
using Values = std::span<const ColumnValue>;

struct Rows {
  explicit Rows(const ColumnValue& value)
      : splits(value.row_splits.contiguous()), ends(splits.data_ptr<int64_t>()) {}
  int64_t size() const { return splits.size(0) - 1; }
  int64_t begin(int64_t row) const { return ends[row]; }
  int64_t end(int64_t row) const { return ends[row + 1]; }

  Tensor splits;
  const int64_t* ends;
};

// Collects the row splits of a result.
class SplitBuilder {
 public:
  explicit SplitBuilder(int64_t rows) : splits_(at::empty({rows + 1}, at::kLong)) {
    splits_.data_ptr<int64_t>()[0] = 0;
  }
  void end_row(int64_t values) { splits_.data_ptr<int64_t>()[++row_] = values; }
  const Tensor& splits() const { return splits_; }

 private:
  Tensor splits_;
  int64_t row_ = 0;
};

// [rows, width], with `default_value` where a row is shorter. A row may not be longer.
EvaluateColumn to_dense(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  take_ragged(inputs[0]);
  const int64_t width = attributes.get_int("width");
  const bool is_vector = attributes.get_bool("is_vector");
  if (width < 1) throw InvalidArgumentError(str("size is at least 1, but got ", width));
  const auto check = [width](const Rows& rows) {
    for (int64_t row = 0; row < rows.size(); ++row) {
      if (rows.end(row) - rows.begin(row) <= width) continue;
      throw InvalidArgumentError(str("transform::to_dense: row ", row, " of the batch has ",
                                     rows.end(row) - rows.begin(row), " values, but .size is ",
                                     width));
    }
  };
  const auto shape = [width, is_vector](int64_t rows) {
    return is_vector ? std::vector<int64_t>{rows, width} : std::vector<int64_t>{rows};
  };
  if (inputs[0].is_string()) {
    const std::string filler = attributes.contains("text") ? attributes.get_string("text") : "";
    return [=](Values values) {
      const Rows rows(values[0]);
      check(rows);
      const StringTensor& texts = values[0].values.strings();
      TextBuilder result(texts);
      for (int64_t row = 0; row < rows.size(); ++row) {
        for (int64_t i = rows.begin(row); i < rows.end(row); ++i) result.add_part(texts.data()[i]);
        for (int64_t i = rows.end(row) - rows.begin(row); i < width; ++i) result.add(filler);
      }
      return ColumnValue{.values = std::move(result).finish(shape(rows.size()))};
    };
  }
  const double filler = attributes.get_double("number");
  return [=](Values values) {
    const Rows rows(values[0]);
    check(rows);
    const Tensor& x = values[0].values.tensor();
    Tensor result = at::full({rows.size(), width}, filler, x.options());
    const Tensor lengths = rows.splits.slice(0, 1) - rows.splits.slice(0, 0, -1);
    result.masked_scatter_(at::arange(width).unsqueeze(0) < lengths.unsqueeze(1), x);
    return ColumnValue{.values = result.reshape(shape(rows.size()))};
  };
}

EvaluateColumn row_lengths(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_ragged(inputs[0]);
  return [](Values values) {
    const Tensor& splits = values[0].row_splits;
    return ColumnValue{.values = splits.slice(0, 1) - splits.slice(0, 0, -1)};
  };
}

// Runs of neighbours, first by where they begin, then by length.
EvaluateColumn ngrams(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  take_ragged(inputs[0]);
  take_strings(inputs[0]);
  const std::vector<int64_t> range = attributes.get_ints("ngram_range");
  const std::string separator = attributes.get_string("separator");
  if (range.size() != 2 || range[0] < 1 || range[1] < range[0]) {
    throw InvalidArgumentError("ngram_range is the least and the greatest length, {1, 2} say");
  }
  return [=](Values values) {
    const Rows rows(values[0]);
    const StringTensor& tokens = values[0].values.strings();
    TextBuilder result(tokens);
    SplitBuilder splits(rows.size());
    for (int64_t row = 0; row < rows.size(); ++row) {
      for (int64_t first = rows.begin(row); first < rows.end(row); ++first) {
        std::string gram;
        for (int64_t n = 1; n <= range[1] && first + n <= rows.end(row); ++n) {
          if (n > 1) gram += separator;
          gram += tokens.data()[first + n - 1];
          if (n >= range[0]) result.add(gram);
        }
      }
      splits.end_row(result.size());
    }
    return ColumnValue{.values = std::move(result).finish(), .row_splits = splits.splits()};
  };
}

EvaluateColumn to_ragged(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  if (inputs[0].kind != ColumnKind::kDense || inputs[0].shape.size() > 1) {
    throw InvalidArgumentError("it takes a dense column [rows] or [rows, size]");
  }
  return [](Values values) {
    const Leaf& x = values[0].values;
    const auto sizes = x.sizes();
    const int64_t width = sizes.size() == 1 ? 1 : sizes[1];
    const int64_t count = sizes[0] * width;
    Leaf flat =
        x.is_strings() ? Leaf(x.strings().reshape({count})) : Leaf(x.tensor().reshape({count}));
    return ColumnValue{.values = std::move(flat), .row_splits = at::arange(sizes[0] + 1) * width};
  };
}

template <class T>
Leaf leaf_of(const std::vector<T>& numbers, DType dtype) {
  Tensor result = at::empty({static_cast<int64_t>(numbers.size())}, dtype);
  std::copy(numbers.begin(), numbers.end(), result.data_ptr<T>());
  return result;
}

// The values of a row once each, in order of their first occurrence. `values` are those of all
// rows.
template <class T, class Keep>
Tensor each_once(const T* values, const Rows& rows, const Keep& keep) {
  SplitBuilder splits(rows.size());
  std::unordered_set<T> seen;
  int64_t count = 0;
  for (int64_t row = 0; row < rows.size(); ++row) {
    seen.clear();
    for (int64_t i = rows.begin(row); i < rows.end(row); ++i) {
      if (!seen.insert(values[i]).second) continue;
      keep(values[i]);
      ++count;
    }
    splits.end_row(count);
  }
  return splits.splits();
}

template <class T>
ColumnValue numbers_once(const ColumnValue& value) {
  const Tensor x = value.values.tensor().contiguous();
  std::vector<T> kept;
  const Tensor splits =
      each_once(x.data_ptr<T>(), Rows(value), [&](T number) { kept.push_back(number); });
  return {.values = leaf_of(kept, x.scalar_type()), .row_splits = splits};
}

EvaluateColumn deduplicate(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_ragged(inputs[0]);
  if (inputs[0].is_string()) {
    return [](Values values) {
      const StringTensor& tokens = values[0].values.strings();
      TextBuilder kept(tokens);
      const Tensor splits = each_once(tokens.data(), Rows(values[0]),
                                      [&](std::string_view token) { kept.add_part(token); });
      return ColumnValue{.values = std::move(kept).finish(), .row_splits = splits};
    };
  }
  switch (inputs[0].dtype.dtype()) {
    case at::kLong:
      return [](Values values) { return numbers_once<int64_t>(values[0]); };
    case at::kInt:
      return [](Values values) { return numbers_once<int32_t>(values[0]); };
    case at::kFloat:
      return [](Values values) { return numbers_once<float>(values[0]); };
    case at::kDouble:
      return [](Values values) { return numbers_once<double>(values[0]); };
    default:
      throw InvalidArgumentError("it takes strings, int64, int32, float32 or float64");
  }
}

// The numbers of each row with how often they occur, in ascending order.
template <class Take>  // Take(row size, number, count)
Tensor count_rows(const ColumnValue& value, const Take& take) {
  const Rows rows(value);
  const Tensor x = value.values.tensor().contiguous();
  SplitBuilder splits(rows.size());
  std::map<int64_t, int64_t> counts;
  int64_t total = 0;
  for (int64_t row = 0; row < rows.size(); ++row) {
    counts.clear();
    for (int64_t i = rows.begin(row); i < rows.end(row); ++i) ++counts[x.data_ptr<int64_t>()[i]];
    for (const auto& [number, count] : counts) {
      take(rows.end(row) - rows.begin(row), number, count);
    }
    splits.end_row(total += static_cast<int64_t>(counts.size()));
  }
  return splits.splits();
}

void take_token_numbers(const ColumnType& input) {
  take_ragged(input);
  if (input.dtype != LeafType(at::kLong)) throw InvalidArgumentError("it takes int64");
}

EvaluateColumn distinct(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_token_numbers(inputs[0]);
  return [](Values values) {
    std::vector<int64_t> kept;
    const Tensor splits =
        count_rows(values[0], [&](int64_t, int64_t number, int64_t) { kept.push_back(number); });
    return ColumnValue{.values = leaf_of(kept, at::kLong), .row_splits = splits};
  };
}

// x: numbers of tokens; in how many rows each occurs; the number of rows. The weight of a token is
// how often it is in its row, of the row's tokens, times its inverse document frequency. In
// float32, as TensorFlow Transform computes it.
EvaluateColumn tfidf(const Config& attributes, Types inputs) {
  take_inputs(inputs, 3);
  take_token_numbers(inputs[0]);
  const bool smooth = attributes.get_bool("smooth");
  return [smooth](Values values) {
    const Tensor frequencies = values[1].values.tensor().to(at::kLong).contiguous();
    const int64_t rows = values[2].values.tensor().item<int64_t>();
    std::vector<float> weights;
    const Tensor splits = count_rows(values[0], [&](int64_t size, int64_t number, int64_t count) {
      const int64_t frequency =
          number < frequencies.numel() ? frequencies.data_ptr<int64_t>()[number] : 0;
      const float rarity = smooth ? static_cast<float>(rows + 1) / static_cast<float>(frequency + 1)
                                  : static_cast<float>(rows) / static_cast<float>(frequency);
      weights.push_back(static_cast<float>(count) / static_cast<float>(size) *
                        (1 + std::log(rarity)));
    });
    return ColumnValue{.values = leaf_of(weights, at::kFloat), .row_splits = splits};
  };
}

constexpr NamedOperation kRowOperations[] = {
    {"to_dense", to_dense},   {"row_lengths", row_lengths}, {"ngrams", ngrams},
    {"to_ragged", to_ragged}, {"distinct", distinct},       {"deduplicate", deduplicate},
    {"tfidf", tfidf},
};

}  // namespace

std::span<const NamedOperation> row_operations() { return kRowOperations; }

}  // namespace cohort::internal
