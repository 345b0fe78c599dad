// Lookups in tables of embeddings: rows by their ids, alone or combined. Of a table that ps tasks
// keep, only the rows of the ids are read, each once, with one call to each ps task; the gradient
// has those rows alone.
//
//   Tensor vectors = nn::embedding_lookup(table, ids);                     // [.., dim]
//   Tensor bags = nn::embedding_lookup_sparse(table, words_of_documents);  // [documents, dim]
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/parameter_server/variables/sharded_variable.h"

namespace cohort::nn {

// What has rows to look up: a variable, divided or not, a list of parts in the order of their rows,
// or a tensor.
class COHORT_API EmbeddingTable {
 public:
  EmbeddingTable(const distribute::Variable& table);
  EmbeddingTable(const distribute::ShardedVariable& table);
  // Errors: those of ShardedVariable.
  EmbeddingTable(const std::vector<distribute::Variable>& parts);
  // Errors: InvalidArgument (undefined, or of rank 0).
  EmbeddingTable(const Tensor& table);

  // Shapes: ids [..] -> [.., row..]. Errors: InvalidArgument (an id outside of the rows; a dtype
  // that is not int32 or int64).
  Tensor rows(const Tensor& ids) const { return rows_(ids); }

 private:
  std::function<Tensor(const Tensor&)> rows_;
};

// Several ids, or weights, for each row of a batch.
class COHORT_API SparseValues {
 public:
  // A COO tensor [batch.., most per row] whose entries are listed row by row; zeros among them
  // count.
  // Errors: InvalidArgument (dense; fewer than two sparse dimensions).
  SparseValues(const Tensor& coo);
  SparseValues(const RaggedTensor& ragged);

  const Tensor& values() const { return values_; }                    // [n]
  const Tensor& rows() const { return rows_; }                        // [n]: the row of each
  const Tensor& indices() const { return indices_; }                  // [n, dimensions]
  const std::vector<int64_t>& batch_shape() const { return batch_; }  // [batch..]

 private:
  Tensor values_;
  Tensor rows_;
  Tensor indices_;
  std::vector<int64_t> batch_;
};

struct EmbeddingLookupOptions {
  // Rows that are longer are scaled to this Euclidean norm.
  std::optional<double> max_norm = std::nullopt;
};

// table[ids]. Shapes: ids [..] of int32 or int64 -> [.., row..].
// Errors: InvalidArgument (an id outside of the rows; a max_norm that is not positive).
COHORT_API Tensor embedding_lookup(const EmbeddingTable& table, const Tensor& ids,
                                   const EmbeddingLookupOptions& options = {});

struct SparseLookupOptions {
  // "sum" of the rows times their weights; "mean": that by the sum of the weights; "sqrtn": by the
  // root of the sum of their squares.
  std::string combiner = "mean";
  std::optional<double> max_norm = std::nullopt;  // of each row before it is combined
};

// For each row of the batch its ids' rows of the table, combined. A row of the batch without ids
// gives zeros, but the result ends with the last row that has any, as TensorFlow's: where others
// may follow, safe_embedding_lookup_sparse gives all rows. The gradient is that of the table's rows
// and of the weights. Rows of float16 and bfloat16 are combined in float32.
// Shapes: ids [batch, ..]; weights as the ids -> [last row with ids + 1, row..].
// Errors: InvalidArgument (an id outside of the table; weights at other places than the ids;
// another combiner; ids of another rank than two).
COHORT_API Tensor embedding_lookup_sparse(const EmbeddingTable& table, const SparseValues& ids,
                                          const std::optional<SparseValues>& weights = std::nullopt,
                                          const SparseLookupOptions& options = {});

struct SafeLookupOptions {
  std::string combiner = "mean";
  // Whose row stands where there are no ids; missing: zeros.
  std::optional<int64_t> default_id = std::nullopt;
  std::optional<double> max_norm = std::nullopt;
};

// The same for data that may be faulty: leaves out ids below 0 and, unless they are summed, those
// with weights that are not above 0.
// Shapes: ids [batch.., most per row] -> [batch.., row..]. Errors: as embedding_lookup_sparse.
COHORT_API Tensor
safe_embedding_lookup_sparse(const EmbeddingTable& table, const SparseValues& ids,
                             const std::optional<SparseValues>& weights = std::nullopt,
                             const SafeLookupOptions& options = {});

}  // namespace cohort::nn
