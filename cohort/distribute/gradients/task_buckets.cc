#include "cohort/distribute/gradients/task_buckets.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstring>

#include "cohort/collective/add_in_tree.h"
#include "cohort/collective/slices.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/distribute/gradients/device_sum.h"
#include "cohort/distribute/gradients/gradient_contribution.h"
#include "cohort/distribute/variables/local_variable.h"
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

GradientCount add_up_local(const ReplicaGradients& gradients, collective::ReplicaRange replicas,
                           const collective::Additions* additions, size_t variable, void* out,
                           int64_t size, DType dtype) {
  GradientCount count;
  c10::SmallVector<const void*, 8> sources;
  c10::SmallVector<Tensor, 2> made_dense;  // on the host
  for (int r = replicas.first; r < replicas.last; ++r) {
    const Tensor& one = gradients.gradient(static_cast<size_t>(r), variable);
    if (!one.defined()) {
      if (additions != nullptr) sources.push_back(nullptr);
      continue;
    }
    ++count.present;
    if (one.layout() != at::kStrided || !one.is_cpu()) {
      if (one.layout() != at::kStrided) ++count.sparse;
      made_dense.push_back(one.to_dense().cpu());
      sources.push_back(made_dense.back().data_ptr());
    } else {
      sources.push_back(one.data_ptr());
    }
  }
  if (count.present == 0) {
    fill(out, size, dtype, -0.0);
  } else if (additions != nullptr) {
    collective::add_in_tree({&out, 1}, {sources.data(), sources.size()}, *additions, size, dtype);
  } else if (sources.size() == 1) {
    std::memcpy(out, sources[0], static_cast<size_t>(size * item_size(dtype)));
  } else {
    collective::add_slices(out, {sources.data(), sources.size()}, size, dtype);
  }
  return count;
}

bool is_added_up_on_device(const Variable& variable, collective::SyncGroup& group) {
  const LocalVariable& local = variable.impl().local();
  return !on_host(local) && group.between().works_on(local.component(0).device());
}

struct TaskBuckets::Bucket final : collective::PostedCall {
  Bucket(TaskBuckets& buckets, DType of, c10::Device in) : owner(buckets), dtype(of), device(in) {}

  void make(collective::Communicator& communicator) noexcept override {
    if (owner.failed_.load()) return;  // the step ends, and the group's work with it
    const collective::CallOptions options{
        .name = name, .signature = signature, .timeout = owner.timeout_, .plan = owner.plan_.get()};
    try {
      if (owner.division_ != nullptr) {
        communicator.all_reduce_parts({memory.data(), elements, dtype}, options);
      } else if (device.is_cpu()) {
        collective::all_reduce(communicator, {memory.data(), elements, dtype}, options);
      } else {  // what reads the sums comes after them in the stream
        const collective::Buffer mine{on_device.data_ptr(), gradients, dtype, stream};
        communicator.all_reduce({&mine, 1}, options)->order_after(stream);
      }
    } catch (...) {
      owner.fail(std::current_exception());
    }
  }

  int64_t bytes() const { return elements * item_size(dtype); }
  char* at(int64_t element) const { return memory.data() + element * item_size(dtype); }
  // The numbers of the variable at this position.
  char* counts(size_t position) const { return at(gradients + 2 * static_cast<int64_t>(position)); }

  TaskBuckets& owner;
  const DType dtype;
  const c10::Device device;
  std::vector<size_t> variables;
  int64_t gradients = 0;                 // elements of all gradients
  int64_t elements = 0;                  // of the whole
  collective::BufferPool::Piece memory;  // on the host: the parts of this task, then their sum
  Tensor on_device;                      // in its place
  c10::Stream stream{c10::Stream::DEFAULT, c10::Device(c10::kCPU)};  // that wrote it
  std::string name;
  std::string signature;

  std::atomic<size_t> missing{0};  // gradients, counted over the local replicas
  std::atomic<bool> taken{false};
  bool ready = false;  // guarded by the owner's mutex
};

