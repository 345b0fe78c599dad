#include <algorithm>
#include <optional>

#include "cohort/core/error_context.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/parallel_calls.h"
#include "cohort/data/functions/probe.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/graph/rewrite.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/nodes/sub_reader.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"

// flat_map is an interleave of one dataset at a time.
namespace cohort::internal {
namespace {
using DatasetFunction = std::function<data::Dataset(const Structure&)>;

// Made again for the same element, it has the same seeds.
data::Dataset call(const DatasetFunction& function, const Structure& element, uint64_t seed,
                   int64_t index) {
  const SeedScope seeds(mix_seeds(seed, static_cast<uint64_t>(index)));
  return function(element);
}

// How many elements of a dataset one task reads ahead.
constexpr int64_t kMaxReadAhead = 16;

class InterleaveIterator final : public DataIterator {
 public:
  InterleaveIterator(std::unique_ptr<DataIterator> input, std::string name,
                     std::shared_ptr<const DatasetFunction> function, uint64_t seed,
                     const data::InterleaveOptions& options, const IteratorContext& context)
      : input_(std::move(input)),
        name_(std::move(name)),
        function_(std::move(function)),
        seed_(seed),
        options_(options),
        context_(context),
        slots_(static_cast<size_t>(options.cycle_length)) {}

  bool next(Structure& out) override;
  std::shared_ptr<const std::string> last_origin() const override { return last_origin_; }
  void rewind(uint64_t epoch) override {
    close_all();
    context_.epoch = epoch;
    index_ = 0;
    ended_ = false;
    input_->rewind(epoch);
  }
  IteratorState save() override;
  void restore(const IteratorState& state) override;

 private:
  struct Slot {
    std::shared_ptr<const IteratorState> before;  // the input's, before the dataset's element
    int64_t index = 0;                            // of that element
    std::unique_ptr<SubReader> reader;            // null: the slot is free
  };

  void close_all() {
    slots_.clear();
    slots_.resize(static_cast<size_t>(options_.cycle_length));
    open_ = 0;
    current_ = taken_ = 0;
  }
  void advance() {
    current_ = (current_ + 1) % options_.cycle_length;
    taken_ = 0;
  }
  // Puts the dataset of the next input element into the current slot; false at the input's end.
  bool open();
  void start_reading(Slot& slot, const Structure& element);
  bool read_current(Structure& out);
  void read_ahead();
  void prefer_ready_slot();

