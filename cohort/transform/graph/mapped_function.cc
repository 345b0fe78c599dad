#include "cohort/transform/graph/mapped_function.h"

#include <map>
#include <mutex>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/apply.h"
#include "cohort/transform/graph/batch_columns.h"
#include "cohort/transform/graph/operations.h"

namespace cohort::internal {
namespace {

struct Registered {
  int64_t version;
  StructureFunction<> function;
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, Registered, std::less<>> functions;
};

Registry& registry() {
  static Registry& registry = *new Registry;  // also of use while statics are destroyed
  return registry;
}

StructureFunction<> find_function(const std::string& name, int64_t version) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().functions.find(name);
  const std::string advice = str("transform::register_function({.name = ", quoted(name, '"'),
                                 ", .version = ", version, "}, function)");
  if (found == registry().functions.end()) {
    throw NotFoundError(str("the transform uses the function ", quoted(name), " in version ",
                            version, ", which this program does not have; call ", advice,
                            " before"));
  }
  if (found->second.version != version) {
    throw FailedPreconditionError(
        str("the transform was analysed with version ", version, " of the function ", quoted(name),
            ", but this program has version ", found->second.version,
            "; analyse again, or register the other version by ", advice));
  }
  return found->second.function;
}

EvaluateColumn mapped(const keras::Config& attributes, std::span<const ColumnType> inputs) {
  for (const ColumnType& input : inputs) {
    if (input.kind == ColumnKind::kVocabulary) {
      throw InvalidArgumentError("a function does not take a vocabulary");
    }
  }
  const std::string name = attributes.get_string("name");
  const auto function = find_function(name, attributes.get_int("version"));
  return [function, name](std::span<const ColumnValue> values) {
    std::vector<Structure> columns;
    for (const ColumnValue& value : values) columns.push_back(column_structure(value));
    const Structure result =
        function(columns.size() == 1 ? columns[0] : Structure::make_tuple(columns));
    const auto value = column_of(result);
    if (value.has_value()) return *value;
    throw InvalidArgumentError(
        str("transform::map: the function ", quoted(name), " returned no column but ", result));
  };
}

constexpr NamedOperation kMappedOperations[] = {{"map", mapped}};

}  // namespace

std::span<const NamedOperation> mapped_functions() { return kMappedOperations; }

void register_mapped_function(const transform::MappedFunction& name, StructureFunction<> function) {
  if (name.name.empty()) {
    throw InvalidArgumentError(
        "transform::register_function: .name is empty; files know the "
        "function by it");
  }
  const std::lock_guard lock(registry().mutex);
  registry().functions.insert_or_assign(name.name, Registered{name.version, std::move(function)});
}

transform::Column map_columns(const transform::MappedFunction& name,
                              const std::vector<transform::Column>& columns) {
  if (columns.empty()) throw InvalidArgumentError("transform::map: it takes at least one column");
  return apply("map", keras::Config().set("name", name.name).set("version", name.version), columns);
}

}  // namespace cohort::internal
