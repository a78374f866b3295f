// Reports of a crash of the chip before it ends.
#include "chip.h"
#include "sentence.h"
#include "signal_names.h"

#include "units/processor.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace vnpu {

thread_local Activity activity;
Limits limits;

namespace {

constexpr int ExitStatus = 70;
constexpr uint64_t FirstPage = 65536;
constexpr size_t AlternateStackBytes = 256 << 10; // the registers of a matrix unit are saved there too

using Sentence = tpk::Sentence<TextBytes>;

void describeAddress(Sentence &sentence, const siginfo_t &info) {
  auto address = reinterpret_cast<uint64_t>(info.si_addr);
  const Header &header = region.header();
#ifdef SI_KERNEL
  if (info.si_code == SI_KERNEL) {
    sentence << " at an address that no memory can have";
    return;
  }
#endif
  sentence << " at address ";
  sentence.hex(address);
  if (address < FirstPage)
    sentence << ", an offset to NULL";
  else if (address - header.rangeStart >= header.rangeBytes)
    sentence << ", outside of device memory";
}

void onSignal(int number, siginfo_t *info, void *) {
  if (Processor *processor = Processor::instance(); processor && (number == SIGSEGV || number == SIGBUS))
    processor->onFault(reinterpret_cast<uint64_t>(info->si_addr));
  Sentence sentence;
  if (activity.name)
    sentence << "kernel '" << activity.name << "' crashed in programs " << activity.begin << " to "
             << activity.end - 1 << " of " << activity.total << ": ";
  else
    sentence << "the chip crashed: ";
  sentence << tpk::signalName(number);
  if (number == SIGSEGV || number == SIGBUS)
    describeAddress(sentence, *info);
  lose(sentence.text());
}

} // namespace

void lose(const char *reason) {
  Header &header = region.header();
  static std::atomic<bool> writing{false};
  if (!writing.exchange(true)) {
    char sentence[TextBytes] = {};
    strncpy(sentence, reason, TextBytes - 1);
    std::memcpy(header.lostText, sentence, TextBytes);
    header.lostSeal.store(Seal().add(sentence, TextBytes).value());
    header.lost.store(2);
    _exit(ExitStatus);
  }
  for (;;) // the thread that is writing ends the process
    pause();
}

void loseOverwritten(const char *what) {
  Sentence sentence;
  sentence << "the memory that it shares with the library was overwritten, as by a kernel that writes out of "
              "bounds: "
           << what;
  lose(sentence.text());
}

void catchSignals() {
  struct sigaction action = {};
  action.sa_sigaction = onSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    sigaction(number, &action, nullptr);
  // Ctrl-C is for the program at the terminal, which ends its chip when it exits.
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
}

void useAlternateStack() {
  void *memory =
      mmap(nullptr, AlternateStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return;
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = AlternateStackBytes;
  sigaltstack(&stack, nullptr);
}

} // namespace vnpu
