#include "cohort/distribute/gradients/gradient_exchange.h"

#include <cmath>
#include <limits>

#include "cohort/ops/gradient_stream.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {

double clip_factor(double norm, double most) { return norm <= most ? 1 : most / norm; }

double global_clip_factor(double norm, double most) {
  return std::isinf(norm) ? std::numeric_limits<double>::quiet_NaN() : clip_factor(norm, most);
}

GradientExchange::GradientExchange(std::vector<UpdateTarget> targets, size_t local_replicas)
    : targets_(std::move(targets)), streams_(local_replicas) {}

GradientExchange::~GradientExchange() = default;

void GradientExchange::backward(Replica& replica, const Tensor& loss, GradientTape& tape) {
  if (!overlaps()) {
    std::vector<distribute::Variable> variables;
    variables.reserve(targets_.size());
    for (const UpdateTarget& target : targets_) variables.push_back(target.variable);
    const std::vector<Tensor> gradients = tape.gradient(loss, variables);
    const NoGradient no_gradient;
    begin(replica, Arrival::kAtOnce);
    for (size_t i = 0; i < gradients.size(); ++i) bring(replica, i, gradients[i]);
    return;
  }
  {
    const NoGradient no_gradient;
    begin(replica, Arrival::kOneByOne);
  }
  tape.stream(loss, stream_of(replica), [&](size_t i, const Tensor& gradient) {
    const NoGradient no_gradient;
    bring(replica, i, gradient);
  });
}

GradientStream& GradientExchange::stream_of(const Replica& replica) {
  auto& stream = streams_[static_cast<size_t>(replica.local_replica_id())];
  if (stream == nullptr) {
    std::vector<Tensor> leaves;
    for (const UpdateTarget& target : targets_) leaves.push_back(target.variable.tape_source());
    stream = std::make_unique<GradientStream>(std::move(leaves));
  }
  return *stream;
}

void check_same_targets(const GradientExchange& first, int first_replica,
                        const GradientExchange& other, int other_replica) {
  if (&first == &other) return;
  const auto& targets = first.targets();
  const auto& others = other.targets();
  if (others.size() != targets.size()) {
    throw InvalidArgumentError(str("apply_gradients: replica ", first_replica, " updates ",
                                   targets.size(), " variables, replica ", other_replica,
                                   " updates ", others.size()));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].variable == others[i].variable) continue;
    throw InvalidArgumentError(str("apply_gradients: at position ", i, " replica ", first_replica,
                                   " updates '", targets[i].variable.name(), "', replica ",
                                   other_replica, " '", others[i].variable.name(), "'"));
  }
}

}  // namespace cohort::internal
