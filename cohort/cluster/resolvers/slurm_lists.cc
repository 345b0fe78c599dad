#include "cohort/cluster/resolvers/slurm_lists.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cohort/cluster/config_error.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostHosts = 65536;

// Whole and without a sign; at most nine digits, so that it fits.
std::optional<int> parse_digits(std::string_view text) {
  if (text.empty() || text.size() > 9 || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  return parse_number<int32_t>(text);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

class Nodelist {
 public:
  explicit Nodelist(std::string_view list) : list_(list) {}

  std::vector<std::string> expand() const {
    std::vector<std::string> hosts;
    std::string_view rest = list_;
    for (;;) {
      const size_t end = end_of_entry(rest);
      for (std::string& host : expand_entry(rest.substr(0, end))) {
        hosts.push_back(std::move(host));
        check_size(hosts.size());
      }
      if (end == rest.size()) return hosts;
      rest.remove_prefix(end + 1);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw InvalidArgumentError(
        str("Slurm: nodelist: ", quoted_start(list_), " is no list of hosts: ", problem));
  }
  void check_size(size_t hosts) const {
    if (hosts > kMostHosts) fail(str("more than ", kMostHosts, " hosts"));
  }

  // At the comma that is in no brackets.
  static size_t end_of_entry(std::string_view text) {
    bool within = false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '[') within = true;
      if (text[i] == ']') within = false;
      if (text[i] == ',' && !within) return i;
    }
    return text.size();
  }

  // "r[0-1]c[1,3]": each part between brackets multiplies what stands before it.
  std::vector<std::string> expand_entry(std::string_view entry) const {
    if (entry.empty()) fail("an empty name");
    std::vector<std::string> hosts{""};
    while (!entry.empty()) {
      const size_t open = entry.find('[');
      const std::string_view plain = entry.substr(0, open);
      check_name(plain);
      for (std::string& host : hosts) host += plain;
      if (open == entry.npos) break;
      const size_t close = entry.find(']', open);
      if (close == entry.npos) fail("a '[' without ']'");
      hosts = multiply(hosts, numbers(entry.substr(open + 1, close - open - 1)));
      entry.remove_prefix(close + 1);
    }
    return hosts;
  }

  void check_name(std::string_view name) const {
    for (const char c : name) {
      const bool letter =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (!letter && c != '-' && c != '_' && c != '.') {
        fail(str("the character ", quoted(std::string_view(&c, 1))));
      }
    }
  }

  // "08-10,12" -> 08 09 10 12.
  std::vector<std::string> numbers(std::string_view ranges) const {
    std::vector<std::string> result;
    for (const std::string_view range : split(ranges, ',')) {
      const size_t dash = range.find('-');
      const std::string_view low = range.substr(0, dash);
      const std::string_view high = dash == range.npos ? low : range.substr(dash + 1);
      const std::optional<int> first = parse_digits(low);
      const std::optional<int> last = parse_digits(high);
      if (!first || !last) fail(str(quoted_start(range), " between brackets"));
      if (*last < *first) fail(str("the range ", range, " goes down"));
      check_size(result.size() + static_cast<size_t>(*last - *first) + 1);
      for (int number = *first; number <= *last; ++number) {
        std::string digits = decimal_digits(number);
        if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
        result.push_back(std::move(digits));
      }
    }
    return result;
  }

  std::vector<std::string> multiply(const std::vector<std::string>& hosts,
                                    const std::vector<std::string>& endings) const {
    check_size(hosts.size() * endings.size());
    std::vector<std::string> result;
    for (const std::string& host : hosts) {
      for (const std::string& ending : endings) result.push_back(host + ending);
    }
    return result;
  }

  std::string_view list_;
};

}  // namespace

std::vector<std::string> expand_nodelist(std::string_view list) { return Nodelist(list).expand(); }

std::vector<int> expand_counts(std::string_view list) {
  const auto fail = [list](std::string_view entry) {
    throw InvalidArgumentError(
        str("Slurm: tasks per node: ", quoted_start(list),
            " is no list of numbers, as \"2(x3),1\" is: ", quoted_start(entry)));
  };
  std::vector<int> counts;
  for (const std::string_view entry : split(list, ',')) {
    const size_t open = entry.find("(x");
    const std::optional<int> count = parse_digits(entry.substr(0, open));
    std::optional<int> times = 1;
    if (open != entry.npos) {
      if (!entry.ends_with(')')) fail(entry);
      times = parse_digits(entry.substr(open + 2, entry.size() - open - 3));
    }
    if (!count || !times || counts.size() + static_cast<size_t>(*times) > kMostHosts) fail(entry);
    counts.insert(counts.end(), static_cast<size_t>(*times), *count);
  }
  return counts;
}

}  // namespace cohort::internal