  std::unique_ptr<DataIterator> input_;
  const std::string name_;
  std::shared_ptr<const DatasetFunction> function_;
  uint64_t seed_;  // as the node's
  const data::InterleaveOptions options_;
  IteratorContext context_;
  int64_t index_ = 0;    // of the next input element
  bool ended_ = false;   // the input
  int64_t current_ = 0;  // the slot whose turn it is
  int64_t taken_ = 0;    // elements of its block
  int64_t open_ = 0;     // slots that are not free
  std::shared_ptr<const std::string> last_origin_;
  WorkGroup work_;
  std::vector<Slot> slots_;  // their readers end before the work group
};

bool InterleaveIterator::next(Structure& out) {
  while (true) {
    if (slots_[current_].reader) {
      if (options_.num_parallel_calls) {
        read_ahead();
        if (!*options_.deterministic) prefer_ready_slot();
      }
      if (read_current(out)) return true;
    } else if (ended_) {
      if (open_ == 0) return false;
      advance();
    } else if (!open()) {
      ended_ = true;
    }
  }
}

// An element that fails counts as one.
bool InterleaveIterator::read_current(Structure& out) {
  Slot& slot = slots_[current_];
  const int64_t element = slot.index;
  const auto count = [&] {
    if (++taken_ == options_.block_length) advance();
  };
  bool found = false;
  try {
    found = slot.reader->next(out);
    last_origin_ = slot.reader->last_origin();
  } catch (...) {
    count();
    rethrow_with_context(str(name_, ": in the dataset of element ", element));
  }
  if (found) {
    count();
  } else {
    slot = Slot();
    --open_;
    advance();
  }
  return found;
}

bool InterleaveIterator::open() {
  Slot slot;
  slot.before = std::make_shared<const IteratorState>(input_->save());
  slot.index = index_;
  Structure element;
  if (read_counted(index_, 1, [&] { return input_->next(element); }) == 0) return false;
  start_reading(slot, element);
  slots_[current_] = std::move(slot);
  ++open_;
  return true;
}

void InterleaveIterator::start_reading(Slot& slot, const Structure& element) {
  IteratorContext context = context_;
  if (slot.index > 0) {
    context.epoch = mix_seeds(context_.epoch, static_cast<uint64_t>(slot.index));
  }
  try {
    slot.reader = std::make_unique<SubReader>(
        call(*function_, element, seed_, slot.index).node()->make_iterator(context), work_);
  } catch (...) {
    rethrow_with_context(str(name_, ": element ", slot.index));
  }
}

// The datasets whose turn comes next.
void InterleaveIterator::read_ahead() {
  const int64_t calls = *options_.num_parallel_calls == data::AUTOTUNE
                            ? options_.cycle_length
                            : std::min(*options_.num_parallel_calls, options_.cycle_length);
  for (int64_t i = 0; i < calls; ++i) {
    Slot& slot = slots_[(current_ + i) % options_.cycle_length];
    if (slot.reader) slot.reader->read_ahead(std::min(options_.block_length, kMaxReadAhead));
  }
}

void InterleaveIterator::prefer_ready_slot() {
  for (int64_t i = 0; i < options_.cycle_length; ++i) {
    const int64_t candidate = (current_ + i) % options_.cycle_length;
    Slot& slot = slots_[candidate];
    if (!slot.reader || !slot.reader->is_ready()) continue;
    if (i > 0) taken_ = 0;
    current_ = candidate;
    return;
  }
}

IteratorState InterleaveIterator::save() {
  IteratorState state;
  state.set_int("epoch", static_cast<int64_t>(context_.epoch));
  state.set_int("seed", static_cast<int64_t>(seed_));
  state.set_int("index", index_);
  state.set_int("ended", ended_);
  state.set_int("current", current_);
  state.set_int("taken", taken_);
  state.set_child("input", input_->save());
  std::string open(slots_.size(), '\0');
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].reader) continue;
    open[i] = 1;
    IteratorState slot;
    slot.set_int("index", slots_[i].index);
    slot.set_child("before", slots_[i].before);
    slot.set_child("dataset", slots_[i].reader->save());
    state.set_child(str("slot ", i), std::move(slot));
  }
  state.set_bytes("open", std::move(open));
  return state;
}

void InterleaveIterator::restore(const IteratorState& state) {
  close_all();
  context_.epoch = static_cast<uint64_t>(state.get_int("epoch"));
  seed_ = static_cast<uint64_t>(state.get_int("seed"));
  const std::string& open = state.get_bytes("open");
  for (size_t i = 0; i < std::min(open.size(), slots_.size()); ++i) {
    if (open[i] == 0) continue;
    const IteratorState& saved = state.child(str("slot ", i));
    Slot slot;
    slot.before = saved.shared_child("before");
    slot.index = saved.get_int("index", 0, kMostElements);
    input_->restore(*slot.before);
    Structure element;
    if (!input_->next(element)) {
      throw DataLossError(str(name_, ": element ", slot.index, " is no longer there"));
    }
    start_reading(slot, element);
    slot.reader->restore(saved.child("dataset"));
    slots_[i] = std::move(slot);
    ++open_;
  }
  index_ = state.get_int("index", 0, kMostElements);
  ended_ = state.get_int("ended", 0, 1) == 1;
  current_ = state.get_int("current", 0, options_.cycle_length - 1);
  taken_ = state.get_int("taken", 0, options_.block_length - 1);
  input_->restore(state.child("input"));
}

