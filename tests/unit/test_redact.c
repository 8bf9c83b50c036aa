/* Redaction: markers, JSON, patterns of the configuration and hostile texts. The corpus of keys and
 * of what looks like keys is in tests/redact. Every key here is made up and built from parts. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "store/redact/redact.h"

#define RANDOM20                                                                                   \
    "Zq3tP0aLm"                                                                                    \
    "Wx7RbYc2Ks9"
#define MODEL_KEY                                                                                  \
    "sk"                                                                                           \
    "-ant-api03-" RANDOM20 RANDOM20
#define GITHUB                                                                                     \
    "gh"                                                                                           \
    "p_" RANDOM20 "AbCdEf0123456789"

static const unsigned char key[REDACT_KEY_BYTES] = "0123456789abcdef0123456789abcde";

static struct redact *opened(const char *const *extra, const unsigned char *with)
{
    struct err err = ERR_INIT;
    struct redact *redact = redact_open(extra, with, &err);
    if (!redact)
        check_failed(__FILE__, __LINE__, "%s", err.text);
    return redact;
}

static char *redacted(const struct redact *redact, struct str text, size_t *out_count)
{
    own_buf out = BUF_INIT((size_t)1 << 30);
    *out_count = redact_text(redact, text, &out);
    if (*out_count && !redact_may(redact, text))
        check_failed(__FILE__, __LINE__, "redact_may denies what redact_text found");
    return buf_take(&out);
}

TEST(redact_replaces_a_key_by_a_marker_and_nothing_else)
{
    own_redact redact = opened(NULL, key);
    size_t count;
    own_str out = redacted(redact, STR("before " MODEL_KEY " after\n"), &count);
    CHECK_INT(count, 1);
    CHECK(strncmp(out, "before [redacted:model-key:", 27) == 0);
    CHECK_INT(strspn(out + 27, "0123456789abcdef"), 8);
    CHECK_TEXT(out + 35, "] after\n");
}

TEST(redact_gives_one_secret_one_marker_in_a_store_and_another_in_another)
{
    static const unsigned char other_key[REDACT_KEY_BYTES] = { 1 };
    own_redact redact = opened(NULL, key);
    own_redact other = opened(NULL, other_key);
    size_t count;
    own_str a = redacted(redact, STR("x=" GITHUB), &count);
    own_str b = redacted(redact, STR("x=" GITHUB), &count);
    own_str c = redacted(other, STR("x=" GITHUB), &count);
    own_str d = redacted(redact, STR("x=" GITHUB "A"), &count);
    CHECK_TEXT(a, b);
    CHECK(strcmp(a, c) != 0);
    CHECK(strcmp(a, d) != 0);
}

TEST(redact_leaves_a_text_without_keys_byte_for_byte)
{
    static const char bytes[] = "a\0b\xff\xfe sk- password token = tokenizer(x)\n";
    own_redact redact = opened(NULL, key);
    own_buf out = BUF_INIT(1000);
    CHECK_INT(redact_text(redact, (struct str){ bytes, sizeof bytes }, &out), 0);
    CHECK_INT(out.len, sizeof bytes);
    CHECK(memcmp(out.at, bytes, sizeof bytes) == 0);
    CHECK(!redact_may(redact, STR("print(sum(range(10)))\n")));
}

TEST(redact_closes_a_text_whose_markers_exceed_the_buffer)
{
    own_redact redact = opened(NULL, key);
    own_buf out = BUF_INIT(60);
    buf_add_text(&out, "kept ");
    CHECK_INT(redact_text(redact, STR("x " GITHUB " and " GITHUB), &out), 1);
    CHECK(strncmp(out.at, "kept [redacted:limit:", 21) == 0);
    CHECK(!strstr(out.at, RANDOM20));
}

/* Seconds of processor time for this text, the best of some. */
static double seconds_for(const struct redact *redact, struct str text)
{
    double best = 1e9;
    for (int round = 0; round < 2; round++) {
        struct timespec from, until;
        own_buf out = BUF_INIT((size_t)1 << 30);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        redact_text(redact, text, &out);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &until);
        double took = (double)(until.tv_sec - from.tv_sec) +
                      (double)(until.tv_nsec - from.tv_nsec) / 1e9;
        best = took < best ? took : best;
    }
    return best;
}

#define B64_LINE "qWIuIk2CSfUfi2fbDyv4vwtTQWF18Gw5KD8g7hTvjxQeoWgRxUaaWMJshVVUqfa0\n"
#define BEGIN_LINE                                                                                 \
    "-----BEGIN "                                                                                  \
    "PRIVATE KEY-----\n"

