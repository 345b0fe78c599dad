#include "cohort/data/nodes/parallel_map.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

#include "cohort/core/caught_error.h"
#include "cohort/data/iteration/blocks.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/iteration/origin.h"
#include "cohort/data/iteration/row_source.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {

// The most rows of a block that a state says was read: a state may name any number.
constexpr int64_t kMostRowsAtOnce = int64_t{1} << 16;

// The reader's thread reads the input and hands elements (or blocks) to the pool, and with each
// takes down the input's state before it: where the reader stands is where the oldest unit came
// from that was not delivered, less those after it that were.
class ParallelMapIterator final : public DataIterator, public MakesRows {
 public:
  ParallelMapIterator(std::unique_ptr<DataIterator> input,
                      std::shared_ptr<const MapFunction> function,
                      const ParallelMapOptions& options)
      : input_(function->vectorized() ? with_blocks(std::move(input)) : std::move(input)),
        function_(std::move(function)),
        options_(options),
        in_blocks_(function_->vectorized() || (function_->takes_blocks() && input_->has_blocks())) {
  }

  bool next(Structure& out) override {
    if (take(1, out) == 0) return false;
    if (in_blocks_) out = select_row(out, 0);
    return true;
  }
  std::shared_ptr<const std::string> last_origin() const override { return last_origin_; }
  bool has_blocks() const override { return in_blocks_; }
  int64_t next_block(int64_t n, Structure& out) override { return take(n, out); }
  int64_t skip(int64_t n) override;
  void expect_batches(int64_t rows) override { rows_.expect_batches(rows); }
  void rewind(uint64_t epoch) override {
    drop_units();
    rows_.restart();
    index_ = 0;
    options_.random.epoch = epoch;
    input_->rewind(epoch);
  }
  IteratorState save() override;
  void restore(const IteratorState& state) override;

 private:
  using StatePtr = std::shared_ptr<const IteratorState>;
  // An element, or a block of them.
  struct Unit {
    StatePtr before;    // the input's state
    int64_t first = 0;  // index of the (first) element
    int64_t asked = 1;  // elements asked for, and those that came
    int64_t rows = 1;
    int64_t taken = 0;          // rows delivered
    bool failed_whole = false;  // the error is not that of single rows: they are not tried alone
    Structure value;  // the element, then the result; where the function failed the element
    std::vector<RowMemory> place;  // for the result
    std::exception_ptr error;
    std::shared_ptr<const std::string> origin;  // null: not known
    WorkGroup::TaskPtr task;                    // null: there is nothing to do
    bool delivered() const { return taken == rows; }
  };
  using UnitPtr = std::shared_ptr<Unit>;

  void drop_units() {
    work_.cancel();
    units_.clear();
  }
  // Reads up to `n` elements, which begin at index_, and returns how many: 0 only at the end.
  int64_t read(int64_t n, Structure& out);
  Structure apply(const Structure& value, int64_t first, int64_t rows) const;
  // Reads a unit of `n` elements; null at the end. An error of the input is the unit's.
  UnitPtr read_unit(int64_t n);
  // Reads a unit again of which a restored state says that it is there.
  UnitPtr reread_unit(int64_t n);
  void run(Unit& unit) const;
  void start(const UnitPtr& unit) {
    if (!in_blocks_) unit->place = rows_.next();
    if (!unit->error) unit->task = work_.add([this, unit] { run(*unit); });
    units_.push_back(unit);
  }
  // Starts units of `n` elements until as many are under way as may be.
  void top_up(int64_t n, int64_t calls);
  // The unit to deliver next, done.
  UnitPtr next_unit();
  // Up to `n` elements: rows of a block, or 1. Where one fails, all `n` are consumed.
  int64_t take(int64_t n, Structure& out);
  // The same, but an error consumes so many as `failed` says then.
  int64_t take_some(int64_t n, Structure& out, int64_t& failed);
  int64_t deliver(Unit& unit, int64_t n, Structure& out, int64_t& failed);

