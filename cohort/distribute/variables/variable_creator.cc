#include "cohort/distribute/variables/variable_creator.h"

#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/distribute/variables/creators.h"

namespace cohort::distribute {

using internal::str;

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
  return Variable(call_->next(std::move(creation)));
}

VariableCreatorScope::VariableCreatorScope(VariableCreator creator) {
  if (!creator) throw InvalidArgumentError("variable_creator_scope got an empty function");
  const auto call = [creator = std::move(creator)](
                        const std::shared_ptr<const internal::CreatorCall>& next,
                        VariableCreation creation) {
    return creator(NextVariableCreator(next), std::move(creation)).impl_ptr();
  };
  entry_ = std::make_shared<internal::CreatorEntry>(call, internal::current_creators(),
                                                    internal::current_core());
  frame_ = internal::open_scope(nullptr, nullptr, entry_);
}

void VariableCreatorScope::close() {
  if (!open_) return;
  open_ = false;
  entry_->closed = true;
  internal::close_scope(frame_, internal::kCreatorScope);
}

VariableCreatorScope::~VariableCreatorScope() {
  try {
    close();
  } catch (const Error& error) {
    internal::log(logging::Level::kError, error.what());
  }
}

}  // namespace cohort::distribute
