#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/objects/object_graph.h"
#include "tools/checkpoint_commands.h"
#include "tools/checkpoint_paths.h"
#include "tools/checkpoint_tensors.h"
#include "tools/elements.h"
#include "tools/printable.h"

namespace cohort::tools {
namespace {

using internal::BundleEntry;
using internal::BundleReader;
using internal::BundleType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Infinities of two signs, and a number and none, have no distance.
double distance_or_infinity(double distance) {
  if (std::isnan(distance)) return kInfinity;
  return distance;
}

// How far apart two elements are, and how large the larger of them is.
struct Distance {
  double absolute = 0;
  double magnitude = 0;
};

template <class T>
Distance distance(std::complex<T> a, std::complex<T> b) {
  const auto is_nan = [](std::complex<T> x) {
    return std::isnan(x.real()) || std::isnan(x.imag());
  };
  if (a == b || (is_nan(a) && is_nan(b))) return {};
  const double absolute =
      distance_or_infinity(std::abs(std::complex<double>(a) - std::complex<double>(b)));
  return {absolute, std::max<double>(std::abs(a), std::abs(b))};
}

template <class T>
Distance distance(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Exact where a signed difference would overflow.
    const uint64_t apart = a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                                 : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
    return {static_cast<double>(apart),
            std::max(std::abs(static_cast<double>(a)), std::abs(static_cast<double>(b)))};
  } else {
    if (a == b || (std::isnan(a) && std::isnan(b))) return {};
    const double absolute =
        distance_or_infinity(std::abs(static_cast<double>(a) - static_cast<double>(b)));
    return {absolute, std::max(std::abs(static_cast<double>(a)), std::abs(static_cast<double>(b)))};
  }
}
Distance distance(Float16 a, Float16 b) { return distance(to_float(a), to_float(b)); }
Distance distance(Bfloat16 a, Bfloat16 b) { return distance(to_float(a), to_float(b)); }

struct Difference {
  uint64_t elements = 0;
  uint64_t differing = 0;
  double absolute = 0;  // the largest
  double relative = 0;

  void add(const Distance& apart, double tolerance) {
    if (apart.absolute <= tolerance) return;
    ++differing;
    absolute = std::max(absolute, apart.absolute);
    relative = std::max(relative, distance_or_infinity(apart.absolute / apart.magnitude));
  }
};

class Comparison {
 public:
  Comparison(const BundleReader& a, const BundleReader& b, double tolerance, std::ostream& out)
      : a_(a), b_(b), names_a_(a), names_b_(b), tolerance_(tolerance), out_(out) {}

  // Whether all is equal.
  bool run() {
    for (const auto& [key, entry] : a_.entries()) {
      if (key == internal::kObjectGraphKey) continue;
      if (b_.contains(key)) {
        compare(key, entry, b_.entry(key));
      } else {
        report("only in the first", names_a_.name(key), describe(entry));
      }
    }
    for (const auto& [key, entry] : b_.entries()) {
      if (key == internal::kObjectGraphKey || a_.contains(key)) continue;
      report("only in the second", names_b_.name(key), describe(entry));
    }
    out_ << counted(equal_, "tensor") << " equal, " << different_ << " different\n";
    return different_ == 0;
  }

 private:
  void report(std::string_view what, std::string_view name, const std::string& how) {
    ++different_;
    out_ << what << ": " << printable(name) << "  " << how << '\n';
  }

  void compare(const std::string& key, const BundleEntry& a, const BundleEntry& b) {
    const std::string name = names_a_.name(key);
    if (a.type != b.type || a.shape != b.shape) {
      return report("other type", name, describe(a) + ", " + describe(b));
    }
    if (a.type == BundleType::kString) return compare_strings(key, name);
    const uint64_t item = internal::size_of(a.type);
    if (item == 0) {
      return report("not compared", name, internal::type_name(a.type) + " has no layout known");
    }
    compare_numbers(key, name, a);
  }

  void compare_strings(const std::string& key, const std::string& name) {
    const std::vector<std::string> a = a_.read_strings(key);
    const std::vector<std::string> b = b_.read_strings(key);
    Difference found = {.elements = a.size()};
    for (size_t i = 0; i < a.size(); ++i) found.differing += a[i] != b[i] ? 1 : 0;
    finish(name, found, "");
  }

  void compare_numbers(const std::string& key, const std::string& name, const BundleEntry& entry) {
    std::string a(tensor_bytes(entry), '\0');
    std::string b(a.size(), '\0');
    a_.read(key, a.data());
    b_.read(key, b.data());
    Difference found = {.elements = a.size() / internal::size_of(entry.type)};
    if (a != b) {
      with_element_type(entry.type, [&]<class T>() {
        for (uint64_t i = 0; i < found.elements; ++i) {
          found.add(distance(element_at<T>(a.data(), i), element_at<T>(b.data(), i)), tolerance_);
        }
      });
    }
    finish(name, found,
           internal::str(", by ", found.absolute, " at most, relatively ", found.relative));
  }

  void finish(const std::string& name, const Difference& found, const std::string& by) {
    if (found.differing == 0) {
      ++equal_;
      return;
    }
    report("other values", name,
           internal::str(found.differing, " of ", counted(found.elements, "element"), by));
  }

  const BundleReader& a_;
  const BundleReader& b_;
  const TensorNames names_a_;
  const TensorNames names_b_;
  const double tolerance_;
  std::ostream& out_;
  uint64_t equal_ = 0;
  uint64_t different_ = 0;
};

}  // namespace

int diff_checkpoints(internal::FileSystem& files, const DiffOptions& options, std::ostream& out) {
  const BundleReader a(files, require_checkpoint(files, options.a));
  const BundleReader b(files, require_checkpoint(files, options.b));
  return Comparison(a, b, options.tolerance, out).run() ? kExitOk : kExitDifferent;
}

}  // namespace cohort::tools
