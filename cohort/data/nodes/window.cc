#include "cohort/data/window.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <vector>

#include "cohort/data/graph/node.h"
#include "cohort/data/nodes/from_list.h"

// Elements of a window node are tuples of the elements of a window; WindowedDataset makes datasets
// of them.
namespace cohort::internal {
namespace {

struct WindowPlan {
  int64_t size = 1;
  int64_t shift = 1;
  int64_t stride = 1;
  bool drop_remainder = false;

  // The distance from the first element of a whole window to its last.
  int64_t extent() const { return (size - 1) * stride + 1; }
  int64_t windows_of(int64_t elements) const {
    if (elements == kInfiniteSize) return kInfiniteSize;
    if (drop_remainder) return elements < extent() ? 0 : (elements - extent()) / shift + 1;
    return elements / shift + (elements % shift != 0 ? 1 : 0);
  }
};

// Keeps the elements from the next window's first on, and the input's states before those that
// begin a window: after a restore they are read again.
class WindowIteratorImpl final : public DataIterator {
 public:
  WindowIteratorImpl(std::unique_ptr<DataIterator> input, const WindowPlan& plan)
      : input_(std::move(input)), plan_(plan) {}

  bool next(Structure& out) override {
    while (!ended_ && std::ssize(buffer_) < plan_.extent()) read();
    if (buffer_.empty()) return false;
    if (plan_.drop_remainder && std::ssize(buffer_) < plan_.extent()) return false;
    std::vector<Structure> members;
    std::exception_ptr error;
    for (int64_t i = 0; i < std::min(plan_.extent(), std::ssize(buffer_)); i += plan_.stride) {
      const Slot& slot = buffer_[static_cast<size_t>(i)];
      if (!error) error = slot.error;
      members.push_back(slot.element);
    }
    advance();
    if (error) std::rethrow_exception(error);
    out = Structure::make_tuple(std::move(members));
    return true;
  }
  std::shared_ptr<const std::string> last_origin() const override { return nullptr; }
  void rewind(uint64_t epoch) override {
    clear();
    input_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("ended", ended_ && buffer_.empty());
    state.set_child("input", starts_.empty() ? std::make_shared<const IteratorState>(input_->save())
                                             : starts_.front());
    return state;
  }
  void restore(const IteratorState& state) override {
    clear();
    ended_ = state.get_int("ended", 0, 1) == 1;
    input_->restore(state.child("input"));
  }

 private:
  struct Slot {
    Structure element;
    std::exception_ptr error;
  };

  void clear() {
    buffer_.clear();
    starts_.clear();
    ended_ = false;
  }
  // The next element into the buffer.
  void read() {
    const bool starts_window = std::ssize(buffer_) % plan_.shift == 0;
    if (starts_window) starts_.push_back(std::make_shared<const IteratorState>(input_->save()));
    Slot slot;
    try {
      ended_ = !input_->next(slot.element);
    } catch (const std::exception&) {
      slot.error = std::current_exception();
    }
    if (!ended_) {
      buffer_.push_back(std::move(slot));
    } else if (starts_window) {
      starts_.pop_back();
    }
  }
  void advance() {
    const int64_t kept = std::min(plan_.shift, std::ssize(buffer_));
    buffer_.erase(buffer_.begin(), buffer_.begin() + kept);
    starts_.pop_front();
    if (!ended_ && kept < plan_.shift)
      ended_ = input_->skip(plan_.shift - kept) < plan_.shift - kept;
  }

  std::unique_ptr<DataIterator> input_;
  const WindowPlan plan_;
  std::deque<Slot> buffer_;
  std::deque<IteratorState::Child> starts_;  // before each buffered element that begins a window
  bool ended_ = false;
};

class WindowIndexed final : public IndexedData {
 public:
  WindowIndexed(std::unique_ptr<IndexedData> input, const WindowPlan& plan)
      : input_(std::move(input)), plan_(plan) {}
  int64_t size() const override { return plan_.windows_of(input_->size()); }
  void read(int64_t position, Structure& out) override {
    const int64_t first = scaled_position(position, plan_.shift, 0);
    const int64_t left = input_->size() - first;
    std::vector<Structure> members;
    for (int64_t i = 0; i < std::min(plan_.extent(), left); i += plan_.stride) {
      input_->read(scaled_position(first, 1, i), members.emplace_back());
    }
    out = Structure::make_tuple(std::move(members));
  }

 private:
  std::unique_ptr<IndexedData> input_;
  const WindowPlan plan_;
};

class WindowNode final : public UnaryNode {
 public:
  WindowNode(DataNodePtr input, const WindowPlan& plan)
      : UnaryNode("window", std::move(input)), plan_(plan) {
    check("size", plan.size);
    check("shift", plan.shift);
    check("stride", plan.stride);
    int64_t extent = 0;
    if (__builtin_mul_overflow(plan.size, plan.stride, &extent)) {
      throw InvalidArgumentError(str("window: ", plan.size, " elements with a stride of ",
                                     plan.stride, " are more than any dataset has"));
    }
  }

  Attributes attributes() const override {
    Attributes attributes = {
        {"size", str(plan_.size)}, {"shift", str(plan_.shift)}, {"stride", str(plan_.stride)}};
    if (plan_.drop_remainder) attributes.emplace_back("drop_remainder", "true");
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<WindowNode>(std::move(inputs[0]), plan_);
  }
  // The spec of one element of a window: windows at the end may have fewer.
  StructureSpec element_spec() const override {
    return StructureSpec::make_tuple({input().element_spec()});
  }
  int64_t cardinality() const override {
    const int64_t elements = input().cardinality();
    return elements < 0 ? elements : plan_.windows_of(elements);
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    if (auto indexed = make_indexed()) return std::make_unique<IndexedIterator>(std::move(indexed));
    return std::make_unique<WindowIteratorImpl>(input().make_iterator(context.keeping_order()),
                                                plan_);
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    auto indexed = input().make_indexed();
    return indexed ? std::make_unique<WindowIndexed>(std::move(indexed), plan_) : nullptr;
  }
  bool passes_file_sharding() const override { return true; }

 private:
  static void check(const char* option, int64_t value) {
    if (value >= 1) return;
    throw InvalidArgumentError(str("window: ", option, " is ", value, "; it must be at least 1"));
  }

  const WindowPlan plan_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

WindowedDataset Dataset::window(int64_t size, WindowOptions options) const {
  const internal::WindowPlan plan{size, options.shift.value_or(size), options.stride,
                                  options.drop_remainder};
  return WindowedDataset(Dataset(std::make_shared<internal::WindowNode>(node_, plan), options_));
}

Dataset WindowedDataset::dataset_of(const Structure& window) {
  return Dataset(internal::make_list("elements_of_window", window.members()));
}

std::optional<Dataset> WindowIterator::next() {
  const std::optional<Structure> window = windows_.next();
  if (!window) return std::nullopt;
  return WindowedDataset::dataset_of(*window);
}

Dataset WindowIterator::get_next() { return WindowedDataset::dataset_of(windows_.get_next()); }

WindowCursor::WindowCursor(WindowIterator windows)
    : windows_(std::make_shared<WindowIterator>(std::move(windows))), window_(windows_->next()) {}

WindowCursor& WindowCursor::operator++() {
  window_ = windows_->next();
  return *this;
}

}  // namespace cohort::data
