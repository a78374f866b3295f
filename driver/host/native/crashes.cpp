#include "crashes.h"
#include "sentence.h"
#include "signal_names.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

namespace tpk {
namespace {

constexpr int Signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr uint64_t StackBytes = 64 << 10; // for the handler; the registers come on top
constexpr uint64_t FirstPage = 65536;
constexpr int MostPointers = 24; // to pass to the program that explains the crash
constexpr int PatienceMilliseconds = 20000;

struct sigaction previous[sizeof Signals / sizeof *Signals];

std::atomic<Activity *> activities{nullptr}; // never freed, but reused

pid_t thisThread() { return pid_t(syscall(SYS_gettid)); }

// A thread's activity, and its signal stack.
struct Thread {
  Activity *activity = nullptr;
  void *stack = nullptr;
  uint64_t stackBytes = 0;

  ~Thread() {
    if (stack) {
      stack_t current{};
      if (sigaltstack(nullptr, &current) == 0 && current.ss_sp == stack) {
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
        munmap(stack, stackBytes);
      }
    }
    if (activity)
      activity->thread.store(0);
  }

  void begin() {
    const pid_t number = thisThread();
    for (Activity *known = activities.load(); known && !activity; known = known->next) {
      pid_t nobody = 0;
      if (known->thread.compare_exchange_strong(nobody, number))
        activity = known;
    }
    if (!activity) {
      activity = new Activity;
      activity->thread.store(number);
      activity->next = activities.load();
      while (!activities.compare_exchange_weak(activity->next, activity)) {
      }
    }
    takeStack();
  }

  void takeStack() {
    stack_t current{};
    if (sigaltstack(nullptr, &current) != 0 || !(current.ss_flags & SS_DISABLE))
      return; // another library has installed one
#ifdef AT_MINSIGSTKSZ
    stackBytes = StackBytes + getauxval(AT_MINSIGSTKSZ);
#else
    stackBytes = StackBytes;
#endif
    void *memory =
        mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
      return;
    stack_t own{};
    own.ss_sp = memory;
    own.ss_size = stackBytes;
    if (sigaltstack(&own, nullptr) == 0)
      stack = memory;
    else
      munmap(memory, stackBytes);
  }
};

thread_local Thread thread;

// --- in the handler: nothing but system calls ------------------------------------------------------------

uint64_t programCounter(const void *context) {
  const auto &registers = static_cast<const ucontext_t *>(context)->uc_mcontext;
#if defined(__x86_64__)
  return uint64_t(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return uint64_t(registers.pc);
#elif defined(__riscv)
  return uint64_t(registers.__gregs[REG_PC]);
#else
  return 0;
#endif
}

Activity *activityOf(pid_t number) {
  for (Activity *known = activities.load(); known; known = known->next)
    if (known->thread.load() == number)
      return known->function.load() ? known : nullptr;
  return nullptr;
}

template <typename Text> void tell(const Text &text) {
  const char *rest = text.text();
  for (size_t left = text.length(); left;) {
    ssize_t written = write(STDERR_FILENO, rest, left);
    if (written <= 0)
      return;
    rest += written;
    left -= size_t(written);
  }
}

using Words = Sentence<1024>;

void describePrograms(Words &words, const Activity &running, const Function &function) {
  int64_t program = running.begin;
  bool known = running.end - running.begin == 1;
  if (function.programAt >= 0 && running.scratch) {
    const auto *noted = static_cast<const char *>(running.scratch) + function.programAt;
    int64_t value = *reinterpret_cast<const volatile int64_t *>(noted);
    if (value >= running.begin && value < running.end) {
      program = value;
      known = true;
    }
  }
  const int64_t x = running.grid[0], y = running.grid[1];
  auto place = [&](int64_t index) {
    words << "(" << index % x << ", " << index / x % y << ", " << index / x / y << ")";
  };
  words << (known ? "program " : "one of the programs ");
  place(program);
  if (!known) {
    words << " to ";
    place(running.end - 1);
  }
  words << " of grid (" << x << ", " << y << ", " << int64_t(running.grid[2]) << ")";
}

void describeSignal(Words &words, int number, const siginfo_t &info, bool direct) {
  words << signalName(number);
  if (number == SIGFPE) {
    words << ", as after an integer division by zero";
  } else if (number == SIGILL) {
    words << ", an instruction that this CPU does not have";
  } else if (!direct) {
    words << ", which another handler has passed on";
  } else if (info.si_code == SI_KERNEL) {
    words << " at an address that no memory can have";
  } else {
    const auto address = reinterpret_cast<uint64_t>(info.si_addr);
    words << " at address ";
    words.hex(address);
    if (address < FirstPage)
      words << ", an offset to NULL";
    else if (info.si_code == SEGV_ACCERR && number == SIGSEGV)
      words << ", which is mapped and may not be accessed so";
  }
}

// Starts the program that finds the kernel line, and waits for its output for a limited time.
void explain(const Activity &running, const Function &function, uint64_t offset, uint64_t address) {
  if (function.explanation.empty())
    return;
  char *arguments[12 + 3 + MostPointers + 1] = {};
  Sentence<24> numbers[3 + MostPointers];
  size_t count = 0;
  for (const std::string &argument : function.explanation)
    if (count < 12)
      arguments[count++] = const_cast<char *>(argument.c_str());
  size_t number = 0;
  auto add = [&](uint64_t value) {
    numbers[number].hex(value);
    arguments[count++] = const_cast<char *>(numbers[number++].text());
  };
  add(function.codeBytes);
  add(offset);
  add(address);
  for (int32_t at : function.pointers)
    if (number < 3 + MostPointers)
      add(*reinterpret_cast<const uint64_t *>(static_cast<const char *>(running.args) + at));

  // Not fork(), which would run other libraries' fork handlers, and these take locks.
  const pid_t child = vfork();
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(nothing, STDERR_FILENO) < 0)
      _exit(127);
    execve(arguments[0], arguments, environ);
    _exit(127);
  }
  if (child < 0)
    return;
  constexpr timespec moment{0, 5000000};
  for (int waited = 0; waited < PatienceMilliseconds; waited += 5) {
    int status;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR && kill(child, 0) != 0))
      return;
    nanosleep(&moment, nullptr);
  }
  kill(child, SIGKILL);
  int status;
  waitpid(child, &status, 0);
}

