// Pushes as messages, alone and with what is read after them.
#include <memory>
#include <utility>

#include "cohort/optim/make_rule.h"
#include "cohort/parameter_server/store/message_parts.h"
#include "cohort/parameter_server/store/store_message.h"

namespace cohort::internal {
namespace {

enum ApplyField : uint32_t { kToken = 1, kTokensEndedBelow, kRule, kOp };
// The control bytes of messages, and how many bulks the first one has.
enum PushPullField : uint32_t { kPushPart = 1, kPushBulks, kReadPart, kRowsPart };
enum RulePart : uint32_t {
  kRuleName = 1,
  kParameterName,
  kParameterValue,
  kClipvalue,
  kWeightDecay,
  kEmaMomentum,
  kEmaOverwriteFrequency
};
enum OpPart : uint32_t {
  kOpKind = 1,
  kOpVariable,
  kOpShard,
  kOpCode,
  kOpSlot,
  kOpRule,
  kOpRate,
  kOpIteration,
  kOpIsSparse,
  kOpBasedOn
};

std::string encode_rule(const optim::UpdateRule& rule) {
  const optim::RuleConfig config = rule.config();
  WireWriter out;
  out.bytes(kRuleName, config.name);
  for (const auto& [name, value] : config.values) {
    out.bytes(kParameterName, name).fixed64(kParameterValue, as_bits(value));
  }
  if (config.transform) {
    out.fixed64(kClipvalue, as_bits(config.transform->clipvalue));
    if (config.transform->weight_decay) {
      out.fixed64(kWeightDecay, as_bits(*config.transform->weight_decay));
    }
    if (config.transform->ema_momentum) {
      out.fixed64(kEmaMomentum, as_bits(*config.transform->ema_momentum));
    }
    out.varint(kEmaOverwriteFrequency,
               static_cast<uint64_t>(config.transform->ema_overwrite_frequency));
  }
  return out.str();
}

std::shared_ptr<const optim::UpdateRule> decode_rule(WireReader in) {
  optim::RuleConfig config;
  const auto transform = [&]() -> optim::TransformOptions& {
    if (!config.transform) config.transform.emplace();
    return *config.transform;
  };
  while (in.next()) {
    switch (in.field()) {
      case kRuleName:
        config.name = in.bytes();
        break;
      case kParameterName:
        config.values.emplace_back(in.bytes(), 0.);
        break;
      case kParameterValue:
        if (!config.values.empty()) config.values.back().second = as_double(in.fixed64());
        break;
      case kClipvalue:
        transform().clipvalue = as_double(in.fixed64());
        break;
      case kWeightDecay:
        transform().weight_decay = as_double(in.fixed64());
        break;
      case kEmaMomentum:
        transform().ema_momentum = as_double(in.fixed64());
        break;
      case kEmaOverwriteFrequency:
        transform().ema_overwrite_frequency = static_cast<int64_t>(in.varint());
        break;
    }
  }
  return optim::make_rule(config);
}

// Writes the operations of one request.
class OpWriter {
 public:
  WireWriter rules_and_ops;
  TensorWriter tensors;

  void write(const std::vector<StoreOp>& ops) {
    std::vector<std::string> encoded;
    for (const StoreOp& op : ops) {
      encoded.push_back(std::visit([this](const auto& known) { return one(known); }, op));
    }
    for (const auto& rule : rules_) rules_and_ops.bytes(kRule, encode_rule(*rule));
    for (const std::string& op : encoded) rules_and_ops.bytes(kOp, op);
  }

 private:
  static WireWriter begin(size_t kind, const ShardKey& key) {
    WireWriter out;
    out.varint(kOpKind, kind)
        .varint(kOpVariable, static_cast<uint64_t>(key.variable))
        .varint(kOpShard, static_cast<uint64_t>(key.shard));
    return out;
  }

  std::string one(const AssignShard& op) {
    WireWriter out = begin(0, op.key);
    out.varint(kOpCode, static_cast<uint64_t>(op.op));
    tensors.add(op.operand);
    return out.str();
  }
  std::string one(const ScatterShard& op) {
    WireWriter out = begin(1, op.key);
    out.varint(kOpCode, static_cast<uint64_t>(op.op));
    tensors.add(op.indices);
    tensors.add(op.values);
    return out.str();
  }
  std::string one(const UpdateShard& op) {
    WireWriter out = begin(2, op.key);
    for (const ShardKey& slot : op.slots) {
      out.varint(kOpSlot, static_cast<uint64_t>(slot.variable));
    }
    out.varint(kOpRule, index_of(op.rule))
        .fixed64(kOpRate, as_bits(op.learning_rate))
        .varint(kOpIteration, static_cast<uint64_t>(op.iteration))
        .varint(kOpIsSparse, op.indices.defined());
    if (op.based_on >= 0) out.varint(kOpBasedOn, static_cast<uint64_t>(op.based_on));
    tensors.add(op.gradient);
    if (op.indices.defined()) tensors.add(op.indices);
    return out.str();
  }

