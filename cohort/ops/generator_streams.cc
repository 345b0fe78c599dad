#include "cohort/ops/generator_streams.h"

#include <atomic>
#include <utility>

#include "cohort/core/profiler/tracing.h"

namespace cohort::internal {
namespace {

std::atomic<const ReplicaLookup*> the_lookup{nullptr};

GeneratorStreams::State state_at(const Philox& random) {
  return {.seed = random.seed(), .stream = random.stream(), .position = random.position()};
}

Philox philox_at(const GeneratorStreams::State& state) {
  Philox random(state.seed, state.stream);
  random.seek(state.position);
  return random;
}

Philox of_task(int task, GeneratorStreams::State first) {
  first.stream += first_stream_of(task);
  return philox_at(first);
}

Philox of_replica(int replica, const Philox& own) {
  return philox_at({.seed = mix_seeds(own.seed(), own.stream()),
                    .stream = static_cast<uint64_t>(replica),
                    .position = own.position()});
}

// What a trace draws from in place of `random`, where that stands. It goes on from draw to draw,
// for who draws until a number will do.
Philox& of_trace(const Philox& random) {
  thread_local uint64_t trace = 0;
  thread_local std::map<const Philox*, Philox> copies;
  if (std::exchange(trace, current_trace()) != current_trace()) copies.clear();
  return copies.try_emplace(&random, random).first->second;
}

}  // namespace

void set_replica_lookup(const ReplicaLookup& lookup) { the_lookup = &lookup; }

std::shared_ptr<ReplicaGroup> calling_replica_group() {
  const ReplicaLookup* const lookup = the_lookup;
  return lookup == nullptr ? nullptr : lookup->group();
}

GeneratorStreams::Stream& GeneratorStreams::Streams::of(std::optional<int> replica) {
  if (!replica) return own;
  std::lock_guard lock(replicas_mutex);
  auto& stream = replicas[*replica];
  if (stream == nullptr) {
    std::lock_guard own_lock(own.mutex);
    stream = std::make_unique<Stream>(of_replica(*replica, own.random));
  }
  return *stream;
}

void GeneratorStreams::Streams::restore_own(const Philox& philox) {
  std::lock_guard replicas_lock(replicas_mutex);
  std::lock_guard own_lock(own.mutex);
  own.random = philox;
  for (const auto& [id, stream] : replicas) {
    std::lock_guard lock(stream->mutex);
    stream->random = of_replica(id, own.random);
  }
}

GeneratorStreams::GeneratorStreams(Philox own, std::shared_ptr<ReplicaGroup> group)
    : group_(std::move(group)),
      first_(own),
      start_(state_at(own)),
      in_group_(group_ == nullptr ? nullptr : group_->add(*this)) {}

std::optional<int> GeneratorStreams::caller() const {
  const ReplicaLookup* const lookup = the_lookup;
  if (group_ == nullptr || lookup == nullptr) return std::nullopt;
  return lookup->replica();
}

GeneratorStreams::Streams& GeneratorStreams::streams() const {
  const int task = group_ == nullptr ? 0 : group_->task();
  if (task == 0) return first_;
  std::lock_guard lock(others_mutex_);
  auto& its = others_[task];
  if (its == nullptr) its = std::make_unique<Streams>(of_task(task, start_));
  return *its;
}

void GeneratorStreams::draw(FunctionRef<void(Philox&)> draw) {
  Streams& its = streams();
  const std::optional<int> replica = caller();
  if (replica || group_ == nullptr) {
    Stream& stream = its.of(replica);
    std::lock_guard lock(stream.mutex);
    if (is_tracing()) return draw(of_trace(stream.random));
    return draw(stream.random);
  }
  std::lock_guard replicas(its.replicas_mutex);
  std::lock_guard own(its.own.mutex);
  if (is_tracing()) return draw(of_trace(its.own.random));
  const uint64_t before = its.own.random.position();
  draw(its.own.random);
  const uint64_t words = its.own.random.position() - before;
  for (const auto& [id, stream] : its.replicas) {
    std::lock_guard lock(stream->mutex);
    stream->random.seek(stream->random.position() + words);
  }
}

GeneratorStreams::State GeneratorStreams::state() const { return state_of(caller()); }

void GeneratorStreams::restore(const State& state) { restore_of(caller(), state); }

std::vector<int> GeneratorStreams::local_replicas() const {
  return group_ == nullptr ? std::vector<int>() : group_->local_replicas();
}

GeneratorStreams::State GeneratorStreams::state_of(std::optional<int> replica) const {
  const Stream& stream = streams().of(replica);
  std::lock_guard lock(stream.mutex);
  return state_at(stream.random);
}

GeneratorStreams::States GeneratorStreams::states_of(int replica) const {
  return {.own = state_of(std::nullopt), .of_replica = state_of(replica)};
}

void GeneratorStreams::set_states_of(int replica, const States& states) {
  Streams& its = streams();
  for (Stream* const stream : {&its.own, &its.of(replica)}) {
    const bool is_own = stream == &its.own;
    const std::lock_guard lock(stream->mutex);
    stream->random = philox_at(is_own ? states.own : states.of_replica);
  }
}

void GeneratorStreams::restore_of(std::optional<int> replica, const State& state) {
  Streams& its = streams();
  if (replica) {
    Stream& stream = its.of(replica);
    std::lock_guard lock(stream.mutex);
    stream.random = philox_at(state);
    return;
  }
  its.restore_own(philox_at(state));
  if (&its != &first_) return;
  std::lock_guard lock(others_mutex_);
  start_ = state;
  for (const auto& [task, others] : others_) others->restore_own(of_task(task, state));
}

}  // namespace cohort::internal
