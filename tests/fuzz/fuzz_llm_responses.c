/* Fuzz target: replies on the wire of OpenAI's Responses. */
#include "fuzz_llm_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    return fuzz_llm_wire(&llm_wire_responses, bytes, len);
}
