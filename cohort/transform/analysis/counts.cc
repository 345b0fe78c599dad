// Counts of keys, of buckets, and of the rows in which an index occurs.

#include <algorithm>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/text.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/transform/analysis/attributes.h"
#include "cohort/transform/analysis/numeric_column.h"
#include "cohort/transform/analysis/simple_analysis.h"
#include "cohort/transform/analysis/token_accumulator.h"

namespace cohort::internal {
namespace {

Tensor tensor_of(const std::vector<int64_t>& counts) {
  return copy_numbers(counts.data(), counts.size(), int64);
}

class KeyCounts final : public TokenAccumulator<TokenCount> {
 public:
  KeyCounts(std::string name, const AnalysisContext& context)
      : TokenAccumulator(std::move(name), context) {}

 private:
  AnalysisResult result() override {
    std::vector<std::string> keys;
    std::vector<int64_t> counts;
    const TokenStreamPtr<TokenCount> counted = counter().sorted();
    while (counted->next()) {
      keys.emplace_back(counted->entry().token);
      counts.push_back(counted->entry().amount.value);
    }
    return {{{"keys", keys_leaf(keys)}, {"counts", tensor_of(counts)}}};
  }
  Leaf keys_leaf(const std::vector<std::string>& keys) const {
    if (has_strings()) return StringTensor(keys);
    std::vector<int64_t> numbers;
    for (const std::string& key : keys) {
      // A key that is no number came in a piece from a task whose column has strings.
      const auto number = parse_number<int64_t>(key);
      if (!number) return StringTensor(keys);
      numbers.push_back(*number);
    }
    return tensor_of(numbers);
  }
};

// Counts of the indices from `first` on, and the number of all rows.
struct Counts {
  uint64_t rows = 0;
  std::vector<int64_t> counts;
  uint64_t first = 0;
};
void fields(auto& f, Counts& counts) {
  f(1, counts.rows);
  f(2, counts.counts);
  f(3, counts.first);
}

// Some counts after another; the first piece has the rows.
class CountPieces final : public SavedPieces {
 public:
  explicit CountPieces(const Counts& of) : of_(of) {}
  std::optional<std::string> next() override {
    constexpr size_t kMostBytes = 5;  // of a count, nearly always
    if (is_begun_ && next_ == of_.counts.size()) return std::nullopt;
    const size_t end = std::min(next_ + kPieceBytes / kMostBytes, of_.counts.size());
    const auto begin = of_.counts.begin();
    const Counts piece = {
        is_begun_ ? 0 : of_.rows,
        {begin + static_cast<ptrdiff_t>(next_), begin + static_cast<ptrdiff_t>(end)},
        next_};
    is_begun_ = true;
    next_ = end;
    return encode_fields(piece);
  }

 private:
  const Counts& of_;
  size_t next_ = 0;
  bool is_begun_ = false;
};

// int64 values of one batch.
class Indices {
 public:
  explicit Indices(const ColumnBatch& column) {
    check_rows(column);
    if (column.values.is_strings() ||
        !isIntegralType(column.values.tensor().scalar_type(), /*includeBool=*/false)) {
      throw InvalidArgumentError("it takes integers of 64 bits");
    }
    values_ = contiguous_elements(column.values.tensor().to(int64));
  }
  std::span<const int64_t> all() const {
    return {values_.data_ptr<int64_t>(), static_cast<size_t>(values_.numel())};
  }

 private:
  Tensor values_;
};

class IndexCounts : public Accumulator {
 protected:
  IndexCounts(std::string name, Counts counts, int64_t limit)
      : Accumulator(std::move(name), 1), counts_(std::move(counts)), limit_(limit) {}

  Counts& counts() { return counts_; }
  void check_index(int64_t index) const {
    if (index < 0 || index >= limit_) {
      fail(str("the index ", index, " is not in [0, ", limit_, ")"));
    }
  }

  virtual void add_batch(const ColumnBatch& column) = 0;
  void add_columns(std::span<const ColumnBatch> columns) override {
    try {
      add_batch(columns[0]);
    } catch (const InvalidArgumentError& error) {
      fail(error.what());
    }
  }
  void merge_same(Accumulator& accumulator) override {
    auto& other = static_cast<IndexCounts&>(accumulator);
    add_counts(
        std::exchange(other.counts_, {0, std::vector<int64_t>(other.counts_.counts.size()), 0}));
  }
  std::unique_ptr<SavedPieces> payloads() override {
    return std::make_unique<CountPieces>(counts_);
  }
  void add_payload(std::string_view payload, std::string_view source) override {
    const auto saved = decode_fields<Counts>(payload, source, 16);
    const WireReader reader(payload, source);
    const auto limit = static_cast<uint64_t>(limit_);
    if (saved.first > limit || saved.counts.size() > limit - saved.first) {
      reader.fail("has too many counts");
    }
    if (std::ranges::any_of(saved.counts, [](int64_t count) { return count < 0; })) {
      reader.fail_range();
    }
    add_counts(saved);
  }

