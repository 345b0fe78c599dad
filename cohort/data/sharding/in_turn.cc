#include "cohort/data/sharding/in_turn.h"

#include <algorithm>
#include <utility>

#include "cohort/core/text.h"
#include "cohort/data/iteration/batch_rows.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {

constexpr const char* kTurn = "turn";
constexpr const char* kRoot = "root";
constexpr const char* kSkip = "skip";
constexpr const char* kPiece = "piece";
constexpr const char* kPieces = "pieces";

std::string name_of(size_t pipeline) { return str("pipeline_", pipeline); }

IteratorState state_of(const PipelineRest& rest) {
  IteratorState state;
  state.set_child(kRoot, rest.root);
  state.set_int(kSkip, rest.skip);
  state.set_int(kPiece, rest.piece);
  state.set_int(kPieces, rest.pieces);
  return state;
}

class InTurnIterator final : public DataIterator {
 public:
  explicit InTurnIterator(std::vector<std::unique_ptr<DataIterator>> inputs)
      : inputs_(std::move(inputs)), rests_(inputs_.size()) {}

  bool next(Structure& out) override {
    for (size_t tried = 0; tried < inputs_.size();) {
      last_ = turn_;
      turn_ = (turn_ + 1) % inputs_.size();
      if (!inputs_[last_]->next(out)) {
        ++tried;
        continue;
      }
      PipelineRest& rest = rests_[last_];
      if (rest.piece == 0 || cut(rest, out)) return true;
      tried = 0;
    }
    return false;
  }
  std::shared_ptr<const std::string> last_origin() const override {
    return inputs_[last_]->last_origin();
  }
  void rewind(uint64_t epoch) override {
    turn_ = 0;
    rests_.assign(inputs_.size(), {});
    for (const auto& input : inputs_) input->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int(kTurn, static_cast<int64_t>(turn_));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      PipelineRest rest = rests_[i];
      rest.root = std::make_shared<const IteratorState>(inputs_[i]->save());
      state.set_child(name_of(i), state_of(rest));
    }
    return state;
  }
  void restore(const IteratorState& state) override {
    turn_ = static_cast<size_t>(state.get_int(kTurn, 0, static_cast<int64_t>(inputs_.size()) - 1));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const IteratorState& own = state.child(name_of(i));
      inputs_[i]->restore(own.child(kRoot));
      if (const int64_t skip = own.get_int(kSkip, 0, kMostElements); skip > 0) {
        inputs_[i]->skip(skip);
      }
      rests_[i].pieces = own.get_int(kPieces, 1, kMostElements);
      rests_[i].piece = own.get_int(kPiece, 0, rests_[i].pieces - 1);
    }
  }

 private:
  // Takes the pieces that are used up off the batch; false if no row is left.
  static bool cut(PipelineRest& rest, Structure& batch) {
    const int64_t rows = checked_rows("the rest of a batch", batch);
    const int64_t size = rows / rest.pieces + (rows % rest.pieces != 0 ? 1 : 0);
    const int64_t first = std::min(rows, size * rest.piece);
    rest = {};
    if (first < rows) batch = slice_rows(batch, first, rows);
    return first < rows;
  }

  const std::vector<std::unique_ptr<DataIterator>> inputs_;
  std::vector<PipelineRest> rests_;  // without their roots
  size_t turn_ = 0;
  size_t last_ = 0;
};

class InTurnNode final : public DataNode {
 public:
  explicit InTurnNode(std::vector<DataNodePtr> pipelines)
      : DataNode("in_turn", std::move(pipelines)) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<InTurnNode>(std::move(inputs));
  }
  StructureSpec element_spec() const override { return inputs()[0]->element_spec(); }
  int64_t cardinality() const override {
    int64_t sum = 0;
    for (const DataNodePtr& input : inputs()) {
      const int64_t own = input->cardinality();
      if (own < 0) return own;
      sum += own;
    }
    return sum;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    std::vector<std::unique_ptr<DataIterator>> iterators;
    IteratorContext own = context.keeping_order();
    for (const DataNodePtr& input : inputs()) {
      iterators.push_back(input->make_iterator(own));
      ++own.worker;
    }
    return std::make_unique<InTurnIterator>(std::move(iterators));
  }
};

}  // namespace

DataNodePtr make_in_turn(std::vector<DataNodePtr> pipelines) {
  return std::make_shared<InTurnNode>(std::move(pipelines));
}

IteratorState state_in_turn(const std::vector<PipelineRest>& rests) {
  IteratorState state;
  state.set_int(kTurn, 0);
  for (size_t i = 0; i < rests.size(); ++i) state.set_child(name_of(i), state_of(rests[i]));
  return state;
}

}  // namespace cohort::internal
