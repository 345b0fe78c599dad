#include "cohort/data/files/csv_dataset.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <type_traits>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"
#include "cohort/data/files/record_files.h"
#include "cohort/data/records/csv.h"

namespace cohort::internal {
namespace {

using data::CsvColumn;
using data::CsvOptions;

std::string type_name(const CsvColumn& column) {
  return column.spec().is_string() ? "string" : dtype_name(column.spec().dtype());
}

TensorSpec scalar_of(DType dtype) { return TensorSpec(std::vector<int64_t>{}, dtype); }

// "int64", "float32=0.5", "string": with the default value.
std::string csv_type_name(const CsvColumn& column) {
  std::string name = type_name(column);
  if (!column.default_value()) return name;
  return std::visit(
      [&](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          return name + "=" + quoted(value);
        } else {
          return str(name, "=", value);
        }
      },
      *column.default_value());
}

// The values of a column, field by field. Thread safety: none.
class CsvValues {
 public:
  // `column` must live as long.
  explicit CsvValues(const data::CsvColumn& column);

  // What is wrong with the field, or nothing: "is required, but empty".
  std::optional<std::string> add(std::string_view field);
  // The values, shape [n]; the only one, shape [], where `scalar`.
  Leaf leaf(bool scalar) const;

 private:
  const data::CsvColumn& column_;
  std::variant<std::vector<int32_t>, std::vector<int64_t>, std::vector<float>, std::vector<double>,
               std::vector<std::string>>
      values_;
};

CsvValues::CsvValues(const CsvColumn& column) : column_(column) {
  if (column.spec().is_string()) {
    values_ = std::vector<std::string>();
  } else if (column.spec().dtype() == int32) {
    values_ = std::vector<int32_t>();
  } else if (column.spec().dtype() == int64) {
    values_ = std::vector<int64_t>();
  } else if (column.spec().dtype() == float32) {
    values_ = std::vector<float>();
  } else {
    values_ = std::vector<double>();
  }
}

std::optional<std::string> CsvValues::add(std::string_view field) {
  return std::visit(
      [&](auto& values) -> std::optional<std::string> {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        if (field.empty()) {
          if (!column_.default_value()) return "is required, but empty";
          values.push_back(std::get<Value>(*column_.default_value()));
          return std::nullopt;
        }
        if constexpr (std::is_same_v<Value, std::string>) {
          values.emplace_back(field);
        } else {
          const auto value = parse_number<Value>(field);
          if (!value) {
            return str("is no ", type_name(column_), ": ", quoted(field.substr(0, 100)));
          }
          values.push_back(*value);
        }
        return std::nullopt;
      },
      values_);
}

Leaf CsvValues::leaf(bool scalar) const {
  return std::visit(
      [&](const auto& values) -> Leaf {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        std::vector<int64_t> shape;
        if (!scalar) shape.push_back(static_cast<int64_t>(values.size()));
        if constexpr (std::is_same_v<Value, std::string>) {
          return StringTensor(values, std::move(shape));
        } else {
          const Tensor tensor = at::empty(shape, column_.spec().dtype());
          std::copy(values.begin(), values.end(), tensor.data_ptr<Value>());
          return tensor;
        }
      },
      values_);
}

template <class Values>
std::string spaced(const Values& values) {
  TextStream out;
  for (const auto& value : values) out << (&value == values.data() ? "" : " ") << value;
  return std::move(out).str();
}

class CsvFormat final : public RecordFormat {
 public:
  CsvFormat(std::vector<CsvColumn> columns, CsvOptions options)
      : columns_(std::move(columns)), options_(std::move(options)) {}

  std::string name() const override { return "CsvDataset"; }
  DataNode::Attributes attributes() const override;
  std::shared_ptr<const Framing> framing() const override { return make_csv_framing(dialect()); }
  StructureSpec element_spec() const override;
  Structure element(const RecordSlice& slice, const std::string& file) const override {
    return decode({&slice, 1}, file, true);
  }
  Structure block(std::span<const RecordSlice> slices, const std::string& file) const override {
    return decode(slices, file, false);
  }

