#include "cohort/parameter_server/store/store_service.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/frame.h"
#include "cohort/core/cpu/flush_denormals.h"
#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/program/task.h"
#include "cohort/distribute/variables/known_values.h"
#include "cohort/parameter_server/store/kept_message.h"
#include "cohort/parameter_server/store/load_figures.h"
#include "cohort/parameter_server/store/packed_message.h"
#include "cohort/parameter_server/store/read_parts.h"
#include "cohort/parameter_server/store/write_kept.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostControlBytes = rpc::kMaxHeaderBytes;
constexpr rpc::Roles kCallers = rpc::Role::kCoordinator | rpc::Role::kWorker;
// Also the programs of ps tasks and evaluators, between their calls of fit, say.
constexpr rpc::Roles kReaders = rpc::kEveryTask;

// A worker that is lost changes the cluster's generation, which concerns no other worker's pushes:
// the methods are not fenced by it, but by the coordinator's (coordinator_fence.h).
enum StoreMethod : size_t {
  kCreate,
  kRead,
  kRows,
  kApply,
  kPushPull,
  kLoad,
  kKeep,
  kWriteKept,
  kReadKept,
  kDropKept,
  kReadParts,
  kSendPart,
  kAdoptParts,
  kDropParts,
  kRelease
};
constexpr rpc::MethodSpec kStoreMethods[] = {
    {.name = "create", .callers = kCallers, .max_bulk_bytes = kMostStoreBytes, .fenced = false},
    {.name = "read",
     .callers = kReaders,
     .max_bulk_bytes = kMostPackedFields,
     .fenced = false,
     .max_control_bytes = kMostControlBytes},
    {.name = "rows",
     .callers = kReaders,
     .max_bulk_bytes = kMostStoreBytes,
     .fenced = false,
     .max_control_bytes = kMostControlBytes},
    {.name = "apply",
     .callers = kCallers,
     .max_bulk_bytes = kMostStoreBytes,
     .fenced = false,
     .max_control_bytes = kMostControlBytes},
    {.name = "push_pull",
     .callers = kCallers,
     .max_bulk_bytes = kMostStoreBytes,
     .fenced = false,
     .max_control_bytes = kMostControlBytes},
    {.name = "load", .callers = kReaders, .fenced = false},
    {.name = "keep",
     .callers = rpc::Role::kCoordinator,
     .max_bulk_bytes = kMostPackedFields,
     .fenced = false,
     .max_control_bytes = kMostControlBytes},
    {.name = "write_kept", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "read_kept", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "drop_kept", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "read_parts",
     .callers = rpc::Role::kCoordinator,
     .max_bulk_bytes = kMostPackedFields,
     .fenced = false,
     .max_control_bytes = kMostControlBytes},
    {.name = "send_part",
     .callers = rpc::Role::kCoordinator,
     .max_bulk_bytes = kMostStoreBytes,
     .fenced = false},
    {.name = "adopt_parts", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "drop_parts", .callers = rpc::Role::kCoordinator, .fenced = false},
    {.name = "release",
     .callers = rpc::Role::kCoordinator,
     .max_bulk_bytes = kMostPackedFields,
     .fenced = false,
     .max_control_bytes = kMostControlBytes},
};

// More bytes than that take longer than waking a thread.
constexpr size_t kFewBytes = size_t{16} << 10;

bool takes_a_moment(size_t method, const rpc::Message& request) {
  switch (method) {
    case kRead:
    case kRows:
    case kApply:
    case kPushPull:
    case kLoad:
      return request.bulk_bytes() <= kFewBytes;
    default:
      return false;
  }
}

}  // namespace

StoreService::StoreService(const train::ClusterSpec& cluster, TaskId self,
                           std::shared_ptr<VariableStore> store,
                           std::shared_ptr<CoordinatorFence> fence)
    : self_(std::move(self)),
      self_name_(to_string(self_)),
      store_(std::move(store)),
      fence_(std::move(fence)),
      figures_(cluster, self_),
      pool_("store", std::max(4, num_usable_cores())),
      file_pool_("store files", 1) {}

std::span<const rpc::MethodSpec> StoreService::methods() const { return kStoreMethods; }

void StoreService::handle(size_t method, std::unique_ptr<rpc::Call> call) {
  const ScopedTask as_this_server(Task::named(self_.job, self_.index));
  if (call->on_own_thread() && takes_a_moment(method, call->request())) return run(method, *call);
  const bool has_to_do_with_files = method == kWriteKept || method == kReadParts;
  ThreadPool& pool = has_to_do_with_files ? file_pool_ : pool_;
  pool.schedule(
      [this, method, call = std::shared_ptr<rpc::Call>(std::move(call))] { run(method, *call); });
}

