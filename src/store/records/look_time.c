/* Times that people write: an age, a date, or seconds since 1970. Pure. Any process. */
#include <ctype.h>
#include <time.h>

#include "store/records/look_int.h"

#define TIME_MAX 40           /* bytes */
#define SECONDS_MAX 10000000000 /* the year 2286; more are milliseconds by mistake */

struct reader {
    const char *at;
    bool bad;
};

/* A number of exactly that many digits, within bounds. */
static int take_digits(struct reader *in, int digits, int least, int most)
{
    int value = 0;
    for (int i = 0; i < digits; i++, in->at++) {
        if (!isdigit((unsigned char)*in->at)) {
            in->bad = true;
            return 0;
        }
        value = value * 10 + (*in->at - '0');
    }
    if (value < least || value > most)
        in->bad = true;
    return value;
}

static void take_char(struct reader *in, char c)
{
    if (*in->at == c)
        in->at++;
    else
        in->bad = true;
}

/* ".25" as milliseconds; 0 where there is none. */
static int take_fraction(struct reader *in)
{
    int ms = 0, weight = 100;
    if (*in->at != '.' || !isdigit((unsigned char)in->at[1]))
        return 0;
    for (in->at++; isdigit((unsigned char)*in->at); in->at++, weight /= 10)
        ms += (*in->at - '0') * weight;
    return ms;
}

/* "Z", "+01:00" or nothing, which is UTC too. Minutes east. */
static int take_zone(struct reader *in)
{
    if (*in->at == 'Z') {
        in->at++;
        return 0;
    }
    if (*in->at != '+' && *in->at != '-')
        return 0;
    int sign = *in->at++ == '-' ? -1 : 1;
    int hours = take_digits(in, 2, 0, 23);
    take_char(in, ':');
    return sign * (hours * 60 + take_digits(in, 2, 0, 59));
}

/* 2026-11-01, 2026-11-01T12:30, 2026-11-01T12:30:05.250+01:00 */
static bool read_date(const char *text, int64_t *out_ms)
{
    struct reader in = { .at = text };
    struct tm date = { 0 };
    int ms = 0, zone = 0;
    date.tm_year = take_digits(&in, 4, 1970, 9999) - 1900;
    take_char(&in, '-');
    date.tm_mon = take_digits(&in, 2, 1, 12) - 1;
    take_char(&in, '-');
    date.tm_mday = take_digits(&in, 2, 1, 31);
    int day = date.tm_mday;
    if (!in.bad && *in.at) {
        if (*in.at == ' ')
            in.at++;
        else
            take_char(&in, 'T');
        date.tm_hour = take_digits(&in, 2, 0, 23);
        take_char(&in, ':');
        date.tm_min = take_digits(&in, 2, 0, 59);
        if (*in.at == ':') {
            in.at++;
            date.tm_sec = take_digits(&in, 2, 0, 60);
            ms = take_fraction(&in);
        }
        zone = take_zone(&in);
    }
    if (in.bad || *in.at)
        return false;
    int64_t seconds = timegm(&date);
    if (date.tm_mday != day) /* the 31st of a shorter month, or a leap second at midnight */
        return false;
    *out_ms = (seconds - (int64_t)zone * 60) * 1000 + ms;
    return true;
}

/* 90s, 15m, 2h, 7d, 4w: so long ago. Seconds since 1970, with a fraction or without. */
static bool read_number(const char *text, int64_t now_ms, int64_t *out_ms)
{
    static const struct {
        char name;
        int64_t seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
    struct reader in = { .at = text };
    int64_t value = 0;
    for (; isdigit((unsigned char)*in.at) && value <= SECONDS_MAX; in.at++)
        value = value * 10 + (*in.at - '0');
    if (in.at == text || value > SECONDS_MAX)
        return false;
    for (size_t i = 0; i < array_len(units); i++) {
        if (in.at[0] != units[i].name || in.at[1])
            continue;
        if (value > SECONDS_MAX / units[i].seconds)
            return false;
        *out_ms = now_ms - value * units[i].seconds * 1000;
        *out_ms = *out_ms > 0 ? *out_ms : 1;
        return true;
    }
    *out_ms = value * 1000 + take_fraction(&in);
    return !*in.at;
}

int look_time(const char *name, const char *text, int64_t now_ms, int64_t *out_ms, struct err *err)
{
    int64_t ms = 0;
    if (strlen(text) <= TIME_MAX && (read_number(text, now_ms, &ms) || read_date(text, &ms))) {
        *out_ms = ms > 0 ? ms : 1; /* 0 is no bound */
        return 0;
    }
    return err_input(err, name, NULL,
                     "2h, 7d, 2026-11-01, 2026-11-01T12:00:00Z, or seconds since 1970",
                     "'%.*s' is no time", (int)str_cut_utf8(str_of(text), 40), text);
}
