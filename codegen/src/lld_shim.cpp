// lld's ELF driver behind a C interface. Not reentrant: the caller holds one lock around every call.

#include "lld/Common/Driver.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <cstring>
#include <string>

LLD_HAS_DRIVER(elf)

// Links as `ld.lld argv[1..]`. Returns lld's exit code, or -1 if lld crashed and must not run again in this process.
// `*messages` receives everything lld printed, to be released with lathe_lld_free.
extern "C" int lathe_lld_link(const char *const *argv, size_t argc, char **messages) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
  const lld::Result result = lld::lldMain(llvm::ArrayRef<const char *>(argv, argc), stream, stream, drivers);
  stream.flush();
  *messages = strdup(text.c_str());
  return result.canRunAgain ? result.retCode : -1;
}

extern "C" void lathe_lld_free(char *messages) { std::free(messages); }