 private:
  CsvDialect dialect() const {
    return {.delimiter = options_.field_delim,
            .quotes = options_.use_quote_delim,
            .skips_header = options_.header};
  }
  Structure decode(std::span<const RecordSlice> slices, const std::string& file,
                   bool scalars) const;
  // What is wrong with the record, or nothing; appends to the columns.
  std::optional<std::string> decode(std::string_view record, CsvFields& fields,
                                    std::vector<CsvValues>& values) const;

  const std::vector<CsvColumn> columns_;
  const CsvOptions options_;
};

DataNode::Attributes CsvFormat::attributes() const {
  std::vector<std::string> types;
  for (const CsvColumn& column : columns_) types.push_back(csv_type_name(column));
  DataNode::Attributes attributes = {{"columns", spaced(types)}};
  if (!options_.column_names.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : options_.column_names) names.push_back(quoted(name));
    attributes.emplace_back("column_names", spaced(names));
  }
  if (options_.header) attributes.emplace_back("header", "true");
  if (options_.field_delim != ',') {
    attributes.emplace_back("field_delim", quoted(std::string(1, options_.field_delim)));
  }
  if (!options_.use_quote_delim) attributes.emplace_back("use_quote_delim", "false");
  if (!options_.na_value.empty()) attributes.emplace_back("na_value", quoted(options_.na_value));
  if (!options_.select_cols.empty()) {
    attributes.emplace_back("select_cols", spaced(options_.select_cols));
  }
  return attributes;
}

StructureSpec CsvFormat::element_spec() const {
  std::vector<StructureSpec> members;
  for (const CsvColumn& column : columns_) members.emplace_back(column.spec());
  if (options_.column_names.empty()) return StructureSpec::make_tuple(std::move(members));
  StructureSpec::Dict dict;
  for (size_t i = 0; i < members.size(); ++i) {
    dict.emplace_back(options_.column_names[i], std::move(members[i]));
  }
  return StructureSpec::make_dict(std::move(dict));
}

std::optional<std::string> CsvFormat::decode(std::string_view record, CsvFields& fields,
                                             std::vector<CsvValues>& values) const {
  if (auto problem = fields.split(record)) return problem;
  const auto& found = fields.fields();
  const bool selects = !options_.select_cols.empty();
  const size_t needed =
      selects ? static_cast<size_t>(options_.select_cols.back()) + 1 : columns_.size();
  if (found.size() < needed || (found.size() > needed && !selects)) {
    return str("it has ", found.size(), found.size() == 1 ? " field" : " fields", " where ",
               selects ? "at least " : "", needed, " are expected");
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    const size_t column = selects ? static_cast<size_t>(options_.select_cols[i]) : i;
    std::string_view field = found[column];
    if (field == options_.na_value) field = {};
    if (auto problem = values[i].add(field)) return str("field ", column + 1, " ", *problem);
  }
  return std::nullopt;
}

// The line on which a record of the slice begins, counted from 1.
uint64_t line_of(const RecordSlice& slice, const std::string_view* record) {
  uint64_t line = slice.run.begin.index + 1;
  for (const std::string_view* before = slice.run.records.data(); before != record; ++before) {
    line += 1 + static_cast<uint64_t>(std::count(before->begin(), before->end(), '\n'));
  }
  return line;
}

Structure CsvFormat::decode(std::span<const RecordSlice> slices, const std::string& file,
                            bool scalars) const {
  std::vector<CsvValues> values;
  for (const CsvColumn& column : columns_) values.emplace_back(column);
  CsvFields fields(dialect());
  for (const RecordSlice& slice : slices) {
    for (const std::string_view& record : slice.records) {
      if (const auto problem = decode(record, fields, values)) {
        throw InvalidArgumentError(
            str(quoted(file), ", line ", line_of(slice, &record), ": ", *problem));
      }
    }
  }
  std::vector<Structure> members;
  for (const CsvValues& column : values) members.push_back(column.leaf(scalars));
  if (options_.column_names.empty()) return Structure::make_tuple(std::move(members));
  Structure::Dict dict;
  for (size_t i = 0; i < members.size(); ++i) {
    dict.emplace_back(options_.column_names[i], std::move(members[i]));
  }
  return Structure::make_dict(std::move(dict));
}

