// See docs/models.md for the command line.
#include "models/program.h"

int main(int argc, char** argv) { return models::run_program("bert", argc, argv); }
