#include <c10/core/GradMode.h>

#include <algorithm>
#include <span>
#include <utility>

#include "cohort/core/structure/tree_form.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/map_function.h"
#include "cohort/data/functions/parallel_calls.h"
#include "cohort/data/functions/probe.h"
#include "cohort/data/functions/probed_spec.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/blocks.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/iteration/origin.h"
#include "cohort/data/iteration/row_source.h"
#include "cohort/data/iteration/stacking.h"
#include "cohort/data/nodes/parallel_map.h"

namespace cohort::internal {
namespace {
using MapFunctionPtr = std::shared_ptr<const MapFunction>;

class MapIterator final : public CountingIterator, public MakesRows {
 public:
  MapIterator(std::unique_ptr<DataIterator> input, MapFunctionPtr function,
              const RandomPass& random)
      : CountingIterator(function->vectorized() ? with_blocks(std::move(input)) : std::move(input)),
        function_(std::move(function)),
        random_(random) {}

  bool next(Structure& out) override {
    if (function_->vectorized()) {
      if (next_block(1, out) == 0) return false;
      out = select_row(out, 0);
      return true;
    }
    if (!read(element_)) return false;
    const RowOffer offer(rows_.next());
    out = with_origin(*input_, [&] { return function_->apply(element_, index_ - 1, random_); });
    rows_.learn(out);
    return true;
  }
  void expect_batches(int64_t rows) override { rows_.expect_batches(rows); }
  bool has_blocks() const override {
    return function_->vectorized() || (function_->takes_blocks() && input_->has_blocks());
  }
  int64_t next_block(int64_t n, Structure& out) override {
    const int64_t count = read_block(n, element_);
    if (count == 0) return 0;
    try {
      out = with_origin(*input_, [&] {
        return function_->apply_block(element_, Positions::run(index_ - count, count));
      });
    } catch (const std::exception&) {
      skip(n - count);
      throw;
    }
    return count;
  }
  int64_t pick_block(std::span<const int64_t> gaps, Structure& out) override {
    const int64_t count = input_->pick_block(gaps, element_);
    if (count == 0) return 0;
    std::vector<int64_t> indices;
    for (const int64_t gap : gaps.first(static_cast<size_t>(count))) {
      index_ += gap;
      indices.push_back(index_++);
    }
    out = with_origin(*input_,
                      [&] { return function_->apply_block(element_, Positions::list(indices)); });
    return count;
  }
  int64_t skip(int64_t n) override {
    rows_.restart();
    return pass_over(n);
  }
  void rewind(uint64_t epoch) override {
    random_.epoch = epoch;
    rows_.restart();
    CountingIterator::rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state = CountingIterator::save();
    if (function_->is_random()) {
      state.set_int("seed", static_cast<int64_t>(random_.seed));
      state.set_int("epoch", static_cast<int64_t>(random_.epoch));
    }
    return state;
  }
  void restore(const IteratorState& state) override {
    if (function_->is_random()) {
      random_.seed = static_cast<uint64_t>(state.get_int("seed"));
      random_.epoch = static_cast<uint64_t>(state.get_int("epoch"));
    }
    rows_.restart();
    CountingIterator::restore(state);
  }

 private:
  MapFunctionPtr function_;
  RandomPass random_;
  RowSource rows_;
  Structure element_;
};

class MapIndexed final : public IndexedData {
 public:
  MapIndexed(std::unique_ptr<IndexedData> input, MapFunctionPtr function)
      : input_(std::move(input)), function_(std::move(function)) {}

  int64_t size() const override { return input_->size(); }
  void read(int64_t position, Structure& out) override {
    if (function_->vectorized()) {
      read_block(Positions::run(position, 1), out);
      out = select_row(out, 0);
      return;
    }
    Structure element;
    input_->read(position, element);
    out = function_->apply(element, position);
  }
  // Calls that run side by side are cheaper together too.
  bool has_blocks() const override {
    return maps_blocks() || function_->options().num_parallel_calls.value_or(1) != 1;
  }
  void read_block(const Positions& positions, Structure& out) override {
    const int64_t calls = function_->num_parallel_calls(positions.size());
    if (!maps_blocks()) return read_elements(positions, calls, out);
    Structure block;
    input_->read_block(positions, block);
    const int64_t pieces = function_->vectorized() ? 1 : std::min(calls, positions.size());
    out = pieces < 2 ? function_->apply_block(block, positions)
                     : apply_in_pieces(block, positions, pieces);
  }

 private:
  bool maps_blocks() const {
    return function_->vectorized() || (function_->takes_blocks() && input_->has_blocks());
  }
  // The calls of one block run side by side; they are read in order.
  void read_elements(const Positions& positions, int64_t calls, Structure& out) {
    std::vector<Structure> elements(static_cast<size_t>(positions.size()));
    std::vector<std::vector<RowMemory>> rows(elements.size());
    rows_.expect_batches(positions.size());
    rows_.restart();
    const auto read = [&](int64_t i) {
      input_->read(positions[i], elements[i]);
      rows[i] = rows_.next();
    };
    const auto apply = [&](int64_t i) {
      const RowOffer offer(std::exchange(rows[i], {}));
      elements[i] = function_->apply(elements[i], positions[i]);
    };
    if (calls < 2) {
      for (int64_t i = 0; i < positions.size(); ++i) {
        read(i);
        apply(i);
      }
    } else {
      for (int64_t i = 0; i < positions.size(); ++i) read(i);
      parallel_for(positions.size(), calls, apply);
    }
    rows_.learn(elements[0]);
    out = stack_elements(elements, positions);
  }
  Structure apply_in_pieces(const Structure& block, const Positions& positions, int64_t pieces) {
    const int64_t count = positions.size();
    std::vector<int64_t> indices(static_cast<size_t>(count)), firsts;
    for (int64_t i = 0; i < count; ++i) indices[i] = positions[i];
    for (int64_t i = 0; i < pieces; ++i) firsts.push_back(count * i / pieces);
    std::vector<Structure> results(static_cast<size_t>(pieces));
    parallel_for(pieces, pieces, [&](int64_t i) {
      const int64_t begin = firsts[i], end = count * (i + 1) / pieces;
      results[i] =
          function_->apply_block(slice_rows(block, begin, end),
                                 Positions::list(std::span(indices).subspan(begin, end - begin)));
    });
    return concat_blocks(results, Positions::list(firsts));
  }

