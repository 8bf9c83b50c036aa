/* Fuzz target: replies on the wire of Anthropic's Messages. */
#include "fuzz_llm_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    return fuzz_llm_wire(&llm_wire_anthropic, bytes, len);
}
