/* Arenas: alignment, zeros, marks; and what a plan forgot gets separate memory and is
 * reported. */
#include "base/arena.h"
#include "support/scene.h"

TEST(takes_from_the_front)
{
    for (int huge = 0; huge < 2; huge++) {
        arena a;
        MUST(arena_init, &a, 10000, huge);
        uint8_t *one = arena_take(&a, 1), *two = arena_take(&a, 100);
        assert_ptr_equal(one, a.base);
        assert_int_equal(two - one, ARENA_ALIGN);
        assert_int_equal((uintptr_t)one % (huge ? 2u << 20 : 4096), 0);
        for (int i = 0; i < 100; i++)
            assert_int_equal(two[i], 0);
        size_t mark = arena_mark(&a);
        uint8_t *three = arena_take(&a, 4000);
        memset(three, 7, 4000);
        arena_rewind(&a, mark);
        assert_ptr_equal(arena_take(&a, 4000), three);
        MUST(arena_check, &a);
        arena_free(&a);
        assert_null(a.base);
    }
}

TEST(filled_to_the_last_byte)
{
    arena a;
    MUST(arena_init, &a, 8192, false);
    memset(arena_take(&a, 8192), 1, 8192);
    MUST(arena_check, &a);
    assert_non_null(arena_take(&a, 0));
    MUST(arena_check, &a);
    arena_free(&a);
}

TEST(reports_what_was_forgotten)
{
    arena a;
    MUST(arena_init, &a, 4096, false);
    uint8_t *in = arena_take(&a, 4000), *beyond = arena_take(&a, 5000000), *more;
    memset(in, 1, 4000);
    for (int i = 0; i < 5000000; i++)
        assert_int_equal(beyond[i], 0);
    memset(beyond, 2, 5000000);
    more = arena_take(&a, 100);
    memset(more, 3, 100);
    assert_int_equal((uintptr_t)beyond % ARENA_ALIGN, 0);
    assert_int_equal(in[3999], 1);
    assert_int_equal(beyond[4999999], 2);
    REFUSED(DREY_ERR_INTERNAL, "5000128 bytes short", arena_check, &a);
    arena_free(&a);
    MUST(arena_check, &a);
    /* An arena that was never sized: everything is forgotten. */
    assert_non_null(arena_take(&a, 1));
    assert_int_equal(arena_check(&a, NULL), DREY_ERR_INTERNAL);
    arena_free(&a);
}