class InterleaveNode final : public UnaryNode {
 public:
  InterleaveNode(DataNodePtr input, std::string name,
                 std::shared_ptr<const DatasetFunction> function, uint64_t seed,
                 const data::InterleaveOptions& options)
      : UnaryNode(std::move(name), std::move(input)),
        function_(std::move(function)),
        seed_(seed),
        options_(options) {
    check("cycle_length", options.cycle_length);
    check("block_length", options.block_length);
    check_parallel_calls("interleave", options.num_parallel_calls);
  }

  Attributes attributes() const override {
    if (name() == "flat_map") return {};
    Attributes attributes = {{"cycle_length", str(options_.cycle_length)},
                             {"block_length", str(options_.block_length)}};
    if (options_.num_parallel_calls) {
      attributes.emplace_back("num_parallel_calls", autotune_text(*options_.num_parallel_calls));
    }
    if (options_.deterministic) {
      attributes.emplace_back("deterministic", *options_.deterministic ? "true" : "false");
    }
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<InterleaveNode>(std::move(inputs[0]), name(), function_, seed_,
                                            options_);
  }
  StructureSpec element_spec() const override {
    return spec_.get([&] {
      std::optional<StructureSpec> found;
      probe_datasets([&](const data::Dataset& dataset) { found = dataset.element_spec(); });
      if (found) return *std::move(found);
      throw FailedPreconditionError(str(name(), ": what its elements look like cannot be found ",
                                        "out, since its input has no elements"));
    });
  }
  bool guesses_spec() const override { return true; }
  int64_t cardinality() const override {
    const int64_t datasets = input().cardinality();
    return datasets <= 0 ? datasets : data::kUnknownCardinality;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    data::InterleaveOptions options = options_;
    options.deterministic = context.is_deterministic(options.deterministic);
    if (context.probing) options.num_parallel_calls.reset();
    return std::make_unique<InterleaveIterator>(input().make_iterator(context.keeping_order()),
                                                name(), function_, seed_, options, context);
  }
  bool passes_file_sharding() const override { return true; }
  // Dividing its input divides files where its datasets read the files that the input names.
  SourceKind source() const override {
    bool reads_files = false;
    probe_datasets([&](const data::Dataset& dataset) {
      for_each_node(dataset.node(), [&](const DataNodePtr& node) {
        reads_files = reads_files || node->source() == SourceKind::kFiles;
      });
    });
    return reads_files ? SourceKind::kFiles : SourceKind::kNone;
  }

 private:
  void check(const char* option, int64_t value) const {
    if (value >= 1) return;
    throw InvalidArgumentError(str(name(), ": ", option, " is ", value, "; it must be at least 1"));
  }
  // use(dataset) of the first that there is, and of others as long as that fails.
  template <class Use>
  void probe_datasets(const Use& use) const {
    probe(input(), [&](const Structure& element, int64_t index) {
      try {
        use(call(*function_, element, seed_, index));
      } catch (...) {
        rethrow_with_context(str(name(), ": element ", index));
      }
    });
  }

  std::shared_ptr<const DatasetFunction> function_;
  const uint64_t seed_;  // of shuffles and random maps without one that the function makes
  data::InterleaveOptions options_;
  Lazy<StructureSpec> spec_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::flat_map_erased(std::function<Dataset(const Structure&)> fn) const {
  auto function = std::make_shared<const internal::DatasetFunction>(std::move(fn));
  return Dataset(std::make_shared<internal::InterleaveNode>(node_, "flat_map", std::move(function),
                                                            internal::next_seed(),
                                                            InterleaveOptions{.cycle_length = 1}),
                 options_);
}

Dataset Dataset::interleave_erased(std::function<Dataset(const Structure&)> fn,
                                   const InterleaveOptions& options) const {
  auto function = std::make_shared<const internal::DatasetFunction>(std::move(fn));
  return Dataset(std::make_shared<internal::InterleaveNode>(
                     node_, "interleave", std::move(function), internal::next_seed(), options),
                 options_);
}

}  // namespace cohort::data
