/* Layouts of the types whose magnitudes are a code book's (IQ2, IQ3).
 *
 * Signs are stored apart from magnitudes and are chosen first, so the fit has numbers that are not
 * negative. Some types leave out every eighth sign, as the number of minuses is even: where it is
 * odd, the sign changes whose error costs least, and the fit has one negative number there. */
#include "quantise/super_fit.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "quantise/book_search.h"

enum { SIGNS = 8, N_SIGNS = SUPER_BLOCK / SIGNS, MOST_NUMBERS = SUPER_BLOCK / 4 };

typedef struct book_form {
    tensor_type type;
    int32_t sub_n, group; /* numbers of a sub-block, of an entry */
    bool even;            /* so is the number of minuses of eight signs */
} book_form;

typedef struct book_block {
    super_block fit;
    uint8_t minus[N_SIGNS];        /* bits, the first number's lowest */
    uint32_t number[MOST_NUMBERS]; /* entries in the book */
} book_block;

/* Returns bits of minuses for 8 numbers, and makes these fit magnitudes. */
static uint8_t take_signs(float *magnitudes, const float *x, const float *w, bool even)
{
    uint32_t minus = 0, n_minus = 0;
    int32_t cheapest = 0;
    for (int32_t i = 0; i < SIGNS; i++) {
        magnitudes[i] = fabsf(x[i]);
        minus |= (uint32_t)(x[i] < 0) << i;
        n_minus += x[i] < 0;
        if (w[i] * magnitudes[i] < w[cheapest] * magnitudes[cheapest])
            cheapest = i;
    }
    if (even && n_minus % 2 == 1) {
        minus ^= 1u << cheapest;
        magnitudes[cheapest] *= -1;
    }
    return (uint8_t)minus;
}

static void fit(book_block *b, const book_form *f, const float *x, const float *w)
{
    const book_search *book = book_search_of(f->type);
    const super_form form = {.sub_n = f->sub_n,
                             .levels = {.low = 1, .high = book_search_most(book), .book = book},
                             .most_scale = 15,
                             .odd = true};
    float magnitudes[SUPER_BLOCK];
    for (int32_t g = 0; g < N_SIGNS; g++)
        b->minus[g] = take_signs(magnitudes + g * SIGNS, x + g * SIGNS, w + g * SIGNS, f->even);
    super_fit(&form, &b->fit, magnitudes, w);
    for (int32_t g = 0; g < SUPER_BLOCK / f->group; g++)
        b->number[g] = book_search_number(book, b->fit.q + g * f->group);
}

/* Two scales a byte. */
static void put_scales(uint8_t *out, const book_block *b, int32_t n)
{
    for (int32_t s = 0; s < n; s += 2)
        out[s / 2] = (uint8_t)(b->fit.scale[s] | b->fit.scale[s + 1] << 4);
}

/* Four times seven signs and a scale: what 32 numbers have. */
static void put_signs_and_scale(uint8_t *out, const book_block *b, int32_t s)
{
    uint32_t word = (uint32_t)b->fit.scale[s] << 28;
    for (int32_t g = 0; g < 4; g++)
        word |= (uint32_t)(b->minus[4 * s + g] & 127) << 7 * g;
    for (int32_t i = 0; i < 4; i++)
        out[i] = (uint8_t)(word >> 8 * i);
}

void encode_iq2_xxs(uint8_t *out, const float *x, const float *w)
{
    book_block b;
    fit(&b, &(book_form){TYPE_IQ2_XXS, 32, 8, true}, x, w);
    block_put_f16(out, b.fit.d);
    for (int s = 0; s < 8; s++) {
        for (int g = 0; g < 4; g++)
            out[2 + 8 * s + g] = (uint8_t)b.number[4 * s + g];
        put_signs_and_scale(out + 2 + 8 * s + 4, &b, s);
    }
}

void encode_iq2_xs(uint8_t *out, const float *x, const float *w)
{
    book_block b;
    fit(&b, &(book_form){TYPE_IQ2_XS, 16, 8, true}, x, w);
    block_put_f16(out, b.fit.d);
    for (int g = 0; g < 32; g++) {
        const uint32_t code = b.number[g] | (uint32_t)(b.minus[g] & 127) << 9;
        out[2 + 2 * g] = (uint8_t)code;
        out[3 + 2 * g] = (uint8_t)(code >> 8);
    }
    put_scales(out + 66, &b, 16);
}

void encode_iq2_s(uint8_t *out, const float *x, const float *w)
{
    book_block b;
    fit(&b, &(book_form){TYPE_IQ2_S, 16, 8, false}, x, w);
    memset(out, 0, 82);
    block_put_f16(out, b.fit.d);
    for (int g = 0; g < 32; g++) {
        out[2 + g] = (uint8_t)b.number[g];
        out[66 + g / 4] |= (uint8_t)((b.number[g] >> 8) << g % 4 * 2);
    }
    memcpy(out + 34, b.minus, N_SIGNS);
    put_scales(out + 74, &b, 16);
}

void encode_iq3_xxs(uint8_t *out, const float *x, const float *w)
{
    book_block b;
    fit(&b, &(book_form){TYPE_IQ3_XXS, 32, 4, true}, x, w);
    block_put_f16(out, b.fit.d);
    for (int g = 0; g < 64; g++)
        out[2 + g] = (uint8_t)b.number[g];
    for (int s = 0; s < 8; s++)
        put_signs_and_scale(out + 66 + 4 * s, &b, s);
}

void encode_iq3_s(uint8_t *out, const float *x, const float *w)
{
    book_block b;
    fit(&b, &(book_form){TYPE_IQ3_S, 32, 4, false}, x, w);
    memset(out, 0, 110);
    block_put_f16(out, b.fit.d);
    for (int g = 0; g < 64; g++) {
        out[2 + g] = (uint8_t)b.number[g];
        out[66 + g / 8] |= (uint8_t)((b.number[g] >> 8) << g % 8);
    }
    memcpy(out + 74, b.minus, N_SIGNS);
    put_scales(out + 106, &b, 8);
}
