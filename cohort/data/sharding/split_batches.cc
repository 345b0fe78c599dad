#include "cohort/data/sharding/split_batches.h"

#include <algorithm>

#include "cohort/core/structure/composite.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/batch_rows.h"
#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/iteration/row_specs.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {

int64_t rows_of_batch(const Structure& batch) {
  for_each_rows(batch, [&](const std::string&, std::optional<int64_t> rows) {
    if (rows) return;
    throw InvalidArgumentError(str("cannot split ", batch,
                                   " over replicas: it has a leaf without a batch dimension; call "
                                   "`batch` on the dataset first"));
  });
  return checked_rows("splitting a batch over replicas", batch);
}

Structure piece_of(const Structure& batch, int64_t rows, int64_t piece, int64_t num_pieces) {
  const int64_t size = rows / num_pieces + (rows % num_pieces != 0 ? 1 : 0);
  const int64_t begin = std::min(rows, piece * size);
  const int64_t end = std::min(rows, begin + size);
  if (begin == 0 && end == rows) return batch;
  // The same memory, but a version counter of its own: what one replica does to its piece in place
  // must not spoil what another's tape has saved.
  return slice_rows(batch, begin, end).map([](const Leaf& piece) -> Leaf {
    const bool dense = piece.is_tensor() && piece.tensor().layout() == at::kStrided;
    return dense ? Leaf(piece.tensor().variable_data()) : piece;
  });
}

// Gives the pieces of batches one by one. Its state between two batches is the input's own, and
// says nothing of pieces.
class SplitIterator final : public DataIterator {
 public:
  SplitIterator(std::unique_ptr<DataIterator> input, int64_t num_pieces, PieceRange range)
      : input_(std::move(input)), num_pieces_(num_pieces), range_(range) {}

  bool next(Structure& out) override {
    if (!loaded_ && !load()) return false;
    const int64_t piece = piece_;
    const std::exception_ptr error = error_;
    if (!error) out = piece_of(batch_, rows_, range_.first + piece, num_pieces_);
    move_to(piece + 1);
    if (error) std::rethrow_exception(error);
    return true;
  }
  int64_t skip(int64_t n) override {
    int64_t skipped = 0;
    while (skipped < n) {
      if (!loaded_ && piece_ == 0 && n - skipped >= range_.count) {
        const int64_t batches = (n - skipped) / range_.count;
        const int64_t passed = input_->skip(batches);
        skipped += passed * range_.count;
        if (passed < batches) break;
        continue;
      }
      if (!loaded_ && !load()) break;
      const int64_t pieces = std::min(n - skipped, range_.count - piece_);
      move_to(piece_ + pieces);
      skipped += pieces;
    }
    return skipped;
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override {
    move_to(range_.count);
    input_->rewind(epoch);
  }
  IteratorState save() override {
    const IteratorState::Child before =
        loaded_ ? before_ : std::make_shared<const IteratorState>(input_->save());
    if (piece_ == 0) return *before;
    IteratorState state;
    state.set_int("split_piece", piece_);
    state.set_int("split_pieces", num_pieces_);
    if (range_.count != num_pieces_) state.set_int("split_first", range_.first);
    state.set_child("input", before);
    return state;
  }
  void restore(const IteratorState& state) override {
    move_to(range_.count);
    if (!state.has("split_piece")) return input_->restore(state);
    if (const int64_t pieces = state.get_int("split_pieces"); pieces != num_pieces_) {
      throw InvalidArgumentError(str("this state was taken within a batch that was cut into ",
                                     pieces, " pieces; here batches are cut into ", num_pieces_,
                                     ", so take it between two global batches"));
    }
    const int64_t first = state.has("split_first") ? state.get_int("split_first") : 0;
    if (first != range_.first) {
      throw InvalidArgumentError(str(
          "this state was taken within a batch by a reader of pieces from ", first,
          " on; here they are from ", range_.first, " on, so take it between two global batches"));
    }
    piece_ = state.get_int("split_piece", 1, range_.count - 1);
    input_->restore(state.child("input"));
  }

 private:
  // Reads the next batch, or takes down why there is none; false at the end.
  bool load() {
    before_ = std::make_shared<const IteratorState>(input_->save());
    error_ = nullptr;
    try {
      if (!input_->next(batch_)) return false;
      rows_ = rows_of_batch(batch_);
    } catch (const std::exception&) {  // each piece has it
      error_ = std::current_exception();
    }
    loaded_ = true;
    return true;
  }
  void move_to(int64_t piece) {
    piece_ = piece % range_.count;
    if (piece_ != 0) return;
    loaded_ = false;
    batch_ = Structure();
  }

  std::unique_ptr<DataIterator> input_;
  int64_t num_pieces_;
  PieceRange range_;
  int64_t piece_ = 0;    // of the range: the next one of the current batch, or of the one to come
  bool loaded_ = false;  // batch_ or error_ is the current batch
  Structure batch_;
  int64_t rows_ = 0;
  std::exception_ptr error_;
  IteratorState::Child before_;  // the input's state before the current batch
};

class SplitNode final : public UnaryNode {
 public:
  SplitNode(DataNodePtr input, int64_t num_pieces, PieceRange range)
      : UnaryNode("split_batches", std::move(input)), num_pieces_(num_pieces), range_(range) {
    if (num_pieces < 1) {
      throw InvalidArgumentError(
          str("split_batches: num_pieces is ", num_pieces, "; it must be at least 1"));
    }
  }

