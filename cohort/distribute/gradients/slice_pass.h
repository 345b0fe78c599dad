// One thread's part of the pass over memory that turns gradients into new values.
#pragma once

#include <span>

#include "cohort/collective/slices.h"
#include "cohort/collective/sum_tree.h"
#include "cohort/distribute/gradients/gradient_contribution.h"
#include "cohort/distribute/gradients/sparse_rows.h"

namespace cohort::internal {

// The gradients of a target, as a pass reads them.
struct GradientSources {
  // The gradients of this task's replicas; the pass adds them, in replica order or, where
  // `additions` says so, in that of a tree.
  Contributions replicas;
  const collective::Additions* additions = nullptr;
  // If not empty, used instead: the sums over all replicas, undefined where no replica has
  // a gradient, and the factor by which they are multiplied.
  std::span<const Tensor> sums = {};
  double scale = 1;
  // If defined, used in the place of `scale`, which is then unknown to the host: float64 [].
  Tensor scale_on_device = {};
  // If not empty: the sums that consist of rows, in parts that are added up in their order, or as
  // `row_additions` says. They are not multiplied. Other sums have an empty list. Only for targets
  // on the host.
  std::span<const std::span<const SparseRows>> rows = {};
  const collective::Additions* row_additions = nullptr;
};

// Thread safety: one thread. Several threads may each pass over their own slices at the same time.
class SlicePass {
 public:
  SlicePass(std::span<const UpdateTarget> targets, const GradientSources& sources)
      : targets_(targets), from_(sources) {}

  // The rule that update applies.
  void use(const optim::UpdateRule& rule, const optim::StepScalars& scalars) {
    rule_ = &rule;
    scalars_ = &scalars;
  }

  // Updates elements [range) of target `i`, whose components are on the host: adds up the
  // gradients, applies the rule, copies the result to further components.
  void update(size_t i, collective::SliceRange range);
  // Writes the sum of elements [range) of target `i` to `out`, a dense tensor of its shape and
  // dtype; zeros if there is no gradient. No gradient may be sparse.
  void add_up(size_t i, collective::SliceRange range, const Tensor& out);

 private:
  static constexpr int64_t kRowsAtOnce = 256;

  // The memory of a variable's further components, into which the first one's is copied.
  struct Copy {
    const char* from;
    char* to;
  };

  void use_components(const UpdateTarget& target);
  char* use_component(const distribute::Variable& variable);
  bool collect_sources(size_t i);
  void use_sum(const Tensor& sum);
  void update_sparse(collective::SliceRange range, int64_t row_size);
  int64_t add_up_rows(int64_t end, int64_t row_size, std::span<int64_t> ids);
  void update_given_rows(int64_t end, int64_t row_size);
  void update_rows(int64_t begin, int64_t end, int64_t row_size, std::span<const int64_t> ids);
  const void* summed_gradient(int64_t begin, int64_t count);
  const void* scaled(const void* gradient, int64_t count);
  void update_block(int64_t begin, int64_t count);
  void apply_rule(int64_t begin, int64_t count, const void* gradient);
  void copy_to_others(int64_t begin, int64_t count) const;
  char* at(char* data, int64_t begin) const { return data + begin * item_size_; }

  std::span<const UpdateTarget> targets_;
  GradientSources from_;
  const optim::UpdateRule* rule_ = nullptr;
  const optim::StepScalars* scalars_ = nullptr;

  c10::SmallVector<const char*, 8> sources_;
  SparseRowSum sparse_rows_;  // in place of sources_
  // The target's memory.
  char* param_ = nullptr;
  c10::SmallVector<char*, optim::kMaxSlots> slots_;
  c10::SmallVector<Copy, 8> copies_;
  c10::SmallVector<char*, 8> written_;  // all of it
  DType dtype_ = DType::Float;
  int64_t item_size_ = 0;
  alignas(double) char sum_[kUpdateBlock * sizeof(double)];
  alignas(double) char scratch_[kUpdateBlock * sizeof(double)];
};

}  // namespace cohort::internal
