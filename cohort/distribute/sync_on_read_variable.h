// An ON_READ variable: each replica writes its own component; reading across replicas aggregates.
#pragma once

#include "cohort/distribute/variable_impl.h"

namespace cohort::internal {

class SyncOnReadVariable final : public VariableImpl {
 public:
  using VariableImpl::VariableImpl;

  Tensor read() const override;
  void assign(AssignOp op, const Tensor& value) override;
  const char* kind() const override { return "SyncOnReadVariable"; }

 protected:
  // SUM: value / components, so that the sum is the value again; integers leave what remains of
  // the division in the first.
  Tensor restored_component(size_t replica, const Tensor& value) const override;

 private:
  Tensor aggregate() const;
};

}  // namespace cohort::internal
