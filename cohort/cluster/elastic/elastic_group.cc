#include "cohort/cluster/elastic/elastic_group.h"

#include <future>
#include <utility>

#include "cohort/cluster/elastic/elastic_core.h"

namespace cohort::internal::elastic {

ElasticGroup::ElasticGroup(membership::MembershipAgent& agent, ElasticOptions options)
    : core_(std::make_shared<ElasticCore>(agent, std::move(options))) {}

ElasticGroup::~ElasticGroup() { core_->stop(); }

void ElasticGroup::start_form(const Standing& mine, Formed done) {
  core_->form(mine, std::move(done));
}

Record ElasticGroup::form(const Standing& mine) {
  const auto promise = std::make_shared<std::promise<Record>>();
  std::future<Record> record = promise->get_future();
  core_->form(mine, [promise](const std::exception_ptr& error, const Record& formed) {
    error ? promise->set_exception(error) : promise->set_value(formed);
  });
  return record.get();  // the core's limits end it, or the end of the membership
}

bool ElasticGroup::somebody_waits() const { return core_->somebody_waits(); }
bool ElasticGroup::is_formed() const { return core_->is_formed(); }
void ElasticGroup::ask_to_form() { core_->ask_to_form(); }
std::optional<Record> ElasticGroup::current() const { return core_->current(); }
bool ElasticGroup::must_form() const { return core_->must_form(); }
std::vector<TaskId> ElasticGroup::lost() const { return core_->lost(); }

}  // namespace cohort::internal::elastic
