/* Messages from the engine to the program `shell` (src/box/shell), on BOX_FD_REQUESTS: the first
 * says how to run the command, all others are sizes of its terminal. A message is SHELL_MESSAGE
 * bytes; one that breaks a rule ends the reading. Pure; fuzzed. */
#ifndef BOX_PROTO_SHELL_H
#define BOX_PROTO_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes: 'S', word, err_apart, 0; rows and columns, each with the low byte first. */
#define SHELL_MESSAGE 8

enum shell_word {
    SHELL_PLAIN = 1, /* the first: no terminal */
    SHELL_TERMINAL,  /* the first: a terminal of that size */
    SHELL_RESIZE,    /* later: it has that size now */
};

struct shell_message {
    enum shell_word word;
    bool err_apart; /* TERMINAL: stderr is no part of it */
    uint16_t rows, columns; /* 0: unknown; PLAIN: 0 */
};

/* The beginning of a message, and which ones came before it. */
struct shell_inbox {
    uint8_t bytes[SHELL_MESSAGE];
    size_t len;
    bool begun, terminal, broken;
};

void shell_write(const struct shell_message *message, uint8_t out[SHELL_MESSAGE]);
/* Takes bytes, *out_used of them, up to the end of one message: 1 and *out, 0 if it is not whole
 * yet, -1 if it is none, or out of place. */
int shell_read(struct shell_inbox *inbox, const uint8_t *bytes, size_t len, size_t *out_used,
               struct shell_message *out);

#endif
