// Pushes as messages, alone and with what is read after them.
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "cohort/core/bytes/fields.h"
#include "cohort/optim/constraint.h"
#include "cohort/optim/make_rule.h"
#include "cohort/parameter_server/store/message_parts.h"
#include "cohort/parameter_server/store/store_message.h"

namespace cohort::internal {

void fields(auto& f, optim::TransformOptions& options) {
  f(1, options.clipvalue);
  f(2, options.weight_decay);
  f(3, options.ema_momentum);
  f(4, options.ema_overwrite_frequency);
}

void fields(auto& f, optim::RuleConfig& rule) {
  f(1, rule.name);
  f(2, rule.values);
  f(3, rule.transform);
}

void fields(auto& f, optim::Projection& projection) {
  f(1, projection.kind, optim::Projection::Kind::kRadial);
  f(2, projection.axes);
  f(3, projection.least);
  f(4, projection.most);
  f(5, projection.rate);
  f(6, projection.epsilon);
}

namespace {

using Rule = std::shared_ptr<const optim::UpdateRule>;

// A StoreOp without its tensors.
struct OpFields {
  enum class Kind : uint8_t { kAssign, kScatter, kUpdate };
  Kind kind = Kind::kAssign;
  ShardKey key = {};
  AssignOp assign = AssignOp::kAssign;
  ScatterOp scatter = ScatterOp::kAdd;
  std::vector<int64_t> slots = {};  // variables; their shard is that of `key`
  size_t rule = 0;
  double learning_rate = 0;
  int64_t iteration = 0;
  bool is_sparse = false;
  std::optional<int64_t> based_on = std::nullopt;
  std::optional<optim::Projection> constraint = std::nullopt;
};
void fields(auto& f, OpFields& op) {
  fields(f, op.key);
  f(3, op.kind, OpFields::Kind::kUpdate);
  f(4, op.assign, AssignOp::kSub);
  f(5, op.scatter, ScatterOp::kDiv);
  f(6, op.slots);
  f(7, op.rule);
  f(8, op.learning_rate);
  f(9, op.iteration);
  f(10, op.is_sparse);
  f(11, op.based_on);
  f(12, op.constraint);
}

struct ApplyFields {
  uint64_t token = 0;
  uint64_t forget_below = 0;
  std::vector<optim::RuleConfig> rules = {};  // each once
  std::vector<OpFields> ops = {};
};
void fields(auto& f, ApplyFields& request) {
  f(1, request.token);
  f(2, request.forget_below);
  f(3, request.rules);
  f(4, request.ops);
}

// The control bytes of messages, and how many bulks the first one has.
struct PushPullFields {
  std::string_view push;
  size_t bulks = 0;
  std::string_view read;
  std::string_view rows;
};
void fields(auto& f, PushPullFields& request) {
  f(1, request.push);
  f(2, request.bulks);
  f(3, request.read);
  f(4, request.rows);
}

// Writes the operations of one request.
class OpWriter {
 public:
  OpFields write(const AssignShard& op) {
    tensors_.add(op.operand);
    return {.kind = OpFields::Kind::kAssign, .key = op.key, .assign = op.op};
  }
  OpFields write(const ScatterShard& op) {
    tensors_.add(op.indices);
    tensors_.add(op.values);
    return {.kind = OpFields::Kind::kScatter, .key = op.key, .scatter = op.op};
  }
  OpFields write(const UpdateShard& op) {
    OpFields out{.kind = OpFields::Kind::kUpdate, .key = op.key};
    out.slots.reserve(op.slots.size());
    for (const ShardKey& slot : op.slots) out.slots.push_back(slot.variable);
    out.rule = index_of(op.rule);
    out.learning_rate = op.learning_rate;
    out.iteration = op.iteration;
    out.is_sparse = op.indices.defined();
    if (op.based_on >= 0) out.based_on = op.based_on;
    out.constraint = op.constraint;
    tensors_.add(op.gradient);
    if (out.is_sparse) tensors_.add(op.indices);
    return out;
  }