  std::unique_ptr<IndexedData> input_;
  MapFunctionPtr function_;
  RowSource rows_;
};

// Whether two specs have the same form, and their leaves the same known ranks.
bool same_ranks(const StructureSpec& a, const StructureSpec& b) {
  if (!same_top(a, b)) return false;
  if (a.is_leaf()) {
    const auto& x = a.leaf().shape();
    const auto& y = b.leaf().shape();
    return x && y && x->size() == y->size();
  }
  if (a.is_tuple()) return std::ranges::equal(a.members(), b.members(), same_ranks);
  return std::ranges::equal(a.items(), b.items(), [](const auto& x, const auto& y) {
    return same_ranks(x.second, y.second);
  });
}

class MapNode final : public IndexableNode {
 public:
  MapNode(DataNodePtr input, MapFunctionPtr function, uint64_t seed)
      : IndexableNode("map", std::move(input)), function_(std::move(function)), seed_(seed) {}

  Attributes attributes() const override {
    const data::MapOptions& options = function_->options();
    Attributes attributes;
    if (function_->vectorized()) attributes.emplace_back("vectorized", "true");
    if (function_->is_random()) {
      attributes.emplace_back("random", options.seed ? str("seed ", *options.seed) : "true");
    }
    if (options.num_parallel_calls) {
      attributes.emplace_back("num_parallel_calls", autotune_text(*options.num_parallel_calls));
    }
    if (options.deterministic) {
      attributes.emplace_back("deterministic", *options.deterministic ? "true" : "false");
    }
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<MapNode>(std::move(inputs[0]), function_, seed_);
  }
  StructureSpec element_spec() const override {
    if (auto declared = function_->declared_spec()) return *declared;
    return spec_.get([&] { return find_spec(); });
  }
  bool guesses_spec() const override { return !function_->declared_spec(); }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    const data::MapOptions& options = function_->options();
    if (options.num_parallel_calls && !context.probing) {
      // States count elements that overtook others if order is not kept.
      const bool deterministic = context.is_deterministic(options.deterministic);
      return make_parallel_map_iterator(
          input().make_iterator(deterministic ? context : context.keeping_order()), function_,
          {random_pass(context), deterministic});
    }
    return IndexableNode::make_iterator(context);
  }
  bool passes_file_sharding() const override { return true; }
  // The function may change the number of rows. Out of one example it can make a batch, too, but
  // that has a dimension more, or another form.
  int64_t batch_size() const override {
    const bool examples = input().batch_size() == kSingleExamples &&
                          same_ranks(input().element_spec(), element_spec());
    return examples ? kSingleExamples : kUnknownBatchSize;
  }

 private:
  std::unique_ptr<IndexedData> by_position(std::unique_ptr<IndexedData> elements) const override {
    if (function_->is_random()) return nullptr;
    return std::make_unique<MapIndexed>(std::move(elements), function_);
  }
  std::unique_ptr<DataIterator> in_order(const IteratorContext& context) const override {
    return std::make_unique<MapIterator>(input().make_iterator(context), function_,
                                         random_pass(context));
  }
  RandomPass random_pass(const IteratorContext& context) const {
    return {context.worker == 0 ? seed_ : mix_seeds(seed_, context.worker), context.epoch};
  }

  // Finds the spec by calling the function, once if it does not fail.
  StructureSpec find_spec() const {
    const c10::NoGradGuard no_grad;
    const StructureSpec input_spec = input().element_spec();
    std::optional<StructureSpec> found;
    probe(input(), [&](const Structure& element, int64_t index) {
      const auto at = Positions::run(index, 1);
      const Structure result =
          function_->vectorized()
              ? select_row(function_->apply_block(stack_elements({element}, at), at), 0)
              : function_->apply(element, index);
      found = generalize(result, input_spec, element);
    });
    if (found) return *std::move(found);
    throw FailedPreconditionError(
        "map: what the function returns cannot be found out, since its input has no elements; "
        "give MapOptions.output_spec");
  }

  MapFunctionPtr function_;
  uint64_t seed_;
  Lazy<StructureSpec> spec_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::map_erased(internal::ElementFunction fn, MapOptions options) const {
  // Only random maps take a seed from set_seed: others must not change those of shuffles.
  const uint64_t seed = options.seed ? *options.seed : fn.random ? internal::next_seed() : 0;
  auto function = std::make_shared<const internal::MapFunction>(std::move(fn), std::move(options));
  return Dataset(std::make_shared<internal::MapNode>(node_, std::move(function), seed), options_);
}

}  // namespace cohort::data