void StoreService::run(size_t method, rpc::Call& call) const {
  // Denormals are flushed as in the steps of one process: slots decay into such numbers here, too.
  const ScopedFlushDenormals flush_denormals;
  try {
    rpc::Message reply = with_typed_errors(self_name_.c_str(),
                                           [&] { return packed(pass_and_answer(method, call)); });
    bytes_in_ += static_cast<int64_t>(call.request().bulk_bytes());
    bytes_out_ += static_cast<int64_t>(reply.bulk_bytes());
    call.reply(std::move(reply));
    const auto figures = [this] { return figures_of(load()); };
    method == kRelease ? figures_.tell(figures) : figures_.tick(figures);
  } catch (...) {
    const std::exception_ptr thrown = std::current_exception();
    const ErrorRecord error = record_error(thrown);
    call.fail(rpc::make_error(error.code, error.message, self_name_, rpc::detail_of(thrown)));
  }
}

VariableStore::Load StoreService::load() const {
  VariableStore::Load load = store_->load();
  load.refused = static_cast<int64_t>(fence_->refused());
  load.bytes_received = bytes_in_;
  load.bytes_sent = bytes_out_;
  return load;
}

rpc::Message StoreService::pass_and_answer(size_t method, const rpc::Call& call) const {
  const std::optional<rpc::Message> whole = unpacked(call.request());
  const rpc::Message& request = whole ? *whole : call.request();
  const TaskId& caller = call.caller().task;
  switch (method) {
    case kLoad:
      return answer(method, request);
    case kRead:
    case kRows:
    case kWriteKept:
    case kReadKept:
      fence_->check_reader(caller, session_of(request));
      return answer(method, request);
    case kReadParts: {  // without a pass while it reads, which may take long
      fence_->check_reader(caller, session_of(request));
      const ReadPartsRequest wanted = decode_read_parts(request);
      auto values = read_parts(posix_file_system(), *store_, wanted);
      const auto pass = fence_->admit_change(caller, session_of(request));
      if (values) store_->prepare(wanted.id, std::move(*values));
      return encode(ReadPartsReply{.found = values.has_value()});
    }
    case kRelease:
      // What a coordinator of another generation has had went with the take-over.
      if (generation_of(session_of(request)) != fence_->generation()) return {.control = ""};
      [[fallthrough]];
    default: {
      const auto pass = fence_->admit_change(caller, session_of(request));
      return answer(method, request);
    }
  }
}

rpc::Message StoreService::answer(size_t method, const rpc::Message& request) const {
  switch (method) {
    case kCreate:
      create(decode_create(request));
      return {.control = ""};
    case kRead:
      return encode(values_of(decode_read(request), {}));
    case kRows:
      return encode(values_of({}, decode_rows(request)));
    case kPushPull: {
      const PushPullRequest both = decode_push_pull(request);
      apply(both.push);
      return encode(values_of(both.read, both.rows));
    }
    case kLoad:
      return encode(load());
    case kKeep: {
      const KeepRequest keep = decode_keep(request);
      store_->keep(keep.id, keep.keys);
      return {.control = ""};
    }
    case kWriteKept: {
      const WriteKeptRequest writing = decode_write_kept(request);
      return encode(write_kept(posix_file_system(), store_->kept(writing.id), writing));
    }
    case kReadKept: {
      const KeptRequest wanted = decode_kept(request);
      const std::vector<Tensor> values = store_->kept(wanted.id);
      if (wanted.index >= values.size()) {
        throw InvalidArgumentError(
            str("of ", values.size(), " kept values number ", wanted.index, " was asked for"));
      }
      return encode(ReadReply{{{0, values[wanted.index]}}});
    }
    case kDropKept:
      store_->drop_kept(decode_kept(request).id);
      return {.control = ""};
    case kSendPart: {
      SendPartRequest sent = decode_send_part(request);
      sent.part.value = sent.part.value.clone();  // it lies in the message
      store_->prepare_more(sent.id, std::move(sent.part));
      return {.control = ""};
    }
    case kAdoptParts:
      store_->adopt(decode_kept(request).id);
      return {.control = ""};
    case kDropParts:
      store_->drop_prepared(decode_kept(request).id);
      return {.control = ""};
    case kRelease:
      store_->release(decode_release(request).shards);
      return {.control = ""};
    default:
      apply(decode_apply(request));
      return {.control = ""};
  }
}

void StoreService::create(const CreateRequest& creation) const {
  if (creation.owner) store_->tie(creation.key, *creation.owner);
  if (creation.known) {
    const KnownShard& known = *creation.known;
    if (!store_->has(creation.key, creation.name, known.shape, known.dtype)) {
      store_->create(creation.key, creation.name,
                     make_known_values(known.values, known.shape, known.first, known.dtype));
    }
  } else {  // the value lies in the message
    store_->create(creation.key, creation.name, creation.value.clone());
  }
  if (!creation.owner) store_->hold(creation.key);
}

void StoreService::apply(const ApplyRequest& push) const {
  store_->forget_tokens_below(push.forget_below);
  store_->apply(push.token, push.ops);
}

ReadReply StoreService::values_of(const ReadRequest& read, const RowsRequest& rows) const {
  ReadReply reply{.values = store_->read_together(read.entries)};
  for (const auto& [key, indices] : rows.entries) {
    reply.values.push_back(store_->read_rows(key, indices));
  }
  return reply;
}

}  // namespace cohort::internal