  // The range is not the dataset's: a state fits readers of other pieces.
  Attributes attributes() const override { return {{"num_pieces", str(num_pieces_)}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<SplitNode>(std::move(inputs[0]), num_pieces_, range_);
  }
  StructureSpec element_spec() const override {
    const StructureSpec batches = input().element_spec();
    check_batched(batches);
    return map_nodes(batches, [this](const StructureSpec& node) {
      if (node.is_leaf() && !node.leaf().shape()) return node;
      const int64_t rows = spec_rows(node);
      const bool equal = rows != kUnknownDim && rows % num_pieces_ == 0;
      return spec_with_rows(node, equal ? rows / num_pieces_ : kUnknownDim);
    });
  }
  int64_t cardinality() const override {
    const int64_t batches = input().cardinality();
    if (batches < 0) return batches;
    return batches > kInfiniteSize / range_.count ? data::kInfiniteCardinality
                                                  : batches * range_.count;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<SplitIterator>(input().make_iterator(context), num_pieces_, range_);
  }
  bool is_transparent() const override { return true; }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override {
    const int64_t rows = input().batch_size();
    return rows != kUnknownBatchSize && rows % num_pieces_ == 0 ? rows / num_pieces_
                                                                : kUnknownBatchSize;
  }

 private:
  int64_t num_pieces_;
  PieceRange range_;
};

}  // namespace

std::vector<Structure> split_batch(const Structure& batch, int64_t num_pieces, PieceRange range) {
  const int64_t rows = rows_of_batch(batch);
  std::vector<Structure> pieces;
  pieces.reserve(static_cast<size_t>(range.count));
  for (int64_t i = 0; i < range.count; ++i) {
    pieces.push_back(piece_of(batch, rows, range.first + i, num_pieces));
  }
  return pieces;
}

DataNodePtr make_split(const DataNodePtr& batches, int64_t num_pieces) {
  return make_split(batches, num_pieces, {0, num_pieces});
}

DataNodePtr make_split(const DataNodePtr& batches, int64_t num_pieces, PieceRange range) {
  return std::make_shared<SplitNode>(batches, num_pieces, range);
}

void check_batched(const StructureSpec& element_spec) {
  map_nodes(element_spec, [&](const StructureSpec& node) -> StructureSpec {
    const bool scalar = node.is_leaf() && node.leaf().shape() && node.leaf().shape()->empty();
    if (!scalar && composite_kind(node) != Composite::kRaggedRow) return node;
    throw InvalidArgumentError(str("elements of ", element_spec,
                                   " have no batch dimension to split over replicas; call `batch` "
                                   "on the dataset first"));
  });
}

void check_not_examples(const DataNode& dataset) {
  int64_t batch_size = kUnknownBatchSize;
  try {
    batch_size = dataset.batch_size();
  } catch (const InputDeadlineExceeded&) {
    throw;
  } catch (const std::exception&) {  // of elements that somebody may leave out: ignore_errors
  }
  if (batch_size != kSingleExamples) return;
  throw InvalidArgumentError(
      str("elements of ", dataset.element_spec(),
          " are single examples, whose first dimension is none of a batch; call `.batch(n)` on the "
          "dataset first (`.rebatch(n)` where each is a batch of n rows already)"));
}

}  // namespace cohort::internal

namespace cohort::data {

Dataset split_batches(const Dataset& dataset, int64_t num_pieces) {
  const internal::DataNodePtr split = internal::make_split(dataset.node(), num_pieces);
  internal::check_batched(dataset.element_spec());
  internal::check_not_examples(*dataset.node());
  return Dataset(split, dataset.options());
}

}  // namespace cohort::data
