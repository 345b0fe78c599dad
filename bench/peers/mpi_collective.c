// Open MPI's turn of bench/collective.py.
//
// mpirun -np RANKS mpi_collective, with commands OPERATION BYTES SECONDS on stdin: seconds that a
// call takes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
  char operation[32];  // empty: the end
  long count;          // of floats
  long times;          // 0: rank 0 has no more
};

// Ranks that have nothing to do must not keep a core busy, as MPI's own waiting would, nor wake it often:
// mpirun starts them in process groups of their own, so that nobody stops them between turns.
static void tell(struct command* command) {
  MPI_Request request;
  int done = 0;
  MPI_Ibcast(command, sizeof *command, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  useconds_t pause = 100;
  for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
       MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
    usleep(pause);
    if (pause < 20000) pause *= 2;
  }
}

static double run(const struct command* command) {
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long part = (command->count + ranks - 1) / ranks;
  float* values = calloc((size_t)(part * ranks), sizeof(float));
  float* own = calloc((size_t)part, sizeof(float));
  const int is_gather = strcmp(command->operation, "all_gather") == 0;
  const int is_scatter = strcmp(command->operation, "reduce_scatter") == 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (long i = 0; i < command->times; ++i) {
    if (is_gather) {
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, values, (int)part, MPI_FLOAT, MPI_COMM_WORLD);
    } else if (is_scatter) {
      MPI_Reduce_scatter_block(values, own, (int)part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else if (strcmp(command->operation, "barrier") == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Allreduce(MPI_IN_PLACE, values, (int)command->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
  }
  const double seconds = MPI_Wtime() - start;
  free(values);
  free(own);
  return seconds;
}

static double time_calls(struct command* command, double seconds) {
  double taken = 0;
  for (command->times = 1; taken < seconds / 10; command->times *= 2) {
    tell(command);
    taken = run(command);
    if (taken >= seconds / 10) break;
  }
  command->times = (long)(seconds / taken * (double)command->times) + 1;
  tell(command);
  return run(command) / (double)command->times;
}

static void serve(void) {
  char line[256], version[MPI_MAX_LIBRARY_VERSION_STRING];
  while (fgets(line, sizeof line, stdin) != NULL) {
    struct command command;
    memset(&command, 0, sizeof command);
    long bytes = 0;
    double seconds = 0;
    if (sscanf(line, "%31s %ld %lf", command.operation, &bytes, &seconds) == 3) {
      command.count = bytes / (long)sizeof(float);
      printf("%.9g\n", time_calls(&command, seconds));
    } else {
      int length = 0;
      MPI_Get_library_version(version, &length);
      version[strcspn(version, ",\n")] = '\0';
      printf("%s\n", version);
    }
    fflush(stdout);
  }
  struct command end;
  memset(&end, 0, sizeof end);
  tell(&end);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    serve();
  } else {
    struct command command;
    for (tell(&command); command.operation[0] != '\0'; tell(&command)) run(&command);
  }
  MPI_Finalize();
  return 0;
}
