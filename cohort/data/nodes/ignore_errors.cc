#include "cohort/core/observe/logging.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {
namespace {

// Whether the error is of one element, which was consumed. Others come again with every call, as
// those of a file that must not be written.
bool is_of_element(const std::exception& error) {
  const auto* typed = dynamic_cast<const Error*>(&error);
  if (!typed) return true;
  switch (typed->code()) {
    case Code::kCancelled:
    case Code::kFailedPrecondition:
    case Code::kPermissionDenied:
    case Code::kResourceExhausted:
      return false;
    default:
      return true;
  }
}

class IgnoreErrorsIterator final : public DataIterator {
 public:
  IgnoreErrorsIterator(std::unique_ptr<DataIterator> input, bool log_warning)
      : input_(std::move(input)), log_warning_(log_warning) {}

  bool next(Structure& out) override {
    return ignoring([&] { return input_->next(out) ? 1 : 0; }) == 1;
  }
  bool has_blocks() const override { return has_runs(); }
  int64_t next_block(int64_t n, Structure& out) override { return next_run(n, out); }
  bool has_runs() const override { return input_->has_runs(); }
  int64_t next_run(int64_t n, Structure& out) override {
    return ignoring([&] { return input_->next_run(n, out); });
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override { input_->rewind(epoch); }
  IteratorState save() override { return input_->save(); }
  void restore(const IteratorState& state) override { input_->restore(state); }

 private:
  template <class Read>
  int64_t ignoring(const Read& read) {
    while (true) {
      try {
        return read();
      } catch (const std::exception& error) {
        if (!is_of_element(error)) throw;
        if (log_warning_) log_warning("ignore_errors: left out an element: ", error.what());
      }
    }
  }

  std::unique_ptr<DataIterator> input_;
  bool log_warning_;
};

class IgnoreErrorsNode final : public UnaryNode {
 public:
  IgnoreErrorsNode(DataNodePtr input, data::IgnoreErrorsOptions options)
      : UnaryNode("ignore_errors", std::move(input)), options_(options) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<IgnoreErrorsNode>(std::move(inputs[0]), options_);
  }
  int64_t cardinality() const override {
    const int64_t count = input().cardinality();
    return count == 0 ? 0 : data::kUnknownCardinality;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<IgnoreErrorsIterator>(input().make_iterator(context),
                                                  options_.log_warning);
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  data::IgnoreErrorsOptions options_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::ignore_errors(IgnoreErrorsOptions options) const {
  return Dataset(std::make_shared<internal::IgnoreErrorsNode>(node_, options), options_);
}

}  // namespace cohort::data
