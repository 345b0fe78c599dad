#include "cohort/collective/nccl/nccl_ranks.h"

#include "cohort/core/error.h"

namespace cohort::collective::nccl {

using internal::str;

void check(Result result, const char* what) {
  if (result == kSuccess || result == kInProgress) return;
  const std::string text = str("NCCL cannot ", what, ": ", library().get_error_string(result));
  if (result != kInvalidUsage) throw UnavailableError(text);
  throw FailedPreconditionError(
      str(text,
          "; it refuses two ranks on one GPU, for example: give each task GPUs of its own, "
          "by CUDA_VISIBLE_DEVICES or the strategy's devices"));
}

namespace {

// libtorch 2.7 and before have no such member.
template <class Stream>
void* native_handle(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    throw UnimplementedError(str("NCCL on a stream of ", stream.device().str(),
                                 " that is not the default one needs libtorch 2.11 or later"));
  }
}

}  // namespace

void* raw_stream(const c10::Stream& stream) {
  return stream.id() == 0 ? nullptr : native_handle(stream);  // CUDA calls the default one 0
}

NcclRanks::NcclRanks(const UniqueId& id, int ranks, int first,
                     const std::vector<c10::Device>& devices)
    : size_(devices.size()), all_(devices.size(), nullptr) {
  try {
    Config config;
    CallGroup together("connect");
    for (size_t i = 0; i < devices.size(); ++i) {
      const c10::DeviceGuard guard(devices[i]);
      const int rank = first + static_cast<int>(i);
      check(library().comm_init_rank_config(&all_[i], ranks, id, rank, &config), "connect");
    }
    together.end();
  } catch (...) {
    abort();
    throw;
  }
}

bool NcclRanks::are_ready() const {
  const std::lock_guard lock(mutex_);
  check_not_ended();
  for (Comm one : all_) {
    Result state = kSuccess;
    check(library().comm_get_async_error(one, &state), "say how it is");
    check(state, "exchange values");
    if (state == kInProgress) return false;
  }
  return true;
}

void NcclRanks::abort() noexcept {
  const std::lock_guard lock(mutex_);
  for (Comm one : all_) {
    if (one != nullptr) library().comm_abort(one);
  }
  all_.clear();
}

void NcclRanks::check_not_ended() const {
  if (all_.empty()) throw AbortedError("NCCL's group has ended; form it again");
}

}  // namespace cohort::collective::nccl