void check(const std::vector<CsvColumn>& columns, const CsvOptions& options) {
  if (columns.empty()) throw InvalidArgumentError("CsvDataset: there are no columns");
  const auto check_length = [&](const char* option, size_t length) {
    if (length == 0 || length == columns.size()) return;
    throw InvalidArgumentError(str("CsvDataset: ", option, " has ", length, " entries for ",
                                   columns.size(), " columns; it needs one for each"));
  };
  check_length("select_cols", options.select_cols.size());
  check_length("column_names", options.column_names.size());
  for (size_t i = 0; i < options.select_cols.size(); ++i) {
    if (options.select_cols[i] > (i == 0 ? -1 : options.select_cols[i - 1])) continue;
    throw InvalidArgumentError(str("CsvDataset: select_cols[", i, "] is ", options.select_cols[i],
                                   "; indices of columns must be ascending from 0 on"));
  }
  if (std::string_view("\"\r\n").find(options.field_delim) != std::string_view::npos) {
    throw InvalidArgumentError(str("CsvDataset: field_delim is ",
                                   quoted(std::string(1, options.field_delim)),
                                   ", which has another meaning"));
  }
}

DataNodePtr make_csv(DataNodePtr names, std::vector<CsvColumn> columns, const CsvOptions& options) {
  check(columns, options);
  return make_record_files(std::move(names),
                           std::make_shared<CsvFormat>(std::move(columns), options),
                           record_files_options(options.files));
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

CsvColumn::CsvColumn(DType dtype) : spec_(std::vector<int64_t>(), dtype) {
  if (dtype == int32 || dtype == int64 || dtype == float32 || dtype == float64) return;
  throw InvalidArgumentError(
      internal::str("a CSV column of ", internal::dtype_name(dtype),
                    ": columns are int32, int64, float32, float64 or strings()"));
}
CsvColumn CsvColumn::int32s(std::optional<int32_t> default_value) {
  return {internal::scalar_of(int32), default_value};
}
CsvColumn CsvColumn::ints(std::optional<int64_t> default_value) {
  return {internal::scalar_of(int64), default_value};
}
CsvColumn CsvColumn::floats(std::optional<float> default_value) {
  return {internal::scalar_of(float32), default_value};
}
CsvColumn CsvColumn::doubles(std::optional<double> default_value) {
  return {internal::scalar_of(float64), default_value};
}
CsvColumn CsvColumn::strings(std::optional<std::string> default_value) {
  // Not by conversion of the whole optional: g++ 12 would warn of the variant's unused members
  // (https://gcc.gnu.org/PR80635).
  std::optional<Default> text;
  if (default_value) text.emplace(std::move(*default_value));
  return {TensorSpec::strings(std::vector<int64_t>{}), std::move(text)};
}

CsvDataset::CsvDataset(const Paths& files, std::vector<CsvColumn> columns,
                       const CsvOptions& options)
    : Dataset(internal::make_csv(internal::file_names(files), std::move(columns), options)) {}

CsvDataset::CsvDataset(std::initializer_list<std::string> files, std::vector<CsvColumn> columns,
                       const CsvOptions& options)
    : CsvDataset(Paths(files), std::move(columns), options) {}

CsvDataset::CsvDataset(const Dataset& files, std::vector<CsvColumn> columns,
                       const CsvOptions& options)
    : Dataset(internal::make_csv(files.node(), std::move(columns), options), files.options()) {}

}  // namespace cohort::data
