// The DMA engine: one, through which every byte goes that is not written by a kernel.
#pragma once

#include "chip.h"

namespace vnpu {

// Each carries out a command, and throws Failure when what arrived is not what was sent.
void copyIn(const Command &command, const void *payload);
void copyOut(const Command &command);
void copyOnDevice(const Command &command);
void fill(const Command &command);

} // namespace vnpu