static const char *const hostile[] = {
    "sk-", "sk-a", "-sk-", "sk-\n", "sk_live_", "ghp_", "github_pat_", "eyJ", "eyJ.", "eyJ-",
    "-eyJa", "eyJaaaaaaaaaaa.", "SG.", "SG.aaaaaaaaaaaaaaaa", "xoxb-", "hvs.", ":AA",
    "00000000:AA", "AKIA", "AIza", "-----BEGIN", "-----BEGIN ", BEGIN_LINE, "-----BEGIN A B C D ",
    "-----END " "PRIVATE KEY-----", BEGIN_LINE "-----END", BEGIN_LINE B64_LINE, B64_LINE,
    BEGIN_LINE "a\n", "-----", "authorization:", "authorization: a", "authorization",
    "Authorization: Digest a=", "bearer ", "bearer a", "://", "://:", "://a:", "://a:b", "://@",
    "password", "password=", "password:", "password \t", "passwordpasswordpwd=", "password='",
    "token=", "token:a", "token=\"", "secret_", "secret = \\\\\\", "_key", "_key=", "a_KEY=b",
    "A_KEY=", "api_key: str =", "--token ", "pwd", "?sig=", "[redacted:", "[redacted:a:",
    "[redacted:model-key:1a2b3c4d]", "\\n", "%3D", "\033[0m", "\033[0;0;0;0;0;0;0m", "a", " ",
    "\n", "\"", "'", "\\", "=", "password=hunter2\n", "password=hunter2&", MODEL_KEY "\n",
    GITHUB " ", "\xc3\xa9", "\xff", "key-", "npm_", "https://", "Proc-Type: 4\n",
    "\n... 1 bytes left out ...\n", "a1\n... 1 bytes left out ...\n", "1 bytes left out ...\n",
    "9", "left out ...\na",
};

static struct str repeated(const char *unit, size_t bytes, struct buf *out)
{
    size_t len = strlen(unit);
    while (out->len + len <= bytes)
        buf_add(out, unit, len);
    return buf_str(out);
}

/* How many times as long a text takes that is twice as long: the least of some looks, because other
 * processes disturb them. */
static double growth(const struct redact *redact, const char *unit, size_t size)
{
    double least = 1e9;
    own_buf one = BUF_INIT(4 * size);
    own_buf two = BUF_INIT(4 * size);
    struct str small = repeated(unit, size, &one), large = repeated(unit, 2 * size, &two);
    for (int look = 0; look < 5 && least > 2.5; look++) {
        double n = seconds_for(redact, small), n2 = seconds_for(redact, large);
        least = n2 / n < least ? n2 / n : least;
        if (getenv("CUPEL_TRACE"))
            printf("# %6.1f ns/byte, ratio %.2f: \"%.30s\"\n", n2 / (double)large.len * 1e9, n2 / n,
                   unit);
    }
    return least;
}

TEST(redact_is_linear_in_time_on_hostile_texts)
{
    own_redact redact = opened(NULL, key);
    for (size_t i = 0; i < array_len(hostile); i++) {
        double grew = growth(redact, hostile[i], (size_t)128 << 10);
        if (grew > 3)
            check_failed(__FILE__, __LINE__, "\"%s\" twice as long took %.1f times as long",
                         hostile[i], grew);
    }
}

/* Patterns of the configuration have a budget of steps, so they are linear too, or give up. */
TEST(redact_is_linear_in_time_with_slow_patterns)
{
    static const char *const slow[] = { "(a+)+$", "a.*b.*a$", "(?=(a+))a*b\\1", "(.*)*x" };
    for (size_t i = 0; i < array_len(slow); i++) {
        const char *const extra[] = { slow[i], NULL };
        own_redact redact = opened(extra, key);
        double grew = growth(redact, "aaaaaaaab", (size_t)256 << 10);
        if (grew > 3)
            check_failed(__FILE__, __LINE__, "pattern %s: %.1f times as long", slow[i], grew);
    }
}

TEST(redact_takes_the_largest_texts)
{
    static const char *const units[] = { "sk-", BEGIN_LINE, "\xff" };
    own_redact redact = opened(NULL, key);
    for (size_t i = 0; i < array_len(units); i++) {
        own_buf text = BUF_INIT((size_t)16 << 20);
        own_buf out = BUF_INIT((size_t)64 << 20);
        repeated(units[i], (size_t)16 << 20, &text);
        buf_add_text(&text, "\n");
        text.max += 100;
        buf_add_text(&text, "\n" GITHUB);
        CHECK_INT(redact_text(redact, buf_str(&text), &out), 1);
        CHECK(!memmem(out.at, out.len, RANDOM20, strlen(RANDOM20)));
    }
}
