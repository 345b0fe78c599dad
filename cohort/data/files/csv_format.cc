#include "cohort/data/files/csv_format.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"
#include "cohort/data/files/record_files.h"

namespace cohort::internal {
namespace {

using data::CsvColumn;
using data::CsvOptions;

// "int64", "float32=0.5", "string": with the default value.
std::string default_text(const CsvColumn& column) {
  std::string name = csv_type_name(column);
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

// Strings one after another, in one piece of memory.
struct Texts {
  using value_type = std::string;
  std::string bytes;
  std::vector<size_t> ends;

  void push_back(std::string_view value) {
    bytes += value;
    ends.push_back(bytes.size());
  }
  static StringTensor tensor(Texts texts, std::vector<int64_t> shape);
};

StringTensor Texts::tensor(Texts texts, std::vector<int64_t> shape) {
  struct Memory {
    std::string bytes;
    std::vector<std::string_view> views;
  };
  const auto memory = std::make_shared<Memory>();
  memory->bytes = std::move(texts.bytes);
  memory->views.reserve(texts.ends.size());
  size_t begin = 0;
  for (const size_t end : texts.ends) {
    memory->views.emplace_back(memory->bytes.data() + begin, end - begin);
    begin = end;
  }
  return StringTensor::over(memory, memory->views.data(), std::move(shape));
}

// The values of a column, field by field. Thread safety: none.
class CsvValues {
 public:
  // `column` must live as long.
  explicit CsvValues(const data::CsvColumn& column);

  // What is wrong with the field, or nothing: "is required, but empty".
  std::optional<std::string> add(std::string_view field);
  // The values, shape [n]; the only one, shape [], where `scalar`.
  Leaf take_leaf(bool scalar);

 private:
  const data::CsvColumn& column_;
  std::variant<std::vector<int32_t>, std::vector<int64_t>, std::vector<float>, std::vector<double>,
               Texts>
      values_;
};

CsvValues::CsvValues(const CsvColumn& column) : column_(column) {
  if (column.spec().is_string()) {
    values_ = Texts();
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
          values.push_back(field);
        } else {
          const auto value = parse_number<Value>(field);
          if (!value) {
            return str("is no ", csv_type_name(column_), ": ", quoted(field.substr(0, 100)));
          }
          values.push_back(*value);
        }
        return std::nullopt;
      },
      values_);
}

Leaf CsvValues::take_leaf(bool scalar) {
  return std::visit(
      [&](auto& values) -> Leaf {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        std::vector<int64_t> shape;
        if constexpr (std::is_same_v<Value, std::string>) {
          if (!scalar) shape.push_back(std::ssize(values.ends));
          return Texts::tensor(std::move(values), std::move(shape));
        } else {
          if (!scalar) shape.push_back(std::ssize(values));
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
  CsvFormat(std::vector<CsvColumn> columns, CsvFormatOptions options);

  std::string name() const override { return "CsvDataset"; }
  DataNode::Attributes attributes() const override;
  std::shared_ptr<const Framing> framing() const override {
    return make_csv_framing(csv_dialect(options_));
  }
  StructureSpec element_spec() const override;
  Structure element(const RecordSlice& slice, const std::string& file) const override {
    return decode({&slice, 1}, file, true);
  }
  Structure block(std::span<const RecordSlice> slices, const std::string& file) const override {
    return decode(slices, file, false);
  }

 private:
  Structure decode(std::span<const RecordSlice> slices, const std::string& file,
                   bool scalars) const;
  // What is wrong with the record, or nothing; appends to the columns.
  std::optional<std::string> decode(std::string_view record, CsvFields& fields,
                                    std::vector<CsvValues>& values) const;
  std::string wrong_number(size_t found) const;
  std::string wrong_field(size_t i, const std::string& problem) const;
  // The columns by their names, and the label; or a tuple of all.
  template <class Tree>
  Tree arranged(std::vector<Tree> members) const;

  const std::vector<CsvColumn> columns_;
  const CsvOptions options_;
  const std::optional<std::string> label_name_;
  const std::optional<int64_t> rows_of_inference_;
  std::vector<size_t> fields_;  // of the columns, in a record
  size_t num_fields_ = 0;       // that a record has, at least
};

CsvFormat::CsvFormat(std::vector<CsvColumn> columns, CsvFormatOptions options)
    : columns_(std::move(columns)),
      options_(std::move(options.csv)),
      label_name_(std::move(options.label_name)),
      rows_of_inference_(options.rows_of_inference) {
  if (!options_.select_cols.empty()) {
    fields_.assign(options_.select_cols.begin(), options_.select_cols.end());
    num_fields_ = fields_.back() + 1;
    return;
  }
  num_fields_ = columns_.size() + options_.exclude_cols.size();
  auto excluded = options_.exclude_cols.begin();
  for (size_t field = 0; field < num_fields_; ++field) {
    if (excluded != options_.exclude_cols.end() && static_cast<size_t>(*excluded) == field) {
      ++excluded;
    } else {
      fields_.push_back(field);
    }
  }
}

DataNode::Attributes CsvFormat::attributes() const {
  std::vector<std::string> types;
  for (const CsvColumn& column : columns_) types.push_back(default_text(column));
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
  if (!options_.exclude_cols.empty()) {
    attributes.emplace_back("exclude_cols", spaced(options_.exclude_cols));
  }
  if (label_name_) attributes.emplace_back("label_name", quoted(*label_name_));
  return attributes;
}

template <class Tree>
Tree CsvFormat::arranged(std::vector<Tree> members) const {
  if (options_.column_names.empty()) return Tree::make_tuple(std::move(members));
  typename Tree::Dict dict;
  std::optional<Tree> label;
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string& name = options_.column_names[i];
    if (label_name_ && name == *label_name_) {
      label = std::move(members[i]);
    } else {
      dict.emplace_back(name, std::move(members[i]));
    }
  }
  Tree columns = Tree::make_dict(std::move(dict));
  if (!label) return columns;
  std::vector<Tree> both;
  both.push_back(std::move(columns));
  both.push_back(*std::move(label));
  return Tree::make_tuple(std::move(both));
}

StructureSpec CsvFormat::element_spec() const {
  std::vector<StructureSpec> members;
  for (const CsvColumn& column : columns_) members.emplace_back(column.spec());
  return arranged(std::move(members));
}

std::string CsvFormat::wrong_number(size_t found) const {
  return str("it has ", found, found == 1 ? " field" : " fields", " where ",
             options_.select_cols.empty() ? "" : "at least ", num_fields_, " are expected");
}

std::string CsvFormat::wrong_field(size_t i, const std::string& problem) const {
  const bool named = !options_.column_names.empty();
  std::string text = str("field ", fields_[i] + 1,
                         named ? str(" (", quoted(options_.column_names[i]), ") ") : " ", problem);
  if (!rows_of_inference_) return text;
  const std::string rows =
      *rows_of_inference_ < 0 ? "the rows" : str("the first ", *rows_of_inference_, " rows");
  return text + "; this type fits " + rows +
         " (num_rows_for_inference): give column_defaults if it is another";
}

std::optional<std::string> CsvFormat::decode(std::string_view record, CsvFields& fields,
                                             std::vector<CsvValues>& values) const {
  if (auto problem = fields.split(record)) return problem;
  const auto& found = fields.fields();
  if (found.size() < num_fields_ || (found.size() > num_fields_ && options_.select_cols.empty())) {
    return wrong_number(found.size());
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    std::string_view field = found[fields_[i]];
    if (field == options_.na_value) field = {};
    if (auto problem = values[i].add(field)) return wrong_field(i, *problem);
  }
  return std::nullopt;
}

Structure CsvFormat::decode(std::span<const RecordSlice> slices, const std::string& file,
                            bool scalars) const {
  std::vector<CsvValues> values;
  for (const CsvColumn& column : columns_) values.emplace_back(column);
  CsvFields fields(csv_dialect(options_));
  for (const RecordSlice& slice : slices) {
    for (const std::string_view& record : slice.records) {
      if (const auto problem = decode(record, fields, values)) {
        throw InvalidArgumentError(
            str(quoted(file), ", line ", csv_line(slice.run, &record), ": ", *problem));
      }
    }
  }
  std::vector<Structure> members;
  for (CsvValues& column : values) members.push_back(column.take_leaf(scalars));
  return arranged(std::move(members));
}

// Errors: InvalidArgument (indices of columns that are not ascending).
void check_ascending(const char* option, const std::vector<int64_t>& indices) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] > (i == 0 ? -1 : indices[i - 1])) continue;
    throw InvalidArgumentError(str("CsvDataset: ", option, "[", i, "] is ", indices[i],
                                   "; indices of columns must be ascending from 0 on"));
  }
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
  check_ascending("select_cols", options.select_cols);
  check_ascending("exclude_cols", options.exclude_cols);
  if (!options.select_cols.empty() && !options.exclude_cols.empty()) {
    throw InvalidArgumentError("CsvDataset: select_cols and exclude_cols are both given");
  }
  const size_t fields = columns.size() + options.exclude_cols.size();
  if (!options.exclude_cols.empty() && static_cast<size_t>(options.exclude_cols.back()) >= fields) {
    throw InvalidArgumentError(str("CsvDataset: exclude_cols has ", options.exclude_cols.back(),
                                   ", but records have ", fields, " fields: ", columns.size(),
                                   " columns, and those that are excluded"));
  }
  if (std::string_view("\"\r\n").find(options.field_delim) != std::string_view::npos) {
    throw InvalidArgumentError(str("CsvDataset: field_delim is ",
                                   quoted(std::string(1, options.field_delim)),
                                   ", which has another meaning"));
  }
}

}  // namespace

CsvDialect csv_dialect(const CsvOptions& options) {
  return {.delimiter = options.field_delim,
          .quotes = options.use_quote_delim,
          .skips_header = options.header};
}

std::string csv_type_name(const CsvColumn& column) {
  return column.spec().is_string() ? "string" : dtype_name(column.spec().dtype());
}

uint64_t csv_line(const RecordRun& run, const std::string_view* record) {
  uint64_t line = run.begin.index + 1;
  for (const std::string_view* before = run.records.data(); before != record; ++before) {
    line += 1 + static_cast<uint64_t>(std::count(before->begin(), before->end(), '\n'));
  }
  return line;
}

DataNodePtr make_csv(DataNodePtr names, std::vector<CsvColumn> columns, CsvFormatOptions options) {
  check(columns, options.csv);
  const RecordFilesOptions files = record_files_options(options.csv.files);
  return make_record_files(
      std::move(names), std::make_shared<CsvFormat>(std::move(columns), std::move(options)), files);
}

}  // namespace cohort::internal
