// The single DMA engine. It transfers every byte that a kernel does not write.
#pragma once

#include "chip.h"

namespace vnpu {

// Each carries out a command, and throws Failure if the received data differ from the sent data.
void copyIn(const Command &command, const void *payload);
void copyOut(const Command &command);
void copyOnDevice(const Command &command);
void fill(const Command &command);

} // namespace vnpu
