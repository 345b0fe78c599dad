#include <ATen/ops/empty.h>

#include <algorithm>

#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/batch_rows.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/iteration/pass_interrupted.h"
#include "cohort/data/iteration/row_specs.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {

struct RebatchPlan {
  std::vector<int64_t> sizes;
  bool drop_remainder = false;
};

// A batch without rows: every other dimension of unknown size is 0 too.
Structure empty_batch(const StructureSpec& input_spec) {
  return empty_rows(input_spec, [](const TensorSpec& spec) -> Leaf {
    std::vector<int64_t> shape = spec.shape().value_or(std::vector<int64_t>{0});
    if (shape.empty())
      throw InvalidArgumentError("rebatch: scalars have no rows; call batch first");
    shape[0] = 0;
    for (int64_t& size : shape) size = std::max<int64_t>(size, 0);
    if (spec.is_string()) return StringTensor({}, shape);
    return at::empty(shape, spec.dtype());
  });
}

// Rows come out of the batch that is being cut up; its state is the input's before that batch, and
// the row.
class RebatchIterator final : public DataIterator {
 public:
  RebatchIterator(std::unique_ptr<DataIterator> input, DataNodePtr input_node, RebatchPlan plan)
      : input_(std::move(input)),
        input_node_(std::move(input_node)),
        plan_(std::move(plan)),
        before_batch_(std::make_shared<const IteratorState>(input_->save())) {}

  bool next(Structure& out) override {
    if (ended_) return false;
    const int64_t wanted = plan_.sizes[turn_];
    turn_ = (turn_ + 1) % plan_.sizes.size();
    if (wanted == 0) {
      if (!empty_) empty_ = of_pass([this] { return empty_batch(input_node_->element_spec()); });
      out = *empty_;
      return true;
    }
    return gather(wanted, out);
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override {
    start();
    index_ = 0;
    input_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    const bool inside = row_ < rows_;
    state.set_int("index", inside ? index_ - 1 : index_);
    state.set_int("row", inside ? row_ : 0);
    state.set_int("turn", static_cast<int64_t>(turn_));
    state.set_int("ended", ended_);
    state.set_child("input",
                    inside ? before_batch_ : std::make_shared<const IteratorState>(input_->save()));
    return state;
  }
  void restore(const IteratorState& state) override {
    start();
    input_->restore(state.child("input"));
    index_ = state.get_int("index", 0, kMostElements);
    turn_ =
        static_cast<size_t>(state.get_int("turn", 0, static_cast<int64_t>(plan_.sizes.size()) - 1));
    ended_ = state.get_int("ended", 0, 1) == 1;
    const int64_t row = state.get_int("row", 0, kInfiniteSize);
    if (row == 0) return;
    if (!read_batch() || row >= rows_) {
      throw DataLossError(
          str("rebatch: the state is of row ", row, " of a batch that has only ", rows_, " now"));
    }
    row_ = row;
  }

 private:
  void start() {
    batch_ = Structure();
    rows_ = row_ = 0;
    turn_ = 0;
    ended_ = false;
  }
  // A batch of `wanted` rows, or fewer at the end; false where there is none.
  bool gather(int64_t wanted, Structure& out) {
    std::vector<Structure> pieces;
    std::vector<int64_t> indices;  // of the batches that they are from
    int64_t gathered = 0;
    while (gathered < wanted) {
      if (row_ == rows_ && !read_batch()) {
        ended_ = true;
        break;
      }
      const int64_t count = std::min(wanted - gathered, rows_ - row_);
      if (count > 0) {
        const bool whole = row_ == 0 && count == rows_;
        pieces.push_back(whole ? batch_ : slice_rows(batch_, row_, row_ + count));
        indices.push_back(index_ - 1);
      }
      row_ += count;
      gathered += count;
    }
    if (gathered == 0 || (plan_.drop_remainder && gathered < wanted)) return false;
    out = concat_blocks(pieces, Positions::list(indices));
    return true;
  }
  bool read_batch() {
    rows_ = row_ = 0;
    before_batch_ = std::make_shared<const IteratorState>(input_->save());
    if (read_counted(index_, 1, [&] { return input_->next(batch_); }) == 0) return false;
    rows_ = checked_rows("rebatch", batch_);
    return true;
  }

  std::unique_ptr<DataIterator> input_;
  DataNodePtr input_node_;
  RebatchPlan plan_;
  std::shared_ptr<const IteratorState> before_batch_;
  Structure batch_;
  int64_t rows_ = 0;
  int64_t row_ = 0;    // the next one
  int64_t index_ = 0;  // of the next input batch
  size_t turn_ = 0;    // which size is next
  bool ended_ = false;
  std::optional<Structure> empty_;
};

class RebatchNode final : public UnaryNode {
 public:
  RebatchNode(DataNodePtr input, RebatchPlan plan)
      : UnaryNode("rebatch", std::move(input)), plan_(std::move(plan)) {
    const auto& sizes = plan_.sizes;
    if (sizes.empty()) throw InvalidArgumentError("rebatch: there are no batch sizes; give one");
    for (const int64_t size : sizes) {
      if (size < 0) {
        throw InvalidArgumentError(
            str("rebatch: batch sizes are ", shape_str(sizes), "; none may be below 0"));
      }
    }
    if (std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size == 0; })) {
      throw InvalidArgumentError(
          str("rebatch: batch sizes are ", shape_str(sizes), "; at least one must be above 0"));
    }
  }

  Attributes attributes() const override {
    Attributes attributes = {{"batch_sizes", shape_str(plan_.sizes)}};
    if (plan_.drop_remainder) attributes.emplace_back("drop_remainder", "true");
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<RebatchNode>(std::move(inputs[0]), plan_);
  }
  StructureSpec element_spec() const override {
    const StructureSpec spec = input().element_spec();
    const int64_t rows = static_rows(spec);
    return spec_with_rows(spec, rows);
  }
  int64_t cardinality() const override {
    return input().cardinality() == data::kInfiniteCardinality ? data::kInfiniteCardinality
                                                               : data::kUnknownCardinality;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<RebatchIterator>(input().make_iterator(context.keeping_order()),
                                             inputs()[0], plan_);
  }
  bool passes_file_sharding() const override { return true; }
  ShardingRole sharding_role() const override { return ShardingRole::kRebatch; }
  int64_t batch_size() const override { return all_equal() ? plan_.sizes[0] : kUnknownBatchSize; }

 private:
  bool all_equal() const {
    return std::all_of(plan_.sizes.begin(), plan_.sizes.end(),
                       [&](int64_t size) { return size == plan_.sizes[0]; });
  }
  // Known where all batches are sure to have as many.
  int64_t static_rows(const StructureSpec& input_spec) const {
    if (!all_equal()) return kUnknownDim;
    if (plan_.drop_remainder) return plan_.sizes[0];
    for (const TensorSpec& spec : input_spec.flatten()) {
      if (!spec.shape() || spec.shape()->empty() || spec.shape()->front() == kUnknownDim ||
          spec.shape()->front() % plan_.sizes[0] != 0) {
        return kUnknownDim;
      }
    }
    return plan_.sizes[0];
  }

  RebatchPlan plan_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::rebatch(int64_t batch_size, BatchOptions options) const {
  return rebatch(std::vector<int64_t>{batch_size}, options);
}

Dataset Dataset::rebatch(std::vector<int64_t> batch_sizes, BatchOptions options) const {
  internal::RebatchPlan plan{std::move(batch_sizes), options.drop_remainder};
  return Dataset(std::make_shared<internal::RebatchNode>(node_, std::move(plan)), options_);
}

}  // namespace cohort::data
