// Sleeping on words of the region that the library and the chip share.
#pragma once

#include "futex.h"

namespace vnpu {

using tpk::relax;

template <typename Word> void sleepOn(std::atomic<Word> &word, Word expected, int milliseconds) {
  tpk::futexWait<tpk::Sleepers::OfAnyProcess>(word, expected, milliseconds);
}

template <typename Word> void wake(std::atomic<Word> &word, int count = INT_MAX) {
  tpk::futexWake<tpk::Sleepers::OfAnyProcess>(word, count);
}

} // namespace vnpu
