// Names of the signals that end programs.
#pragma once

#include <csignal>

namespace tpk {

inline const char *signalName(int number) {
  switch (number) {
  case SIGABRT:
    return "SIGABRT";
  case SIGALRM:
    return "SIGALRM";
  case SIGBUS:
    return "SIGBUS";
  case SIGFPE:
    return "SIGFPE";
  case SIGHUP:
    return "SIGHUP";
  case SIGILL:
    return "SIGILL";
  case SIGINT:
    return "SIGINT";
  case SIGKILL:
    return "SIGKILL";
  case SIGPIPE:
    return "SIGPIPE";
  case SIGSEGV:
    return "SIGSEGV";
  case SIGSYS:
    return "SIGSYS";
  case SIGTERM:
    return "SIGTERM";
  case SIGTRAP:
    return "SIGTRAP";
  case SIGXCPU:
    return "SIGXCPU";
  default:
    return "another signal";
  }
}

} // namespace tpk
