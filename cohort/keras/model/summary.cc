#include "cohort/keras/model/summary.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/model/model.h"

namespace cohort::keras {
namespace {

using internal::SummaryRow;
using internal::SummaryTable;

// The ends of the columns; the last one ends with the line.
struct Columns {
  std::vector<size_t> ends;
  size_t width() const { return ends.back(); }
};
const Columns kChain{{29, 55, 65}};
const Columns kGraph{{29, 58, 68, 98}};

// How much of `text` stands in a line with so much room: to the end of a tuple's or list's member,
// if there is one.
size_t part_in_line(const std::string& text, size_t room) {
  size_t part = std::min(room, text.size());
  for (const char* end : {"),", "},", "],", "',"}) {
    const size_t found = text.find(end);
    if (found != text.npos && found + 2 <= room) part = std::min(part, found + 2);
  }
  return part;
}

// What is too long goes on in the next line.
std::string format_row(std::vector<std::string> row, const Columns& columns) {
  std::string text;
  const auto is_left = [](const std::string& field) { return !field.empty(); };
  while (std::any_of(row.begin(), row.end(), is_left)) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const size_t begin = i == 0 ? 0 : columns.ends[i - 1];
      const size_t gap =
          i + 1 == row.size() ? 0 : 3;  // one blank before the first column, two after each
      const size_t part = part_in_line(row[i], columns.ends[i] - begin - gap);
      if (i == 0) line += ' ';
      line += row[i].substr(0, part);
      row[i].erase(0, part);
      line.resize(columns.ends[i], ' ');
    }
    text += line + '\n';
  }
  return text;
}

// "(None, 26, 26, 32)".
std::string shape_text(const TensorSpec& spec) {
  if (!spec.shape()) return "?";
  std::string text;
  for (const int64_t size : *spec.shape()) {
    text += text.empty() ? "" : ", ";
    text += size == kUnknownDim ? "None" : internal::decimal_digits(size);
  }
  return spec.shape()->size() == 1 ? "(" + text + ",)" : "(" + text + ")";
}

std::string output_text(const layers::Layer& layer) {
  return layer.output_spec() ? internal::shapes_text(layer.output_spec()->flatten()) : "?";
}

// "['dense[0][0]', 'dense_1[0][0]']".
std::string list_text(const std::vector<std::string>& members) {
  std::string text = "[";
  for (const std::string& member : members) {
    text += internal::str(text.size() > 1 ? ", " : "", "'", member, "'");
  }
  return text + "]";
}

struct Size {
  int64_t count = 0;
  double bytes = 0;
};

Size size_of(const std::vector<Variable>& variables) {
  Size size;
  for (const Variable& variable : variables) {
    const int64_t count = c10::multiply_integers(variable.shape());
    size.count += count;
    size.bytes +=
        static_cast<double>(count) * static_cast<double>(at::elementSize(variable.dtype()));
  }
  return size;
}

// "Total params: 320 (1.25 KB)".
std::string total_line(const char* what, const Size& size) {
  constexpr std::array<const char*, 5> kUnits = {"Byte", "KB", "MB", "GB", "TB"};
  double amount = size.bytes;
  size_t unit = 0;
  while (amount >= 1024 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  return internal::str(what, " params: ", size.count, " (", internal::fixed_digits(amount, 2), ' ',
                       kUnits[unit], ")\n");
}

}  // namespace

void Model::summary() const { summary(std::cout); }
void Model::summary(std::ostream& out) const { out << summary_text() << std::flush; }

std::string Model::summary_text() const {
  if (!built()) {
    throw FailedPreconditionError(
        internal::str("model '", name(),
                      "' is not built yet, so its shapes are unknown; call it on a batch, or "
                      "give it a keras::Input, before summary()"));
  }
  const SummaryTable table = summary_table();
  const Columns& columns = table.has_connections ? kGraph : kChain;
  const std::string thin(columns.width(), '_');
  const std::string thick(columns.width(), '=');
  std::vector<std::string> titles = {"Layer (type)", "Output Shape", "Param #"};
  if (table.has_connections) titles.push_back("Connected to");
  std::string text = "Model: \"" + name() + "\"\n" + thin + '\n';
  text += format_row(std::move(titles), columns) + thick + '\n';
  for (const SummaryRow& row : table.rows) {
    std::vector<std::string> fields = {row.layer, row.output_shape, row.parameters};
    if (table.has_connections) fields.push_back(list_text(row.connected_to));
    text += format_row(std::move(fields), columns) + std::string(columns.width(), ' ') + '\n';
  }
  text += thick + '\n';
  text += total_line("Total", size_of(variables()));
  text += total_line("Trainable", size_of(trainable_variables()));
  text += total_line("Non-trainable", size_of(non_trainable_variables()));
  return text + thin + '\n';
}

SummaryTable Model::summary_table() const {
  SummaryTable table;
  for (const Child& child : children()) {
    const layers::Layer& layer = *child.layer;
    table.rows.push_back({.layer = internal::str(layer.name(), " (", layer.class_name(), ")"),
                          .output_shape = output_text(layer),
                          .parameters = internal::LayerState::of(layer).awaits_weights()
                                            ? "0 (unused)"
                                            : internal::str(layer.count_params())});
  }
  return table;
}

}  // namespace cohort::keras

std::string cohort::internal::shapes_text(const std::vector<TensorSpec>& outputs) {
  std::string text;
  for (const TensorSpec& one : outputs) {
    text += (text.empty() ? "" : ", ") + keras::shape_text(one);
  }
  return outputs.size() == 1 ? text : "[" + text + "]";
}
