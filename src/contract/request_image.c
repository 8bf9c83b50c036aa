/* The image of a request, and the packages that it needs. Only the syntax: whether an image exists,
 * and which one has the packages, is the engine's matter. Runs in any process that reads requests;
 * pure. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/own.h"
#include "contract/request_int.h"

#define PACKAGE_BOUND "NAME, NAME==VERSION or NAME>=VERSION"

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

static bool is_in(const char *set, char c)
{
    return c && strchr(set, c);
}

bool request_image_is_name(struct str text)
{
    if (text.len == 0 || text.len > REQUEST_IMAGE_NAME_MAX || !is_in(lower, text.at[0]))
        return false;
    for (size_t i = 1; i < text.len; i++) {
        if (!is_in(lower, text.at[i]) && !is_in("._-", text.at[i]))
            return false;
    }
    return true;
}

bool request_image_is_digest(struct str text)
{
    static const char scheme[] = "sha256:";
    size_t skip = sizeof scheme - 1;
    if (text.len != skip + 64 || memcmp(text.at, scheme, skip) != 0)
        return false;
    for (size_t i = skip; i < text.len; i++) {
        if (!is_in("0123456789abcdef", text.at[i]))
            return false;
    }
    return true;
}

bool request_image_is_ref(struct str text)
{
    const char *at = memchr(text.at, '@', text.len);
    struct str name = { text.at, at ? (size_t)(at - text.at) : text.len };
    if (!at)
        return request_image_is_name(text) || request_image_is_digest(text);
    return request_image_is_name(name) &&
           request_image_is_digest((struct str){ at + 1, text.len - name.len - 1 });
}

int request_set_image(struct request *request, const char *text, struct err *err)
{
    size_t len = strcspn(text, "@"), digits = strcspn(text, ":");
    struct str name = { text, len };
    const char *pin = text[len] ? text + len + 1 : NULL;
    own_json value = json_string(text);
    if (!pin && digits < len) {
        if (!request_image_is_digest(name))
            return request_refuse("image", value, REQUEST_IMAGE_BOUND,
                                  "not a digest of 64 lower-case hexadecimal digits", err);
    } else if (!request_image_is_name(name)) {
        return request_refuse("image", value, REQUEST_IMAGE_BOUND, "not the name of an image", err);
    }
    if (pin && !request_image_is_digest(str_of(pin)))
        return request_refuse("image", value, "sha256: and 64 lower-case hexadecimal digits",
                              "not pinned by a sha256 digest", err);
    char *kept = buf_strdup(str_of(text));
    free(request->image_owned);
    kept[len] = 0;
    request->image_owned = kept;
    request->image = kept;
    request->image_digest = pin ? kept + len + 1 : NULL;
    return 0;
}

int request_take_image(struct request_intake *in, const json_t *value, struct err *err)
{
    if (!value && (!in->ceilings->image || in->out->session))
        return 0; /* a cell has its session's */
    if (value && request_check_text(value, "image", err) < 0)
        return -1;
    in->out->image_given = value != NULL;
    return request_set_image(in->out, value ? json_string_value(value) : in->ceilings->image, err);
}

/* --- packages --- */

int request_package_read(struct str text, struct request_package *out)
{
    struct request_package made = { .name = text };
    size_t at = 0;
    while (at < text.len && (is_in(letters, text.at[at]) || is_in("._-", text.at[at])))
        at++;
    made.name.len = at;
    if (at == 0 || at > REQUEST_PACKAGE_MAX || !is_in(letters, text.at[0]) ||
        !is_in(letters, text.at[at - 1]))
        return -1;
    if (at == text.len) {
        *out = made;
        return 0;
    }
    if (text.len - at < 3 || text.at[at + 1] != '=' || !is_in("=>", text.at[at]))
        return -1;
    made.least = text.at[at] == '>';
    made.version = (struct str){ text.at + at + 2, text.len - at - 2 };
    if (made.version.len > REQUEST_PACKAGE_MAX || !is_in(letters, made.version.at[0]))
        return -1;
    for (size_t i = 0; i < made.version.len; i++) {
        if (!is_in(letters, made.version.at[i]) && !is_in(".+!_-", made.version.at[i]))
            return -1;
    }
    *out = made;
    return 0;
}

int request_take_packages(struct request_intake *in, const json_t *value, struct err *err)
{
    if (!json_is_array(value))
        return request_refuse("packages", value, "an array of strings", "not an array", err);
    if (json_array_size(value) > REQUEST_PACKAGES_MAX)
        return request_refuse_size("packages", json_array_size(value), REQUEST_PACKAGES_MAX,
                                   "packages", err);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *one = json_array_get(value, i);
        struct request_package package;
        char field[32];
        snprintf(field, sizeof field, "packages[%zu]", i);
        if (request_check_text(one, field, err) < 0)
            return -1;
        if (request_package_read(json_str(one), &package) < 0)
            return request_refuse(field, one, PACKAGE_BOUND, "not the name of a package", err);
    }
    in->out->packages = json_array_size(value) > 0 ? value : NULL;
    return 0;
}
