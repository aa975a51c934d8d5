/* AMX's tiles in plain C: see the header. */
#include "kernel/emulated/amx_tile_emulated.h"

#include <stdatomic.h>

#include "support/test.h"
enum { N_TILES = 8, MAX_ROWS = 16, MAX_ROW_BYTES = 64 };

static _Thread_local struct {
    bool configured; /* TILES_CONFIGURED */
    tile_config config;
    _Alignas(MAX_ROW_BYTES) uint8_t tile[N_TILES][MAX_ROWS][MAX_ROW_BYTES];
} state;

static atomic_uint_fast64_t n_products, n_loads, n_stores;

static void fault_unless(bool good, const char *what)
{
    if (!good)
        fail_msg("AMX fault: %s", what);
}

/* #UD of every instruction that names a tile. */
static void tile_check(int tile)
{
    fault_unless(state.configured, "tiles are not configured");
    fault_unless(tile >= 0 && tile < N_TILES, "no such tile");
    fault_unless(state.config.rows[tile] > 0, "a tile without rows");
}

void emulated_ldtilecfg(const tile_config *config)
{
    fault_unless(config->palette == 1, "palette (0 would release the tiles)");
    for (int i = 0; i < 14; i++)
        fault_unless(config->reserved[i] == 0, "reserved bytes of the configuration");
    fault_unless(config->start_row == 0, "start_row is for restarts after a fault");
    for (int i = 0; i < 16; i++) {
        fault_unless(i < N_TILES || (config->rows[i] == 0 && config->row_bytes[i] == 0),
                     "configuration of a tile that palette 1 lacks");
        fault_unless(config->rows[i] <= MAX_ROWS && config->row_bytes[i] <= MAX_ROW_BYTES,
                     "configuration larger than palette 1 allows");
        fault_unless((config->rows[i] == 0) == (config->row_bytes[i] == 0),
                     "only one of rows and row_bytes is zero");
    }
    state.config = *config;
    state.configured = true;
    memset(state.tile, 0, sizeof state.tile);
}

void emulated_tilerelease(void)
{
    state.configured = false;
    memset(&state.config, 0, sizeof state.config);
    memset(state.tile, 0xa5, sizeof state.tile);
}

void emulated_tilezero(int tile)
{
    tile_check(tile);
    memset(state.tile[tile], 0, sizeof state.tile[tile]);
}

/* Bytes and rows outside of the configured shape become zero. */
void emulated_tileloadd(int tile, const void *base, int64_t stride)
{
    tile_check(tile);
    uint8_t fresh[MAX_ROWS][MAX_ROW_BYTES] = {0};
    for (int r = 0; r < state.config.rows[tile]; r++)
        memcpy(fresh[r], (const uint8_t *)base + r * stride, state.config.row_bytes[tile]);
    memcpy(state.tile[tile], fresh, sizeof fresh);
    atomic_fetch_add(&n_loads, 1);
}

void emulated_tilestored(int tile, void *base, int64_t stride)
{
    tile_check(tile);
    for (int r = 0; r < state.config.rows[tile]; r++)
        memcpy((uint8_t *)base + r * stride, state.tile[tile][r], state.config.row_bytes[tile]);
    atomic_fetch_add(&n_stores, 1);
}

static void products_add(uint8_t out[MAX_ROWS][MAX_ROW_BYTES], uint8_t a[MAX_ROWS][MAX_ROW_BYTES],
                         uint8_t b[MAX_ROWS][MAX_ROW_BYTES], const tile_config *shape, int c_tile,
                         int a_tile, bool b_signed)
{
    for (int m = 0; m < shape->rows[c_tile]; m++)
        for (int k = 0; k < shape->row_bytes[a_tile] / 4; k++)
            for (int n = 0; n < shape->row_bytes[c_tile] / 4; n++) {
                uint32_t sum;
                memcpy(&sum, &out[m][n * 4], 4);
                for (int i = 0; i < 4; i++) {
                    int32_t x = (int8_t)a[m][k * 4 + i];
                    uint8_t byte = b[k][n * 4 + i];
                    sum += (uint32_t)(x * (b_signed ? (int8_t)byte : (int32_t)byte));
                }
                memcpy(&out[m][n * 4], &sum, 4);
            }
}

void emulated_tdp(int c, int a, int b, bool b_signed)
{
    tile_check(c), tile_check(a), tile_check(b);
    const tile_config *shape = &state.config;
    fault_unless(c != a && c != b && a != b, "one tile for two operands");
    fault_unless(shape->row_bytes[c] % 4 == 0 && shape->row_bytes[a] % 4 == 0 &&
                     shape->row_bytes[b] % 4 == 0,
                 "rows of a part of a word");
    fault_unless(shape->rows[c] == shape->rows[a], "rows of c and a");
    fault_unless(shape->row_bytes[c] == shape->row_bytes[b], "columns of c and b");
    fault_unless(shape->row_bytes[a] == 4 * shape->rows[b], "columns of a and rows of b");
    uint8_t out[MAX_ROWS][MAX_ROW_BYTES] = {0}; /* outside of the shape: zero */
    for (int m = 0; m < shape->rows[c]; m++)
        memcpy(out[m], state.tile[c][m], shape->row_bytes[c]);
    products_add(out, state.tile[a], state.tile[b], shape, c, a, b_signed);
    memcpy(state.tile[c], out, sizeof out);
    atomic_fetch_add(&n_products, 1);
}

bool emulated_tiles_in_use(void)
{
    return state.configured;
}

tile_counts emulated_tile_counts(void)
{
    return (tile_counts){atomic_load(&n_products), atomic_load(&n_loads), atomic_load(&n_stores)};
}
