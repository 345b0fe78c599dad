#include "cohort/data/nodes/groups/group_by_window.h"

#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/data/functions/answers.h"
#include "cohort/data/functions/probe.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/nodes/from_list.h"
#include "cohort/data/nodes/groups/window_groups.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {
using WindowGroupingPtr = std::shared_ptr<const WindowGrouping>;

// The dataset that the function makes of a window. Made again for the same one, it has the same
// seeds.
data::Dataset reduced(const WindowGrouping& grouping, const WindowGroup& group,
                      const DataNodePtr& like, uint64_t seed) {
  std::vector<Structure> elements;
  for (const WaitingElement& waiting : group.elements) elements.push_back(waiting.element);
  const SeedScope seeds(mix_seeds(seed, static_cast<uint64_t>(group.elements[0].index)));
  return grouping.reduce(group.key,
                         data::Dataset(make_list("elements_of_window", std::move(elements), like)));
}

class GroupByWindowIterator final : public DataIterator {
 public:
  GroupByWindowIterator(std::unique_ptr<DataIterator> input, DataNodePtr like,
                        WindowGroupingPtr grouping, uint64_t seed, const IteratorContext& context)
      : input_(std::move(input)),
        like_(std::move(like)),
        grouping_(std::move(grouping)),
        seed_(seed),
        context_(context) {}

  bool next(Structure& out) override {
    while (true) {
      if (reader_) {
        if (read_window(out)) return true;
        close_window();
      } else if (!input_ended_) {
        take_element();
      } else if (groups_.empty()) {
        return false;
      } else {
        open_window(groups_.take_first());
      }
    }
  }
  void rewind(uint64_t epoch) override {
    forget();
    context_.epoch = epoch;
    index_ = 0;
    input_ended_ = false;
    input_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("epoch", static_cast<int64_t>(context_.epoch));
    state.set_int("seed", static_cast<int64_t>(seed_));
    state.set_int("index", index_);
    state.set_int("ended", input_ended_);
    state.set_child("input", input_->save());
    state.set_child("groups", groups_.save(reader_ ? &window_ : nullptr));
    if (reader_) state.set_child("window", reader_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    forget();
    context_.epoch = static_cast<uint64_t>(state.get_int("epoch"));
    seed_ = static_cast<uint64_t>(state.get_int("seed"));
    index_ = state.get_int("index", 0, kMostElements);
    input_ended_ = state.get_int("ended", 0, 1) == 1;
    if (auto open = groups_.restore(state.child("groups"), *input_, index_)) {
      open_window(*std::move(open));
      reader_->restore(state.child("window"));
    }
    input_->restore(state.child("input"));
  }

 private:
  void forget() {
    reader_.reset();
    groups_.clear();
  }
  void take_element() {
    const int64_t index = index_;
    groups_.before_element(*input_, index);
    Structure element;
    if (read_counted(index_, 1, [&] { return input_->next(element) ? 1 : 0; }) == 0) {
      input_ended_ = true;
      return;
    }
    std::optional<WindowGroup> whole;
    try {
      const int64_t key = grouping_->key(element);
      whole = groups_.add(key, {index, std::move(element)}, [&] { return size_of(key); });
    } catch (...) {
      rethrow_with_context(str(grouping_->name, ": element ", index));
    }
    if (whole) open_window(*std::move(whole));
  }
  int64_t size_of(int64_t key) const {
    const int64_t size = grouping_->window_size(key);
    if (size >= 1) return size;
    throw InvalidArgumentError(
        str("the window size of key ", key, " is ", size, "; it must be at least 1"));
  }
  std::string describe_window() const {
    return str(grouping_->name, ": the window of key ", window_.key, " that begins with element ",
               window_.elements[0].index);
  }
  void open_window(WindowGroup group) {
    window_ = std::move(group);
    IteratorContext context = context_;
    if (window_.elements[0].index > 0) {
      context.epoch = mix_seeds(context_.epoch, static_cast<uint64_t>(window_.elements[0].index));
    }
    try {
      reader_ = reduced(*grouping_, window_, like_, seed_).node()->make_iterator(context);
    } catch (...) {
      groups_.release(window_);
      rethrow_with_context(describe_window());
    }
  }
  bool read_window(Structure& out) {
    try {
      return reader_->next(out);
    } catch (...) {
      rethrow_with_context(describe_window());
    }
  }
  void close_window() {
    reader_.reset();
    groups_.release(window_);
    window_ = WindowGroup();
  }

  std::unique_ptr<DataIterator> input_;
  const DataNodePtr like_;
  const WindowGroupingPtr grouping_;
  uint64_t seed_;  // as the node's
  IteratorContext context_;
  int64_t index_ = 0;  // of the input's next element
  bool input_ended_ = false;
  WindowGroups groups_;
  WindowGroup window_;                    // while there is a reader: what it reads
  std::unique_ptr<DataIterator> reader_;  // of the dataset made of the window
};

class GroupByWindowNode final : public UnaryNode {
 public:
  GroupByWindowNode(DataNodePtr input, WindowGroupingPtr grouping, uint64_t seed)
      : UnaryNode(grouping->name, std::move(input)), grouping_(std::move(grouping)), seed_(seed) {}

