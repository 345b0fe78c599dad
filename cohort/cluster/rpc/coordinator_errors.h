// Errors of a ClusterCoordinator that programs can tell from other errors of their code. They
// arrive with the same class in other tasks, too.
//
//   } catch (const tf::distribute::coordinator::PSUnavailableError& lost) {
//     return kStartAgain;   // from the last checkpoint, which lost.what() names
//   } catch (const tf::distribute::coordinator::ClosureInputError& broken) {
//     std::cerr << "look at the data: " << broken.error().what() << '\n';
//   }
#pragma once

#include <string>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/export.h"

namespace cohort::distribute::coordinator {

// A ps task is lost, with its variables: the program should start again from its last checkpoint.
// The loss of a worker is an UnavailableError that is none of these.
class COHORT_API PSUnavailableError : public UnavailableError {
 public:
  explicit PSUnavailableError(const std::string& message, std::string task = "")
      : UnavailableError(message, std::move(task)) {}
};

// An input of a closure could not be made: the worker's dataset or value, by the function that was
// given to create_per_worker_dataset or create_per_worker_value. The closure's own function has not
// run.
//
// It also has the class of that function's error, so that code which catches NotFoundError for a
// missing file, or Error, catches it as well. A program that catches both must catch this one
// first.
class COHORT_API ClosureInputError {
 public:
  virtual ~ClosureInputError() = default;
  // The same exception.
  virtual const Error& error() const = 0;
};

}  // namespace cohort::distribute::coordinator
