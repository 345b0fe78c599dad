// Reads the batches of this process's replicas for each step, from all of its input workers, and
// knows its position.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/collective/sum_tree.h"
#include "cohort/core/program/process.h"
#include "cohort/core/threads/exclusive_use.h"
#include "cohort/data/dataset_iterator.h"
#include "cohort/data/graph/dataset_reader.h"
#include "cohort/data/iteration/iterator.h"
#include "cohort/distribute/input/input_source.h"
#include "cohort/distribute/values/values.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::distribute::internal_input {

// What messages call it.
inline constexpr const char* kIteratorName = "a distributed iterator";

// What becomes of a last step for which some pipelines have no data.
enum class LastStep : int {
  kAsShapesSay,  // Source::fills_up_last_step()
  kFilledUp,
};

// Thread safety: none; a second thread in a call, or a child of fork, gets a FailedPrecondition.
class StepReader {
 public:
  // One batch per replica; a dummy if its pipeline has ended.
  using Step = c10::SmallVector<Structure, 4>;

  explicit StepReader(std::shared_ptr<const Source> source);

  const Source& source() const { return *source_; }

  // The next step; nullopt when no worker has data, or if the last step is left out. If an
  // element fails, the other pipelines' elements are consumed as well, so that workers and replicas
  // stay in step, and the error is thrown. If a device does not answer in time, nothing is lost:
  // what was read of the step is kept for the next call. COLLECTIVE if other processes read for the
  // same steps: either all get a step, or none does. In this case the following step is also read
  // before this one is returned; what results from that is reported by the next call.
  // Errors: those of this process's input, and of another's, which names the worker; Aborted (that
  // of another process was late).
  std::optional<Step> next(LastStep last = LastStep::kAsShapesSay);
  // Whether next() will return a step or throw. May have to read that step, which is then part of
  // state(). COLLECTIVE, as next.
  bool has_next();
  // The number of steps that were returned or failed since the reader was made or restored.
  int64_t steps() const { return steps_; }

  // These are for replicas that tasks host (Feed), and for the time between two steps. What the
  // group was told of the step to come is forgotten: the tasks tell it again.
  //
  // From here on this task reads for the replicas of `range`, going on at the same step. The batch
  // that was read for that step is kept. Pipelines of replicas that come to this task pass over the
  // steps that they have not been read for, if it never read them.
  // Errors: FailedPrecondition (replicas that have nothing by their numbers; a restored position of
  // other replicas alone); those of the pipelines. The reader is then as it was.
  void host(collective::ReplicaRange range);
  // The next step is the one that was returned last, again, for the replicas that are hosted when
  // it is asked for. A second call before that one changes nothing.
  // Errors: FailedPrecondition (as host; no step was returned since the reader was made or
  // restored); those of the pipelines. The reader is then as it was.
  void restart_last();
  // The replicas for which this task reads.
  collective::ReplicaRange hosted() const { return range_; }

  // A source of the components of the step that was returned last, for any replica; null where
  // replicas stay where they are.
  static std::shared_ptr<const internal::ReplicaSource> source_of_last(
      const std::shared_ptr<StepReader>& reader);

  // See DistributedIterator.
  data::IteratorState state() const;
  void restore(const data::IteratorState& state);
  // The position of `reader`, for checkpoints; keeps the reader alive.
  static std::shared_ptr<train::Trackable> trackable(std::shared_ptr<StepReader> reader);

 private:
  class Position;
  // The part of a step that was read but not returned yet: the whole step, or the part before a
  // device stopped answering.
  struct Begun {
    c10::SmallVector<std::optional<Structure>, 4> elements;  // nothing: its pipeline has ended
    std::exception_ptr error;                                // of the first that failed
    size_t failed = 0;                                       // that element's replica
  };
  // What is known about the step that is read into begun_. Not part of states: looking again finds
  // the same, or more after a missed deadline.
  struct Coming {
    internal::InputStatus here;
    internal::InputAnswer group;     // empty: this process reads alone
    std::exception_ptr error;        // where `here` says so
    std::optional<Structure> dummy;  // where a replica has no data
  };
  // What is read instead of the source's pipelines, from a position of readers that divided the
  // dataset otherwise.
  struct Rest {
    data::AutoShardPolicy policy = data::AutoShardPolicy::OFF;
    int64_t pipelines = 0;  // 0: of the undivided dataset
  };
  struct Place {
    std::vector<data::DatasetIterator> others;  // in the place of those that there are; empty: none
    std::optional<SharedOrder> shared;
    std::optional<Rest> rest;
    std::vector<internal::DatasetReader::Place> iterators;
    // The pipelines' positions by the numbers of replicas, where each has one of its own; nothing:
    // it is not known to this task.
    std::vector<std::optional<data::IteratorState>> pipelines;
  };
  // The positions of pipelines before a step.
  struct Mark {
    int64_t step = 0;
    int first = 0;  // pipeline
    std::vector<data::IteratorState> states = {};
    std::exception_ptr error = nullptr;  // a pipeline has none
    const std::vector<data::IteratorState>& known() const;
  };
  // What was read for the pieces of a step.
  struct Batch {
    std::optional<Structure> rows = std::nullopt;  // nothing: the end
    std::exception_ptr error = nullptr;
    Mark before = {};
  };