 private:
  void add_counts(const Counts& other) {
    counts_.rows += other.rows;
    std::vector<int64_t>& counts = counts_.counts;
    if (other.counts.empty()) return;
    counts.resize(std::max(counts.size(), other.first + other.counts.size()));
    for (size_t i = 0; i < other.counts.size(); ++i) counts[other.first + i] += other.counts[i];
  }

  Counts counts_;
  const int64_t limit_;
};

class BucketCounts final : public IndexCounts {
 public:
  BucketCounts(std::string name, int64_t num_buckets)
      : IndexCounts(std::move(name), {0, std::vector<int64_t>(static_cast<size_t>(num_buckets)), 0},
                    num_buckets) {}

 private:
  void add_batch(const ColumnBatch& column) override {
    const Indices indices(column);
    for (const int64_t index : indices.all()) {
      check_index(index);
      ++counts().counts[static_cast<size_t>(index)];
    }
    counts().rows += static_cast<uint64_t>(column.rows);
  }
  AnalysisResult result() override { return {{{"counts", tensor_of(counts().counts)}}}; }
};

class DocumentFrequencies final : public IndexCounts {
 public:
  explicit DocumentFrequencies(std::string name)
      : IndexCounts(std::move(name), {}, int64_t{1} << 27) {}

 private:
  void add_batch(const ColumnBatch& column) override {
    const Indices indices(column);
    const std::span<const int64_t> all = indices.all();
    const auto in_a_row = static_cast<int64_t>(all.size()) /
                          std::max<int64_t>(column.values.sizes()[0], 1);  // or in a value of one
    Tensor splits;
    if (column.row_splits) splits = contiguous_elements(*column.row_splits);
    for (int64_t row = 0; row < column.rows; ++row) {
      const auto* ends = column.row_splits ? splits.data_ptr<int64_t>() : nullptr;
      const int64_t begin = in_a_row * (ends != nullptr ? ends[row] : row);
      const int64_t end = in_a_row * (ends != nullptr ? ends[row + 1] : row + 1);
      add_row(all.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    }
  }
  void add_row(std::span<const int64_t> indices) {
    ++row_;
    ++counts().rows;
    for (const int64_t index : indices) {
      check_index(index);
      const auto i = static_cast<size_t>(index);
      std::vector<int64_t>& documents = counts().counts;
      if (i >= documents.size()) documents.resize(i + 1);
      if (i >= last_rows_.size()) last_rows_.resize(documents.size());
      if (std::exchange(last_rows_[i], row_) != row_) ++documents[i];
    }
  }
  AnalysisResult result() override {
    return {{{"documents", tensor_of(counts().counts)},
             {"rows", constant(static_cast<int64_t>(counts().rows), int64)}}};
  }

  int64_t row_ = 0;
  std::vector<int64_t> last_rows_;  // in which each index was seen, from 1
};

}  // namespace

AnalysisPtr count_per_key_analysis() {
  return simple_analysis(
      {.kind = "count_per_key", .result_names = {"keys", "counts"}, .uses_memory_limit = true},
      [](std::string name, const AnalysisContext& context) {
        return std::make_unique<KeyCounts>(std::move(name), context);
      });
}

AnalysisPtr bucket_counts_analysis(int64_t num_buckets) {
  if (num_buckets < 1 || num_buckets > (int64_t{1} << 31)) {
    throw InvalidArgumentError(str("num_buckets must be in [1, 2^31], but got: ", num_buckets));
  }
  return simple_analysis({.kind = "bucket_counts",
                          .attributes = {{"num_buckets", num_buckets}},
                          .result_names = {"counts"}},
                         [num_buckets](std::string name, const AnalysisContext&) {
                           return std::make_unique<BucketCounts>(std::move(name), num_buckets);
                         });
}

AnalysisPtr document_frequencies_analysis() {
  return simple_analysis({.kind = "document_frequencies", .result_names = {"documents", "rows"}},
                         [](std::string name, const AnalysisContext&) {
                           return std::make_unique<DocumentFrequencies>(std::move(name));
                         });
}

}  // namespace cohort::internal
