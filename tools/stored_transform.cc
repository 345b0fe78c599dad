#include "tools/stored_transform.h"

#include <set>
#include <string_view>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"

namespace cohort::tools {
namespace {

using internal::integer_of;
using internal::member_of;
using internal::quoted;
using internal::str;
using internal::string_member;
using nlohmann::json;

constexpr int kFunctionVersion = 1;

// Reads the members of one object, whose place errors name.
class Members {
 public:
  Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  bool has(const char* key) const { return object_.is_object() && object_.contains(key); }
  const json& member(const char* key) const { return member_of(object_, key, where_); }
  std::string text(const char* key) const { return string_member(object_, key, where_); }
  int64_t integer(const char* key) const { return integer_of(member(key), where_); }
  int64_t count(const char* key) const {
    const int64_t number = integer(key);
    if (number < 0) fail(str(quoted(key), " is ", number));
    return number;
  }
  const json& list(const char* key) const { return structured(key, json::value_t::array); }
  const json& object(const char* key) const { return structured(key, json::value_t::object); }
  int index(const char* key, size_t end) const { return index_of(member(key), end); }
  std::vector<int> indices(const char* key, size_t end) const {
    std::vector<int> numbers;
    for (const json& number : list(key)) numbers.push_back(index_of(number, end));
    return numbers;
  }
  [[noreturn]] void fail(std::string_view problem) const {
    throw InvalidArgumentError(str(where_, ": ", problem));
  }

 private:
  const json& structured(const char* key, json::value_t type) const {
    const json& value = member(key);
    if (value.type() != type) fail(str(quoted(key), " is ", value.type_name()));
    return value;
  }
  int index_of(const json& number, size_t end) const {
    const int64_t index = integer_of(number, where_);
    if (index < 0 || static_cast<uint64_t>(index) >= end) fail(str("there is no ", index));
    return static_cast<int>(index);
  }

