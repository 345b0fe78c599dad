#include "cohort/ops/plan/plan.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/ops/plan/onednn.h"

namespace cohort::internal::plan {
namespace {

const auto on_threads = [](int64_t count, FunctionRef<void(int64_t)> body) {
  intra_op_parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) body(i);
  });
};

}  // namespace

Compiled Plan::compile(const Request& request) {
  try {
    return {std::shared_ptr<const Plan>(new Plan(request)), ""};
  } catch (const NotPlanned& reason) {
    return {nullptr, reason.what()};
  }
}

Plan::Plan(const Request& request) : request_(request) {
  onednn();  // whose lack is an error also where no unit would use it
  if (request.input.empty() || request.input[0] < 1) throw NotPlanned("the batch is empty");
  units_ = make_units(request, output_);
  Shape shape = request.input;
  for (const Operation& operation : request.operations) {
    for (Shape& parameter : parameter_shapes(operation, shape)) {
      parameter_shapes_.push_back(std::move(parameter));
    }
    const auto* normalization = std::get_if<Normalization>(&operation);
    if (normalization != nullptr && normalization->by_batch) normalized_.push_back(shape);
    shape = result_shape(operation, shape);
  }
  int64_t widest = 0, together = 1;
  for (const auto& unit : units_) {
    widest = std::max(widest, unit->widest());
    together = std::max(together, unit->together());
  }
  chunks_ = Chunks(request.input[0], widest, together);
  size_t parameter = 0;
  bool wanted = request.records && request.wants_input;
  for (const auto& unit : units_) {
    unit->prepare(chunks_, request.records, wanted);
    first_parameter_.push_back(parameter);
    for (size_t i = 0; i < unit->num_parameters(); ++i, ++parameter) {
      wanted = wanted || (request.records && request.wants_parameters[parameter]);
    }
    wants_gradient_.push_back(wanted);
    forward_names_.push_back("forward: " + unit->describe());
    backward_names_.push_back("backward: " + unit->describe());
  }
}

std::vector<std::string> Plan::describe() const {
  std::vector<std::string> texts;
  for (const auto& unit : units_) texts.push_back(unit->describe());
  return texts;
}

// A forward pass without gradients needs values of those chunks alone that are under way, unless a
// unit must see all first.
bool Plan::keeps_all() const { return request_.records || !normalized_.empty(); }

// The number of examples of which a pass keeps values.
int64_t Plan::kept_examples() const {
  return keeps_all() ? chunks_.batch : chunks_.largest * static_cast<int64_t>(chunks_.lanes.size());
}

std::unique_ptr<Plan::ForwardPass> Plan::take_forward() const {
  return forward_passes_.take([&] {
    auto pass = std::make_unique<ForwardPass>();
    for (size_t u = 0; u < units_.size(); ++u) {
      pass->units.push_back(units_[u]->make_forward());
      const bool kept = u + 1 < units_.size() || (request_.records && units_[u]->reads_output());
      pass->values.emplace_back(kept ? kept_examples() * units_[u]->out_size() : 0);
    }
    return pass;
  });
}

void Plan::give_back(std::unique_ptr<ForwardPass> pass) const {
  forward_passes_.give_back(std::move(pass));
}

std::unique_ptr<Plan::BackwardPass> Plan::take_backward() const {
  return backward_passes_.take([&] {
    auto pass = std::make_unique<BackwardPass>();
    int64_t sizes[2] = {0, 0};
    for (size_t u = 0; u < units_.size(); ++u) {
      pass->units.push_back(wants_gradient_[u] ? units_[u]->make_backward() : nullptr);
      if (u + 1 < units_.size()) sizes[u % 2] = std::max(sizes[u % 2], units_[u]->out_size());
    }
    for (size_t i : {0, 1}) pass->gradients[i] = Buffer<float>(chunks_.batch * sizes[i]);
    pass->token = at::zeros({}, at::kFloat);
    return pass;
  });
}

void Plan::give_back(std::unique_ptr<BackwardPass> pass) const {
  backward_passes_.give_back(std::move(pass));
}

void Plan::keep_passes() const {
  forward_passes_.keep();
  backward_passes_.keep();
}

Plan::Passes Plan::keep_no_passes() const {
  return {forward_passes_.keep_none(), backward_passes_.keep_none()};
}

int64_t Plan::bytes_of_passes() const {
  int64_t kept = 0, largest = 0;
  for (const auto& unit : units_) {
    kept += kept_examples() * unit->out_size();
    largest = std::max(largest, chunks_.batch * unit->out_size());
  }
  return (kept + (request_.records ? 2 * largest : 0)) * static_cast<int64_t>(sizeof(float));
}

