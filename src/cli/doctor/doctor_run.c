/* The doctor's last rows: a real run, which proves more than all checks before, and a row for each
 * stored image. Both need an engine, and as root, opening it drops the rights that other checks
 * need. An image's languages are found by a run in a box, and remembered. Runs in the cli
 * process. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/doctor/doctor.h"
#include "engine/engine.h"

#define IMAGES_MAX 64

static void check_run(struct engine *engine, struct err *err, struct cli_doctor_report *out)
{
    struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(1) << 40 };
    own_request request = REQUEST_INIT;
    own_result result;
    result_init(&result);
    int64_t before = clock_now_ns();
    bool ran = engine && request_parse(STR("{\"code\":\"pass\"}"), &ceilings, &request, err) == 0 &&
               engine_run(engine, &request, NULL, NULL, /* interrupt_fd= */ -1, &result, err) == 0;
    double took = clock_ms_between(before, clock_now_ns());
    if (!ran) {
        cli_doctor_say(out, CLI_DOCTOR_MISSING, "%.240s", err->text);
        cli_doctor_fix(out, "%s", err->hint);
    } else if (result.status != RESULT_OK) {
        cli_doctor_say(out, CLI_DOCTOR_MISSING, "'pass' ended as %s: %.150s",
                       result_status_name(result.status),
                       result.error.message ? result.error.message : "");
    } else {
        cli_doctor_say(out, CLI_DOCTOR_OK, "'pass' in profile baseline took %.0f ms", took);
    }
}

/* "python 3.11.2 from a zygote, javascript 20.20.2, bash 5.2.15". */
static void add_languages(const json_t *image, struct buf *out)
{
    size_t i;
    json_t *one;
    struct str how = json_get_str(image, "python_start"), why = json_get_str(image, "python_why");
    json_array_foreach (json_object_get(image, "languages"), i, one) {
        char name[32], version[32];
        str_plain(name, sizeof name, json_get_str(one, "name"));
        str_plain(version, sizeof version, json_get_str(one, "version"));
        buf_printf(out, "%s%s%s%s", i > 0 ? ", " : "", name, version[0] ? " " : "", version);
        if (strcmp(name, "python") == 0 && str_is(how, "zygote"))
            buf_add_text(out, " from a zygote");
        else if (strcmp(name, "python") == 0)
            buf_printf(out, " by exec (%.*s)", (int)why.len, why.at);
    }
    if (str_is(how, "none"))
        buf_printf(out, "%sno Python: %.*s", out->len > 0 ? "; " : "", (int)why.len, why.at);
}

static void look_at_image(struct engine *engine, const char *name, struct cli_doctor_report *out)
{
    struct err err = ERR_INIT;
    own_json image = NULL;
    own_buf text = BUF_INIT(sizeof out->detail - 1);
    if (engine_image(engine, name, /* recompute= */ false, &image, &err) < 0) {
        cli_doctor_say(out, CLI_DOCTOR_WEAK, "%.240s", err.text);
        cli_doctor_fix(out, "%s", err.hint);
        return;
    }
    add_languages(image, &text);
    bool lacks = str_is(json_get_str(image, "python_start"), "none");
    cli_doctor_say(out, lacks ? CLI_DOCTOR_WEAK : CLI_DOCTOR_OK, "%s", text.at ? text.at : "");
}

bool cli_doctor_run(void (*tell)(void *user, const struct cli_doctor_check *check,
                                 const struct cli_doctor_report *report),
                    void *user)
{
    struct err err = ERR_INIT;
    struct engine *engine = engine_open(&(struct engine_options){ 0 }, &err);
    struct cli_doctor_check check = { .name = "a run", .required = true };
    struct cli_doctor_report report = { .verdict = CLI_DOCTOR_MISSING };
    check_run(engine, &err, &report);
    tell(user, &check, &report);
    bool fine = report.verdict != CLI_DOCTOR_MISSING;
    own_json names = engine && fine ? engine_image_names(engine) : NULL;
    for (size_t i = 1; i < json_array_size(names) && i < IMAGES_MAX; i++) {
        char row[96];
        const char *name = json_string_value(json_array_get(names, i));
        snprintf(row, sizeof row, "image %.80s", name);
        check = (struct cli_doctor_check){ .name = row };
        report = (struct cli_doctor_report){ .verdict = CLI_DOCTOR_WEAK };
        look_at_image(engine, name, &report);
        tell(user, &check, &report);
    }
    engine_close(engine);
    return fine;
}
