/* Keeping turns: see turn_log.h. */
#include "tree/turn_log.h"

#include <assert.h>

#include "common/num.h"
#include "tree/accept.h"
#include "tree/tree.h"

/* Room for every turn: the largest tree, and the unused nodes before it. */
static int32_t nodes_of(int32_t n_nodes)
{
    return n_nodes ? max_i32(n_nodes, 2 * TREE_MAX_NODES) : 0;
}

static int32_t turns_of(int32_t n_nodes)
{
    return nodes_of(n_nodes) / TURN_LOG_NODES;
}

size_t turn_log_bytes(int32_t n_nodes)
{
    return arena_size((size_t)nodes_of(n_nodes) * sizeof(drey_trace_node)) +
           arena_size((size_t)turns_of(n_nodes) * sizeof(turn_record));
}

void turn_log_init(turn_log *log, int32_t n_nodes, arena *a)
{
    *log = (turn_log){.n_nodes = nodes_of(n_nodes), .n_turns = turns_of(n_nodes)};
    if (!n_nodes)
        return;
    log->nodes = arena_take(a, (size_t)log->n_nodes * sizeof *log->nodes);
    log->turns = arena_take(a, (size_t)log->n_turns * sizeof *log->turns);
}

void turn_log_add(turn_log *log, const token_tree *tree, const accepted *a, int64_t number,
                  int32_t position, int32_t n_written, int64_t now_ns)
{
    int64_t t0 = log->since_ns;
    log->since_ns = now_ns;
    if (log->watch)
        log->watch->turn(log->watch, tree, a);
    if (log->n_nodes == 0)
        return;
    int32_t n = tree->n_nodes;
    assert(n <= log->n_nodes);
    int64_t room = log->n_nodes - log->nodes_added % log->n_nodes;
    log->nodes_added += room < n ? room : 0; /* one run */
    turn_record *r = &log->turns[log->turns_added++ % log->n_turns];
    *r = (turn_record){.first_node = log->nodes_added,
                       .turn = {.number = number,
                                .t0_ns = t0,
                                .t1_ns = now_ns,
                                .position = position,
                                .next = a->next,
                                .n_written = n_written,
                                .n_nodes = n}};
    drey_trace_node *out = &log->nodes[log->nodes_added % log->n_nodes];
    for (int32_t i = 0; i < n; i++) {
        const tree_node *node = &tree->nodes[i];
        int32_t rank = i > 0 ? tree_rank(&tree->nodes[node->parent], node->token) : -1;
        out[i] = (drey_trace_node){.token = node->token,
                                   .parent = node->parent,
                                   .confidence = node->confidence,
                                   .rank = (uint8_t)(rank + 1),
                                   .submitted = node->submitted};
    }
    for (int32_t i = 0; i < a->n_path; i++)
        out[a->path[i]].accepted = true;
    log->nodes_added += n;
}

void turn_log_begin(turn_log *log, int64_t now_ns)
{
    log->since_ns = now_ns;
    log->text_turn = log->turns_added;
}

static int64_t oldest_turn(const turn_log *log)
{
    return max_i64(log->turns_added - log->n_turns, log->oldest);
}

/* Nodes come after their parents; those of a depth are accepted up to it. */
static void accept_depths(const turn_log *log, const turn_record *r, int32_t n)
{
    int32_t depth[TREE_MAX_NODES] = {0};
    drey_trace_node *node = &log->nodes[r->first_node % log->n_nodes];
    for (int32_t i = 1; i < r->turn.n_nodes; i++) {
        depth[i] = depth[node[i].parent] + 1;
        node[i].accepted = node[i].accepted && depth[i] <= n;
    }
}

void turn_log_cut(turn_log *log, int32_t n, int32_t last)
{
    if (log->n_nodes == 0)
        return;
    log->oldest = oldest_turn(log);
    int64_t first = max_i64(log->oldest, log->text_turn);
    while (log->turns_added > first) {
        turn_record *r = &log->turns[(log->turns_added - 1) % log->n_turns];
        int32_t left = n - 1 - r->turn.position;
        if (left > 0) {
            r->turn.n_written = min_i32(r->turn.n_written, left);
            r->turn.next = last;
            if (r->first_node >= log->nodes_added - log->n_nodes)
                accept_depths(log, r, r->turn.n_written - 1);
            return;
        }
        log->turns_added--;
    }
}

void turn_log_visit(const turn_log *log, const drey_trace_visitor *visitor)
{
    for (int64_t i = oldest_turn(log); i < log->turns_added; i++) {
        const turn_record *r = &log->turns[i % log->n_turns];
        if (r->first_node < log->nodes_added - log->n_nodes)
            continue; /* overwritten */
        drey_trace_turn turn = r->turn;
        turn.nodes = &log->nodes[r->first_node % log->n_nodes];
        visitor->turn(visitor->user, &turn);
    }
}
