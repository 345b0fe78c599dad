#include "cohort/distribute/gradients/task_packs.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstring>

#include "cohort/collective/slices.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {

using distribute::Variable;

namespace {

int64_t item_size(DType dtype) { return static_cast<int64_t>(c10::elementSize(dtype)); }

void fill(void* out, int64_t size, DType dtype, double value) {
  if (dtype == float64) {
    std::fill_n(static_cast<double*>(out), size, value);
  } else {
    std::fill_n(static_cast<float*>(out), size, static_cast<float>(value));
  }
}

int64_t number_at(const void* place, DType dtype) {
  return static_cast<int64_t>(dtype == float64 ? *static_cast<const double*>(place)
                                               : *static_cast<const float*>(place));
}

}  // namespace

GradientCount add_up_local(const ReplicaGradients& gradients, size_t variable, void* out,
                           int64_t size, DType dtype) {
  GradientCount count;
  c10::SmallVector<const void*, 8> sources;
  c10::SmallVector<Tensor, 2> made_dense;
  for (size_t r = 0; r < gradients.num_replicas(); ++r) {
    const Tensor& one = gradients.gradient(r, variable);
    if (!one.defined()) continue;
    ++count.present;
    if (one.layout() != at::kStrided) {
      ++count.sparse;
      made_dense.push_back(one.to_dense());
      sources.push_back(made_dense.back().data_ptr());
    } else {
      sources.push_back(one.data_ptr());
    }
  }
  if (sources.empty()) {
    fill(out, size, dtype, -0.0);
  } else if (sources.size() == 1) {
    std::memcpy(out, sources[0], static_cast<size_t>(size * item_size(dtype)));
  } else {
    collective::add_slices(out, {sources.data(), sources.size()}, size, dtype);
  }
  return count;
}

struct TaskPacks::Pack final : collective::PostedCall {
  Pack(TaskPacks& packs, DType of) : owner(packs), dtype(of) {}

  void make(collective::Communicator& communicator) noexcept override {
    if (owner.failed_.load()) return;  // the step ends, and the group's work with it
    try {
      collective::all_reduce(communicator, {memory.data(), elements, dtype},
                             {.name = name,
                              .signature = signature,
                              .timeout = owner.timeout_,
                              .plan = owner.plan_.get()});
    } catch (...) {
      owner.fail(std::current_exception());
    }
  }

  char* at(int64_t element) const { return memory.data() + element * item_size(dtype); }
  // The numbers of the variable at this position.
  char* counts(size_t position) const { return at(gradients + 2 * static_cast<int64_t>(position)); }

  TaskPacks& owner;
  const DType dtype;
  std::vector<size_t> variables;
  int64_t gradients = 0;  // elements of all gradients
  int64_t elements = 0;   // of the whole
  collective::BufferPool::Piece memory;
  std::string name;
  std::string signature;

  std::atomic<size_t> missing{0};  // gradients, counted over the local replicas
  std::atomic<bool> taken{false};
  bool ready = false;  // guarded by the owner's mutex
};

TaskPacks::TaskPacks(const std::vector<Variable>& all, const std::vector<size_t>& variables,
                     const ReplicaGradients& gradients, collective::SyncGroup& group,
                     const TaskPacksOptions& options)
    : gradients_(gradients), group_(group), place_of_(all.size()) {
  int64_t bytes = 0;
  for (auto it = variables.rbegin(); it != variables.rend(); ++it) {
    const DType dtype = all[*it].dtype();
    if (packs_.empty() || bytes >= options.bytes_per_pack || packs_.back()->dtype != dtype) {
      packs_.push_back(std::make_unique<Pack>(*this, dtype));
      bytes = 0;
    }
    Pack& pack = *packs_.back();
    const int64_t size = c10::multiply_integers(all[*it].shape());
    place_of_[*it] = {packs_.size() - 1, pack.variables.size(), pack.gradients, {}};
    pack.variables.push_back(*it);
    pack.gradients += size;
    bytes += size * item_size(dtype);
  }
  if (packs_.empty()) return;
  plan_ = std::make_shared<collective::CallPlan>(packs_.size());
  take_memory(all, options);
}

void TaskPacks::take_memory(const std::vector<Variable>& all, const TaskPacksOptions& options) {
  for (size_t p = 0; p < packs_.size(); ++p) {
    Pack& pack = *packs_[p];
    pack.elements = pack.gradients + 2 * static_cast<int64_t>(pack.variables.size());
    pack.memory = group_.buffers().take(pack.elements * item_size(pack.dtype));
    pack.name = str("gradients ", p + 1, " of ", packs_.size(), ", beginning with '",
                    all[pack.variables.front()].name(), "'");
    pack.signature = options.signature;
    for (const size_t variable : pack.variables) {
      Place& place = place_of_[variable];
      place.sum =
          at::from_blob(pack.at(place.offset), c10::multiply_integers(all[variable].shape()),
                        at::dtype(pack.dtype));
    }
  }
}

TaskPacks::~TaskPacks() { group_.drain(); }

void TaskPacks::begin() {
  group_.drain();
  timeout_ = group_.timeout();
  std::lock_guard lock(mutex_);
  next_to_post_ = 0;
  for (const auto& pack : packs_) {
    pack->missing = pack->variables.size() * gradients_.num_replicas();
    pack->taken = false;
    pack->ready = false;
  }
}

void TaskPacks::arrived(size_t variable) {
  check_not_failed();
  if (!contains(variable)) return;
  Pack& pack = *packs_[place_of_[variable].pack];
  if (pack.missing.fetch_sub(1) != 1) return;
  pack.taken = true;
  add_up(pack);
}

void TaskPacks::add_up_rest() {
  for (const auto& pack : packs_) {
    if (!pack->taken.exchange(true)) add_up(*pack);
  }
}

void TaskPacks::add_up(Pack& pack) {
  {
    const ScopedPhase phase(profiler::Phase::kReduce);
    for (size_t i = 0; i < pack.variables.size(); ++i) {
      const Place& place = place_of_[pack.variables[i]];
      const GradientCount count = add_up_local(gradients_, pack.variables[i], pack.at(place.offset),
                                               place.sum.numel(), pack.dtype);
      fill(pack.counts(i), 1, pack.dtype, static_cast<double>(count.present));
      fill(pack.counts(i) + item_size(pack.dtype), 1, pack.dtype,
           static_cast<double>(count.sparse));
    }
  }
  post_in_order(pack);
}

void TaskPacks::post_in_order(Pack& pack) {
  std::lock_guard lock(mutex_);
  pack.ready = true;
  while (next_to_post_ < packs_.size() && packs_[next_to_post_]->ready) {
    Pack& next = *packs_[next_to_post_++];
    // The backward pass is over with the last one.
    next_to_post_ < packs_.size() ? group_.post(next) : group_.post_before_drain(next);
  }
}

void TaskPacks::wait() {
  group_.drain();
  check_not_failed();
}

void TaskPacks::fail(std::exception_ptr error) {
  error_ = std::move(error);
  failed_ = true;
}

void TaskPacks::check_not_failed() const {
  if (failed_.load()) std::rethrow_exception(error_);
}

GradientCount TaskPacks::count(size_t variable) const {
  const Place& place = place_of_[variable];
  const Pack& pack = *packs_[place.pack];
  const char* const counts = pack.counts(place.position);
  return {number_at(counts, pack.dtype), number_at(counts + item_size(pack.dtype), pack.dtype)};
}

}  // namespace cohort::internal
