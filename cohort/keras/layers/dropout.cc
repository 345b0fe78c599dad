#include "cohort/keras/layers/dropout.h"

#include <map>
#include <mutex>

#include "cohort/distribute/context.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

class DropoutImpl final : public Layer {
 public:
  DropoutImpl(double rate, const DropoutOptions& options)
      : Layer("Dropout", {.name = options.name}), rate_(rate), seed_(options.seed) {
    if (!(rate >= 0 && rate <= 1)) {
      throw InvalidArgumentError(
          internal::str("Dropout: rate is ", rate, "; it must lie in [0, 1]"));
    }
    set_input_spec({.floating = true});
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions& options) override {
    if (!*options.training || rate_ == 0) return input;
    if (rate_ == 1) return input * 0;
    const Tensor uniform = generator().uniform(input.sizes().vec());
    const Tensor keep = (uniform >= rate_).to(input.device(), input.scalar_type());
    return input * keep / (1 - rate_);
  }

 private:
  random::Generator generator() {
    if (!seed_) return random::get_global_generator();
    const distribute::ReplicaContext* replica = distribute::get_replica_context();
    const int id = replica == nullptr ? 0 : replica->replica_id_in_sync_group();
    std::lock_guard lock(mutex_);
    const auto found = generators_.find(id);
    if (found != generators_.end()) return found->second;
    const auto stream = static_cast<uint64_t>(id);
    return generators_.emplace(id, random::Generator::from_seed(*seed_, stream)).first->second;
  }

  double rate_;
  std::optional<uint64_t> seed_;
  std::mutex mutex_;
  std::map<int, random::Generator> generators_;  // by replica
};

}  // namespace

Dropout::Dropout(double rate, DropoutOptions options)
    : LayerHandle(std::make_shared<DropoutImpl>(rate, options)) {}

}  // namespace cohort::keras::layers
