// The errors under TensorFlow's names: catch (const tf::errors::OutOfRangeError& end) { ... }
#pragma once

#include "cohort/core/error.h"

namespace cohort::errors {

using cohort::AbortedError;
using cohort::AlreadyExistsError;
using cohort::CancelledError;
using cohort::DataLossError;
using cohort::DeadlineExceededError;
using cohort::FailedPreconditionError;
using cohort::InternalError;
using cohort::InvalidArgumentError;
using cohort::NotFoundError;
using cohort::OutOfRangeError;
using cohort::PermissionDeniedError;
using cohort::ResourceExhaustedError;
using cohort::UnauthenticatedError;
using cohort::UnavailableError;
using cohort::UnimplementedError;
using cohort::UnknownError;
using OpError = cohort::Error;  // of which the others are

}  // namespace cohort::errors
