#include "cohort/transform/graph/apply.h"

namespace cohort::transform {

using internal::apply;

Column operator+(const Column& x, const Column& y) { return apply("add", {}, {x, y}); }
Column operator-(const Column& x, const Column& y) { return apply("subtract", {}, {x, y}); }
Column operator*(const Column& x, const Column& y) { return apply("multiply", {}, {x, y}); }
Column operator/(const Column& x, const Column& y) { return apply("divide", {}, {x, y}); }
Column operator-(const Column& x) { return apply("negative", {}, {x}); }
Column operator==(const Column& x, const Column& y) { return apply("equal", {}, {x, y}); }
Column operator!=(const Column& x, const Column& y) { return apply("not_equal", {}, {x, y}); }
Column operator<(const Column& x, const Column& y) { return apply("less", {}, {x, y}); }
Column operator<=(const Column& x, const Column& y) { return apply("less_equal", {}, {x, y}); }
Column operator>(const Column& x, const Column& y) { return apply("greater", {}, {x, y}); }
Column operator>=(const Column& x, const Column& y) { return apply("greater_equal", {}, {x, y}); }
Column operator&(const Column& x, const Column& y) { return apply("logical_and", {}, {x, y}); }
Column operator|(const Column& x, const Column& y) { return apply("logical_or", {}, {x, y}); }
Column operator!(const Column& x) { return apply("logical_not", {}, {x}); }

}  // namespace cohort::transform
