// predict.
#pragma once

#include "cohort/keras/model/model.h"

namespace cohort::internal {

// See ModelHandle::predict.
Structure run_prediction(const keras::ModelHandle& model, const keras::Data& data,
                         const keras::PredictOptions& options);

}  // namespace cohort::internal