TaskBuckets::TaskBuckets(const std::vector<Variable>& all, const std::vector<size_t>& variables,
                         const ReplicaGradients& gradients, collective::SyncGroup& group,
                         const TaskBucketsOptions& options)
    : gradients_(gradients),
      group_(group),
      division_(group.view()->division),
      place_of_(all.size()),
      signature_(options.signature) {
  int64_t bytes = 0;
  for (auto it = variables.rbegin(); it != variables.rend(); ++it) {
    const DType dtype = all[*it].dtype();
    const c10::Device device = is_added_up_on_device(all[*it], group)
                                   ? all[*it].impl().local().component(0).device()
                                   : c10::Device(c10::kCPU);
    if (buckets_.empty() || bytes >= options.bytes_per_pack || buckets_.back()->dtype != dtype ||
        buckets_.back()->device != device) {
      buckets_.push_back(std::make_unique<Bucket>(*this, dtype, device));
      bytes = 0;
    }
    Bucket& bucket = *buckets_.back();
    const int64_t size = c10::multiply_integers(all[*it].shape());
    place_of_[*it] = {
        buckets_.size() - 1, bucket.variables.size(), bucket.gradients, counts_.size(), {}};
    if (!device.is_cpu()) counts_.resize(counts_.size() + 2);
    bucket.variables.push_back(*it);
    bucket.gradients += size;
    bytes += size * item_size(dtype);
  }
  if (buckets_.empty()) return;
  plan_ = std::make_shared<collective::CallPlan>(buckets_.size());
  take_memory(all, options);
}

void TaskBuckets::take_memory(const std::vector<Variable>& all, const TaskBucketsOptions& options) {
  for (size_t p = 0; p < buckets_.size(); ++p) {
    Bucket& bucket = *buckets_[p];
    bucket.elements = bucket.gradients + 2 * static_cast<int64_t>(bucket.variables.size());
    if (bucket.device.is_cpu()) {
      const size_t parts = division_ != nullptr ? division_->own_parts().size() : 1;
      bucket.memory = group_.buffers().take(static_cast<int64_t>(parts) * bucket.bytes());
    } else {
      bucket.on_device =
          at::empty({bucket.gradients}, at::dtype(bucket.dtype).device(bucket.device));
    }
    bucket.name = str("gradients ", p + 1, " of ", buckets_.size(), ", beginning with '",
                      all[bucket.variables.front()].name(), "'");
    bucket.signature = options.signature;
    for (const size_t variable : bucket.variables) {
      Place& place = place_of_[variable];
      const int64_t size = c10::multiply_integers(all[variable].shape());
      place.sum = bucket.device.is_cpu()
                      ? at::from_blob(bucket.at(place.offset), size, at::dtype(bucket.dtype))
                      : bucket.on_device.narrow(0, place.offset, size);
    }
  }
}

TaskBuckets::~TaskBuckets() { group_.drain(); }

void TaskBuckets::begin() {
  group_.drain();
  timeout_ = group_.timeout();
  std::lock_guard lock(mutex_);
  next_to_post_ = 0;
  for (const auto& bucket : buckets_) {
    bucket->missing = bucket->variables.size() * gradients_.num_replicas();
    bucket->taken = false;
    bucket->ready = false;
  }
}

void TaskBuckets::arrived(size_t variable) {
  check_not_failed();
  if (!contains(variable)) return;
  Bucket& bucket = *buckets_[place_of_[variable].bucket];
  if (bucket.missing.fetch_sub(1) != 1) return;
  bucket.taken = true;
  add_up(bucket);
}

void TaskBuckets::add_up_rest() {
  for (const auto& bucket : buckets_) {
    if (!bucket->taken.exchange(true)) add_up(*bucket);
  }
}

void TaskBuckets::add_up(Bucket& bucket) {
  {
    const ScopedPhase phase(profiler::Phase::kReduce);
    bucket.device.is_cpu() ? add_up_on_host(bucket) : add_up_on_device(bucket);
  }
  post_in_order(bucket);
}

