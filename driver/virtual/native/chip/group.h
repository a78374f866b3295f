// What a chip does as one of several: memory that it shares with others, waits for them, and their loss.
#pragma once

#include "chip.h"

namespace vnpu {

// Maps a descriptor of the library's process at a device address. Throws Failure.
void import(const Command &command);
void unmap(const Command &command);
// Whether memory is shared now, so that kernels may wait for other chips.
bool sharesMemory();

// Lets launches fail for a reason; empty: no more.
void failLaunches(const std::string &reason);
// Throws Failure if launches fail now.
void requireWholeGroup();

// Waits until the library opens a gate. Throws Failure if the chip that it stands for is lost.
void awaitGate(const Command &command);

} // namespace vnpu