  size_t index_of(const std::shared_ptr<const optim::UpdateRule>& rule) {
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i] == rule) return i;
    }
    rules_.push_back(rule);
    return rules_.size() - 1;
  }

  std::vector<std::shared_ptr<const optim::UpdateRule>> rules_;
};

template <class Op>
Op checked_op(uint64_t code, Op last, const StoreMessageReader& in) {
  if (code > static_cast<uint64_t>(last)) in.fail("has an unknown operation");
  return static_cast<Op>(code);
}

StoreOp decode_op(std::string_view bytes, StoreMessageReader& message,
                  const std::vector<std::shared_ptr<const optim::UpdateRule>>& rules) {
  uint64_t kind = 0, code = 0, rule = 0;
  ShardKey key;
  UpdateShard update;
  bool is_sparse = false;
  WireReader in = message.part(bytes);
  std::vector<int64_t> slots;
  while (in.next()) {
    switch (in.field()) {
      case kOpKind:
        kind = in.varint();
        break;
      case kOpVariable:
        key.variable = static_cast<int64_t>(in.varint());
        break;
      case kOpShard:
        key.shard = static_cast<int64_t>(in.varint());
        break;
      case kOpCode:
        code = in.varint();
        break;
      case kOpSlot:
        slots.push_back(static_cast<int64_t>(in.varint()));
        break;
      case kOpRule:
        rule = in.varint();
        break;
      case kOpRate:
        update.learning_rate = as_double(in.fixed64());
        break;
      case kOpIteration:
        update.iteration = static_cast<int64_t>(in.varint());
        break;
      case kOpIsSparse:
        is_sparse = in.varint() != 0;
        break;
      case kOpBasedOn:
        update.based_on = static_cast<int64_t>(in.varint());
        break;
    }
  }
  if (kind == 0) {
    return AssignShard{key, checked_op(code, AssignOp::kSub, message), message.next_tensor()};
  }
  if (kind == 1) {
    const ScatterOp op = checked_op(code, ScatterOp::kDiv, message);
    const Tensor indices = message.next_tensor();
    return ScatterShard{key, op, indices, message.next_tensor()};
  }
  if (kind != 2 || rule >= rules.size()) message.fail("has an unknown operation");
  update.key = key;
  for (const int64_t slot : slots) update.slots.push_back({slot, key.shard});
  update.rule = rules[rule];
  update.gradient = message.next_tensor();
  if (is_sparse) update.indices = message.next_tensor();
  return update;
}

}  // namespace

rpc::Message encode(const ApplyRequest& request) {
  OpWriter writer;
  writer.rules_and_ops.varint(kToken, request.token)
      .varint(kTokensEndedBelow, request.forget_below);
  writer.write(request.ops);
  return std::move(writer.tensors).message(writer.rules_and_ops);
}

ApplyRequest decode_apply(const rpc::Message& message) {
  StoreMessageReader reader(message, "a push");
  ApplyRequest request;
  std::vector<std::shared_ptr<const optim::UpdateRule>> rules;
  WireReader in = reader.request();
  while (in.next()) {
    switch (in.field()) {
      case kToken:
        request.token = in.varint();
        break;
      case kTokensEndedBelow:
        request.forget_below = in.varint();
        break;
      case kRule:
        rules.push_back(decode_rule(reader.part(in.bytes())));
        break;
      case kOp:
        request.ops.push_back(decode_op(in.bytes(), reader, rules));
        break;
    }
  }
  return request;
}

rpc::Message encode(const PushPullRequest& request) {
  rpc::Message message = encode(request.push);
  const rpc::Message read = encode(request.read);
  rpc::Message rows = encode(request.rows);
  WireWriter out;
  out.bytes(kPushPart, message.control)
      .varint(kPushBulks, message.bulk.size())
      .bytes(kReadPart, read.control)
      .bytes(kRowsPart, rows.control);
  message.control = out.str();
  for (rpc::Bytes& bytes : rows.bulk) message.bulk.push_back(std::move(bytes));
  return message;
}

PushPullRequest decode_push_pull(const rpc::Message& message) {
  constexpr char kWhat[] = "a push with reads";
  rpc::Message push, read, rows;
  uint64_t bulks = 0;
  WireReader in(message.control, kWhat);
  while (in.next()) {
    switch (in.field()) {
      case kPushPart:
        push.control = in.bytes();
        break;
      case kPushBulks:
        bulks = in.varint();
        break;
      case kReadPart:
        read.control = in.bytes();
        break;
      case kRowsPart:
        rows.control = in.bytes();
        break;
    }
  }
  if (bulks > message.bulk.size()) {
    throw InvalidArgumentError(
        str(kWhat, ": the push is to have ", bulks, " values, but ", message.bulk.size(), " came"));
  }
  const auto end_of_push = message.bulk.begin() + static_cast<ptrdiff_t>(bulks);
  push.bulk.assign(message.bulk.begin(), end_of_push);
  rows.bulk.assign(end_of_push, message.bulk.end());
  return {decode_apply(push), decode_read(read), decode_rows(rows)};
}

}  // namespace cohort::internal
