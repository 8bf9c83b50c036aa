/* Lines to the engine (drivers/PROTOCOL.md). Runs in the box, as the user's code.
 *
 * The shell itself writes to the same pipe, and the kernel mixes no two writes of at most PIPE_BUF
 * bytes: so arguments that are longer go in parts. */
#include "box/caller/caller.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"

/* The longest escape has six bytes. */
#define ROOM 8

struct line {
    char text[PIPE_BUF];
    size_t len;
};

static void add_text(struct line *line, const char *text)
{
    size_t len = strlen(text);
    if (len > sizeof line->text - line->len)
        len = sizeof line->text - line->len;
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

attr_printf(2, 3) static void add(struct line *line, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    add_text(line, text);
}

static void begin(struct line *line, const struct caller *caller)
{
    bool run = strcmp(caller->tools.nonce, "-") == 0;
    line->len = 0;
    add_text(line, "\x1e{");
    if (!run)
        add(line, "\"nonce\":\"%s\",", caller->tools.nonce);
}

static int send(struct line *line, const struct caller *caller)
{
    add_text(line, "}\n");
    if (io_write_all(caller->tools.words, line->text, line->len) == 0)
        return 0;
    return -caller_fail(CALLER_ERROR, NULL, "the channel to cupel is closed");
}

size_t caller_utf8(const char *at, size_t len)
{
    const unsigned char *byte = (const unsigned char *)at;
    size_t need = byte[0] < 0x80   ? 1
                  : byte[0] < 0xc2 ? 0
                  : byte[0] < 0xe0 ? 2
                  : byte[0] < 0xf0 ? 3
                  : byte[0] < 0xf5 ? 4
                                   : 0;
    if (need == 0 || need > len)
        return 0;
    for (size_t i = 1; i < need; i++)
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    bool wrong = (byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xed && byte[1] > 0x9f) ||
                 (byte[0] == 0xf0 && byte[1] < 0x90) || (byte[0] == 0xf4 && byte[1] > 0x8f);
    return wrong ? 0 : need;
}

/* As much of a UTF-8 text as the line takes, as the content of a JSON string. Bytes used. */
static size_t add_quoted(struct line *line, const char *at, size_t len, size_t spare)
{
    size_t used = 0;
    while (used < len && line->len + ROOM + spare <= sizeof line->text) {
        size_t size = caller_utf8(at + used, len - used);
        unsigned char byte = (unsigned char)at[used];
        char text[ROOM] = { 0 };
        if (byte < 0x20)
            snprintf(text, sizeof text, "\\u%04x", byte);
        else if (byte == '"' || byte == '\\')
            snprintf(text, sizeof text, "\\%c", byte);
        else
            memcpy(text, at + used, size);
        add_text(line, text);
        used += size;
    }
    return used;
}

int caller_send_call(struct caller *caller, const struct caller_call *call)
{
    struct line line;
    size_t left = call->len, spare = 512; /* of the line for the rest of a call */
    const char *at = call->arguments;
    begin(&line, caller);
    add(&line, "\"op\":\"call\",\"number\":%d,\"line\":", caller->number);
    add(&line, call->line > 0 ? "%ld" : "null", call->line);
    add_text(&line, ",\"tool\":\"");
    add_quoted(&line, call->tool, strlen(call->tool), 0);
    struct line head = line;
    add_text(&line, "\",\"args_text\":\"");
    if (add_quoted(&line, at, left, spare) == left) {
        add_text(&line, "\"");
        return send(&line, caller);
    }
    while (left > 0) {
        begin(&line, caller);
        add(&line, "\"op\":\"part\",\"number\":%d,\"text\":\"", caller->number);
        size_t used = add_quoted(&line, at, left, 4);
        at += used;
        left -= used;
        add_text(&line, "\"");
        if (send(&line, caller) < 0)
            return -1;
    }
    add_text(&head, "\"");
    return send(&head, caller);
}

int caller_send_cancel(const struct caller *caller, int32_t number)
{
    struct line line;
    begin(&line, caller);
    add(&line, "\"op\":\"cancel\",\"number\":%d", number);
    return send(&line, caller);
}
