#include "cohort/parameter_server/variables/embedding_lookup.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::nn {
namespace {

using distribute::ShardedVariable;
using distribute::Variable;
using internal::describe;
using internal::str;

enum class Combiner { kSum, kMean, kSqrtn };

Combiner combiner_of(const std::string& name) {
  if (name == "sum") return Combiner::kSum;
  if (name == "mean") return Combiner::kMean;
  if (name == "sqrtn") return Combiner::kSqrtn;
  throw InvalidArgumentError(
      str("no combiner is called ", internal::quoted(name), "; there are: sum, mean, sqrtn"));
}

// What a COO tensor has, by which libtorch takes a gradient only where it is known that no entry
// comes twice.
class Entries : public torch::autograd::Function<Entries> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& coo) {
    context->save_for_backward({coo._indices()});
    context->saved_data["shape"] = coo.sizes().vec();
    return coo._values().clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const Tensor indices = context->get_saved_variables()[0];
    return {
        at::sparse_coo_tensor(indices, gradients[0], context->saved_data["shape"].toIntVector())};
  }
};

Tensor entries_of(const Tensor& coo) {
  return coo.requires_grad() && at::GradMode::is_enabled() ? Entries::apply(coo) : coo._values();
}

// A number for each row, to be multiplied with what rows have.
Tensor as_column(const Tensor& numbers, int64_t dims) {
  std::vector<int64_t> shape(static_cast<size_t>(dims), 1);
  shape[0] = numbers.size(0);
  return numbers.reshape(shape);
}

Tensor shortened(const Tensor& rows, const std::optional<double>& max_norm) {
  if (!max_norm) return rows;
  if (!(*max_norm > 0)) {
    throw InvalidArgumentError(str("max_norm is ", *max_norm, "; it must be above 0"));
  }
  if (rows.numel() == 0) return rows;
  const Tensor norms = rows.reshape({rows.size(0), -1}).norm(2, {1}, false);
  return rows * as_column(*max_norm / norms.clamp_min(*max_norm), rows.dim());
}

// What is looked up for a batch.
struct Bags {
  Tensor ids;      // [n]
  Tensor rows;     // [n]: of the batch
  Tensor weights;  // [n]; undefined: ones
  int64_t count = 0;
};

// libtorch computes in narrow dtypes, where a sum ends early: 2048 + 1 is 2048 in float16.
DType wide(DType dtype) { return dtype == at::kHalf || dtype == at::kBFloat16 ? float32 : dtype; }

Tensor add_up(const Tensor& values, const Tensor& rows, int64_t count) {
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = count;
  return at::zeros(shape, values.options().requires_grad(false)).index_add(0, rows, values);
}

Tensor combined(const EmbeddingTable& table, const Bags& bags, Combiner combiner,
                const std::optional<double>& max_norm) {
  const Tensor looked_up = shortened(table.rows(bags.ids), max_norm);
  const DType dtype = looked_up.scalar_type();
  Tensor found = looked_up.to(wide(dtype));
  const Tensor rows = bags.rows.to(found.device());
  Tensor weights;
  if (bags.weights.defined()) {
    weights = bags.weights.to(found.device(), found.scalar_type());
    found = found * as_column(weights, found.dim());
  }
  const Tensor sum = add_up(found, rows, bags.count);
  if (combiner == Combiner::kSum) return sum.to(dtype);
  if (!weights.defined()) weights = at::ones({found.size(0)}, found.options().requires_grad(false));
  const bool is_mean = combiner == Combiner::kMean;
  Tensor total = add_up(is_mean ? weights : weights.square(), rows, bags.count);
  const Tensor is_none = total == 0;
  total = total.masked_fill(is_none, 1);
  if (!is_mean) total = total.sqrt();  // the root of 0 has no gradient
  const Tensor quotient = sum / as_column(total, sum.dim());
  return quotient.masked_fill(as_column(is_none, sum.dim()), 0).to(dtype);
}

Bags bags_of(const SparseValues& ids, const std::optional<SparseValues>& weights) {
  Bags bags{.ids = ids.values(), .rows = ids.rows(), .weights = {}, .count = 1};
  for (const int64_t size : ids.batch_shape()) bags.count *= size;
  if (at::isFloatingType(bags.ids.scalar_type())) {
    throw InvalidArgumentError(str("ids are whole numbers, not ", describe(bags.ids)));
  }
  if (!weights) return bags;
  if (!at::equal(weights->indices(), ids.indices())) {
    throw InvalidArgumentError(str("there are ", weights->values().numel(), " weights for ",
                                   bags.ids.numel(), " ids, or they stand at other places; each ",
                                   "id has a weight at its own place"));
  }
  bags.weights = weights->values();
  return bags;
}

void keep(Bags& bags, const Tensor& chosen) {
  const Tensor places = chosen.nonzero().flatten();
  bags.ids = bags.ids.index_select(0, places);
  bags.rows = bags.rows.index_select(0, places);
  if (bags.weights.defined()) bags.weights = bags.weights.index_select(0, places);
}

