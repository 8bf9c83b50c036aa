/* Fuzz the parser of driver frames: bytes from the box, in pieces of varying size. With a first
 * byte above 127 they answer a question: without its nonce nothing is taken. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/talk/driver.h"

#define NONCE "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* JSON may write a character in other ways: then nothing is said of it. */
static int may_hold_nonce(const uint8_t *data, size_t size)
{
    return memmem(data, size, NONCE, sizeof NONCE - 1) || memchr(data, '\\', size);
}

/* A call is told with a number above the last one, a name, and arguments or the reason against. */
static void heard(struct driver *driver, enum driver_word word, size_t index)
{
    const json_t *call = driver->call;
    (void)index;
    if (word == DRIVER_CALL_OVER && driver->call_over > driver->call_number)
        abort();
    if (word != DRIVER_CALL)
        return;
    if (driver->call_number <= 0 || !json_is_string(json_object_get(call, "tool")) ||
        json_is_object(json_object_get(call, "arguments")) ==
            json_is_string(json_object_get(call, "fault")))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct driver driver = DRIVER_INIT;
    size_t piece = size > 0 ? data[0] % 61 + 1 : 1;
    if (size > 0 && data[0] > 127)
        memcpy(driver.nonce, NONCE, sizeof NONCE);
    driver.may_call = size > 0 && data[0] % 2 == 0;
    driver.heard = heard;
    for (size_t at = 0; at < size; at += piece)
        driver_feed(&driver, data + at, size - at < piece ? size - at : piece);
    if (driver.nonce[0] && !may_hold_nonce(data, size) &&
        (driver.done || driver.results || driver.answer || driver.renewed || driver.ready ||
         driver.error.kind != RESULT_E_NONE))
        abort();
    driver_done(&driver);
    return 0;
}
