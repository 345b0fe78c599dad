#include "cohort/cluster/cluster_resolver.h"

namespace cohort::distribute::cluster_resolver {

ClusterResolver::~ClusterResolver() = default;

}  // namespace cohort::distribute::cluster_resolver