  bool is_hosted() const { return source_->feed != Feed::kElements; }
  data::DatasetIterator make_iterator(size_t pipeline) const;
  bool is_split() const;
  data::IteratorState state_of(size_t pipeline) const;
  int first_pipeline() const;
  data::IteratorState whole_state() const;
  Mark mark() const;
  class SourceOfPieces;
  class SourceOfPipelines;
  void host_here(collective::ReplicaRange range);
  bool follow_group();
  bool is_shared() const;
  internal::InputAnswer agree(Coming& coming, LastStep last);
  Coming look_here(LastStep last);
  void mark_begun();
  void look(LastStep last);
  void look_into(Coming& coming, LastStep last);
  static internal::InputStatus agreed(Coming& coming);
  void throw_agreed(const Coming& coming, const internal::InputStatus& group);
  std::exception_ptr told_by_all(const std::exception_ptr& mine) const;
  void read_rest();
  void read_pieces();
  void cut(const Batch& batch);
  Batch read_batch();
  void step_returned(const Step& step, std::optional<Mark> before);
  void end_here();
  void drop_begun();
  void check_hosted() const;
  static bool are_untouched(const Step& pieces);
  data::DatasetIterator pipeline_at(int replica, int64_t step) const;
  std::vector<data::DatasetIterator> pipelines_at(collective::ReplicaRange range,
                                                  int64_t step) const;
  Structure make_dummy() const;
  int pipeline_of(size_t replica) const;
  // For restore. Errors: as restore.
  Place place_at(const data::IteratorState& state) const;
  Place place_at_whole(const data::IteratorState& whole) const;
  static Rest rest_in(const data::IteratorState& state);
  Place own_place() const;
  void place_whole(Place& place, const data::IteratorState& whole) const;
  static const internal::DatasetReader& reader_of(const Place& place,
                                                  const std::vector<data::DatasetIterator>& here,
                                                  size_t pipeline);
  Place rest_at(const Rest& rest, const data::IteratorState& whole) const;
  Place rest_of_all(const Rest& rest, const std::vector<data::IteratorState>& pipelines,
                    int64_t pieces) const;
  internal::DataNodePtr rest_node(const Rest& rest) const;
  data::DatasetIterator divided(const internal::DataNodePtr& batches, size_t pipeline) const;
  void go_to(Place place);

  const internal::HomeProcess home_;
  mutable internal::ExclusiveUse use_;
  std::shared_ptr<const Source> source_;
  collective::ReplicaRange range_;
  std::optional<SharedOrder> shared_;  // of the iterators
  std::optional<Rest> rest_;
  std::vector<data::DatasetIterator> iterators_;  // one a pipeline of this task
  Begun begun_;
  // Positions before begun_ was read, which is not part of states: they fit other numbers of
  // replicas. And before the step that was returned last, where replicas are hosted.
  std::optional<Mark> before_begun_;
  std::optional<Mark> before_last_;
  // What the pieces of begun_ were cut from, those of the step that was returned last, and what was
  // read after the one that is returned again.
  std::optional<Batch> batch_, last_batch_, following_;
  Step last_pieces_;
  std::vector<std::optional<data::IteratorState>> pipelines_;  // see Place
  bool restarted_ = false;
  bool looks_ahead_ = false;      // has_next was called
  bool at_end_ = false;           // the pipelines are at before_begun_, and nothing follows
  std::optional<Coming> coming_;  // where the step to come was looked at
  uint64_t epoch_ = 0;            // the pass over the data, also of a restored position
  int64_t pass_ = 0;              // see InputPlace
  int64_t steps_ = 0;
  int64_t generation_ = 0;  // of the group that range_ follows
};

}  // namespace cohort::distribute::internal_input
