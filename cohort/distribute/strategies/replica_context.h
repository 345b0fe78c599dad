// A step's view of the replica that runs it, and of the other replicas: collective calls are made
// through it.
//
//   strategy.run([](ReplicaContext& context, const Tensor& x) {
//     Tensor total = context.all_reduce(ReduceOp::SUM, x);
//     context.merge_call([](Strategy& strategy, const PerReplica<Tensor>& xs) { ... }, x);
//   }, batch);
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "cohort/collective/communication_options.h"
#include "cohort/core/export.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/structure/structure.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/values/component.h"
#include "cohort/distribute/values/reduced.h"
#include "cohort/distribute/values/values.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort {

namespace internal {

// How merge_call passes a replica's argument to the merged function.
template <class T>
struct Merged {
  using type = distribute::PerReplica<T>;
};
template <>
struct Merged<distribute::Variable> {  // every replica names the same variable
  using type = distribute::Variable;
};

// A replica's arguments of merge_call. The tag is the first member in every type of frame, so that
// a frame of another type can be recognized before it is cast.
template <class Result, class... Args>
struct MergeFrame {
  const char* tag;
  std::tuple<const Args*...> args;
  std::optional<Component<Result>> result;
};
template <class... Args>
struct MergeFrame<void, Args...> {
  const char* tag;
  std::tuple<const Args*...> args;
  std::monostate result;
};
// One address per type.
template <class T>
COHORT_API inline char type_tag = 0;
// Errors: FailedPrecondition (a frame with another tag, naming its replica).
COHORT_API void check_same_types(std::span<void* const> frames, const char* tag, int first_replica);
}  // namespace internal

namespace distribute {

// One replica of one running step. Lives as long as the step; used only by the step's own thread.
// Every replica must make the same collective calls in the same order. If the calls differ, all
// replicas get a FailedPreconditionError that names who did what; if a replica does not arrive in
// time, they get a DeadlineExceededError that names it.
class COHORT_API ReplicaContext : public internal::Replica {
 public:
  // For strategies: see internal::Replica.
  ReplicaContext(internal::StrategyCore& core, int local_id,
                 std::shared_ptr<const collective::GroupView> view,
                 const random::RandomGenerator* merge_generator = nullptr,
                 internal::StepOutput* output = nullptr);

  // 0 .. num_replicas_in_sync - 1.
  int replica_id_in_sync_group() const { return Replica::replica_id_in_sync_group(); }
  int num_replicas_in_sync() const { return Replica::num_replicas_in_sync(); }
  // The index of this replica within its task.
  int local_replica_id() const { return Replica::local_replica_id(); }
  // The canonical name of this replica's device; always one element.
  std::vector<std::string> devices() const { return Replica::devices(); }
  // The strategy whose step it runs.
  Strategy strategy() const;

  // All replicas wait while fn runs once in cross-replica context, as fn(Strategy&, merged
  // arguments...). An argument T arrives as PerReplica<T>, a Variable as itself. A PerReplica or
  // Mirrored result is split again, so that each replica gets its component; any other result is
  // copied to each.
  // Collective. Errors: what fn throws, on every replica; FailedPrecondition, DeadlineExceeded.
  template <class Fn, class... Args>
  auto merge_call(Fn&& fn, const Args&... args) {
    using Result = std::invoke_result_t<Fn&, Strategy&, typename internal::Merged<Args>::type...>;
    using Frame = internal::MergeFrame<Result, Args...>;
    Frame mine{&internal::type_tag<Frame>, std::tuple<const Args*...>(&args...), {}};
    merge("merge_call", &mine, [&](std::span<void* const> all) {
      internal::check_same_types(all, &internal::type_tag<Frame>,
                                 replica_id_in_sync_group() - local_replica_id());
      Strategy strategy = this->strategy();
      const auto call = [&] {
        return apply_merged<Frame, Args...>(fn, strategy, all, std::index_sequence_for<Args...>());
      };
      if constexpr (std::is_void_v<Result>) {
        call();
      } else {
        const Result result = call();
        for (size_t i = 0; i < all.size(); ++i) {
          static_cast<Frame*>(all[i])->result.emplace(internal::component(result, i));
        }
      }
    });
    if constexpr (!std::is_void_v<Result>) return std::move(*mine.result);
  }

