/* Fuzz target: replies on the wire of Chat Completions. */
#include "fuzz_llm_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    return fuzz_llm_wire(&llm_wire_chat, bytes, len);
}
