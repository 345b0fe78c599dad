#include "cohort/transform/functions/column_functions.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/apply.h"

namespace cohort::transform {

using internal::apply;
using keras::Config;

Column abs(const Column& x) { return apply("abs", {}, {x}); }
Column ceil(const Column& x) { return apply("ceil", {}, {x}); }
Column exp(const Column& x) { return apply("exp", {}, {x}); }
Column floor(const Column& x) { return apply("floor", {}, {x}); }
Column log(const Column& x) { return apply("log", {}, {x}); }
Column log1p(const Column& x) { return apply("log1p", {}, {x}); }
Column round(const Column& x) { return apply("round", {}, {x}); }
Column sigmoid(const Column& x) { return apply("sigmoid", {}, {x}); }
Column sign(const Column& x) { return apply("sign", {}, {x}); }
Column sqrt(const Column& x) { return apply("sqrt", {}, {x}); }
Column tanh(const Column& x) { return apply("tanh", {}, {x}); }
Column is_nan(const Column& x) { return apply("is_nan", {}, {x}); }
Column is_finite(const Column& x) { return apply("is_finite", {}, {x}); }
Column pow(const Column& x, const Column& y) { return apply("pow", {}, {x, y}); }
Column minimum(const Column& x, const Column& y) { return apply("minimum", {}, {x, y}); }
Column maximum(const Column& x, const Column& y) { return apply("maximum", {}, {x, y}); }
Column where(const Column& condition, const Column& x, const Column& y) {
  return apply("where", {}, {condition, x, y});
}
Column cast(const Column& x, DType dtype) {
  return apply("cast", Config().set("dtype", internal::dtype_name(dtype)), {x});
}

Column reshape(const Column& x, const std::vector<int64_t>& shape) {
  return apply("reshape", Config().set("shape", shape), {x});
}
Column concat(const std::vector<Column>& columns) { return apply("concat", {}, columns); }
Column one_hot(const Column& indices, int64_t depth) {
  return apply("one_hot", Config().set("depth", depth), {indices});
}

Column to_dense(const Column& x, const ToDenseOptions& options) {
  return apply("to_dense",
               Config()
                   .set("number", options.number)
                   .set("text", options.text)
                   .set("width", options.size.value_or(1))
                   .set("is_vector", options.size.has_value()),
               {x});
}
Column to_ragged(const Column& x) { return apply("to_ragged", {}, {x}); }

Column lower(const Column& x) { return apply("lower", {}, {x}); }
Column upper(const Column& x) { return apply("upper", {}, {x}); }
Column strip(const Column& x) { return apply("strip", {}, {x}); }
Column substr(const Column& x, int64_t position, int64_t length) {
  return apply("substr", Config().set("position", position).set("length", length), {x});
}
Column replace(const Column& x, const std::string& from, const std::string& to) {
  return apply("replace", Config().set("from", from).set("to", to), {x});
}
Column string_length(const Column& x) { return apply("string_length", {}, {x}); }
Column split(const Column& x, const std::string& separator) {
  return apply("split", Config().set("separator", separator), {x});
}
Column join(const std::vector<Column>& columns, const std::string& separator) {
  return apply("join", Config().set("separator", separator), columns);
}
Column as_string(const Column& x) { return apply("as_string", {}, {x}); }
Column to_number(const Column& x, const ToNumberOptions& options) {
  Config config;
  config.set("dtype", internal::dtype_name(options.dtype));
  if (options.default_value.has_value()) config.set("default", *options.default_value);
  return apply("to_number", config, {x});
}

}  // namespace cohort::transform
