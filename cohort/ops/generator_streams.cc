#include "cohort/ops/generator_streams.h"

#include <atomic>
#include <utility>

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

}  // namespace

void set_replica_lookup(const ReplicaLookup& lookup) { the_lookup = &lookup; }

std::shared_ptr<ReplicaGroup> calling_replica_group() {
  const ReplicaLookup* const lookup = the_lookup;
  return lookup == nullptr ? nullptr : lookup->group();
}

GeneratorStreams::GeneratorStreams(Philox own, std::shared_ptr<ReplicaGroup> group)
    : group_(std::move(group)), own_(own) {}

std::optional<int> GeneratorStreams::caller() const {
  const ReplicaLookup* const lookup = the_lookup;
  if (group_ == nullptr || lookup == nullptr) return std::nullopt;
  return lookup->replica();
}

// The caller holds own_'s mutex.
Philox GeneratorStreams::replica_stream(int replica) const {
  const Philox& own = own_.random;
  return philox_at({.seed = mix_seeds(own.seed(), own.stream()),
                    .stream = static_cast<uint64_t>(replica),
                    .position = own.position()});
}

GeneratorStreams::Stream& GeneratorStreams::stream_of(std::optional<int> replica) const {
  if (!replica) return own_;
  std::lock_guard lock(replicas_mutex_);
  auto& stream = replicas_[*replica];
  if (stream == nullptr) {
    std::lock_guard own(own_.mutex);
    stream = std::make_unique<Stream>(replica_stream(*replica));
  }
  return *stream;
}

void GeneratorStreams::draw(FunctionRef<void(Philox&)> draw) {
  const std::optional<int> replica = caller();
  if (replica || group_ == nullptr) {
    Stream& stream = stream_of(replica);
    std::lock_guard lock(stream.mutex);
    return draw(stream.random);
  }
  std::lock_guard replicas(replicas_mutex_);
  std::lock_guard own(own_.mutex);
  const uint64_t before = own_.random.position();
  draw(own_.random);
  const uint64_t words = own_.random.position() - before;
  for (const auto& [id, stream] : replicas_) {
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
  const Stream& stream = stream_of(replica);
  std::lock_guard lock(stream.mutex);
  return state_at(stream.random);
}

void GeneratorStreams::restore_of(std::optional<int> replica, const State& state) {
  if (replica) {
    Stream& stream = stream_of(replica);
    std::lock_guard lock(stream.mutex);
    stream.random = philox_at(state);
    return;
  }
  std::lock_guard replicas(replicas_mutex_);
  std::lock_guard own(own_.mutex);
  own_.random = philox_at(state);
  for (const auto& [id, stream] : replicas_) {
    std::lock_guard lock(stream->mutex);
    stream->random = replica_stream(id);
  }
}

}  // namespace cohort::internal