  std::unique_ptr<DataIterator> input_;
  std::shared_ptr<const MapFunction> function_;
  ParallelMapOptions options_;
  const bool in_blocks_;
  int64_t index_ = 0;                               // of the next element of the input
  std::shared_ptr<const std::string> last_origin_;  // of what was delivered last
  RowSource rows_;
  std::deque<UnitPtr> units_;  // in the input's order, the first one not delivered
  WorkGroup work_;             // last: its threads end first
};

int64_t ParallelMapIterator::read(int64_t n, Structure& out) {
  return read_counted(index_, n, [&]() -> int64_t {
    return in_blocks_ ? input_->next_block(n, out) : input_->next(out);
  });
}

ParallelMapIterator::UnitPtr ParallelMapIterator::read_unit(int64_t n) {
  auto unit = std::make_shared<Unit>();
  unit->before = std::make_shared<const IteratorState>(input_->save());
  unit->first = index_;
  unit->asked = unit->rows = n;
  try {
    unit->rows = read(n, unit->value);
  } catch (const std::exception&) {
    unit->error = std::current_exception();
    unit->failed_whole = true;
  }
  unit->origin = input_->last_origin();
  return unit->rows > 0 ? unit : nullptr;
}

ParallelMapIterator::UnitPtr ParallelMapIterator::reread_unit(int64_t n) {
  UnitPtr unit = read_unit(n);
  if (!unit) throw DataLossError("map: an element of this state is no longer there");
  return unit;
}

Structure ParallelMapIterator::apply(const Structure& value, int64_t first, int64_t rows) const {
  return in_blocks_ ? function_->apply_block(value, Positions::run(first, rows))
                    : function_->apply(value, first, options_.random);
}

void ParallelMapIterator::run(Unit& unit) const {
  try {
    const RowOffer offer(std::exchange(unit.place, {}));
    unit.value = with_origin(unit.origin, [&] { return apply(unit.value, unit.first, unit.rows); });
  } catch (...) {
    unit.error = std::current_exception();
    if (unit.error) return;
    unit.error = thread_ended_error(str("the function of map, on element ", unit.first));
    unit.failed_whole = true;
    throw;
  }
}

void ParallelMapIterator::top_up(int64_t n, int64_t calls) {
  while (static_cast<int64_t>(units_.size()) < calls) {
    const UnitPtr unit = read_unit(n);
    if (!unit) return;
    start(unit);
  }
}

ParallelMapIterator::UnitPtr ParallelMapIterator::next_unit() {
  const UnitPtr& oldest = units_.front();
  if (options_.deterministic || in_blocks_) {
    if (oldest->task) work_.finish(oldest->task);
    return oldest;
  }
  std::vector<WorkGroup::TaskPtr> open;
  for (const UnitPtr& unit : units_) {
    if (unit->delivered()) continue;
    if (!unit->task || work_.is_done(unit->task)) return unit;
    open.push_back(unit->task);
  }
  work_.finish_any(open);
  return *std::find_if(units_.begin(), units_.end(), [&](const UnitPtr& unit) {
    return !unit->delivered() && work_.is_done(unit->task);
  });
}

// Delivers rows of a unit. Rows of a block that failed may be good: they fail, as without threads,
// together with one that is not, and with no other.
int64_t ParallelMapIterator::deliver(Unit& unit, int64_t n, Structure& out, int64_t& failed) {
  last_origin_ = unit.origin;
  const int64_t first = unit.taken;
  const int64_t count = std::min(n, unit.rows - first);
  if (unit.error) {
    unit.taken += count;
    failed = count;
    if (unit.failed_whole || count == unit.rows) std::rethrow_exception(unit.error);
    out = slice_rows(unit.value, first, first + count);
    out = with_origin(unit.origin, [&] { return apply(out, unit.first + first, count); });
    return count;
  }
  if (in_blocks_ && count < unit.rows) {
    out = slice_rows(unit.value, unit.taken, unit.taken + count);
  } else {
    out = std::move(unit.value);
    if (!in_blocks_) rows_.learn(out);
  }
  unit.taken += count;
  return count;
}

