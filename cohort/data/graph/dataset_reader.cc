#include "cohort/data/graph/dataset_reader.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/data/graph/graph.h"

namespace cohort::internal {
namespace {

// So many elements at most are read again after a missed deadline.
constexpr int64_t kMostBetweenMarks = 256;
// Marks are so far apart that they take a hundredth of the time, unless that is more.
constexpr int64_t kMarkShare = 100;

constexpr const char* kGiven = "given";
constexpr const char* kPass = "pass";
constexpr const char* kWhat = "a dataset's iterator";

}  // namespace

DatasetReader::DatasetReader(DataNodePtr root, const IteratorContext& context)
    : root_(std::move(root)),
      context_(context),
      graph_(std::make_shared<const std::string>(describe_state_graph(*root_))) {
  context_.unordered = std::make_shared<std::atomic<bool>>(false);
  iterator_ = root_->make_iterator(context_);
}

// In a child of fork the threads of the iterators are not there to be joined.
DatasetReader::~DatasetReader() {
  if (!home_.is_here()) new std::shared_ptr<DataIterator>(std::move(iterator_));
}

bool DatasetReader::next(Structure& out) {
  home_.check(kWhat);
  const ExclusiveUse::Hold hold(use_, kWhat);
  if (standing_ == Standing::kEnded) return false;
  try {
    if (standing_ == Standing::kInterrupted) {
      check_mark();
      iterator_ = nullptr;  // its threads and files, before there are others
      iterator_ = iterator_at(*mark_, given_);
      standing_ = Standing::kReads;
    }
    if (given_ >= next_mark_ || *context_.unordered) mark();
    const bool found = iterator_->next(out);
    given_ += found;
    return found;
  } catch (const PassInterrupted& interrupted) {
    note(interrupted);
    std::rethrow_exception(interrupted.error);
  } catch (...) {
    if (standing_ == Standing::kReads) ++given_;
    throw;
  }
}

// A state that cannot be had is for `state` to report; the last mark stays good.
void DatasetReader::mark() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  try {
    mark_ = std::make_shared<const IteratorState>(iterator_->save());
    given_ = 0;
  } catch (const std::exception&) {
  }
  const auto end = Clock::now();
  const bool too_near = begin - marked_at_ < kMarkShare * (end - begin);
  mark_interval_ = too_near ? std::min(2 * mark_interval_, kMostBetweenMarks)
                            : std::max<int64_t>(mark_interval_ / 2, 1);
  next_mark_ = given_ + mark_interval_;
  marked_at_ = end;
}

void DatasetReader::note(const PassInterrupted& interrupted) {
  try {
    std::rethrow_exception(interrupted.error);
  } catch (const InputDeadlineExceeded&) {
    standing_ = Standing::kInterrupted;
  } catch (...) {
    standing_ = Standing::kEnded;
  }
}

void DatasetReader::check_mark() const {
  if (mark_) return;
  throw FailedPreconditionError(
      "reading was interrupted and cannot be resumed, since this pipeline's state cannot be saved; "
      "take a new iterator");
}

IteratorState DatasetReader::state() const {
  home_.check(kWhat);
  const ExclusiveUse::Hold hold(use_, kWhat);
  IteratorState state;
  state.set_bytes("graph", graph_);
  state.set_int(kPass, static_cast<int64_t>(context_.epoch));
  if (standing_ == Standing::kReads) {
    state.set_child("root", iterator_->save());
    return state;
  }
  check_mark();
  state.set_child("root", mark_);
  state.set_int(kGiven, given_);
  return state;
}

DatasetReader::Place DatasetReader::place_after(const IteratorState& state,
                                                int64_t elements) const {
  if (state.has("workers")) {
    throw InvalidArgumentError(
        "this state is of a distributed iterator, of several input workers or in the middle of a "
        "step; restore it into an iterator of the distributed dataset");
  }
  if (const auto difference = first_graph_difference(state.get_bytes("graph"), *graph_)) {
    throw InvalidArgumentError("this state is of another pipeline: " + *difference);
  }
  const c10::NoGradGuard no_grad;
  const int64_t most = std::numeric_limits<int64_t>::max() - elements;
  const int64_t given = elements + (state.has(kGiven) ? state.get_int(kGiven, 0, most) : 0);
  Place place;
  if (state.has(kPass)) place.pass = static_cast<uint64_t>(state.get_int(kPass));
  place.iterator = at_root([&] { return iterator_at(state.child("root"), given); });
  return place;
}

std::unique_ptr<DataIterator> DatasetReader::iterator_at(const IteratorState& mark,
                                                         int64_t given) const {
  auto iterator = root_->make_iterator(context_);
  iterator->restore(mark);
  if (given > 0) iterator->skip(given);
  return iterator;
}

void DatasetReader::go_to(Place place) {
  home_.check(kWhat);
  const ExclusiveUse::Hold hold(use_, kWhat);
  iterator_ = std::move(place.iterator);
  if (place.pass) {
    context_.epoch = *place.pass;
    if (context_.passes) *context_.passes = *place.pass + 1;
  }
  standing_ = Standing::kReads;
  mark_ = nullptr;
  given_ = next_mark_ = 0;
}

}  // namespace cohort::internal
