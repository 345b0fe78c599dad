#include "cohort/core/error_context.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/composite_rows.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/iteration/input_deadline.h"

namespace cohort::internal {
namespace {

class GeneratorIterator final : public DataIterator {
 public:
  GeneratorIterator(GeneratorSource source, std::optional<StructureSpec> spec)
      : source_(std::move(source)), spec_(std::move(spec)) {}

  bool next(Structure& out) override {
    if (ended_) return false;
    const int64_t index = index_;
    try {
      ended_ = read_counted(index_, 1, [&] { return generate(out); }) == 0;
    } catch (...) {
      rethrow_with_context(str("from_generator: element ", index));
    }
    if (ended_) return false;
    check(out, index);
    return true;
  }
  void rewind(uint64_t) override {
    pass_ = nullptr;
    index_ = 0;
    ended_ = false;
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("index", index_);
    state.set_int("ended", ended_);
    if (source_.resumable) {
      state.set_int("started", pass_ != nullptr);
      state.set_bytes("generator", pass_ ? pass_->save() : std::string());
    }
    return state;
  }
  void restore(const IteratorState& state) override {
    rewind(0);
    const int64_t index = state.get_int("index", 0, kMostElements);
    const bool ended = state.get_int("ended", 0, 1) == 1;
    if (!source_.resumable) {
      if (const int64_t found = ended ? index : pass_over(index); found < index) {
        throw DataLossError(str("from_generator: the state is of element ", index,
                                ", but the generator ends after ", found));
      }
    } else if (state.get_int("started", 0, 1) == 1) {
      pass_ = source_.start();
      pass_->restore(state.get_bytes("generator"));
    }
    index_ = index;
    ended_ = ended;
  }

 private:
  bool generate(Structure& out) {
    if (!pass_) pass_ = source_.start();
    if (!pass_->next(out)) return false;
    out = with_marked_sparse(std::move(out));
    return true;
  }
  // Elements that fail count.
  int64_t pass_over(int64_t n) {
    Structure scratch;
    for (int64_t passed = 0; passed < n; ++passed) {
      try {
        if (!generate(scratch)) return passed;
      } catch (const InputDeadlineExceeded&) {  // of a pipeline that it reads: may be tried again
        throw;
      } catch (const std::exception&) {
      }
    }
    return n;
  }
  void check(const Structure& element, int64_t index) const {
    if (!spec_) return;
    if (const auto mismatch = spec_->first_mismatch(element)) {
      throw InvalidArgumentError(
          str("from_generator: element ", index, " does not fit output_spec: ", *mismatch));
    }
  }

  GeneratorSource source_;
  std::optional<StructureSpec> spec_;
  std::unique_ptr<GeneratorPass> pass_;  // null before the first element
  int64_t index_ = 0;                    // of the next element
  bool ended_ = false;
};

// The number of dimensions and the dtype of one element are those of the others; its sizes may not
// be.
StructureSpec with_unknown_dims(const StructureSpec& spec) {
  return spec.map([](const TensorSpec& leaf) {
    const std::vector<int64_t> shape(leaf.shape()->size(), kUnknownDim);
    return leaf.is_string() ? TensorSpec::strings(shape) : TensorSpec(shape, leaf.dtype());
  });
}

class GeneratorNode final : public DataNode {
 public:
  GeneratorNode(GeneratorSource source, data::GeneratorOptions options)
      : DataNode("from_generator", {}), source_(std::move(source)), options_(std::move(options)) {}

  Attributes attributes() const override {
    return {{"resumes", source_.resumable ? "by its own state" : "by running again"}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<GeneratorNode>(source_, options_);
  }
  StructureSpec element_spec() const override {
    if (options_.output_spec) return *options_.output_spec;
    return spec_.get([&] {
      Structure element;
      if (!GeneratorIterator(source_, {}).next(element)) {
        throw FailedPreconditionError(
            "from_generator: what its elements look like cannot be found out, since it has none; "
            "give GeneratorOptions.output_spec");
      }
      return with_unknown_dims(StructureSpec::of(element));
    });
  }
  bool guesses_spec() const override { return !options_.output_spec; }
  int64_t cardinality() const override { return data::kUnknownCardinality; }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext&) const override {
    return std::make_unique<GeneratorIterator>(source_, options_.output_spec);
  }
  SourceKind source() const override { return SourceKind::kUnshardable; }

 private:
  GeneratorSource source_;
  data::GeneratorOptions options_;
  Lazy<StructureSpec> spec_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::from_generator_erased(internal::GeneratorSource source, GeneratorOptions options) {
  return Dataset(std::make_shared<internal::GeneratorNode>(std::move(source), std::move(options)));
}

}  // namespace cohort::data
