/* A file of 1 GiB into a session, by one PUT. The server must pass it on, not hold it: its resident
 * memory is looked at all the while. The session then tells size and digest of what it got. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "load.h"

#define PIECE (256u << 10)
#define WHOLE ((int64_t)1 << 30)
#define WHOLE_QUICK ((int64_t)64 << 20)
#define KIB 1024.0
#define ROOM_KIB (4.0 * KIB * KIB) /* what the session takes of the host, and some more */
#define LOOK                                                                                       \
    "import hashlib, os\n"                                                                         \
    "print(os.path.getsize('big.bin'), hashlib.sha256(open('big.bin', 'rb').read()).hexdigest())"

static int open_session(const struct load *load, struct load_line *line, int64_t size, char *out,
                        size_t room, struct err *err)
{
    own_json body = json_pack("{s:{s:I, s:I, s:i}}", "limits", "disk_bytes",
                              (json_int_t)(size + (size >> 2)), "memory_bytes",
                              (json_int_t)(3 * size + (512 << 20)), "timeout_s", 300);
    own_json said = load_http_ask(load, line, "POST", "/v1/sessions", body, 201, err);
    if (!said)
        return -1;
    snprintf(out, room, "/v1/sessions/%s", json_get_str(said, "session").at);
    return 0;
}

/* Each piece is another; *most becomes the largest resident memory that was seen. */
static int send_file(const struct load *load, struct load_line *line, int64_t size, char *digest,
                     double *most, struct err *err)
{
    char *piece = buf_alloc(PIECE);
    struct hash hash;
    int rc = 0;
    hash_start(&hash);
    memset(piece, 'x', PIECE);
    for (int64_t sent = 0; rc == 0 && sent < size; sent += PIECE) {
        memcpy(piece, &sent, sizeof sent);
        hash_add(&hash, piece, PIECE);
        rc = load_line_send(line, piece, PIECE, err);
        double now = load_rss_kib(load);
        *most = now > *most ? now : *most;
    }
    hash_end_hex(&hash, digest);
    free(piece);
    return rc;
}

static int check_file(const struct load *load, struct load_line *line, const char *session,
                      int64_t size, const char *digest, struct err *err)
{
    char path[128], right[128];
    own_json cell = json_pack("{s:s}", "code", LOOK);
    snprintf(path, sizeof path, "%s/run", session);
    snprintf(right, sizeof right, "%lld %s\n", (long long)size, digest);
    own_json said = load_http_ask(load, line, "POST", path, cell, 200, err);
    if (!said)
        return -1;
    struct str got = json_get_str(said, "stdout");
    if (str_is(got, right))
        return 0;
    return err_set(err, ERR_BUG, "the session has '%.100s', not '%s'", got.at, right);
}

static int put_file(const struct load *load, struct load_line *line, const char *session,
                    int64_t size, double *most, struct err *err)
{
    char path[128], digest[HASH_HEX_ROOM];
    own_buf head = BUF_INIT(4096);
    snprintf(path, sizeof path, "%s/files/big.bin", session);
    if (load_http_head(load, "PUT", path, size, NULL, &head, err) < 0 ||
        load_line_send(line, head.at, head.len, err) < 0 ||
        send_file(load, line, size, digest, most, err) < 0 || load_http_answer(line, err) < 0)
        return -1;
    if (line->status / 100 != 2)
        return load_http_explain(line, err);
    double now = load_rss_kib(load);
    *most = now > *most ? now : *most;
    return check_file(load, line, session, size, digest, err);
}

int load_upload(struct load *load, struct bench_figure *figure, struct err *err)
{
    int64_t size = load->bench.options.quick ? WHOLE_QUICK : WHOLE;
    own_load_line line = LOAD_LINE_INIT;
    own_samples grown = { 0 };
    char session[96];
    if (size == WHOLE && bench_available_kib() < ROOM_KIB) {
        snprintf(figure->skipped, sizeof figure->skipped, "less than 4 GiB of memory are free");
        return 0;
    }
    if (load_line_open(load, true, &line, err) < 0 ||
        open_session(load, &line, size, session, sizeof session, err) < 0)
        return -1;
    double before = load_rss_kib(load), most = before;
    int rc = put_file(load, &line, session, size, &most, err);
    own_json said = rc == 0 ? load_http_ask(load, &line, "DELETE", session, NULL, 200, err) : NULL;
    if (!said)
        return -1;
    bench_sample(&grown, (most - before) / KIB);
    figure->ours = bench_summarize(&grown);
    figure->value = (most - before) / KIB;
    return 0;
}