void TaskBuckets::add_up_on_host(Bucket& bucket) {
  if (division_ == nullptr) {
    const auto replicas = static_cast<int>(gradients_.num_replicas());
    return add_up_part(bucket, {0, replicas}, nullptr, bucket.memory.data());
  }
  for (size_t part = 0; part < division_->own_parts().size(); ++part) {
    add_up_part(bucket, division_->own_replicas(part), &division_->additions_within(part),
                bucket.memory.data() + static_cast<int64_t>(part) * bucket.bytes());
  }
}

void TaskBuckets::add_up_part(Bucket& bucket, collective::ReplicaRange replicas,
                              const collective::Additions* additions, char* memory) {
  const int64_t item = item_size(bucket.dtype);
  for (size_t i = 0; i < bucket.variables.size(); ++i) {
    const Place& place = place_of_[bucket.variables[i]];
    const GradientCount count =
        add_up_local(gradients_, replicas, additions, bucket.variables[i],
                     memory + place.offset * item, place.sum.numel(), bucket.dtype);
    char* const counts = memory + (bucket.gradients + 2 * static_cast<int64_t>(i)) * item;
    fill(counts, 1, bucket.dtype, static_cast<double>(count.present));
    fill(counts + item, 1, bucket.dtype, static_cast<double>(count.sparse));
  }
}

// In the current stream, as the replicas' gradients. Sparse ones have been made dense.
void TaskBuckets::add_up_on_device(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  const c10::DeviceGuard guard(bucket.device);
  std::vector<Tensor> parts;
  for (const size_t variable : bucket.variables) {
    const Place& place = place_of_[variable];
    DeviceSum sum(bucket.device);
    int64_t present = 0;
    for (size_t r = 0; r < gradients_.num_replicas(); ++r) {
      const Tensor& one = gradients_.gradient(r, variable);
      if (!one.defined()) continue;
      ++present;
      sum.add(one);
    }
    counts_[place.counts] = present;
    counts_[place.counts + 1] = 0;
    parts.push_back(present > 0 ? sum.sum().reshape({-1})
                                : at::full({place.sum.numel()}, -0.0, place.sum.options()));
  }
  at::cat_out(bucket.on_device, parts);
  bucket.stream = c10::impl::VirtualGuardImpl(bucket.device.type()).getStream(bucket.device);
}

void TaskBuckets::post_in_order(Bucket& bucket) {
  std::lock_guard lock(mutex_);
  bucket.ready = true;
  while (next_to_post_ < buckets_.size() && buckets_[next_to_post_]->ready) {
    Bucket& next = *buckets_[next_to_post_++];
    // The backward pass is over with the last one.
    next_to_post_ < buckets_.size() ? group_.post(next) : group_.post_before_drain(next);
  }
}

void TaskBuckets::wait() {
  group_.drain();
  check_not_failed();
  if (counts_.empty()) return;
  collective::all_reduce(
      group_.between(), {counts_.data(), static_cast<int64_t>(counts_.size()), int64},
      {.name = "numbers of gradients on devices", .signature = signature_, .timeout = timeout_});
}

void TaskBuckets::fail(std::exception_ptr error) {
  error_ = std::move(error);
  failed_ = true;
}

void TaskBuckets::check_not_failed() const {
  if (failed_.load()) std::rethrow_exception(error_);
}

GradientCount TaskBuckets::count(size_t variable) const {
  const Place& place = place_of_[variable];
  const Bucket& bucket = *buckets_[place.bucket];
  if (!bucket.device.is_cpu()) return {counts_[place.counts], counts_[place.counts + 1]};
  const char* const counts = bucket.counts(place.position);
  return {number_at(counts, bucket.dtype),
          number_at(counts + item_size(bucket.dtype), bucket.dtype)};
}

}  // namespace cohort::internal