  Attributes attributes() const override { return grouping_->attributes; }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<GroupByWindowNode>(std::move(inputs[0]), grouping_, seed_);
  }
  StructureSpec element_spec() const override {
    return spec_.get([&] { return find_spec(); });
  }
  bool guesses_spec() const override { return !grouping_->spec || input().guesses_spec(); }
  int64_t cardinality() const override {
    return input().cardinality() == 0 ? 0 : data::kUnknownCardinality;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<GroupByWindowIterator>(input().make_iterator(context.keeping_order()),
                                                   inputs()[0], grouping_, seed_, context);
  }
  bool passes_file_sharding() const override { return true; }

 private:
  StructureSpec find_spec() const {
    if (grouping_->spec) return grouping_->spec(data::Dataset(inputs()[0]));
    std::optional<StructureSpec> found;
    probe(input(), [&](const Structure& element, int64_t index) {
      try {
        const WindowGroup window{grouping_->key(element), 1, {{index, element}}};
        found = reduced(*grouping_, window, inputs()[0], seed_).element_spec();
      } catch (...) {
        rethrow_with_context(str(name(), ": element ", index));
      }
    });
    if (found) return *std::move(found);
    throw FailedPreconditionError(str(name(), ": what its elements look like cannot be found out, ",
                                      "since its input has no elements"));
  }

  const WindowGroupingPtr grouping_;
  const uint64_t seed_;
  Lazy<StructureSpec> spec_;
};

}  // namespace

DataNodePtr make_group_by_window(DataNodePtr input, std::shared_ptr<const WindowGrouping> grouping,
                                 uint64_t seed) {
  return std::make_shared<GroupByWindowNode>(std::move(input), std::move(grouping), seed);
}

}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::group_by_window_erased(internal::ElementFunction key_func,
                                        std::function<Dataset(int64_t, const Dataset&)> reduce_func,
                                        GroupByWindowOptions options) const {
  if (options.window_size.has_value() == static_cast<bool>(options.window_size_func)) {
    throw InvalidArgumentError(
        internal::str("group_by_window: ", options.window_size ? "both" : "neither",
                      " of window_size and window_size_func are given; give one of them"));
  }
  internal::WindowGrouping grouping{.name = "group_by_window"};
  if (options.window_size) {
    const int64_t size = *options.window_size;
    if (size < 1) {
      throw InvalidArgumentError(
          internal::str("group_by_window: window_size is ", size, "; it must be at least 1"));
    }
    grouping.attributes = {{"window_size", internal::str(size)}};
    grouping.window_size = [size](int64_t) { return size; };
  } else {
    grouping.window_size = std::move(options.window_size_func);
  }
  grouping.key = [key_func = std::move(key_func)](const Structure& element) {
    return internal::integer_of(key_func.whole(element));
  };
  grouping.reduce = std::move(reduce_func);
  return Dataset(
      internal::make_group_by_window(
          node_.pointer(), std::make_shared<const internal::WindowGrouping>(std::move(grouping)),
          internal::next_seed()),
      options_);
}

}  // namespace cohort::data