  const std::vector<Rule>& rules() const { return rules_; }
  TensorWriter& tensors() { return tensors_; }

 private:
  size_t index_of(const Rule& rule) {
    const auto known = std::find(rules_.begin(), rules_.end(), rule);
    if (known != rules_.end()) return static_cast<size_t>(known - rules_.begin());
    rules_.push_back(rule);
    return rules_.size() - 1;
  }

  std::vector<Rule> rules_;
  TensorWriter tensors_;
};

StoreOp read_op(const OpFields& in, const std::vector<Rule>& rules, StoreMessageReader& message) {
  if (in.kind == OpFields::Kind::kAssign) {
    return AssignShard{in.key, in.assign, message.next_tensor()};
  }
  if (in.kind == OpFields::Kind::kScatter) {
    const Tensor indices = message.next_tensor();
    return ScatterShard{in.key, in.scatter, indices, message.next_tensor()};
  }
  if (in.rule >= rules.size()) message.fail("has an update by no rule");
  UpdateShard update{.key = in.key};
  update.slots.reserve(in.slots.size());
  for (const int64_t slot : in.slots) update.slots.push_back({slot, in.key.shard});
  update.gradient = message.next_tensor();
  if (in.is_sparse) update.indices = message.next_tensor();
  update.rule = rules[in.rule];
  update.learning_rate = in.learning_rate;
  update.iteration = in.iteration;
  update.based_on = in.based_on.value_or(-1);
  update.constraint = in.constraint;
  return update;
}

}  // namespace

rpc::Message encode(const ApplyRequest& request) {
  ApplyFields out{.token = request.token, .forget_below = request.forget_below};
  OpWriter writer;
  out.ops.reserve(request.ops.size());
  for (const StoreOp& op : request.ops) {
    out.ops.push_back(std::visit([&](const auto& known) { return writer.write(known); }, op));
  }
  for (const Rule& rule : writer.rules()) out.rules.push_back(rule->config());
  return std::move(writer.tensors()).message(encode_fields(out));
}

ApplyRequest decode_apply(const rpc::Message& message) {
  StoreMessageReader reader(message, "a push");
  const auto in = reader.request<ApplyFields>();
  std::vector<Rule> rules;
  for (const optim::RuleConfig& config : in.rules) rules.push_back(optim::make_rule(config));
  ApplyRequest request;
  request.token = in.token;
  request.forget_below = in.forget_below;
  request.ops.reserve(in.ops.size());
  for (const OpFields& op : in.ops) request.ops.push_back(read_op(op, rules, reader));
  return request;
}

rpc::Message encode(const PushPullRequest& request) {
  rpc::Message message = encode(request.push);
  const rpc::Message read = encode(request.read);
  rpc::Message rows = encode(request.rows);
  message.control = encode_fields(PushPullFields{.push = message.control,
                                                 .bulks = message.bulk.size(),
                                                 .read = read.control,
                                                 .rows = rows.control});
  for (rpc::Bytes& bytes : rows.bulk) message.bulk.push_back(std::move(bytes));
  return message;
}

PushPullRequest decode_push_pull(const rpc::Message& message) {
  constexpr char kWhat[] = "a push with reads";
  const auto in = decode_fields<PushPullFields>(message.control, kWhat);
  if (in.bulks > message.bulk.size()) {
    throw InvalidArgumentError(str(kWhat, ": the push is to have ", in.bulks, " values, but ",
                                   message.bulk.size(), " came"));
  }
  const auto end_of_push = message.bulk.begin() + static_cast<ptrdiff_t>(in.bulks);
  const rpc::Message push{.control = std::string(in.push),
                          .bulk = {message.bulk.begin(), end_of_push}};
  const rpc::Message rows{.control = std::string(in.rows),
                          .bulk = {end_of_push, message.bulk.end()}};
  return {decode_apply(push), decode_read({.control = std::string(in.read)}), decode_rows(rows)};
}

}  // namespace cohort::internal
