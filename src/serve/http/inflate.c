/* A gzip body, decoded as it comes. Runs in the serve process. The caller's caps bound the output;
 * here the memory is that of one decoder. */
#include "serve/http/inflate.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"

#define LIBRARY "libz.so.1"
#define GZIP_ONLY (16 + MAX_WBITS)

static struct {
    __typeof__(&inflateInit2_) init;
    __typeof__(&inflate) go;
    __typeof__(&inflateEnd) end;
} zlib;

struct inflate {
    z_stream stream;
    bool ended, bad;
};

int inflate_load(struct err *err)
{
    if (zlib.go)
        return 0;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void *found[3] = { NULL };
    if (library) {
        found[0] = dlsym(library, "inflateInit2_");
        found[1] = dlsym(library, "inflate");
        found[2] = dlsym(library, "inflateEnd");
    }
    if (!found[0] || !found[1] || !found[2]) {
        err_set(err, ERR_HOST, "load '" LIBRARY "', which reads gzip bodies");
        err_hint(err, "install zlib (Debian: apt-get install zlib1g)");
        return -1;
    }
    memcpy(&zlib.init, &found[0], sizeof found[0]);
    memcpy(&zlib.go, &found[1], sizeof found[1]);
    memcpy(&zlib.end, &found[2], sizeof found[2]);
    return 0;
}

struct inflate *inflate_new(void)
{
    struct inflate *inflate = buf_alloc_zero(1, sizeof *inflate);
    inflate->bad = zlib.init(&inflate->stream, GZIP_ONLY, ZLIB_VERSION,
                             (int)sizeof inflate->stream) != Z_OK;
    return inflate;
}

void inflate_free(struct inflate *inflate)
{
    if (!inflate)
        return;
    zlib.end(&inflate->stream);
    free(inflate);
}

void inflate_feed(struct inflate *inflate, struct str bytes)
{
    inflate->stream.next_in = (Bytef *)(uintptr_t)bytes.at;
    inflate->stream.avail_in = (uInt)bytes.len;
}

ssize_t inflate_next(struct inflate *inflate, char *out, size_t room)
{
    z_stream *stream = &inflate->stream;
    if (inflate->bad || (inflate->ended && stream->avail_in > 0))
        return -1;
    if (inflate->ended)
        return 0;
    stream->next_out = (Bytef *)out;
    stream->avail_out = (uInt)room;
    int rc = zlib.go(stream, Z_NO_FLUSH);
    inflate->ended = rc == Z_STREAM_END;
    inflate->bad = rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR;
    size_t made = room - stream->avail_out;
    if (made > 0)
        return (ssize_t)made;
    return inflate->bad || (inflate->ended && stream->avail_in > 0) ? -1 : 0;
}

size_t inflate_left(const struct inflate *inflate)
{
    return inflate->stream.avail_in;
}

bool inflate_is_whole(const struct inflate *inflate)
{
    return inflate->ended && inflate->stream.avail_in == 0 && !inflate->bad;
}
