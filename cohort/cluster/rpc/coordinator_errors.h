// Errors of a ClusterCoordinator that programs tell from others of their code. They arrive as what they are in
// other tasks, too.
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

// A ps task is lost, and the variables that it had: the program is to start again from its last checkpoint. Lost
// workers are an UnavailableError that is none of these.
class COHORT_API PSUnavailableError : public UnavailableError {
 public:
  explicit PSUnavailableError(const std::string& message, std::string task = "")
      : UnavailableError(message, std::move(task)) {}
};

// What a closure takes could not be made: the dataset or the value of its worker, by the function that
// create_per_worker_dataset or create_per_worker_value was given. The closure's own function has not run.
//
// It is an error of that function's class besides, so that whoever catches NotFoundError of a missing file, or Error,
// catches it as well; where both are caught, this one is to stand first.
class COHORT_API ClosureInputError {
 public:
  virtual ~ClosureInputError() = default;
  // The same exception.
  virtual const Error& error() const = 0;
};

}  // namespace cohort::distribute::coordinator

namespace cohort::internal {

// The phases (ErrorDetail) of these errors, by which they are made.
inline constexpr char kPsLost[] = "ps lost";
inline constexpr char kClosureInput[] = "closure input";

}  // namespace cohort::internal
