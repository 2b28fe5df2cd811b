#include "clients/cli/app.h"
#include "clients/cli/config.h"
#include "clients/cli/interrupts.h"

int main(int argc, char** argv) {
  grove::cli::Interrupts interrupts;  // before any other thread
  return grove::cli::RunApp(argc, argv, &interrupts, grove::cli::SystemEnv);
}