// How many lanes are worth a thread, if all are `work` multiplications.
int64_t Plan::per_thread(int64_t work) const {
  constexpr int64_t kPerThread = int64_t{1} << 21;  // some 20 us
  const auto lanes = static_cast<int64_t>(chunks_.lanes.size());
  const int64_t per_lane = std::max<int64_t>(work / lanes, 1);
  return std::clamp<int64_t>(kPerThread / per_lane, 1, lanes);
}

void Plan::forward(ForwardPass& pass, const float* input, const float* const* parameters,
                   float* output) const {
  for (size_t u = 0; u < units_.size(); ++u) {
    pass.units[u]->begin(parameters + first_parameter_[u]);
    pass.units[u]->make_ready(on_threads);
  }
  for (size_t first = 0; first < units_.size();) {
    size_t end = first + 1;
    while (end < units_.size() && !units_[end]->looks_at_batch()) ++end;
    if (units_[first]->looks_at_batch()) {
      const ScopedPart part(forward_names_[first]);
      pass.units[first]->look(first == 0 ? input : pass.values[first - 1].data(), on_threads);
    }
    run_units(pass, first, end, input, output);
    first = end;
  }
}

void Plan::run_units(ForwardPass& pass, size_t first, size_t end, const float* input,
                     float* output) const {
  int64_t work = 0;
  for (size_t u = first; u < end; ++u) work += units_[u]->work() * chunks_.batch;
  const auto run_chunk = [&](const Chunk& chunk) {
    const int64_t kept = keeps_all() ? chunk.first : chunk.lane * chunks_.largest;
    const float* in = first == 0 ? input + chunk.first * units_[0]->in_size()
                                 : pass.values[first - 1].data() + kept * units_[first]->in_size();
    for (size_t u = first; u < end; ++u) {
      float* const own = pass.values[u].data();
      float* const last = output + chunk.first * units_.back()->out_size();
      float* const out = own == nullptr ? last : own + kept * units_[u]->out_size();
      const ScopedPart part(forward_names_[u]);
      pass.units[u]->run(chunk, in, out);
      if (u + 1 == units_.size() && out != last) {
        std::copy_n(out, chunk.count * units_[u]->out_size(), last);
      }
      in = out;
    }
  };
  intra_op_parallel_for(0, static_cast<int64_t>(chunks_.lanes.size()), per_thread(work),
                        [&](int64_t begin, int64_t last) {
                          for (int64_t lane = begin; lane < last; ++lane) {
                            for (const Chunk& chunk : chunks_.lanes[static_cast<size_t>(lane)]) {
                              run_chunk(chunk);
                            }
                          }
                        });
}

std::vector<const float*> Plan::statistics(const ForwardPass& pass) const {
  std::vector<const float*> all;
  for (size_t u = 0; u < units_.size(); ++u) {
    if (units_[u]->looks_at_batch()) all.push_back(pass.units[u]->statistics());
  }
  return all;
}

void Plan::backward(const ForwardPass& forward, BackwardPass& pass, size_t u, const float* input,
                    const float* const* unit_parameters, const float* output_gradient,
                    float* const* gradients, float* input_gradient, bool goes_on) const {
  Backward& unit = *pass.units[u];
  Backward::Values values;
  values.in = u == 0 ? input : forward.values[u - 1].data();
  values.out = forward.values[u].data();
  values.out_gradient = u + 1 == units_.size() ? output_gradient : pass.gradients[u % 2].data();
  values.in_gradient = u == 0    ? input_gradient
                       : goes_on ? pass.gradients[(u - 1) % 2].data()
                                 : nullptr;
  unit.begin(*forward.units[u], values, unit_parameters, gradients);
  unit.make_ready(on_threads);
  intra_op_parallel_for(0, static_cast<int64_t>(chunks_.lanes.size()),
                        per_thread(units_[u]->gradient_work() * chunks_.batch),
                        [&](int64_t first, int64_t last) {
                          const ScopedPart part(backward_names_[u]);
                          for (int64_t lane = first; lane < last; ++lane) {
                            for (const Chunk& chunk : chunks_.lanes[static_cast<size_t>(lane)]) {
                              unit.run(chunk);
                            }
                          }
                        });
  const ScopedPart part(backward_names_[u]);
  unit.end(on_threads);
}

}  // namespace cohort::internal::plan