// The default's id for each row of the batch that has none.
void fill_empty(Bags& bags, int64_t id) {
  const Tensor counts = add_up(at::ones({bags.ids.numel()}, int64), bags.rows, bags.count);
  const Tensor empty = (counts == 0).nonzero().flatten();
  bags.ids = at::cat({bags.ids.to(int64), at::full({empty.numel()}, id, int64)});
  bags.rows = at::cat({bags.rows, empty});
  if (!bags.weights.defined()) return;
  bags.weights = at::cat({bags.weights, at::ones({empty.numel()}, bags.weights.options())});
}

}  // namespace

EmbeddingTable::EmbeddingTable(const Variable& table)
    : rows_([table](const Tensor& ids) { return table.sparse_read(ids); }) {}

EmbeddingTable::EmbeddingTable(const ShardedVariable& table)
    : rows_([table](const Tensor& ids) {
        const Tensor found = table.sparse_read(ids.reshape({-1}));
        std::vector<int64_t> shape = ids.sizes().vec();
        shape.insert(shape.end(), found.sizes().begin() + 1, found.sizes().end());
        return found.reshape(shape);
      }) {}

EmbeddingTable::EmbeddingTable(const std::vector<Variable>& parts)
    : EmbeddingTable(ShardedVariable(parts, "the table")) {}

EmbeddingTable::EmbeddingTable(const Tensor& table) {
  if (!table.defined() || table.dim() == 0) {
    throw InvalidArgumentError(str("a table has rows, but got ", describe(table)));
  }
  rows_ = [table](const Tensor& ids) {
    internal::check_row_ids(ids, table.sizes(), "a lookup", "the tensor");
    std::vector<int64_t> shape = ids.sizes().vec();
    shape.insert(shape.end(), table.sizes().begin() + 1, table.sizes().end());
    return table.index_select(0, ids.reshape({-1}).to(table.device())).reshape(shape);
  };
}

SparseValues::SparseValues(const Tensor& coo) {
  if (!coo.defined() || coo.layout() != at::kSparse || coo.sparse_dim() < 2 ||
      coo.dense_dim() != 0) {
    throw InvalidArgumentError(str("a lookup takes ids as a sparse tensor [batch.., ids] or a ",
                                   "RaggedTensor, but got ", describe(coo)));
  }
  values_ = entries_of(coo).cpu();
  indices_ = coo._indices().detach().cpu().t().contiguous();
  batch_ = coo.sizes().slice(0, static_cast<size_t>(coo.dim() - 1)).vec();
  rows_ = at::zeros({values_.size(0)}, int64);
  for (size_t d = 0; d < batch_.size(); ++d) {
    rows_ = rows_ * batch_[d] + indices_.select(1, static_cast<int64_t>(d));
  }
}

SparseValues::SparseValues(const RaggedTensor& ragged) : batch_({ragged.nrows()}) {
  internal::singly_ragged(ragged, "a lookup");
  values_ = ragged.values().cpu();
  if (values_.dim() != 1) {
    throw InvalidArgumentError(
        str("a lookup takes one id at each place of a RaggedTensor, but got values of ",
            describe(values_)));
  }
  const Tensor lengths = ragged.row_lengths();
  rows_ = at::repeat_interleave(at::arange(ragged.nrows(), int64), lengths);
  const Tensor begins = ragged.row_splits().narrow(0, 0, ragged.nrows()).index_select(0, rows_);
  indices_ = at::stack({rows_, at::arange(values_.numel(), int64) - begins}, 1);
}

Tensor embedding_lookup(const EmbeddingTable& table, const Tensor& ids,
                        const EmbeddingLookupOptions& options) {
  const Tensor found = table.rows(ids);
  if (!options.max_norm) return found;
  const Tensor flat = found.reshape([&] {
    std::vector<int64_t> shape = found.sizes().slice(static_cast<size_t>(ids.dim())).vec();
    shape.insert(shape.begin(), ids.numel());
    return shape;
  }());
  return shortened(flat, options.max_norm).reshape(found.sizes());
}

Tensor embedding_lookup_sparse(const EmbeddingTable& table, const SparseValues& ids,
                               const std::optional<SparseValues>& weights,
                               const SparseLookupOptions& options) {
  const Combiner combiner = combiner_of(options.combiner);
  if (ids.batch_shape().size() != 1) {
    throw InvalidArgumentError(str("embedding_lookup_sparse takes ids of rank 2, not ",
                                   ids.batch_shape().size() + 1,
                                   "; safe_embedding_lookup_sparse takes others"));
  }
  Bags bags = bags_of(ids, weights);
  bags.count = bags.rows.numel() == 0 ? 0 : bags.rows.max().item<int64_t>() + 1;
  return combined(table, bags, combiner, options.max_norm);
}

Tensor safe_embedding_lookup_sparse(const EmbeddingTable& table, const SparseValues& ids,
                                    const std::optional<SparseValues>& weights,
                                    const SafeLookupOptions& options) {
  const Combiner combiner = combiner_of(options.combiner);
  Bags bags = bags_of(ids, weights);
  Tensor valid = bags.ids >= 0;
  if (weights && combiner != Combiner::kSum) valid = valid.logical_and(bags.weights > 0);
  keep(bags, valid);
  if (options.default_id) fill_empty(bags, *options.default_id);
  const Tensor found = combined(table, bags, combiner, options.max_norm);
  std::vector<int64_t> shape = ids.batch_shape();
  shape.insert(shape.end(), found.sizes().begin() + 1, found.sizes().end());
  return found.reshape(shape);
}

}  // namespace cohort::nn
