// Operations on strings, one by one.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/operations.h"
#include "cohort/transform/graph/text_builder.h"

namespace cohort::internal {
namespace {

using keras::Config;
using Types = std::span<const ColumnType>;
using Values = std::span<const ColumnValue>;

// TensorFlow's white space: ASCII's.
constexpr std::string_view kBlanks = " \t\n\v\f\r";

std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Fn(std::string_view) -> std::string_view within it, or std::string.
template <class Fn>
ColumnValue map_texts(const ColumnValue& value, const Fn& fn) {
  const StringTensor& texts = value.values.strings();
  TextBuilder result(texts);
  for (int64_t i = 0; i < texts.numel(); ++i) {
    if constexpr (std::is_same_v<decltype(fn(std::string_view())), std::string>) {
      result.add(fn(texts.data()[i]));
    } else {
      result.add_part(fn(texts.data()[i]));
    }
  }
  return {.values = std::move(result).finish(texts.sizes()), .row_splits = value.row_splits};
}

// Fn(std::string_view) -> T.
template <class T, class Fn>
ColumnValue map_to_numbers(const ColumnValue& value, DType dtype, const Fn& fn) {
  const StringTensor& texts = value.values.strings();
  const Tensor result = at::empty(texts.sizes(), dtype);
  T* out = result.data_ptr<T>();
  for (int64_t i = 0; i < texts.numel(); ++i) out[i] = fn(texts.data()[i]);
  return {.values = result, .row_splits = value.row_splits};
}

EvaluateColumn to_lower(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_strings(inputs[0]);
  return [](Values values) {
    return map_texts(values[0], [](std::string_view text) { return internal::lower(text); });
  };
}

EvaluateColumn to_upper(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_strings(inputs[0]);
  return [](Values values) {
    return map_texts(values[0], [](std::string_view text) { return internal::upper(text); });
  };
}

EvaluateColumn strip(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_strings(inputs[0]);
  return [](Values values) { return map_texts(values[0], stripped); };
}

EvaluateColumn substr(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  take_strings(inputs[0]);
  const int64_t position = attributes.get_int("position");
  const int64_t length = attributes.get_int("length");
  if (position < 0 || length < 0) {
    throw InvalidArgumentError("position and length are numbers of bytes, at least 0");
  }
  return [=](Values values) {
    return map_texts(values[0], [=](std::string_view text) {
      return text.substr(std::min(text.size(), static_cast<size_t>(position)),
                         static_cast<size_t>(length));
    });
  };
}

EvaluateColumn replace(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  take_strings(inputs[0]);
  const std::string from = attributes.get_string("from"), to = attributes.get_string("to");
  if (from.empty()) throw InvalidArgumentError("the text to replace is empty");
  return [=](Values values) {
    return map_texts(values[0], [&](std::string_view text) {
      std::string result;
      for (size_t begin = 0;;) {
        const size_t end = text.find(from, begin);
        result.append(text.substr(begin, end - begin));
        if (end == std::string_view::npos) return result;
        result.append(to);
        begin = end + from.size();
      }
    });
  };
}

EvaluateColumn string_length(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_strings(inputs[0]);
  return [](Values values) {
    return map_to_numbers<int32_t>(values[0], at::kInt, [](std::string_view text) {
      return static_cast<int32_t>(std::min<size_t>(text.size(), INT32_MAX));
    });
  };
}

// Numbers, as tf.strings.to_number reads them; blanks around them do not count.
EvaluateColumn to_number(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  take_strings(inputs[0]);
  const DType dtype = dtype_of_name(attributes.get_string("dtype"));
  const bool has_default = attributes.contains("default");
  const double fallback = has_default ? attributes.get_double("default") : 0;
  const auto read = [=]<class T>(Values values, T) {
    return map_to_numbers<T>(values[0], dtype, [=](std::string_view text) -> T {
      const std::optional<T> number = parse_number<T>(stripped(text));
      if (number.has_value()) return *number;
      if (has_default) return static_cast<T>(fallback);
      throw InvalidArgumentError(str("transform::to_number: ", quoted(text), " is no ",
                                     dtype_name(dtype),
                                     "; .default_value stands for what is no number"));
    });
  };
  switch (dtype) {
    case at::kFloat:
      return [read](Values values) { return read(values, float()); };
    case at::kDouble:
      return [read](Values values) { return read(values, double()); };
    case at::kInt:
      return [read](Values values) { return read(values, int32_t()); };
    case at::kLong:
      return [read](Values values) { return read(values, int64_t()); };
    default:
      throw InvalidArgumentError("its dtype is float32, float64, int32 or int64");
  }
}

EvaluateColumn as_string(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  if (inputs[0].kind == ColumnKind::kVocabulary) throw InvalidArgumentError("it takes numbers");
  if (inputs[0].is_string()) return [](Values values) { return values[0]; };
  if (!at::isIntegralType(inputs[0].dtype.dtype(), false)) {
    throw InvalidArgumentError(
        "it takes integers: how many digits a fraction has is a choice; use "
        "transform::map");
  }
  return [](Values values) {
    const Tensor numbers = values[0].values.tensor().to(at::kLong).contiguous();
    TextBuilder result;
    for (int64_t i = 0; i < numbers.numel(); ++i) result.add(str(numbers.data_ptr<int64_t>()[i]));
    return ColumnValue{.values = std::move(result).finish(numbers.sizes().vec()),
                       .row_splits = values[0].row_splits};
  };
}

// The texts of a row in several columns, joined.
EvaluateColumn string_join(const Config& attributes, Types inputs) {
  if (inputs.empty()) throw InvalidArgumentError("it takes at least one column");
  for (const ColumnType& input : inputs) take_strings(input);
  take_matching(inputs);
  const std::string separator = attributes.get_string("separator");
  return [separator](Values values) {
    const ColumnValue* largest = &values[0];
    for (const ColumnValue& value : values) {
      if (value.values.strings().numel() > largest->values.strings().numel()) largest = &value;
    }
    const StringTensor& sizes = largest->values.strings();
    TextBuilder result;
    for (int64_t i = 0; i < sizes.numel(); ++i) {
      std::string text;
      for (size_t k = 0; k < values.size(); ++k) {
        const StringTensor& part = values[k].values.strings();
        if (part.numel() != 1 && part.numel() != sizes.numel()) {
          throw InvalidArgumentError("transform::join: columns of different sizes");
        }
        if (k > 0) text += separator;
        text += part.data()[part.numel() == 1 ? 0 : i];
      }
      result.add(std::move(text));
    }
    return ColumnValue{.values = std::move(result).finish(sizes.sizes()),
                       .row_splits = common_row_splits(values)};
  };
}

// To a ragged column of the parts of each text, as tf.strings.split: without a separator between
// runs of blanks.
EvaluateColumn split(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  take_strings(inputs[0]);
  if (inputs[0].kind != ColumnKind::kDense || !inputs[0].shape.empty()) {
    throw InvalidArgumentError("it takes a column [rows]");
  }
  const std::string separator = attributes.get_string("separator");
  return [separator](Values values) {
    const StringTensor& texts = values[0].values.strings();
    TextBuilder parts(texts);
    const Tensor row_splits = at::empty({texts.numel() + 1}, at::kLong);
    int64_t* ends = row_splits.data_ptr<int64_t>();
    ends[0] = 0;
    for (int64_t row = 0; row < texts.numel(); ++row) {
      std::string_view rest = texts.data()[row];
      if (separator.empty()) {
        for (size_t end = 0;;) {
          const size_t begin = rest.find_first_not_of(kBlanks, end);
          if (begin == std::string_view::npos) break;
          end = std::min(rest.find_first_of(kBlanks, begin), rest.size());
          parts.add_part(rest.substr(begin, end - begin));
        }
      } else {
        for (;;) {
          const size_t end = rest.find(separator);
          parts.add_part(rest.substr(0, end));
          if (end == std::string_view::npos) break;
          rest.remove_prefix(end + separator.size());
        }
      }
      ends[row + 1] = parts.size();
    }
    return ColumnValue{.values = std::move(parts).finish(), .row_splits = row_splits};
  };
}

constexpr NamedOperation kStringOperations[] = {
    {"lower", to_lower},      {"upper", to_upper},      {"strip", strip},
    {"substr", substr},       {"replace", replace},     {"string_length", string_length},
    {"to_number", to_number}, {"as_string", as_string}, {"join", string_join},
    {"split", split},
};

}  // namespace

std::span<const NamedOperation> string_operations() { return kStringOperations; }

}  // namespace cohort::internal
