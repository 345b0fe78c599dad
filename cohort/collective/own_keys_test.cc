#include "cohort/collective/own_keys.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "cohort/collective/forming/form_group.h"
#include "cohort/collective/network/testing_servers.h"
#include "cohort/collective/testing_store_with_hook.h"

namespace cohort::collective {
namespace {

// The keys that a task uses, in a store that others use, too.
TEST(OwnKeys, AreGoneOnceTheGroupStands) {
  TestingServers servers(2);
  const auto all = make_memory_store();
  all->set("another's", "stays");
  std::mutex mutex;
  std::set<std::string> used;
  const auto watched = std::make_shared<StoreWithHook>(all, [&](const std::string& key) {
    const std::lock_guard lock(mutex);
    used.insert(key);
  });
  const auto members = make_group(2, 0, [&](GroupMember member) {
    const auto keys = std::make_shared<OwnKeys>(watched);
    member.store = keys;
    auto communicator = form_group_at("host " + std::to_string(member.rank), member,
                                      servers.core(member.rank), {.trusted_network = true})
                            .communicator;
    communicator->barrier({.name = "the group stands"});
    keys->remove_all();
    return communicator;
  });
  EXPECT_GE(used.size(), 4u);  // introductions and sessions at least
  for (const std::string& key : used) EXPECT_FALSE(all->find(key)) << key;
  EXPECT_EQ(all->find("another's"), "stays");
}

}  // namespace
}  // namespace cohort::collective
