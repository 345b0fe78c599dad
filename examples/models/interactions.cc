#include "models/interactions.h"

#include <array>
#include <vector>

#include "models/draws.h"

namespace models {
namespace {

namespace tf = cohort;

constexpr uint64_t kWorldSeed = 7;  // users and items are the same for all seeds of rows
constexpr float kSuits = 0.4F;      // some fifth of all pairs
using Taste = std::array<float, 3>;

std::vector<Taste> tastes(int64_t count, Draws& draws) {
  std::vector<Taste> all(static_cast<size_t>(count));
  for (Taste& one : all) {
    for (float& number : one) number = draws.uniform(-1, 1);
  }
  return all;
}

bool suits(const Taste& user, const Taste& item) {
  float sum = 0;
  for (size_t i = 0; i < user.size(); ++i) sum += user[i] * item[i];
  return sum > kSuits;
}

}  // namespace

Rows make_interactions(int64_t rows, const InteractionOptions& options) {
  Draws world(kWorldSeed);
  const std::vector<Taste> users = tastes(options.users, world);
  const std::vector<Taste> items = tastes(options.items, world);
  Draws draws(options.seed);
  const tf::Tensor user_ids = tf::zeros({rows}, tf::int64), item_ids = tf::zeros({rows}, tf::int64);
  const tf::Tensor labels = tf::zeros({rows, 1});
  for (int64_t row = 0; row < rows; ++row) {
    const bool taken = draws.below(options.negatives + 1) == 0;
    int64_t user = 0, item = 0;
    do {
      user = draws.below(options.users);
      item = draws.below(options.items);
    } while (suits(users[static_cast<size_t>(user)], items[static_cast<size_t>(item)]) != taken);
    user_ids.data_ptr<int64_t>()[row] = user;
    item_ids.data_ptr<int64_t>()[row] = item;
    labels.data_ptr<float>()[row] = taken ? 1 : 0;
  }
  return {tf::dict({{"users", user_ids}, {"items", item_ids}}), labels};
}

}  // namespace models