  // The sum or mean of `value` over all replicas, added in replica order, so the result is bitwise
  // the same on every replica and in every run. Differentiable: its gradient is the same all-reduce
  // of the gradient. A Variable stands for what it reads in this replica.
  // MEAN of int32 and int64 gives float64, as in TensorFlow. A sparse value (a gradient of an
  // embedding) gives a sparse one with the rows of all replicas, in replica order, not coalesced.
  // Shapes: value [..], the same on every replica -> a new tensor of the same shape.
  // Collective. Errors: InvalidArgument (shapes or dtypes differ, naming both replicas; int8, uint8
  // and int16, whose sums would soon wrap: cast them; bool; a sum that int32 cannot hold),
  // FailedPrecondition, DeadlineExceeded (also of its gradient: the step's timeout or that of
  // `options`, which count before the strategy's and must be the same on every replica).
  Tensor all_reduce(ReduceOp op, const Tensor& value,
                    const experimental::CommunicationOptions& options = {});
  // The same for each leaf, or each member of a pair, tuple, vector, array or plain struct; a
  // number gives a tensor of shape []. Errors: also Unimplemented (a RaggedTensor).
  Structure all_reduce(ReduceOp op, const Structure& value,
                       const experimental::CommunicationOptions& options = {});
  template <internal::ReducesByMember T>
  internal::Reduced<T> all_reduce(ReduceOp op, const T& value,
                                  const experimental::CommunicationOptions& options = {}) {
    return internal::from_reduced<T>(all_reduce(op, internal::to_structure(value), options));
  }
  // "SUM" or "MEAN". Errors: also InvalidArgument (another name).
  template <class Value>
  auto all_reduce(std::string_view op, const Value& value,
                  const experimental::CommunicationOptions& options = {}) {
    return all_reduce(parse_reduce_op(op), value, options);
  }

  // The value of one replica, on every replica. Differentiable: that replica gets the sum of all
  // gradients, the others zeros.
  // Shapes: value [..], the same on every replica -> a new tensor of the same shape.
  // Collective. Errors: InvalidArgument (shapes or dtypes differ, naming both replicas; a sparse
  // value; no such replica, or another one on another replica), FailedPrecondition,
  // DeadlineExceeded.
  Tensor broadcast(const Tensor& value, int source_replica = 0);

  // The replicas' values concatenated along `axis`, in replica order. Differentiable: the gradient
  // is summed over the replicas, and each takes its own rows.
  // Shapes: value [.., n_r, ..], equal except along `axis` -> [.., sum of n_r, ..].
  // Collective. Errors: InvalidArgument (rank 0, axis out of range, shapes), as all_reduce.
  Tensor all_gather(const Tensor& value, int64_t axis,
                    const experimental::CommunicationOptions& options = {});
  // The same for each leaf or member. RaggedTensors are joined row by row along axis 0.
  // Errors: also Unimplemented (a RaggedTensor along another axis).
  Structure all_gather(const Structure& value, int64_t axis,
                       const experimental::CommunicationOptions& options = {});
  template <internal::ReducesByMember T>
  internal::Reduced<T> all_gather(const T& value, int64_t axis,
                                  const experimental::CommunicationOptions& options = {}) {
    return internal::from_reduced<T>(all_gather(internal::to_structure(value), axis, options));
  }

 private:
  template <class Frame, class... Args, class Fn, size_t... kIndex>
  static auto apply_merged(Fn& fn, Strategy& strategy, [[maybe_unused]] std::span<void* const> all,
                           std::index_sequence<kIndex...>) {
    return fn(strategy, collect<Frame, kIndex, Args>(all)...);
  }
  template <class Frame, size_t kIndex, class Arg>
  static auto collect(std::span<void* const> all) {
    using Target = typename internal::Merged<Arg>::type;
    if constexpr (std::is_same_v<Target, Arg>) {
      return *std::get<kIndex>(static_cast<Frame*>(all[0])->args);
    } else {
      typename Target::Values values;
      for (void* frame : all) {
        values.push_back(*std::get<kIndex>(static_cast<Frame*>(frame)->args));
      }
      return Target(std::move(values));
    }
  }
};

}  // namespace distribute
}  // namespace cohort
