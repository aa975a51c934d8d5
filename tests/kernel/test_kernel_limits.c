/* Tests of the functions that measure the machine's limits: read has one result on every tier and
 * in every way of reading, a peak's operations are as many as its rounds. */

#include "kernel/kernel_test.h"

TEST(test_read)
{
    static const int32_t streams[] = {1, 2, 4}, aheads[] = {0, 8, 2048};
    static const int64_t sizes[] = {0, 1, 7, 15, 16, 33, 127, 128, 129, 1000, 4099};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        guarded g = guard_alloc((size_t)sizes[i] * sizeof(uint64_t));
        uint64_t *words = g.data, sum = 0, word = 0x9e3779b97f4a7c15u;
        for (int64_t j = 0; j < sizes[i]; j++) {
            word = word * 6364136223846793005u + 1442695040888963407u;
            words[j] = word;
            sum += word;
        }
        FOR_EACH_TEST_TIER(t)
        for (int s = 0; s < 3; s++)
            for (int a = 0; a < 3; a++)
                if (t->read(words, sizes[i], streams[s], aheads[a]) != sum)
                    fail_msg("read on %s: %d words, %d streams, %d ahead", t->tier, (int)sizes[i],
                             (int)streams[s], (int)aheads[a]);
        guard_free(&g);
    }
}

TEST(test_peaks)
{
    FOR_EACH_TEST_TIER(t)
    {
        assert_int_equal(t->int8_peak(0), 0);
        assert_int_equal(t->float_peak(0), 0);
        assert_true(t->int8_peak(1) >= 2 && t->float_peak(1) >= 2);
        assert_int_equal(t->int8_peak(100), 100 * t->int8_peak(1));
        assert_int_equal(t->float_peak(100), 100 * t->float_peak(1));
        assert_true(test_tiles_at_rest());
    }
}