void report(const Activity &running, const Function &function, int number, const siginfo_t &info,
            const void *context, bool direct) {
  Words words;
  words << "\ntriton_porting_kit: kernel '" << function.name.c_str() << "' crashed in ";
  describePrograms(words, running, function);
  words << ": ";
  describeSignal(words, number, info, direct);
  words << "\n";
  tell(words);
  const uint64_t offset = programCounter(context) - reinterpret_cast<uint64_t>(function.entry);
  if (direct && offset < function.codeBytes) {
    const bool hasAddress = (number == SIGSEGV || number == SIGBUS) && info.si_code != SI_KERNEL;
    explain(running, function, offset, hasAddress ? reinterpret_cast<uint64_t>(info.si_addr) : 0);
  }
  if (number == SIGSEGV || number == SIGBUS) {
    Words remedy;
    remedy << "  to find the access that leaves its argument, run again with TPK_CHECK=memory\n\n";
    tell(remedy);
  }
}

size_t indexOf(int number) {
  size_t index = 0;
  while (Signals[index] != number)
    ++index;
  return index;
}

// Passes the signal to the previously installed handler, as if this handler did not exist.
void passOn(int number, siginfo_t *info, void *context) {
  const struct sigaction &before = previous[indexOf(number)];
  if (before.sa_flags & SA_SIGINFO)
    return before.sa_sigaction(number, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(number);
  const bool sent = info->si_code <= 0; // sent by a program; a faulting instruction would run again
  if (sent && before.sa_handler == SIG_IGN)
    return;
  sigaction(number, &before, nullptr);
  if (sent)
    syscall(SYS_tgkill, getpid(), thisThread(), number);
}

void onSignal(int number, siginfo_t *info, void *context) {
  static std::atomic<pid_t> reporting{0};
  const int error = errno;
  const pid_t self = thisThread();
  const Activity *running = activityOf(self);
  const bool direct = info->si_code > 0;
  // Python's faulthandler, if it was installed later, sends the signal again.
  const bool again = info->si_code == SI_TKILL && info->si_pid == getpid();
  if (!running || !(direct || again)) {
    errno = error;
    return passOn(number, info, context);
  }
  pid_t nobody = 0;
  if (reporting.compare_exchange_strong(nobody, self)) {
    report(*running, *running->function.load(), number, *info, context, direct);
  } else if (nobody != self) { // the other thread ends the process
    constexpr timespec moment{0, 10000000};
    for (int waited = 0; waited < PatienceMilliseconds + 5000; waited += 10)
      nanosleep(&moment, nullptr);
  }
  // The instruction is executed again with unchanged registers, and the process ends as it would have.
  sigaction(number, &previous[indexOf(number)], nullptr);
  errno = error;
}

} // namespace

Activity &ownActivity() {
  if (!thread.activity)
    thread.begin();
  return *thread.activity;
}

sigset_t signalsOfInterpreter() {
  sigset_t signals;
  sigfillset(&signals);
  for (int number : Signals)
    sigdelset(&signals, number);
  return signals;
}

void catchCrashes() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action{};
    action.sa_sigaction = onSignal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof Signals / sizeof *Signals; ++i)
      sigaction(Signals[i], &action, &previous[i]);
  });
}

void forgetOtherThreads() {
  for (Activity *known = activities.load(); known; known = known->next) {
    if (known == thread.activity)
      known->thread.store(thisThread());
    else {
      known->function.store(nullptr);
      known->thread.store(0);
    }
  }
}

} // namespace tpk
