#include "cohort/distribute/variables/variable_creator.h"

#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/variables/call_creators.h"

namespace cohort {
namespace internal {

// What `next` of a running creator refers to, which the creator may have kept.
struct CreatorCall {
  using Next = FunctionRef<distribute::Variable(distribute::VariableCreation)>;
  explicit CreatorCall(Next passes_on) : next(passes_on) {}

  const Next next;
  const std::thread::id thread = std::this_thread::get_id();
  std::atomic<bool> runs = true;
};

namespace {

using distribute::NextVariableCreator;
using distribute::Variable;
using distribute::VariableCreation;

constexpr const char* kScope = "a variable_creator_scope";

struct Call {
  const CreatorEntry* end;
  StrategyCore& core;
  FunctionRef<Variable(VariableCreation)> make;

  Variable operator()(const Creators& creators, VariableCreation creation) const;
};

// Whether the strategy that makes the variable overrides what the creator says of the device.
bool is_inside(const CreatorEntry& entry, const StrategyCore& core) {
  return !core.is_default() && entry.core.lock().get() == &core;
}

Variable Call::operator()(const Creators& creators, VariableCreation creation) const {
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
  Variable variable = entry->creator(NextVariableCreator(call), std::move(creation));
  if (variable) return variable;
  throw InvalidArgumentError(
      str("the creator of ", kScope, " returned an empty Variable where variable ", quoted(name),
          " was to be made; return what `next` returns, or another variable"));
}

}  // namespace

bool has_open_creator(const Creators& creators) {
  for (const CreatorEntry* entry = creators.get(); entry != nullptr; entry = entry->outer.get()) {
    if (!entry->closed) return true;
  }
  return false;
}

Variable call_creators(const CreatorEntry* end, StrategyCore& core, VariableCreation creation,
                       FunctionRef<Variable(VariableCreation)> make) {
  return Call{end, core, make}(current_creators(), std::move(creation));
}

}  // namespace internal

namespace distribute {

using internal::str;

Tensor VariableCreation::initial_value() const {
  return initializer(shape ? ShardInfo::whole(*shape) : ShardInfo());
}

void VariableCreation::set_initial_value(const Tensor& value) {
  if (!value.defined()) {
    throw InvalidArgumentError(str("set_initial_value of variable ", internal::quoted(options.name),
                                   " got an undefined tensor"));
  }
  const Tensor cast = options.dtype ? value.to(*options.dtype) : value;
  shape = cast.sizes().vec();
  initializer = [cast](const ShardInfo& shard) { return shard.of(cast); };
}

Variable NextVariableCreator::operator()(VariableCreation creation) const {
  if (call_->thread != std::this_thread::get_id()) {
    throw FailedPreconditionError(
        str("`next` of a variable creator was called for variable ",
            internal::quoted(creation.options.name),
            " on another thread than the creator's; call it in the creator"));
  }
  if (!call_->runs) {
    throw FailedPreconditionError(str("`next` of a variable creator was called for variable ",
                                      internal::quoted(creation.options.name),
                                      " after the creator had returned; call it in the creator"));
  }
  return call_->next(std::move(creation));
}

VariableCreatorScope::VariableCreatorScope(VariableCreator creator) {
  if (!creator) throw InvalidArgumentError("variable_creator_scope got an empty function");
  entry_ = std::make_shared<internal::CreatorEntry>(
      std::move(creator), internal::current_creators(), internal::current_core());
  frame_ = internal::open_scope(nullptr, nullptr, entry_);
}

void VariableCreatorScope::close() {
  if (!open_) return;
  open_ = false;
  entry_->closed = true;
  internal::close_scope(frame_, internal::kScope);
}

VariableCreatorScope::~VariableCreatorScope() {
  try {
    close();
  } catch (const Error& error) {
    internal::log(logging::Level::kError, error.what());
  }
}

}  // namespace distribute
}  // namespace cohort
