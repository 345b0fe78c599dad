// An analysis: what one pass over a data set computes of some columns, in parts that are merged.
//
//   const auto analysis = mean_and_variance_analysis({.dtype = float32});    // analyses.h
//   const auto accumulator = analysis->start(context);      // one a thread
//   accumulator->add({&column, 1});                         // each batch
//   accumulator->merge(*that_of_another_thread);
//   accumulator->add_saved(piece_from_another_task);
//   const AnalysisResult result = accumulator->finish();
//   result.constant("mean").tensor();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// One column of a batch.
// Shapes: dense values [rows, ..]; ragged values [n, ..] of all rows, one row after another, and
// row_splits int64 [rows + 1], as RaggedTensor has them.
struct ColumnBatch {
  Leaf values;
  std::optional<Tensor> row_splits = std::nullopt;
  int64_t rows = 0;
};

struct AnalysisResult {
  // A text file that the analysis has written and synced under a temporary name in the output
  // directory. The caller renames or removes it.
  struct TextFile {
    std::string path;
    int64_t lines = 0;
    uint64_t bytes = 0;
    uint32_t crc32c = 0;  // of its bytes
  };

  std::vector<std::pair<std::string, Leaf>> constants;
  std::optional<TextFile> file = std::nullopt;

  // Errors: Internal (no constant of that name).
  const Leaf& constant(std::string_view name) const;
};

// The places in which an accumulator keeps what does not fit into memory, and writes its result.
struct AnalysisContext {
  FileSystem& files;             // must outlive the accumulator
  std::string spill_directory;   // existing; for files that are gone when the accumulator is
  std::string output_directory;  // existing; for AnalysisResult::file
  // The bytes that a table of tokens may take before it is written to a file. Accumulators whose
  // size does not depend on the number of rows ignore it.
  size_t memory_limit = size_t{256} << 20;
};

// The state of an accumulator as byte strings, read one after another. Until it is destroyed, the
// accumulator must not be changed.
class SavedPieces {
 public:
  virtual ~SavedPieces() = default;
  // The next piece, of about kPieceBytes at most (an element of the state that is longer, such as a
  // token, is not divided); nullopt at the end. Errors: those of reading spilled runs.
  virtual std::optional<std::string> next() = 0;
};
inline constexpr size_t kPieceBytes = size_t{1} << 20;

// The partial result of one analysis over some rows. However rows are divided between accumulators
// that are merged, and in whatever order, the result is the same to the bit (quantiles: within
// their bound).
//
// Thread safety: none. Each thread has its own; they are merged at the end.
class Accumulator {
 public:
  virtual ~Accumulator() = default;
  Accumulator(const Accumulator&) = delete;
  Accumulator& operator=(const Accumulator&) = delete;

  // Adds the rows of a batch: one column for each input of the analysis.
  // Errors: InvalidArgument (another number of columns, dtype or shape than the analysis takes;
  // row_splits that do not fit; names the analysis), ResourceExhausted (the disk is full). After an
  // error the accumulator can only be destroyed.
  void add(std::span<const ColumnBatch> columns);

  // Adds what `other`, an accumulator of an equal analysis, holds, and leaves it empty.
  // Errors: InvalidArgument (of another analysis), ResourceExhausted.
  void merge(Accumulator& other);

  // The state in pieces that add_saved() takes, here, in another task or after a restart. Each
  // piece is a partial result of its own: pieces may arrive in any order, each exactly once.
  std::unique_ptr<SavedPieces> save();
  // Adds what a piece holds. `source` names where it comes from, for errors.
  // Errors: DataLoss (damaged, or of another analysis), ResourceExhausted.
  void add_saved(std::string_view piece, std::string_view source);

  // The result over all rows that were added. Afterwards only the destructor may be called.
  // Errors: ResourceExhausted (the disk is full), those of reading spilled runs.
  AnalysisResult finish();

 protected:
  // `name` stands in errors, and in saved pieces, so that those of another analysis are refused.
  Accumulator(std::string name, size_t num_inputs)
      : name_(std::move(name)), num_inputs_(num_inputs) {}

  const std::string& name() const { return name_; }
  [[noreturn]] void fail(std::string_view problem) const;  // InvalidArgument

 private:
  virtual void add_columns(std::span<const ColumnBatch> columns) = 0;
  virtual void merge_same(Accumulator& other) = 0;
  // The payloads of pieces. For a state of one piece: single_payload(bytes).
  virtual std::unique_ptr<SavedPieces> payloads() = 0;
  virtual void add_payload(std::string_view payload, std::string_view source) = 0;
  virtual AnalysisResult result() = 0;

  const std::string name_;
  const size_t num_inputs_;
};

std::unique_ptr<SavedPieces> single_payload(std::string payload);

// An option of an analysis, in a form that can be written down and read again.
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
using Attributes = std::vector<std::pair<std::string, Attribute>>;

// What is to be computed. analyses.h has those that there are.
// Thread safety: immutable.
class Analysis {
 public:
  virtual ~Analysis() = default;

  // "mean_and_variance", "vocabulary", ...; with the attributes it is all that an analysis is:
  // make_analysis(kind(), attributes()) makes an equal one.
  virtual std::string kind() const = 0;
  virtual Attributes attributes() const = 0;
  virtual size_t num_inputs() const = 0;
  // The names of the constants in its results, and whether there is a file.
  virtual std::vector<std::string> result_names() const = 0;
  virtual bool writes_file() const { return false; }
  // Whether accumulators grow up to AnalysisContext::memory_limit; others are small.
  virtual bool uses_memory_limit() const { return false; }

  virtual std::unique_ptr<Accumulator> start(const AnalysisContext& context) const = 0;
};

// "mean_and_variance(dtype='float32', reduce_instance_dims=true)": the same text for equal analyses
// only.
std::string analysis_name(const Analysis& analysis);

}  // namespace cohort::internal
