#include "cohort/distribute/variables/creators.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"

namespace cohort::internal {
namespace {

using distribute::VariableCreation;

struct Call {
  const CreatorEntry* end;
  StrategyCore& core;
  FunctionRef<VariablePtr(VariableCreation)> make;

  VariablePtr operator()(const Creators& creators, VariableCreation creation) const;
};

// Whether the strategy that makes the variable overrides what the creator says of the device.
bool is_inside(const CreatorEntry& entry, const StrategyCore& core) {
  return !core.is_default() && entry.core.lock().get() == &core;
}

VariablePtr Call::operator()(const Creators& creators, VariableCreation creation) const {
  Creators entry = creators;
  while (entry != nullptr && entry.get() != end && entry->closed) entry = entry->outer;
  if (entry == nullptr || entry.get() == end) return make(std::move(creation));

  const auto next = [&](VariableCreation passed_on) {
    if (is_inside(*entry, core)) passed_on.device.clear();
    return (*this)(entry->outer, std::move(passed_on));
  };
  const auto call = std::make_shared<CreatorCall>(next);
  struct Ended {
    CreatorCall& call;
    ~Ended() { call.runs = false; }
  } ended{*call};
  const std::string name = creation.options.name;
  const ContextGuard around(entry->outer);
  VariablePtr variable = entry->creator(call, std::move(creation));
  if (variable != nullptr) return variable;
  throw InvalidArgumentError(
      str("the creator of ", kCreatorScope, " returned an empty Variable where variable ",
          quoted(name), " was to be made; return what `next` returns, or another variable"));
}

}  // namespace

bool has_open_creator(const Creators& creators) {
  for (const CreatorEntry* entry = creators.get(); entry != nullptr; entry = entry->outer.get()) {
    if (!entry->closed) return true;
  }
  return false;
}

VariablePtr call_creators(const CreatorEntry* end, StrategyCore& core, VariableCreation creation,
                          FunctionRef<VariablePtr(VariableCreation)> make) {
  return Call{end, core, make}(current_creators(), std::move(creation));
}

}  // namespace cohort::internal