int64_t ParallelMapIterator::take(int64_t n, Structure& out) {
  int64_t failed = n;
  try {
    return take_some(n, out, failed);
  } catch (const std::exception&) {
    skip(n - failed);
    throw;
  }
}

int64_t ParallelMapIterator::take_some(int64_t n, Structure& out, int64_t& failed) {
  const int64_t calls = function_->num_parallel_calls(n);
  if (calls > 1) top_up(n, calls);
  if (units_.empty()) {
    const int64_t first = index_;
    const int64_t rows = read(n, out);
    if (rows == 0) return 0;
    failed = rows;
    last_origin_ = input_->last_origin();
    out = with_origin(*input_, [&] { return apply(out, first, rows); });
    return rows;
  }
  const UnitPtr unit = next_unit();
  struct Cleanup {
    std::deque<UnitPtr>& units;
    ~Cleanup() {
      while (!units.empty() && units.front()->delivered()) units.pop_front();
    }
  } cleanup{units_};
  return deliver(*unit, n, out, failed);
}

int64_t ParallelMapIterator::skip(int64_t n) {
  rows_.restart();
  int64_t skipped = 0;
  for (const UnitPtr& unit : units_) {
    const int64_t count = std::min(n - skipped, unit->rows - unit->taken);
    unit->taken += count;
    skipped += count;
  }
  while (!units_.empty() && units_.front()->delivered()) units_.pop_front();
  if (skipped == n) return n;
  const int64_t more = input_->skip(n - skipped);
  index_ += more;
  return skipped + more;
}

// What was delivered out of order is one byte a unit, in the order of the input.
IteratorState ParallelMapIterator::save() {
  IteratorState state;
  std::string delivered;
  for (const UnitPtr& unit : units_) delivered += unit->delivered() ? '\1' : '\0';
  while (!delivered.empty() && delivered.back() == '\0') delivered.pop_back();
  const Unit* oldest = units_.empty() ? nullptr : units_.front().get();
  state.set_int("seed", static_cast<int64_t>(options_.random.seed));
  state.set_int("epoch", static_cast<int64_t>(options_.random.epoch));
  state.set_int("index", oldest ? oldest->first : index_);
  state.set_bytes("delivered", std::move(delivered));
  state.set_int("rows", oldest && oldest->taken > 0 ? oldest->asked : 0);
  state.set_int("row", oldest ? oldest->taken : 0);
  state.set_child("input",
                  oldest ? oldest->before : std::make_shared<const IteratorState>(input_->save()));
  return state;
}

void ParallelMapIterator::restore(const IteratorState& state) {
  drop_units();
  rows_.restart();
  options_.random.seed = static_cast<uint64_t>(state.get_int("seed"));
  options_.random.epoch = static_cast<uint64_t>(state.get_int("epoch"));
  index_ = state.get_int("index", 0, kMostElements);
  input_->restore(state.child("input"));
  for (const char delivered : state.get_bytes("delivered")) {
    const UnitPtr unit = reread_unit(1);
    if (delivered == 0) {
      start(unit);
      continue;
    }
    unit->taken = unit->rows;
    unit->value = Structure();
    units_.push_back(unit);
  }
  // A block may come in pieces now.
  int64_t rows = state.get_int("rows", 0, kMostElements);
  int64_t row = state.get_int("row", 0, std::max<int64_t>(rows - 1, 0));
  while (row > 0) {
    const UnitPtr unit = reread_unit(std::min(rows, kMostRowsAtOnce));
    unit->taken = std::min(row, unit->rows);
    row -= unit->taken;
    rows -= unit->rows;
    if (!unit->delivered()) start(unit);
  }
}

}  // namespace

std::unique_ptr<DataIterator> make_parallel_map_iterator(
    std::unique_ptr<DataIterator> input, std::shared_ptr<const MapFunction> function,
    const ParallelMapOptions& options) {
  return std::make_unique<ParallelMapIterator>(std::move(input), std::move(function), options);
}

}  // namespace cohort::internal
