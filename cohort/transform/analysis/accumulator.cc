#include "cohort/transform/analysis/accumulator.h"

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

struct Piece {
  std::string_view name;  // what it is a part of
  std::string_view payload;
  std::optional<uint32_t> checksum;
};
void fields(auto& f, Piece& piece) {
  f(1, piece.name);
  f(2, piece.payload);
  f(3, piece.checksum, kFixed);
}

uint32_t piece_checksum(std::string_view name, std::string_view payload) {
  return mask_crc(crc32c(payload, crc32c(name)));
}

class NamedPieces final : public SavedPieces {
 public:
  NamedPieces(std::string_view name, std::unique_ptr<SavedPieces> payloads)
      : name_(name), payloads_(std::move(payloads)) {}

  std::optional<std::string> next() override {
    const std::optional<std::string> payload = payloads_->next();
    if (!payload) return std::nullopt;
    return encode_fields(Piece{name_, *payload, piece_checksum(name_, *payload)});
  }

 private:
  const std::string name_;
  const std::unique_ptr<SavedPieces> payloads_;
};

class SinglePayload final : public SavedPieces {
 public:
  explicit SinglePayload(std::string payload) : payload_(std::move(payload)) {}
  std::optional<std::string> next() override { return std::exchange(payload_, std::nullopt); }

 private:
  std::optional<std::string> payload_;
};

struct AttributeText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return decimal_digits(value); }
  std::string operator()(double value) const { return general_digits(value, 17); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<std::string>& values) const {
    std::string text = "[";
    for (const std::string& value : values) text += (text.size() > 1 ? ", " : "") + quoted(value);
    return text + "]";
  }
};

}  // namespace

std::unique_ptr<SavedPieces> single_payload(std::string payload) {
  return std::make_unique<SinglePayload>(std::move(payload));
}

const Leaf& AnalysisResult::constant(std::string_view name) const {
  for (const auto& [own_name, leaf] : constants) {
    if (own_name == name) return leaf;
  }
  throw InternalError(str("an analysis has no result ", quoted(name)));
}

void Accumulator::fail(std::string_view problem) const {
  throw InvalidArgumentError(str("the analysis ", name_, ": ", problem));
}

void Accumulator::add(std::span<const ColumnBatch> columns) {
  if (columns.size() != num_inputs_) {
    fail(str("it takes ", num_inputs_, " columns, but got ", columns.size()));
  }
  add_columns(columns);
}

void Accumulator::merge(Accumulator& other) {
  if (other.name_ != name_) fail(str("it cannot be merged with a part of ", other.name_));
  if (&other == this) fail("it cannot be merged with itself");
  merge_same(other);
}

std::unique_ptr<SavedPieces> Accumulator::save() {
  return std::make_unique<NamedPieces>(name_, payloads());
}

void Accumulator::add_saved(std::string_view piece, std::string_view source) {
  const std::string what = str(source, ": a saved part of the analysis ", name_);
  const auto [name, payload, checksum] = decode_fields<Piece>(piece, what);
  if (!checksum || *checksum != piece_checksum(name, payload)) {
    throw DataLossError(what + ": has a wrong checksum: it is damaged; analyse the rows again");
  }
  if (name != name_) throw DataLossError(str(what, ": belongs to another analysis, ", name));
  add_payload(payload, what);
}

std::string analysis_name(const Analysis& analysis) {
  std::string name = analysis.kind() + "(";
  bool is_first = true;
  for (const auto& [key, value] : analysis.attributes()) {
    name += str(is_first ? "" : ", ", key, "=", std::visit(AttributeText(), value));
    is_first = false;
  }
  return name + ")";
}

AnalysisResult Accumulator::finish() { return result(); }

}  // namespace cohort::internal
