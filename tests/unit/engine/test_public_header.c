/* The public structures' sizes, which stay for as long as the soname does: a program that was
 * compiled against an older header of the same soname brings structures of these sizes.
 *
 * When this fails: take a new field's bytes out of `reserved`. Where they do not fit, or a field
 * has to go, raise the minor version (CMakeLists.txt, which sets the soname) and write the new
 * sizes and the new soname here. */

#include "drey/reply.h"
#include "drey/research.h"
#include "drey/tune.h"
#include "support/test.h"

static const char soname[] = "0.2.";

#define STRUCTURE(name, n_bytes)                                                                   \
    {                                                                                              \
#name, n_bytes, sizeof(name), offsetof(name, reserved) + sizeof(((name *)NULL)->reserved)  \
    }

TEST(sizes_stay)
{
    static const struct {
        const char *name;
        size_t n_bytes, now, reserved_end;
    } structures[] = {
        STRUCTURE(drey_model_info, 120),
        STRUCTURE(drey_engine_options, 320),
        STRUCTURE(drey_research, 104),
        STRUCTURE(drey_speeds, 64),
        {"drey_plan", 960, sizeof(drey_plan), sizeof(drey_plan)}, /* nothing is reserved any more */
        STRUCTURE(drey_sampling, 56),
        STRUCTURE(drey_generate_options, 176),
        STRUCTURE(drey_statistics, 336),
        STRUCTURE(drey_prepare_options, 120),
        STRUCTURE(drey_prepare_report, 48),
        STRUCTURE(drey_inspector, 64),
        STRUCTURE(drey_speculation, 1424),
        STRUCTURE(drey_trace_visitor, 56),
        STRUCTURE(drey_event, 40),
        STRUCTURE(drey_profile, 1088),
        STRUCTURE(drey_exits, 1272),
        STRUCTURE(drey_saved_session, 152),
        STRUCTURE(drey_prefix_options, 56),
        STRUCTURE(drey_prefixes, 104),
        STRUCTURE(drey_counts, 160),
        STRUCTURE(drey_unit_shares, 264),
        STRUCTURE(drey_unit, 712),
        STRUCTURE(drey_static_trees, 1840),
        STRUCTURE(drey_drafter_info, 64),
        STRUCTURE(drey_penalties, 80),
        STRUCTURE(drey_fim, 56),
        STRUCTURE(drey_chat_request, 128),
        STRUCTURE(drey_reply_options, 64),
        {"drey_reply_form", 2104, sizeof(drey_reply_form), sizeof(drey_reply_form)},
        {"drey_reply_reader", 2504, sizeof(drey_reply_reader), sizeof(drey_reply_reader)},
    };
    if (strncmp(drey_version(), soname, strlen(soname)) != 0)
        fail_msg("version %s is not of the soname that these sizes belong to", drey_version());
    for (size_t i = 0; i < sizeof structures / sizeof *structures; i++) {
        if (structures[i].now != structures[i].n_bytes)
            fail_msg("%s has %zu bytes instead of %zu: see the head of this file",
                     structures[i].name, structures[i].now, structures[i].n_bytes);
        if (structures[i].reserved_end != structures[i].now)
            fail_msg("%s has fields after its reserved ones", structures[i].name);
    }
    assert_int_equal(sizeof(drey_error), 508);
}

TEST(options_begin_with_nothing_reserved)
{
    static const uint64_t zero[16] = {0};
    drey_engine_options engine;
    drey_generate_options generate;
    drey_prepare_options prepare;
    memset(&engine, 1, sizeof engine);
    memset(&generate, 1, sizeof generate);
    memset(&prepare, 1, sizeof prepare);
    drey_engine_options_init(&engine);
    drey_generate_options_init(&generate);
    drey_prepare_options_init(&prepare);
    assert_null(engine.research);
    assert_memory_equal(engine.reserved, zero, sizeof engine.reserved);
    assert_memory_equal(generate.reserved, zero, sizeof generate.reserved);
    assert_memory_equal(generate.sampling.reserved, zero, sizeof generate.sampling.reserved);
    assert_memory_equal(prepare.reserved, zero, sizeof prepare.reserved);
}
