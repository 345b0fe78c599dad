// Operations on the values of a row together.
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
#include "cohort/keras/base/config_json.h"
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

// The values of a row once each, in order of their first occurrence.
EvaluateColumn deduplicate(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_ragged(inputs[0]);
  if (inputs[0].is_string()) {
    return [](Values values) {
      const Rows rows(values[0]);
      const StringTensor& tokens = values[0].values.strings();
      TextBuilder result(tokens);
      SplitBuilder splits(rows.size());
      std::unordered_set<std::string_view> seen;
      for (int64_t row = 0; row < rows.size(); ++row) {
        seen.clear();
        for (int64_t i = rows.begin(row); i < rows.end(row); ++i) {
          if (seen.insert(tokens.data()[i]).second) result.add_part(tokens.data()[i]);
        }
        splits.end_row(result.size());
      }
      return ColumnValue{.values = std::move(result).finish(), .row_splits = splits.splits()};
    };
  }
  if (inputs[0].dtype != LeafType(at::kLong)) {
    throw InvalidArgumentError("it takes strings or int64");
  }
  return [](Values values) {
    const Rows rows(values[0]);
    const Tensor x = values[0].values.tensor().contiguous();
    const int64_t* numbers = x.data_ptr<int64_t>();
    std::vector<int64_t> kept;
    SplitBuilder splits(rows.size());
    std::unordered_set<int64_t> seen;
    for (int64_t row = 0; row < rows.size(); ++row) {
      seen.clear();
      for (int64_t i = rows.begin(row); i < rows.end(row); ++i) {
        if (seen.insert(numbers[i]).second) kept.push_back(numbers[i]);
      }
      splits.end_row(static_cast<int64_t>(kept.size()));
    }
    const Tensor result = at::empty({static_cast<int64_t>(kept.size())}, at::kLong);
    std::copy(kept.begin(), kept.end(), result.data_ptr<int64_t>());
    return ColumnValue{.values = result, .row_splits = splits.splits()};
  };
}

// The numbers of a row's tokens with how often each occurs, in ascending order.
std::map<int64_t, int64_t> counts_of(const int64_t* numbers, int64_t begin, int64_t end,
                                     int64_t vocab_size) {
  std::map<int64_t, int64_t> counts;
  for (int64_t i = begin; i < end; ++i) {
    if (numbers[i] < 0 || numbers[i] >= vocab_size) {
      throw InvalidArgumentError(str("transform::tfidf: ", numbers[i],
                                     " is no number of a vocabulary of .vocab_size ", vocab_size));
    }
    ++counts[numbers[i]];
  }
  return counts;
}

// x: numbers of tokens; document frequencies [vocab_size]; the number of documents. The weight of a
// token is how often it is in the row, of the row's tokens, times the logarithm of how rare it is.
EvaluateColumn tfidf(const Config& attributes, Types inputs) {
  take_inputs(inputs, 3);
  take_ragged(inputs[0]);
  if (inputs[0].dtype != LeafType(at::kLong)) throw InvalidArgumentError("it takes int64");
  const int64_t vocab_size = attributes.get_int("vocab_size");
  const bool smooth = attributes.get_bool("smooth");
  const bool add_baseline = attributes.get_bool("add_baseline");
  const bool is_weights = attributes.get_bool("weights");
  return [=](Values values) {
    const Rows rows(values[0]);
    const Tensor x = values[0].values.tensor().contiguous();
    const Tensor frequencies = values[1].values.tensor().to(at::kLong).contiguous();
    const auto documents = static_cast<double>(values[2].values.tensor().item<int64_t>());
    std::vector<int64_t> indices;
    std::vector<float> weights;
    SplitBuilder splits(rows.size());
    for (int64_t row = 0; row < rows.size(); ++row) {
      const int64_t size = rows.end(row) - rows.begin(row);
      for (const auto& [index, count] :
           counts_of(x.data_ptr<int64_t>(), rows.begin(row), rows.end(row), vocab_size)) {
        const auto frequency = static_cast<double>(
            index < frequencies.numel() ? frequencies.data_ptr<int64_t>()[index] : 0);
        const double idf = (smooth ? std::log((documents + 1) / (frequency + 1))
                                   : std::log(documents / frequency)) +
                           (add_baseline ? 1 : 0);
        indices.push_back(index);
        weights.push_back(static_cast<float>(count) / static_cast<float>(size) *
                          static_cast<float>(idf));
      }
      splits.end_row(static_cast<int64_t>(indices.size()));
    }
    const auto count = static_cast<int64_t>(indices.size());
    const Tensor result = at::empty({count}, is_weights ? at::kFloat : at::kLong);
    if (is_weights) {
      std::copy(weights.begin(), weights.end(), result.data_ptr<float>());
    } else {
      std::copy(indices.begin(), indices.end(), result.data_ptr<int64_t>());
    }
    return ColumnValue{.values = result, .row_splits = splits.splits()};
  };
}

constexpr NamedOperation kRowOperations[] = {
    {"to_dense", to_dense}, {"row_lengths", row_lengths},
    {"ngrams", ngrams},     {"deduplicate", deduplicate},
    {"tfidf", tfidf},
};

}  // namespace

std::span<const NamedOperation> row_operations() { return kRowOperations; }

}  // namespace cohort::internal