  const json& object_;
  std::string where_;
};

std::string column_type(const Members& type) {
  const std::string dtype = type.text("dtype");
  const json& ragged = type.member("ragged");
  if (!ragged.is_boolean()) type.fail("'ragged' is no boolean");
  if (ragged.get<bool>()) return "ragged " + dtype;
  std::string text = dtype + " [rows";
  for (const json& size : type.list("shape")) {
    const int64_t number = integer_of(size, type.where());
    text += number < 0 ? ", ?" : str(", ", number);
  }
  return text + "]";
}

std::vector<StoredTransform::Named> read_named(const Members& function, const char* key,
                                               size_t num_steps) {
  std::vector<StoredTransform::Named> named;
  std::set<std::string> names;
  for (const json& entry : function.list(key)) {
    const Members members(entry, str(function.where(), ": ", quoted(key), ' ', named.size()));
    named.emplace_back(members.text("name"), members.index("step", num_steps));
    if (!names.insert(named.back().first).second) members.fail("its name is there twice");
  }
  return named;
}

void read_steps(const Members& function, StoredTransform& transform) {
  const json& steps = function.list("steps");
  const json& analyses = function.list("analyses");
  for (const json& entry : analyses) {
    const Members members(entry, str(function.where(), ": analysis ", transform.analyses.size()));
    transform.analyses.push_back(
        {.kind = members.text("kind"),
         .attributes = members.object("attributes"),
         .inputs = members.indices("inputs", steps.size()),
         .vocabulary = members.has("vocabulary") ? members.text("vocabulary") : ""});
  }
  for (const json& entry : steps) {
    const size_t number = transform.steps.size();
    const Members members(entry, str(function.where(), ": step ", number));
    StoredTransform::Step step{.operation = members.text("operation"), .inputs = {}};
    if (members.has("attributes")) step.attributes = members.object("attributes");
    if (members.has("inputs")) step.inputs = members.indices("inputs", number);
    if (members.has("analysis")) {
      step.analysis = members.index("analysis", analyses.size());
      for (const int input : transform.analyses[step.analysis].inputs) {
        if (static_cast<size_t>(input) >= number) members.fail("it is an input of its own");
      }
    }
    transform.steps.push_back(std::move(step));
  }
}

void read_function(const Members& function, StoredTransform& transform) {
  if (const int64_t version = function.integer("version"); version != kFunctionVersion) {
    function.fail(
        str("it is of version ", version, ", but this Cohort reads version ", kFunctionVersion));
  }
  std::set<std::string> columns;
  for (const json& entry : function.list("columns")) {
    const Members members(entry, str(function.where(), ": column ", transform.columns.size()));
    transform.columns.push_back({.name = members.text("name"),
                                 .type = column_type({members.member("type"), members.where()})});
    if (!columns.insert(members.text("name")).second) members.fail("its name is there twice");
  }
  read_steps(function, transform);
  transform.outputs = read_named(function, "outputs", transform.steps.size());
  transform.statistics = read_named(function, "statistics", transform.steps.size());
}

StoredConstant read_constant(const Members& members) {
  StoredConstant constant{.dtype = members.text("dtype"), .shape = {}, .values = json::array()};
  const json& values = members.list("values");
  uint64_t product = 1;
  for (const json& size : members.list("shape")) {
    constant.shape.push_back(integer_of(size, members.where()));
    const int64_t given = constant.shape.back();
    if (given < 0 || (product *= static_cast<uint64_t>(given)) > values.size()) break;
  }
  if (product != values.size()) members.fail("its shape is not that of its values");
  for (const json& value : values) {
    if (constant.is_string()) {
      internal::text_of(value, members.where());
    } else if (!value.is_number()) {
      members.fail("a value is no number");
    }
  }
  constant.values = values;
  return constant;
}

void read_results(internal::FileSystem& files, const internal::TransformDocument& document,
                  StoredTransform& transform) {
  const Members all(document.json, document.where);
  const json& results = all.list("results");
  if (results.size() != transform.analyses.size()) {
    all.fail(str("it has ", results.size(), " results, not ", transform.analyses.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    StoredTransform::Analysis& analysis = transform.analyses[i];
    const Members members(results[i], str(document.where, ": result ", i));
    for (const auto& [name, constant] : members.object("constants").items()) {
      analysis.constants.emplace_back(
          name, read_constant({constant, str(members.where(), ": ", quoted(name))}));
    }
    if (!members.has("file")) continue;
    const Members file(members.member("file"), members.where());
    file.count("lines");
    const std::string name = file.text("name");
    if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos) {
      members.fail(str(quoted(name), " is not the name of a file in its folder"));
    }
    analysis.file = internal::stored_vocabulary(
        files, members.member("file"), internal::join_path(document.assets, name), members.where());
  }
}

}  // namespace

std::string StoredConstant::text(size_t index) const {
  return internal::text_of(values[index], "");
}

const StoredConstant* StoredTransform::Analysis::constant(std::string_view name) const {
  for (const auto& [known, constant] : constants) {
    if (known == name) return &constant;
  }
  return nullptr;
}

bool StoredTransform::Analysis::stores_frequency() const {
  const auto stored = attributes.find("store_frequency");
  return stored != attributes.end() && *stored == true;
}

StoredTransform read_stored_transform(internal::FileSystem& files, const std::string& directory) {
  const internal::TransformDocument document = internal::read_transform_document(files, directory);
  const Members all(document.json, document.where);
  StoredTransform transform;
  transform.directory = directory;
  transform.cohort_version = all.text("cohort");
  transform.rows = all.count("rows");
  read_function({all.object("function"), document.where}, transform);
  read_results(files, document, transform);
  return transform;
}

VocabularyHead read_vocabulary_head(internal::FileSystem& files,
                                    const StoredTransform::Analysis& analysis,
                                    uint64_t most_tokens) {
  const internal::StoredVocabulary& vocabulary = *analysis.file;
  const bool is_whole = vocabulary.bytes <= kMostHeadBytes;
  std::string bytes(is_whole ? vocabulary.bytes : kMostHeadBytes, '\0');
  files.open(vocabulary.path)->read(0, bytes.data(), bytes.size());
  if (is_whole && internal::crc32c(bytes) != vocabulary.crc32c) {
    throw DataLossError(str("vocabulary file ", quoted(vocabulary.path),
                            ": its checksum is not the one with which the transform was written; "
                            "it was changed or damaged"));
  }
  VocabularyHead head;
  std::string_view rest = bytes;
  for (size_t end; head.tokens.size() < most_tokens && (end = rest.find('\n')) != rest.npos;
       rest.remove_prefix(end + 1)) {
    std::string_view line = rest.substr(0, end);
    VocabularyHead::Token token;
    if (analysis.stores_frequency()) {
      const size_t blank = line.find(' ');
      token.frequency = internal::parse_number<double>(line.substr(0, blank));
      if (blank == line.npos || !token.frequency) {
        throw DataLossError(str("vocabulary file ", quoted(vocabulary.path), ", line ",
                                head.tokens.size() + 1, ": there is no frequency"));
      }
      line.remove_prefix(blank + 1);
    }
    token.text = line;
    head.tokens.push_back(std::move(token));
  }
  return head;
}

}  // namespace cohort::tools
