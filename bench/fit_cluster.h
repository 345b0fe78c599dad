// Guide 001's fit by a task of a parameter server cluster, which TF_CONFIG names.
#pragma once

namespace bench {

// The chief answers the commands on stdin: "fit SECONDS" by how many steps a second fit trains, in
// epochs of about so many seconds. Other tasks serve until it ends. Returns the exit code.
int run_fit_task();

}  // namespace bench
