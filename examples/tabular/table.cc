#include "table.h"

#include <cohort/cohort.h>

#include <array>
#include <cmath>
#include <fstream>
#include <string_view>

namespace tabular {
namespace {

namespace tf = cohort;

constexpr int64_t kCities = 500;
constexpr std::array<std::string_view, 4> kDevices = {"phone", "tablet", "laptop", "desktop"};
constexpr std::array<std::string_view, 8> kGoodWords = {"quick",    "friendly", "cheap", "great",
                                                        "reliable", "pretty",   "fresh", "easy"};
constexpr std::array<std::string_view, 8> kBadWords = {"slow",  "rude",   "dear",  "broken",
                                                       "dirty", "boring", "stale", "hard"};
constexpr std::array<std::string_view, 4> kOtherWords = {"shop", "order", "parcel", "again"};

// Random numbers that do not depend on the standard library's distributions (splitmix64).
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  // In [0, 1).
  double uniform() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    bits ^= bits >> 31;
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }
  int64_t below(int64_t end) { return static_cast<int64_t>(uniform() * static_cast<double>(end)); }
  // The sum of twelve uniform numbers is nearly normal, with mean 0 and variance 1 after the shift.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
  // Number k of `count` with a probability of about 1 / k.
  int64_t skewed(int64_t count) {
    return static_cast<int64_t>(std::pow(static_cast<double>(count), uniform())) - 1;
  }

 private:
  uint64_t state_;
};

// A number with one digit behind the point, the same in every locale.
std::string tenths(double value) {
  const auto count = static_cast<int64_t>(std::lround(std::abs(value) * 10));
  return (value < 0 ? "-" : "") + std::to_string(count / 10) + "." + std::to_string(count % 10);
}

struct Customer {
  double age, income;
  int64_t visits, city, device, mood;

  explicit Customer(Draws& draws)
      : age(18 + 60 * draws.uniform()),
        income(std::exp(10 + 0.5 * draws.normal())),
        visits(draws.below(20)),
        city(draws.skewed(kCities)),
        device(draws.below(kDevices.size())),
        mood(draws.below(3) - 1) {}

  bool buys(Draws& draws) const {
    const double liking = static_cast<double>((city * 37) % 11 - 5) / 5 + (device == 0 ? 0.5 : 0);
    const double score = 0.1 * static_cast<double>(visits - 10) + 1.5 * static_cast<double>(mood) +
                         liking + (income > 22'000 ? 0.7 : -0.7) - (age > 60 ? 1 : 0);
    return draws.uniform() < 1 / (1 + std::exp(-2 * score));
  }
};

std::string comment_of(const Customer& customer, Draws& draws) {
  std::string text;
  const int64_t words = 2 + draws.below(4);
  for (int64_t i = 0; i < words; ++i) {
    const bool tells = customer.mood != 0 && draws.uniform() < 0.7;
    const auto& mood = customer.mood > 0 ? kGoodWords : kBadWords;
    if (!text.empty()) text += ' ';
    text += tells ? mood[draws.below(mood.size())] : kOtherWords[draws.below(kOtherWords.size())];
  }
  return text;
}

}  // namespace

void write_table(const std::string& path, const TableOptions& options) {
  std::ofstream file(path);
  Draws draws(options.seed);
  file << "age,income,visits,city,device,comment,bought\n";
  for (int64_t row = 0; row < options.rows; ++row) {
    const Customer customer(draws);
    const bool knows_age = draws.uniform() >= 0.05;
    const bool knows_income = draws.uniform() >= 0.1;
    const std::string comment = comment_of(customer, draws);
    file << (knows_age ? tenths(customer.age) : "") << ','
         << (knows_income ? tenths(customer.income) : "") << ',' << std::to_string(customer.visits)
         << ",city-" << std::to_string(customer.city) << ',' << kDevices[customer.device] << ','
         << comment << ',' << (customer.buys(draws) ? '1' : '0') << '\n';
  }
  file.close();
  if (!file) throw tf::UnavailableError("the table '" + path + "' could not be written");
}

}  // namespace tabular
